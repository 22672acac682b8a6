"""Where the rows of coming batches lie, located thousands at a time, as numpy's cost a row falls with their number.

In: the positions asked for, batch after batch. Out: a Block and where in it the batch stands. It learns the step from
one batch to the next, so that a rank or a worker locates its own rows and no other's.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from training.gather import Block

FIRST_BLOCK, LARGEST_BLOCK = 16, 8192
"""Rows to locate: at the start of a run, so that it begins at once, and once it is under way."""

FARTHEST = 1 << 20
"""Batches from one of a rank or worker to its next; what lies further on is no step but another place."""


class Ahead:
    """locate(positions int64 [n], group): their Block, begins counted from each group of rows; end: of a fixed split,
    past its last position, or None."""

    def __init__(self, locate: Callable[[np.ndarray, int], Block], end: int | None) -> None:
        self._locate, self._end = locate, end
        self._block: Block | None = None
        self._begin = self._count = self._groups = self._last = self._rows = 0
        self._step = 1

    def find(self, first: int, count: int) -> tuple[Block, int]:
        """(block, row of it) from where positions [first, first + count) lie one after another, a group's first."""
        group, rest = divmod(first - self._begin, self._step)
        if rest or count > self._count or not 0 <= group < self._groups or self._block is None:
            self._block, group = self._located(first, count), 0
        self._last = first
        return self._block, group * self._count

    def _located(self, first: int, count: int) -> Block:
        step, fresh = first - self._last, self._block is None or count != self._count
        follows = not fresh and step == self._step
        if not fresh and count <= step <= FARTHEST * count:
            self._step = step
        elif fresh:
            self._step = max(1, count)
        self._rows = min(4 * self._rows, LARGEST_BLOCK) if follows else FIRST_BLOCK
        firsts = first + self._step * np.arange(max(1, self._rows // max(1, count)), dtype=np.int64)
        positions = (firsts[:, None] + np.arange(count)).ravel()
        if self._end is not None:
            positions = positions[positions < self._end]
        block = self._locate(positions, max(1, count))
        # Noted once it is there: after an error the old block must not answer for the new places.
        self._begin, self._count, self._groups = first, count, -(-len(positions) // max(1, count))
        return block
