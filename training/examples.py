"""A pin for trainers that bring a loader of their own: examples as mappings, batched by whoever asks.

In: a PackedDataset. Out: `input_ids`, `labels` and what goes with them, int64, for transformers.Trainer, Lightning or
any DataLoader with its default collate. It orders nothing: position p is example p, so a sampler that shuffles again
reads the same sequences in another order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

from training.batch import Batch
from training.dataset import PackedDataset, Rows
from training.masks import Labels
from training.pin import Pin
from training.ring import widened


class ExampleDataset(Dataset[dict[str, Tensor]]):
    """Sequences as mappings: input_ids, labels and attention_mask [W], and where documents are isolated position_ids.

    labels: "model" (transformers shifts by itself) or "shifted"; see training.masks. split, isolate_documents: see
    training.loader.build_dataloader. Positions restart with each isolated document and attention_mask stays out, which
    is how transformers' variable-length kernels tell packed documents apart; others would need the combined mask.
    """

    def __init__(
        self, pin: Pin, split: str = "train", *, labels: Labels = "model", isolate_documents: bool = False
    ) -> None:
        self.packed, self.labels = PackedDataset(pin, split, isolate_documents=isolate_documents), labels

    def __len__(self) -> int:
        return len(self.packed)

    def __getitem__(self, position: int) -> dict[str, Tensor]:
        return self.__getitems__([position])[0]

    def __getitems__(self, positions: Sequence[int]) -> list[dict[str, Tensor]]:
        """The examples at `positions`, gathered at once."""
        fields = as_mapping(self.packed.__getitems__(positions), self.labels, self.packed.isolate_documents)
        return [{name: values[row] for name, values in fields.items()} for row in range(len(positions))]


class AsMapping:
    """The collate_fn of a DataLoader over a PackedDataset, for trainers that take mappings: a batch is gathered at
    once and never split into examples."""

    def __init__(self, labels: Labels, isolate_documents: bool) -> None:
        self.labels, self.isolate_documents = labels, isolate_documents

    def __call__(self, rows: Rows) -> dict[str, Any]:
        return as_mapping(rows, self.labels, self.isolate_documents)


def as_mapping(rows: Rows, labels: Labels, isolate_documents: bool) -> dict[str, Tensor]:
    """input_ids, labels and attention_mask or position_ids, each int64 [B, W]."""
    tokens, *rest, _ = rows
    lengths, begins, unlearnt = (None if part is None else part.numpy() for part in rest)
    batch = Batch(widened(tokens), lengths, begins if isolate_documents else None, labels, 0, unlearnt=unlearnt)
    fields = {"input_ids": batch.input_ids, "labels": batch.labels}
    if isolate_documents:
        return fields | {"position_ids": batch.position_ids}
    return fields | {"attention_mask": batch.attention_mask.to(torch.int64)}
