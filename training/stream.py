"""Whole batches of a pin for a plain torch DataLoader, many of them gathered at once.

In: a PackedDataset, the size of a global batch, this rank. Out: Rows, one a batch, in the order of the run. What a
batch costs beside torch's own loop is the copying of its ids: places are located for thousands of rows, and batches are
views of pieces of memory, each freed when the last of its views goes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info

from training.ahead import FIRST_BLOCK, LARGEST_BLOCK
from training.dataset import PackedDataset, PositionBatches, Rows
from training.gather import Block

BLOCK_BYTES = 1 << 20
"""Of tokens gathered at once. After each piece torch's own code must come back into the second-level cache, 20 to 40
us; with 1 MB, 30 batches of 8 rows of 2,048 ids share that, and a row costs no more to gather than in smaller pieces
(one core with 1 MB of that cache, 2026)."""


class BatchStream(IterableDataset[Rows]):
    """DataLoader(BatchStream(dataset, 8), batch_size=None, collate_fn=keep): the batches from `position` on.

    dataset: of any split; batch_size, last, position, rank, world: as of training.dataset.PositionBatches, which raises
    ValueError for ranks that do not divide the batch. A fixed split ends where it ends, its last batch filled up with
    rows of no tokens. Each Rows bears the position after its global batch, which with the data and the order is all of
    a run's state, whatever was prefetched: see `state_dict`. Iterate anew to go on from it, with any number of workers,
    persistent ones too. Worker w of W reads each W-th batch from the w-th on; the DataLoader puts them in order again.

    A batch is a view of up to 1 MB that it shares with those around it: `clone()` what is kept for long.
    """

    def __init__(
        self,
        dataset: PackedDataset,
        batch_size: int,
        last: int | None = None,
        *,
        position: int = 0,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        if dataset.order is None:
            last = dataset.sequences if last is None else min(last, dataset.sequences)
        self.dataset, self._batches = dataset, PositionBatches(batch_size, last, rank=rank, world=world)
        # In shared memory: persistent workers hold a copy of this object from their start on.
        self._position = torch.tensor(position, dtype=torch.int64).share_memory_()  # type: ignore[no-untyped-call]

    @property
    def position(self) -> int:
        """Where the next `iter` begins; iterating does not move it."""
        return int(self._position)

    @position.setter
    def position(self, position: int) -> None:
        self._position.fill_(position)

    def state_dict(self, rows: Rows) -> dict[str, Any]:
        """The state after the batch `rows`, the last that was trained on."""
        return self.dataset.state(self.position if rows.position is None else rows.position)

    def load_state_dict(self, state: dict[str, Any], *, allow_other_pin: bool = False) -> None:
        """Go on from a state of a stream or a training.loader.Loader at the next `iter`; raises ValueError as theirs
        does."""
        self.position = self.dataset.position_of(state, allow_other_pin=allow_other_pin)

    def __len__(self) -> int:
        """Batches from `position` on; raises TypeError for a run without end."""
        self._batches.position = self.position
        return len(self._batches)

    def __iter__(self) -> Iterator[Rows]:
        worker: Any = get_worker_info()
        number, workers = (worker.id, worker.num_workers) if worker else (0, 1)
        size = self._batches.batch_size
        return chain.from_iterable(self._pieces(self.position + number * size, workers * size))

    def _pieces(self, first: int, step: int) -> Iterator[Iterator[Rows]]:
        """The batches whose global batches begin at `first`, `first + step` and so on, a piece of memory at a time."""
        share, last, rows = len(self._batches.own), self._batches.last, FIRST_BLOCK
        together = share * max(1, BLOCK_BYTES // (share * self.dataset.width * self.dataset.dtype.itemsize))
        while last is None or first < last:
            count = max(1, rows // share)
            firsts = first + step * np.arange(count if last is None else min(count, -(-(last - first) // step)))
            whole = firsts[: self._whole(firsts)]
            block = self.dataset.locate(self._positions(whole), share)
            for start in range(0, len(block.ids), together):
                stop = min(start + together, len(block.ids))
                yield self._piece(block, start, stop, range(first + self._batches.batch_size, 1 << 62, step))
                first += (stop - start) // share * step
            if len(whole) < len(firsts):
                yield iter([self._filled(first)])
                return
            rows = min(4 * rows, LARGEST_BLOCK)

    def _piece(self, block: Block, start: int, stop: int, after: range) -> Iterator[Rows]:
        """Rows [start, stop) of the block as batches; after: the position behind each of them."""
        share = len(self._batches.own)
        tokens = np.empty((stop - start, self.dataset.width), self.dataset.dtype)
        self.dataset.shards.copy(block, start, stop, self.dataset.filler, tokens)
        batches = torch.from_numpy(tokens).view(-1, share, self.dataset.width).unbind()
        if block.plain(start, stop):
            return map(Rows, batches, repeat(None), repeat(None), repeat(None), after)
        return map(self._told, repeat(block), range(start, stop, share), batches, after)

    def _told(self, block: Block, at: int, batch: torch.Tensor, position: int) -> Rows:
        parts = self.dataset.shards.told(block, at, at + len(batch))
        lengths, begins, unlearnt = (None if part is None else torch.from_numpy(part) for part in parts)
        return Rows(batch, lengths, begins, unlearnt, position)

    def _filled(self, first: int) -> Rows:
        """The last batch of a fixed split, rows of no tokens among its own."""
        own = self._batches.own
        rows = self.dataset.__getitems__(range(first + own.start, first + own.stop))
        return rows._replace(position=first + self._batches.batch_size)

    def _whole(self, firsts: np.ndarray) -> int:
        """How many of the global batches hold a sequence for each row of this rank's share."""
        if self.dataset.order is not None:
            return len(firsts)
        return int(np.searchsorted(firsts, self.dataset.sequences - self._batches.own.stop, side="right"))

    def _positions(self, firsts: np.ndarray) -> np.ndarray:
        own = self._batches.own
        return np.asarray((firsts[:, None] + np.arange(own.start, own.stop)).ravel(), np.int64)
