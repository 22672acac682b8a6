"""Packed sequences of a pin, memory-mapped: positions in, one array of tokens out.

In: a Pin and positions of its order. Out: rows of T+1 tokens, gathered straight into the caller's buffer,
with their lengths and, where asked, the places where documents begin (from the shards' index, never by
looking for EOS). It shuffles nothing, widens nothing and knows no device. Legend: B rows, T1 =
tokens_per_sequence + 1.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tasks.artifacts.shards import ShardReader
from training.order import Ahead, Order
from training.pin import Pin


class Rows(NamedTuple):
    """A gathered batch: tokens int64 [B, T1], lengths int32 [B], begins bool [B, T1] (where a document
    begins)."""

    tokens_BT1: Tensor
    lengths_B: Tensor
    begins_BT1: Tensor


class PackedDataset:
    """The sequences of one split. train is read in the order of the run, by position, without end; validation
    and test in a fixed order: source by source, shard by shard, once.

    Serves training.loader, and any torch DataLoader through `__getitems__` with `collate_fn=keep`:
    DataLoader(dataset, batch_sampler=PositionBatches(...), collate_fn=keep) gathers each batch at once.
    """

    def __init__(self, pin: Pin, split: str = "train") -> None:
        self.pin, self.split = pin, split
        self.width = pin.schedule.tokens_per_sequence + 1
        self.dtype = np.dtype(pin.schedule.dtype)
        self.order = Order(pin.schedule) if split == "train" else None
        self._ahead = Ahead(self.order) if self.order else None
        sources = self.order.sources if self.order else sorted(pin.schedule.sources)
        shards = [
            [ShardReader(path.parent, path.name) for path in pin.shards(name, split)] for name in sources
        ]
        self._shards = [shard for of_source in shards for shard in of_source]
        self._ends = np.cumsum([len(shard) for shard in self._shards], dtype=np.int64)
        counts = [sum(len(shard) for shard in of_source) for of_source in shards]
        self._firsts = np.cumsum([0, *counts])[:-1]
        self.sequences = sum(counts)

    def __len__(self) -> int:
        """Sequences of the split, each counted once; positions of train run on beyond it."""
        return self.sequences

    def __reduce__(self) -> tuple[Any, ...]:
        """A worker process maps the shards itself."""
        return PackedDataset, (self.pin, self.split)

    def __getitem__(self, position: int) -> Rows:
        return Rows(*(field[0] for field in self.__getitems__([position])))

    def __getitems__(self, positions: Sequence[int] | np.ndarray) -> Rows:
        """The rows at `positions`, widened: for a standard DataLoader."""
        places = np.asarray(positions, np.int64)
        tokens = np.empty((len(places), self.width), self.dtype)
        lengths, begins = np.empty(len(places), np.int32), np.zeros(tokens.shape, np.bool_)
        self.gather(self.numbers(places), tokens, lengths, begins)
        return Rows(*map(torch.from_numpy, (tokens.astype(np.int64), lengths, begins)))

    def numbers(self, positions: np.ndarray) -> np.ndarray:
        """Position -> number of the sequence among all of this dataset's, int64[B]."""
        if self.order is None:
            return positions
        places = self.order.at(positions)
        return np.asarray(self._firsts[places.source] + places.sequence)

    def run(self, first: int, count: int) -> np.ndarray:
        """`numbers` of positions [first, first + count), from blocks computed ahead."""
        if self._ahead is None:
            return np.arange(first, first + count)
        places = self._ahead.at(first, count)
        return np.asarray(self._firsts[places.source] + places.sequence)

    def gather(
        self,
        numbers: np.ndarray,
        tokens_BT1: np.ndarray,
        lengths_B: np.ndarray,
        begins_BT1: np.ndarray | None,
    ) -> None:
        """Copy sequences into the first rows of the buffers; what is beyond a row's length becomes EOS.

        1.5 thousand million tokens a second at T = 2048 with a warm cache (one core, 2026).
        """
        of_shard = np.searchsorted(self._ends, numbers, side="right")
        for row, (number, shard_number) in enumerate(zip(numbers.tolist(), of_shard.tolist(), strict=True)):
            shard = self._shards[shard_number]
            place = number - int(self._ends[shard_number]) + len(shard)
            start, stop = int(shard.starts[place]), int(shard.stops[place])
            tokens_BT1[row, : stop - start] = shard.tokens[start:stop]
            lengths_B[row] = stop - start
            if stop - start < self.width:
                tokens_BT1[row, stop - start :] = self.pin.schedule.eos_id
            if begins_BT1 is not None:
                self._mark(shard, start, stop, begins_BT1[row])

    def _mark(self, shard: ShardReader, start: int, stop: int, begins_T1: np.ndarray) -> None:
        """True at the row's first token, and wherever a document begins in it."""
        size, pointers = self.dtype.itemsize, shard.index.pointers
        # bisect, as searchsorted would first copy all pointers: they are not aligned in the file.
        first, last = (bisect_left(pointers, place * size) for place in (start, stop))
        begins_T1[:] = False
        begins_T1[pointers[first:last] // size - start] = True
        begins_T1[0] = True


class PositionBatches:
    """A batch sampler for a standard DataLoader: `steps` arrays of this rank's positions from `position`
    on."""

    def __init__(
        self, batch_size: int, steps: int, *, position: int = 0, rank: int = 0, world: int = 1
    ) -> None:
        self._batch, self._steps, self._position = batch_size, steps, position
        self._own = own_rows(batch_size, rank, world)

    def __len__(self) -> int:
        return self._steps

    def __iter__(self) -> Iterator[np.ndarray]:
        for step in range(self._steps):
            first = self._position + step * self._batch
            yield np.arange(first + self._own.start, first + self._own.stop)


def own_rows(batch_size: int, rank: int, world: int) -> range:
    """The rows of a global batch that a rank reads; raises ValueError where the ranks do not divide the
    batch."""
    if batch_size < 1 or world < 1 or not 0 <= rank < world:
        raise ValueError(f"rank {rank} of {world} cannot read a batch of {batch_size}")
    if batch_size % world:
        divisors = [str(n) for n in range(1, batch_size + 1) if batch_size % n == 0]
        raise ValueError(
            f"a global batch of {batch_size} cannot be shared by {world} ranks; "
            f"use {', '.join(divisors)} ranks or another batch_size"
        )
    share = batch_size // world
    return range(rank * share, (rank + 1) * share)


def keep(rows: Rows) -> Rows:
    """The collate_fn of a DataLoader over PackedDataset: a batch is gathered, there is nothing to collate."""
    return rows
