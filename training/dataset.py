"""Packed sequences of a pin, memory-mapped: positions in, one array of tokens out.

In: a Pin and positions of its order. Out: rows of T+1 tokens, gathered straight into the caller's buffer,
with their lengths and, where asked, the places where documents begin (from the shards' index, never by
looking for EOS). It shuffles nothing, widens nothing and knows no device. Legend: B rows, T1 =
tokens_per_sequence + 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tasks.artifacts.shards import ShardReader
from training.gather import View, gather
from training.order import BLOCK, Order
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
        sources = self.order.sources if self.order else sorted(pin.schedule.sources)
        shards = [[ShardReader(path.parent, path.name) for path in pin.shards(name, split)] for name in sources]
        self._views = [View(shard) for of_source in shards for shard in of_source]
        counts = [sum(map(len, of_source)) for of_source in shards]
        self._firsts = np.cumsum([0, *counts])[:-1]
        self._ends = np.cumsum([len(view.starts) for view in self._views], dtype=np.int64)
        self.sequences = sum(counts)
        self._ahead: tuple[int, list[tuple[int, int]]] = (0, [])

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
        located = self.locate(np.asarray(positions, np.int64))
        tokens = np.full((len(located), self.width), self.pin.schedule.eos_id, self.dtype)
        lengths, begins = np.empty(len(located), np.int32), np.zeros(tokens.shape, np.bool_)
        self.gather(located, tokens, lengths, begins)
        return Rows(*map(torch.from_numpy, (tokens.astype(np.int64), lengths, begins)))

    def locate(self, positions: np.ndarray) -> list[tuple[int, int]]:
        """(number of the shard, place in it) of the sequence that each position of int64[B] reads."""
        numbers = positions
        if self.order is not None:
            places = self.order.at(positions)
            numbers = self._firsts[places.source] + places.sequence
        shards = np.searchsorted(self._ends, numbers, side="right")
        firsts = np.concatenate([[0], self._ends])[shards]
        return list(zip(shards.tolist(), (numbers - firsts).tolist(), strict=True))

    def run(self, first: int, count: int) -> list[tuple[int, int]]:
        """`locate` of positions [first, first + count), from blocks ahead: a call costs the same for 8 or
        1,024."""
        begin, block = self._ahead
        if not begin <= first <= first + count <= begin + len(block):
            begin, block = first, self.locate(np.arange(first, first + max(count, BLOCK), dtype=np.int64))
            self._ahead = (begin, block)
        return block[first - begin : first - begin + count]

    def gather(
        self,
        located: Sequence[tuple[int, int]],
        tokens_BT1: np.ndarray,
        lengths_B: np.ndarray,
        begins_BT1: np.ndarray | None,
    ) -> bool:
        """training.gather.gather, with EOS beyond a row's length."""
        full = gather(self._views, located, tokens_BT1, lengths_B, begins_BT1)
        if not full:
            for row in np.flatnonzero(lengths_B[: len(located)] < self.width):
                tokens_BT1[row, lengths_B[row] :] = self.pin.schedule.eos_id
        return full


class PositionBatches:
    """A batch sampler for a standard DataLoader: `steps` arrays of this rank's positions from `position`
    on."""

    def __init__(self, batch_size: int, steps: int, *, position: int = 0, rank: int = 0, world: int = 1) -> None:
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
