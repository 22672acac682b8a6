"""Windows over a stream of ids: how many there are, where each lies, and those of a stream that goes by.

In: ids of documents, one after another. Out: windows of T + 1 ids (T inputs and the target of each), `stride`
apart. With stride T they are the pack step's sequences: neighbours share one id, so that every id but the first
is a target once; with less, ids are targets several times. Legend: T max_seq_len, S stride.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


class Window(NamedTuple):
    """ids int64 [n], n at most T + 1; begins bool [n]: True where a document begins."""

    ids: np.ndarray
    begins: np.ndarray


@dataclass(frozen=True)
class Windows:
    """max_seq_len: inputs of a window. stride: ids from one start to the next. min_length: ids that the last,
    shorter window must have to be kept; None keeps full ones alone, 2 (one target) loses nothing.

    Raises ValueError for a stride beyond max_seq_len, between whose windows targets would be lost.
    """

    max_seq_len: int
    stride: int
    min_length: int | None = None

    def __post_init__(self) -> None:
        if self.max_seq_len < 1:
            raise ValueError(f"max_seq_len is {self.max_seq_len}; it must be 1 or more")
        if not 1 <= self.stride <= self.max_seq_len:
            raise ValueError(f"stride is {self.stride}; it must be 1 to max_seq_len={self.max_seq_len}")
        if self.min_length is not None and not 2 <= self.min_length <= self.full:
            raise ValueError(f"min_length is {self.min_length}; it must be 2 (one target) to {self.full}, or None")

    @property
    def full(self) -> int:
        """Ids of a full window."""
        return self.max_seq_len + 1

    def count(self, tokens: int) -> int:
        """Windows of a stream of `tokens` ids."""
        full = self._full(tokens)
        return full + self._keeps(full, tokens - full * self.stride)

    def covered(self, tokens: int) -> int:
        """Ids that lie in a window; the others are the end of the stream."""
        count = self.count(tokens)
        return min(tokens, (count - 1) * self.stride + self.full) if count else 0

    def bounds(self, number: int, tokens: int) -> tuple[int, int]:
        """(first id, one past the last) of a window."""
        start = number * self.stride
        return start, min(start + self.full, tokens)

    def over(self, stream: Iterable[Window]) -> Iterator[Window]:
        """The windows of documents that go by; holds one of them and what is longest of its parts."""
        held, full = Window(np.empty(0, np.int64), np.empty(0, np.bool_)), 0
        for part in stream:
            held = Window(*(np.concatenate(pair) for pair in zip(held, part, strict=True)))
            many = self._full(len(held.ids))
            for start in range(0, many * self.stride, self.stride):
                yield Window(*(field[start : start + self.full] for field in held))
            held = Window(*(field[many * self.stride :] for field in held))
            full += many
        if self._keeps(full, len(held.ids)):
            yield held

    def _full(self, tokens: int) -> int:
        return max(0, (tokens - self.full) // self.stride + 1)

    def _keeps(self, full: int, left: int) -> bool:
        """Whether `left` ids after the start of the window that is not full make one: some are in no other."""
        seen = self.full - self.stride if full else 1
        return self.min_length is not None and left >= self.min_length and left > seen
