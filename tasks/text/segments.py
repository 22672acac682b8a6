"""Segments of text that were seen before, and their ids: each different one is encoded but once.

In: UTF-8 bytes, where segments begin in them (tasks.text.seams), and, for those not seen before, their ids. Out: the
ids of all. It knows no tokenizer.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from tasks.text.segment_table import fill, look_up, settle

Array = np.ndarray[Any, Any]


class SegmentMemory:
    """Segments seen so far, numbered from 0, and the ids of each.

    Equal means equal bytes; equal segments may be told apart, never the reverse. Up to EXACT bytes are a key as they
    are, of longer ones a hash finds candidates. Memory: 70 to 90 bytes a segment, its bytes and its ids. Not for use by
    several threads at once. Little-endian machines only.
    """

    def __init__(self) -> None:
        self.known = 0
        self._slots = np.zeros((1 << 12, 2), np.uint64)
        self._spans = np.zeros((1 << 11) + 1, np.int64)  # segment i is bytes spans[i] to spans[i + 1] of the arena
        self._arena = np.empty(1 << 15, np.uint8)
        self._learnt = 0
        self._pool = np.empty(1 << 12, np.int32)
        self._borders = np.zeros((1 << 11) + 1, np.int64)  # its ids are borders[i] to borders[i + 1] of the pool

    @property
    def bytes(self) -> int:
        """Bytes of all segments."""
        return int(self._spans[self.known])

    def numbers_of(self, data: Array, starts: Array) -> Array:
        """The number of each segment, int32 [m]; those not seen before get the next ones. ~i, which is below 0, for one
        of up to EXACT bytes that has learnt i as its only id."""
        which = np.empty(len(starts), np.int32)
        at = 0
        while at < len(starts):
            at, self.known = look_up(data, starts, at, self._slots, self._arena, self._spans, self.known, which)
            if at < len(starts):
                stop = starts[at + 1] if at + 1 < len(starts) else len(data)
                self._grow(int(stop - starts[at]))
        return which

    def unlearned(self) -> tuple[Array, Array]:
        """(bytes uint8, stops int64 [u]) of the segments without ids, one after another."""
        begin = self._spans[self._learnt]
        return self._arena[begin : self._spans[self.known]], self._spans[self._learnt + 1 : self.known + 1] - begin

    def learn(self, ids: Array, sizes: Array) -> None:
        """Take the ids of all unlearned segments, flat, and how many each has."""
        first, begin = self._learnt, int(self._borders[self._learnt])
        self._learnt += len(sizes)
        if begin + len(ids) > len(self._pool):
            self._pool = _grown(self._pool, begin + len(ids))
        if self._learnt >= len(self._borders):
            self._borders = _grown(self._borders, self._learnt + 1)
        self._pool[begin : begin + len(ids)] = ids
        self._borders[first + 1 : self._learnt + 1] = begin + np.cumsum(sizes)
        settle(self._slots, self._arena, self._spans, first, self._learnt, self._pool, self._borders)

    def ids_of(self, which: Array, marks: Array) -> tuple[Array, Array]:
        """(ids int32 [k] of each segment in turn, int64: how many of them come before each mark).

        which: as numbers_of gives them. marks: int64, rising, 0 to m: places in `which`.
        """
        ends, ids = np.zeros(len(marks) + 1, np.int64), np.empty(len(which) + (len(which) >> 1) + 64, np.int32)
        stops = np.append(marks, len(which))
        at, mark = _gather(self._pool, self._borders, which, stops, 0, 0, ids, ends)
        while mark < len(stops):
            most = int(np.diff(self._borders[: self._learnt + 1]).max(initial=1))
            ids = _grown(ids, ends[mark] + most)
            at, mark = _gather(self._pool, self._borders, which, stops, at, mark, ids, ends)
        return ids[: ends[-1]], ends[:-1]

    def _grow(self, size: int) -> None:
        """Room for one segment more of `size` bytes, and for half as much again of all."""
        if self.known + 1 >= len(self._spans):
            self._spans = _grown(self._spans, self.known + 2)
        if self.bytes + size > len(self._arena):
            self._arena = _grown(self._arena, self.bytes + size)
        if 2 * (self.known + 1) > len(self._slots):
            self._slots, slots = np.zeros((2 * len(self._slots), 2), np.uint64), self._slots
            fill(self._slots, slots)


def _grown(array: Array, size: int) -> Array:
    """A copy with room for `size` items and half as many again."""
    grown = np.empty(size + size // 2, array.dtype)
    grown[: len(array)] = array
    return grown


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _gather(
    pool: Array, borders: Array, which: Array, stops: Array, at: int, mark: int, out: Array, ends: Array
) -> tuple[Any, Any]:
    """Fill `out` and `ends` from there on, ends[mark] with what it has. Returns where it stopped, for lack of room or
    at the end."""
    end, room = np.uint64(ends[mark]), np.uint64(len(out))
    for number in range(mark, len(stops)):
        for place in range(np.uint64(at), np.uint64(stops[number])):
            own = which[place]
            size = np.uint64(1 if own < 0 else borders[own + 1] - borders[own])
            if end + size > room:
                ends[number] = end
                return np.int64(place), number
            if own < 0:
                out[end] = ~own
            else:
                first = np.uint64(borders[own])
                for later in range(size):
                    out[end + later] = pool[first + later]
            end += size
        at = max(at, stops[number])
        ends[number] = end
    return at, len(stops)
