"""Segments of text that were seen before, and their ids: each different one is encoded but once.

In: UTF-8 bytes, where segments begin in them (tasks.text.seams), and, for those not seen before, their ids. Out: the
ids of all. It knows no tokenizer.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

Array = np.ndarray[Any, Any]
U64, _U64 = np.uint64, numba.types.uint64

MOST_TRIES = 64
"""Places looked at for a segment; beyond them it counts as one more. So text made to collide costs no more time."""

EXACT = 12
"""Bytes up to which an entry of the table holds a segment itself, and nothing else need be looked at."""

_ZERO, _THREE, _EIGHT, _FULL = U64(0), U64(3), U64(8), U64((1 << 64) - 1)
_KEY, _HASHED, _NUMBER = U64((1 << 36) - 1), U64(15 << 32), U64(36)
_LOW, _MIX_1, _MIX_2 = U64((1 << 32) - 1), U64(0x9E3779B97F4A7C15), U64(0xC4CEB9FE1A85EC53)
_njit = numba.njit(nogil=True, cache=True, forceinline=True)


class SegmentMemory:
    """Segments seen so far, numbered from 0, and the ids of each.

    Equal means equal bytes; equal segments may be told apart, never the reverse. Up to EXACT bytes are a key as they
    are, of longer ones a hash finds candidates. Memory: 70 to 90 bytes a segment, its bytes and its ids. Not for use by
    several threads at once. Little-endian machines only.
    """

    def __init__(self) -> None:
        self.known = 0
        # a slot: eight bytes of a segment, the first lowest; then four more, its size from bit 32 on, its number from
        # bit 36 on; of a long one a hash in the place of its bytes, and 15 for its size
        self._slots = np.zeros((1 << 12, 2), np.uint64)
        self._spans = np.zeros((1 << 11) + 1, np.int64)  # segment i is bytes spans[i] to spans[i + 1] of the arena
        self._arena = np.empty(1 << 15, np.uint8)
        self._learnt = 0
        self._pool = np.empty(1 << 12, np.int32)
        self._borders = np.zeros((1 << 11) + 1, np.int64)  # its ids are borders[i] to borders[i + 1] of the pool
        self._single = np.empty(1 << 11, np.int32)  # its id, if it has but one, else -1

    @property
    def bytes(self) -> int:
        """Bytes of all segments."""
        return int(self._spans[self.known])

    def numbers_of(self, data: Array, starts: Array) -> Array:
        """The number of each segment, int32 [m]; those not seen before get the next ones."""
        which = np.empty(len(starts), np.int32)
        at = 0
        while at < len(starts):
            at, self.known = _look_up(data, starts, at, self._slots, self._arena, self._spans, self.known, which)
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
            self._single = _grown(self._single, self._learnt)
        self._pool[begin : begin + len(ids)] = ids
        stops = np.cumsum(sizes)
        self._borders[first + 1 : self._learnt + 1] = begin + stops
        only = sizes == 1
        self._single[first : self._learnt] = -1
        self._single[first + np.flatnonzero(only)] = ids[stops[only] - 1]

    def ids_of(self, which: Array, marks: Array) -> tuple[Array, Array]:
        """(ids int32 [k] of each numbered segment in turn, int64: how many of them come before each mark).

        marks: int64, rising, 0 to m: numbers of segments of `which`.
        """
        ends, ids = np.zeros(len(marks) + 1, np.int64), np.empty(len(which) + (len(which) >> 1) + 64, np.int32)
        stops, known = np.append(marks, len(which)), (self._single, self._pool, self._borders)
        at, mark = _gather(*known, which, stops, 0, 0, ids, ends)
        while mark < len(stops):
            ids = _grown(ids, ends[mark] + self._borders[which[at] + 1] - self._borders[which[at]])
            at, mark = _gather(*known, which, stops, at, mark, ids, ends)
        return ids[: ends[-1]], ends[:-1]

    def _grow(self, size: int) -> None:
        """Room for one segment more of `size` bytes, and for half as much again of all."""
        if self.known + 1 >= len(self._spans):
            self._spans = _grown(self._spans, self.known + 2)
        if self.bytes + size > len(self._arena):
            self._arena = _grown(self._arena, self.bytes + size)
        if 2 * (self.known + 1) > len(self._slots):
            self._slots, slots = np.zeros((2 * len(self._slots), 2), np.uint64), self._slots
            _fill(self._slots, slots)


def _grown(array: Array, size: int) -> Array:
    """A copy with room for `size` items and half as many again."""
    grown = np.empty(size + size // 2, array.dtype)
    grown[: len(array)] = array
    return grown


@intrinsic  # type: ignore[untyped-decorator]
def _eight_bytes(_typing: Any, data: Any, at: Any) -> Any:
    """uint64: the eight bytes from data[at] on, the first lowest."""

    def emit(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        bytes_of = context.make_array(signature.args[0])(context, builder, given[0]).data
        return builder.load(builder.bitcast(builder.gep(bytes_of, [given[1]]), ir.IntType(64).as_pointer()), align=1)

    return _U64(data, at), emit


@_njit  # type: ignore[untyped-decorator]
def _few_bytes(data: Array, at: Any, count: Any) -> Any:
    """data[at : at + count] of 1 to 8 bytes, the first lowest, zeros above."""
    if at + _EIGHT <= len(data):
        return _eight_bytes(data, at) & (_FULL >> ((_EIGHT - count) << _THREE))
    found = _ZERO
    for place in range(count):
        found |= U64(data[at + place]) << (U64(place) << _THREE)
    return found


@_njit  # type: ignore[untyped-decorator]
def _key_of(data: Array, at: Any, size: Any) -> tuple[Any, Any]:
    """The first number of a segment's slot, and the second without the number."""
    if size <= _EIGHT:
        return _few_bytes(data, at, size), size << U64(32)
    if size <= EXACT:
        return _few_bytes(data, at, _EIGHT), _few_bytes(data, at + _EIGHT, size - _EIGHT) | (size << U64(32))
    state, stop = size, at + size
    while at < stop:
        state = (state ^ _few_bytes(data, at, min(_EIGHT, stop - at))) * _MIX_2
        state ^= state >> U64(32)
        at += _EIGHT
    return state, ((state * _MIX_1) >> U64(32)) | _HASHED


@_njit  # type: ignore[untyped-decorator]
def _slot_of(first: Any, second: Any, mask: Any) -> Any:
    """splitmix64's multiplier (Steele, Lea, Flood 2014), and the upper half of what it gives."""
    mixed = (first ^ (first >> U64(32)) ^ ((second & _KEY) * _MIX_2)) * _MIX_1
    return (mixed ^ (mixed >> U64(32))) & mask


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _look_up(
    data: Array, starts: Array, first: int, slots: Array, arena: Array, spans: Array, known: int, which: Array
) -> tuple[Any, Any]:
    """Fill `which` from `first` on; add what is new to the tables. Returns (where it stopped for lack of room, or the
    end; how many are known then)."""
    mask, room = U64(len(slots) - 1), min(len(spans) - 1, len(slots) >> 1)
    for at in range(first, len(starts)):
        start, stop = U64(starts[at]), U64(starts[at + 1] if at + 1 < len(starts) else len(data))
        head, tail = _key_of(data, start, stop - start)
        slot, found, free = _slot_of(head, tail, mask), np.int64(-1), False
        for _ in range(MOST_TRIES):
            held = slots[slot, 1]
            if held == _ZERO:
                free = True
                break
            if slots[slot, 0] == head and held & _KEY == tail:
                number = np.int64(held >> _NUMBER)
                if stop - start <= EXACT or _equal(data, start, stop, arena, spans[number], spans[number + 1]):
                    found = number
                    break
            slot = (slot + U64(1)) & mask
        if found < 0:
            end, size = spans[known], np.int64(stop - start)
            if known >= room or end + size > len(arena):
                return at, known
            found = np.int64(known)
            arena[end : end + size] = data[start:stop]
            spans[known + 1] = end + size
            known += 1
            if free:
                slots[slot, 0], slots[slot, 1] = head, tail | (U64(found) << _NUMBER)
        which[at] = found
    return len(starts), known


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _equal(data: Array, start: Any, stop: Any, arena: Array, begin: int, end: int) -> bool:
    size = np.int64(stop - start)
    if size != end - begin:
        return False
    same = 0
    while same < size and arena[begin + same] == data[start + U64(same)]:
        same += 1
    return same == size


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _fill(slots: Array, old: Array) -> None:
    """Put the entries of an old table into an empty one; one that finds no place stays out."""
    mask = U64(len(slots) - 1)
    for at in range(len(old)):
        if old[at, 1] == _ZERO:
            continue
        slot = _slot_of(old[at, 0], old[at, 1], mask)
        for _ in range(MOST_TRIES):
            if slots[slot, 1] == _ZERO:
                slots[slot, 0], slots[slot, 1] = old[at, 0], old[at, 1]
                break
            slot = (slot + U64(1)) & mask


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _gather(
    single: Array,
    pool: Array,
    borders: Array,
    which: Array,
    stops: Array,
    at: int,
    mark: int,
    out: Array,
    ends: Array,
) -> tuple[Any, Any]:
    """Fill `out` and `ends` from there on, ends[mark] with what it has. Returns where it stopped, for lack of room or
    at the end."""
    end = ends[mark]
    for number in range(mark, len(stops)):
        for place in range(at, stops[number]):
            own = which[place]
            first = single[own]
            size = 1 if first >= 0 else borders[own + 1] - borders[own]
            if end + size > len(out):
                ends[number] = end
                return place, number
            if first >= 0:
                out[end] = first
            else:
                for later in range(size):
                    out[end + later] = pool[borders[own] + later]
            end += size
        at = max(at, stops[number])
        ends[number] = end
    return at, len(stops)
