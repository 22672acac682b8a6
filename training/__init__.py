"""From a pinned data version to batches on a device: torch, numpy, pyarrow and tasks.artifacts only."""
