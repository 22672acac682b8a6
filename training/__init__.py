"""From a pinned data version to batches on a device: torch, numpy, pyarrow and tasks.artifacts only."""

from __future__ import annotations

import importlib
from typing import Any

_PLACES = {
    "LLMDataCollator": "collate",
    "LengthGroupedBatches": "grouping",
    "LMTextDataset": "online",
    "LMTextStream": "online",
    "analyze_dataset_statistics": "inspect_batches",
    "build_dataloader": "loader",
    "check_vocab_coverage": "inspect_batches",
    "create_combined_attention_mask": "masks",
    "open_pin": "pin",
    "verify_pipeline": "inspect_batches",
}
__all__ = sorted(_PLACES)


def __getattr__(name: str) -> Any:
    """The names of _PLACES, each with what it needs and no sooner."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
