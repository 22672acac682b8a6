"""Texts cut where no merge can reach across, so that each different segment is encoded but once.

In: UTF-8 bytes, the borders of the texts in them, and, for segments not seen before, their ids. Out: the ids
of the texts. It knows no tokenizer; which texts may be cut so is tasks.encoder's affair.

A segment is a run of spaces with what follows up to the next space, or one newline, or one tab.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

Array = np.ndarray[Any, Any]

SPACE, NEWLINE, TAB = 0x20, 0x0A, 0x09
MOST_TRIES = 64
"""Places looked at for a segment; beyond them it counts as one more. So text made to collide costs no more
time."""


def segment_starts(data: Array, borders: Array) -> Array:
    """First byte of each segment, int64 [m], rising.

    data: uint8 [n]. borders: int64 [texts + 1], where each text begins, and n. Every text begins a segment.
    """
    if not len(data):
        return np.empty(0, np.int64)
    marked = np.zeros(len(data) + 1, bool)
    alone = (data == NEWLINE) | (data == TAB)
    space = data == SPACE
    marked[1:-1] = (space[1:] & ~space[:-1]) | alone[1:] | alone[:-1]
    marked[borders] = True
    return np.flatnonzero(marked[:-1])


class SegmentMemory:
    """Segments seen so far, numbered from 0, and the ids of each.

    Equal means equal bytes, the hash only finds candidates; equal segments may be told apart, never the
    reverse. Memory: 40 bytes a segment, its bytes and its ids. Not for use by several threads at once.
    """

    def __init__(self) -> None:
        self.known = 0
        self._table = np.full(1 << 16, -1, np.int64)
        self._hashes = np.empty(1 << 14, np.uint64)
        self._spans = np.zeros((1 << 14) + 1, np.int64)  # segment i is bytes spans[i] to spans[i + 1] of the arena
        self._arena = np.empty(1 << 18, np.uint8)
        self._pool = np.empty(0, np.int32)
        self._borders = np.zeros(1, np.int64)  # its ids are borders[i] to borders[i + 1] of the pool

    @property
    def bytes(self) -> int:
        """Bytes of all segments."""
        return int(self._spans[self.known])

    def numbers_of(self, data: Array, starts: Array) -> Array:
        """The number of each segment, int64 [m]; those not seen before get the next ones. 150 MB a CPU
        second."""
        self._make_room(len(starts), len(data))
        which = np.empty(len(starts), np.int64)
        self.known = _look_up(data, starts, self._table, self._arena, self._spans, self._hashes, self.known, which)
        return which

    def unlearned(self) -> tuple[Array, Array]:
        """(bytes uint8, stops int64 [u]) of the segments without ids, one after another."""
        first = len(self._borders) - 1
        begin = self._spans[first]
        return self._arena[begin : self._spans[self.known]], self._spans[first + 1 : self.known + 1] - begin

    def learn(self, ids: Array, sizes: Array) -> None:
        """Take the ids of all unlearned segments, flat, and how many each has."""
        self._pool = np.concatenate([self._pool, ids])
        self._borders = np.concatenate([self._borders, self._borders[-1] + np.cumsum(sizes)])

    def ids_of(self, which: Array) -> tuple[Array, Array]:
        """(ids int32 [k], stops int64 [m]): the ids of each numbered segment in turn, and where each one's
        end."""
        stops = np.cumsum(np.diff(self._borders)[which])
        out = np.empty(int(stops[-1]) if len(stops) else 0, np.int32)
        _gather(self._pool, self._borders, which, out)
        return out, stops

    def _make_room(self, segments: int, size: int) -> None:
        """Room for `segments` more of `size` bytes in all, and a table that stays half empty."""
        most = self.known + segments
        self._hashes = _grown(self._hashes, most)
        self._spans = _grown(self._spans, most + 1)
        self._arena = _grown(self._arena, self.bytes + size)
        if 2 * most > len(self._table):
            self._table = np.full(1 << int(2 * most).bit_length(), -1, np.int64)
            _fill(self._table, self._hashes[: self.known])


def _grown(array: Array, size: int) -> Array:
    """`array` itself where it holds `size` items, else a copy with room for half as many again."""
    if size <= len(array):
        return array
    grown = np.empty(size + size // 2, array.dtype)
    grown[: len(array)] = array
    return grown


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _look_up(
    data: Array,
    starts: Array,
    table: Array,
    arena: Array,
    spans: Array,
    hashes: Array,
    known: int,
    which: Array,
) -> int:
    """Fill `which`; add what is new to table, arena, spans and hashes. Returns how many are known then."""
    for at in range(len(starts)):
        start = starts[at]
        stop = starts[at + 1] if at + 1 < len(starts) else len(data)
        mixed = np.uint64(14695981039346656037)  # FNV-1a
        for byte in range(start, stop):
            mixed = (mixed ^ np.uint64(data[byte])) * np.uint64(1099511628211)
        slot, found = _find(data, start, stop, table, arena, spans, hashes, mixed)
        if found < 0:
            found = known
            hashes[found] = mixed
            end = spans[found]
            for byte in range(start, stop):
                arena[end] = data[byte]
                end += 1
            spans[found + 1] = end
            known += 1
            if slot >= 0:
                table[slot] = found
        which[at] = found
    return known


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _find(
    data: Array,
    start: int,
    stop: int,
    table: Array,
    arena: Array,
    spans: Array,
    hashes: Array,
    mixed: Any,
) -> tuple[Any, Any]:
    """(slot, number): where the segment is, or else (a free slot or -1, -1)."""
    mask = len(table) - 1
    slot = np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(mask))
    for _ in range(MOST_TRIES):
        number = table[slot]
        if number < 0:
            return slot, -1
        begin = spans[number]
        if hashes[number] == mixed and spans[number + 1] - begin == stop - start:
            size = stop - start
            same = 0
            while same < size and arena[begin + same] == data[start + same]:
                same += 1
            if same == size:
                return slot, number
        slot = (slot + 1) & mask
    return -1, -1


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _fill(table: Array, hashes: Array) -> None:
    """Put the numbers of all `hashes` into an empty table; one that finds no place stays out."""
    mask = len(table) - 1
    for number in range(len(hashes)):
        mixed = hashes[number]
        slot = np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(mask))
        for _ in range(MOST_TRIES):
            if table[slot] < 0:
                table[slot] = number
                break
            slot = (slot + 1) & mask


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _gather(pool: Array, borders: Array, which: Array, out: Array) -> None:
    end = 0
    for number in which:
        for at in range(borders[number], borders[number + 1]):
            out[end] = pool[at]
            end += 1
