"""A torch DataLoader over a text file, without the pipeline: windows, shuffled anew each epoch, shared by ranks.

In: a .txt or .jsonl and a tokenizer. Out: batches as mappings of int64 tensors. It resumes nothing: a run that must
go on where it stopped reads a pin.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from torch.utils.data import DataLoader

from training.collate import LLMDataCollator
from training.dataset import own_rows
from training.encoders import pad_id
from training.feistel import domain, permute
from training.masks import Labels
from training.online import LMTextDataset
from training.order import source_key


class EpochBatches:
    """A batch sampler: each pass reads every window once, and each pass in another order (nobody need set an epoch).

    batch_size is of all ranks together. The last batch is as large as what is left, less what the ranks cannot share
    evenly (below one window a rank), so that all take equally many steps; `drop_last` leaves it out. epoch: of the
    next pass.
    """

    def __init__(
        self, windows: int, batch_size: int, *, shuffle: bool, drop_last: bool, rank: int, world: int, seed: int = 0
    ) -> None:
        own_rows(batch_size, rank, world)
        self._batch, self._rank, self._world = batch_size, rank, world
        self._used = windows // batch_size * batch_size if drop_last else windows // world * world
        self._windows, self._key, self._shuffle, self.epoch = windows, source_key(seed, "text"), shuffle, 0

    def __len__(self) -> int:
        return -(-self._used // self._batch)

    def __iter__(self) -> Iterator[list[int]]:
        epoch, self.epoch = self.epoch, self.epoch + 1
        for first in range(0, self._used, self._batch):
            rows = own_rows(min(self._batch, self._used - first), self._rank, self._world)
            places = np.arange(first + rows.start, first + rows.stop, dtype=np.uint64)
            yield (self._shuffled(places, epoch) if self._shuffle else places).tolist()

    def _shuffled(self, places: np.ndarray, epoch: int) -> np.ndarray:
        keys = np.full(len(places), (self._key + epoch * 0x9E3779B97F4A7C15) & (1 << 64) - 1, np.uint64)
        return permute(places, keys, domain(np.full(len(places), self._windows)))


def text_loader(
    path: Path,
    tokenizer: Any,
    batch_size: int,
    max_seq_len: int,
    stride: int | None,
    *,
    pad: int | None,
    num_workers: int,
    pin_memory: bool,
    shuffle: bool,
    drop_last: bool,
    prefetch_factor: int,
    labels: Labels,
    isolate_documents: bool,
    rank: int,
    world: int,
) -> DataLoader[Any]:
    """See training.loader.build_dataloader."""
    collate = LLMDataCollator(pad_id(tokenizer if pad is None else pad), padding_side="right", labels=labels)
    dataset = LMTextDataset(path, tokenizer, max_seq_len, stride, labels=labels, isolate_documents=isolate_documents)
    batches = EpochBatches(len(dataset), batch_size, shuffle=shuffle, drop_last=drop_last, rank=rank, world=world)
    return DataLoader(
        dataset, batch_sampler=batches, collate_fn=collate, num_workers=num_workers, pin_memory=pin_memory,
        persistent_workers=num_workers > 0, prefetch_factor=prefetch_factor if num_workers else None,
    )  # fmt: skip
