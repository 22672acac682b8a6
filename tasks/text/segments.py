"""Segments of text that were seen before, and their ids: each different one is encoded but once.

In: UTF-8 bytes, where segments begin in them (tasks.text.seams), and, for those not seen before, their ids. Out: the
ids of all. It knows no tokenizer.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

Array = np.ndarray[Any, Any]

MOST_TRIES = 64
"""Places looked at for a segment; beyond them it counts as one more. So text made to collide costs no more time."""


class SegmentMemory:
    """Segments seen so far, numbered from 0, and the ids of each.

    Equal means equal bytes; equal segments may be told apart, never the reverse. Up to seven bytes are a key as they
    are, of longer ones a hash finds candidates. Memory: 40 to 60 bytes a segment, its bytes and its ids. Not for use by
    several threads at once.
    """

    def __init__(self) -> None:
        self.known = 0
        self._keys = np.zeros(1 << 12, np.uint64)
        self._numbers = np.zeros(1 << 12, np.int32)
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
        """The number of each segment, int32 [m]; those not seen before get the next ones."""
        which = np.empty(len(starts), np.int32)
        at = 0
        while at < len(starts):
            tables = (self._keys, self._numbers, self._arena, self._spans)
            at, self.known = _look_up(data, starts, at, *tables, self.known, which)
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

    def ids_of(self, which: Array) -> tuple[Array, Array]:
        """(ids int32 [k], stops int64 [m]): the ids of each numbered segment in turn, and where each one's end."""
        stops = np.empty(len(which), np.int64)
        out = np.empty(_ends(self._borders, which, stops), np.int32)
        _gather(self._pool, self._borders, which, out)
        return out, stops

    def _grow(self, size: int) -> None:
        """Room for one segment more of `size` bytes, and for half as much again of all."""
        if self.known + 1 >= len(self._spans):
            self._spans = _grown(self._spans, self.known + 2)
        if self.bytes + size > len(self._arena):
            self._arena = _grown(self._arena, self.bytes + size)
        if 2 * (self.known + 1) > len(self._keys):
            self._keys, keys = np.zeros(2 * len(self._keys), np.uint64), self._keys
            self._numbers, numbers = np.zeros(len(self._keys), np.int32), self._numbers
            _fill(self._keys, self._numbers, keys, numbers)


def _grown(array: Array, size: int) -> Array:
    """A copy with room for `size` items and half as many again."""
    grown = np.empty(size + size // 2, array.dtype)
    grown[: len(array)] = array
    return grown


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _slot_of(key: Any, mask: Any) -> Any:
    """splitmix64's multiplier (Steele, Lea, Flood 2014) between two shifts."""
    spread = (key ^ (key >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
    return (spread ^ (spread >> np.uint64(32))) & mask


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _key_of(data: Array, start: int, stop: int) -> Any:
    """Never 0. Up to seven bytes: themselves and, in the topmost, how many; else 0xFF there and 56 bits of a hash."""
    size = stop - start
    key = np.uint64(0)
    if size <= 7:
        for byte in range(start, stop):
            key = (key << np.uint64(8)) | np.uint64(data[byte])
        return key | (np.uint64(size) << np.uint64(56))
    key = np.uint64(14695981039346656037)  # FNV-1a
    for byte in range(start, stop):
        key = (key ^ np.uint64(data[byte])) * np.uint64(1099511628211)
    return key | np.uint64(0xFF00000000000000)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _look_up(
    data: Array,
    starts: Array,
    first: int,
    keys: Array,
    numbers: Array,
    arena: Array,
    spans: Array,
    known: int,
    which: Array,
) -> tuple[Any, Any]:
    """Fill `which` from `first` on; add what is new to the tables. Returns (where it stopped for lack of room, or the
    end; how many are known then)."""
    mask = np.uint64(len(keys) - 1)
    for at in range(first, len(starts)):
        start = starts[at]
        stop = starts[at + 1] if at + 1 < len(starts) else len(data)
        key = _key_of(data, start, stop)
        slot, found, free = _slot_of(key, mask), -1, False
        for _ in range(MOST_TRIES):
            if keys[slot] == 0:
                free = True
                break
            if keys[slot] == key:
                number = numbers[slot]
                if stop - start <= 7 or _equal(data, start, stop, arena, spans[number], spans[number + 1]):
                    found = number
                    break
            slot = (slot + np.uint64(1)) & mask
        if found < 0:
            end = spans[known]
            if known + 1 >= len(spans) or end + stop - start > len(arena) or 2 * (known + 1) > len(keys):
                return at, known
            found = known
            arena[end : end + stop - start] = data[start:stop]
            spans[known + 1] = end + stop - start
            known += 1
            if free:
                keys[slot] = key
                numbers[slot] = found
        which[at] = found
    return len(starts), known


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _equal(data: Array, start: int, stop: int, arena: Array, begin: int, end: int) -> bool:
    if stop - start != end - begin:
        return False
    same = 0
    while same < stop - start and arena[begin + same] == data[start + same]:
        same += 1
    return same == stop - start


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _fill(keys: Array, numbers: Array, old_keys: Array, old_numbers: Array) -> None:
    """Put the entries of an old table into an empty one; one that finds no place stays out."""
    mask = np.uint64(len(keys) - 1)
    for at in range(len(old_keys)):
        if old_keys[at] == 0:
            continue
        slot = _slot_of(old_keys[at], mask)
        for _ in range(MOST_TRIES):
            if keys[slot] == 0:
                keys[slot] = old_keys[at]
                numbers[slot] = old_numbers[at]
                break
            slot = (slot + np.uint64(1)) & mask


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _ends(borders: Array, which: Array, stops: Array) -> int:
    end = 0
    for at in range(len(which)):
        end += borders[which[at] + 1] - borders[which[at]]
        stops[at] = end
    return end


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _gather(pool: Array, borders: Array, which: Array, out: Array) -> None:
    end = 0
    for number in which:
        for at in range(borders[number], borders[number + 1]):
            out[end] = pool[at]
            end += 1
