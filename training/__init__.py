"""From a pinned data version to batches on a device: torch, numpy, pyarrow and tasks.artifacts only.

The names that a training script needs are imported from here, each when it is first used: `import training` loads no
torch.
"""

from importlib import import_module
from typing import Any

NAMES = {
    "Batch": "batch",
    "BatchStream": "stream",
    "ExampleDataset": "examples",
    "LLMDataCollator": "collate",
    "LMTextDataset": "online",
    "LMTextStream": "online",
    "LengthGroupedBatches": "grouping",
    "PackedDataset": "dataset",
    "Pin": "pin",
    "Shuffle": "order",
    "analyze_dataset_statistics": "inspect_batches",
    "build_dataloader": "loader",
    "check_vocab_coverage": "inspect_batches",
    "create_combined_attention_mask": "masks",
    "document_ids": "masks",
    "open_pin": "pin",
    "verify_pipeline": "inspect_batches",
}
__all__ = sorted(NAMES)


def __getattr__(name: str) -> Any:
    if name not in NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{NAMES[name]}"), name)
