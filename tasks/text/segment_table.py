"""The table in which tasks.text.segments finds segments again: 16 bytes for each, side by side in memory.

In: UTF-8 bytes, and where segments begin in them. Out: the number of each, or its only id. Open addressing with linear
probing, never above half full. A slot, uint64 [2]: eight bytes of a segment, the first lowest; then four more, its size
from bit 32 on, and from bit 36 on its number, or ~id. A segment above EXACT bytes has a hash in the place of its bytes,
and 15 for its size. Little-endian machines only.
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

SIDE_BY_SIDE = 64
"""Segments whose entries are called for together, before the first of them is looked at: what the caches lack comes
from memory for all of them at once."""

MOST_SINGLE = 1 << 27
"""Ids below it stand in the table itself, where they are a segment's only one."""

_ZERO, _ONE, _THREE, _EIGHT, _FULL = U64(0), U64(1), U64(3), U64(8), U64((1 << 64) - 1)
_KEY, _HASHED, _NUMBER = U64((1 << 36) - 1), U64(15 << 32), U64(36)
_SIZE, _EXACT, _LOADED = U64(32), U64(EXACT), U64(16)
_MIX_1, _MIX_2 = U64(0x9E3779B97F4A7C15), U64(0xC4CEB9FE1A85EC53)
_njit = numba.njit(nogil=True, cache=True, forceinline=True)


@intrinsic  # type: ignore[untyped-decorator]
def _eight_bytes(_typing: Any, data: Any, at: Any) -> Any:
    """uint64: the eight bytes from data[at] on, the first lowest."""

    def emit(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        bytes_of = context.make_array(signature.args[0])(context, builder, given[0]).data
        return builder.load(builder.bitcast(builder.gep(bytes_of, [given[1]]), ir.IntType(64).as_pointer()), align=1)

    return _U64(data, at), emit


@intrinsic  # type: ignore[untyped-decorator]
def _call_for(_typing: Any, slots: Any, slot: Any) -> Any:
    """Have the processor fetch slots[slot], uint64 [n, 2], while it goes on."""

    def emit(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        number, byte = ir.IntType(32), ir.IntType(8).as_pointer()
        place = builder.mul(given[1], ir.Constant(ir.IntType(64), 2))
        address = builder.gep(context.make_array(signature.args[0])(context, builder, given[0]).data, [place])
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        builder.call(fetch, [builder.bitcast(address, byte), *(ir.Constant(number, value) for value in (0, 3, 1))])
        return context.get_dummy_value()

    return numba.types.void(slots, slot), emit


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
def _fast_key_of(data: Array, at: Any, size: Any) -> tuple[Any, Any]:
    """The same; of a short segment with sixteen bytes of data from its first on, without asking how short."""
    if size <= _EXACT and at + _LOADED <= len(data):
        first = min(size, _EIGHT)
        head = _eight_bytes(data, at) & (_FULL >> ((_EIGHT - first) << _THREE))
        tail = _eight_bytes(data, at + _EIGHT) & ((_ONE << ((size - first) << _THREE)) - _ONE)
        return head, tail | (size << _SIZE)
    head, tail = _key_of(data, at, size)
    return head, tail


@_njit  # type: ignore[untyped-decorator]
def _slot_of(first: Any, second: Any, mask: Any) -> Any:
    """splitmix64's multiplier (Steele, Lea, Flood 2014), and the upper half of what it gives."""
    mixed = (first ^ (first >> U64(32)) ^ ((second & _KEY) * _MIX_2)) * _MIX_1
    return (mixed ^ (mixed >> U64(32))) & mask


@_njit  # type: ignore[untyped-decorator]
def _told(second: Any) -> Any:
    """What a slot says of its segment: the number, or ~id."""
    return np.int32(np.int64(second) >> np.int64(36))


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def look_up(
    data: Array, starts: Array, first: int, slots: Array, arena: Array, spans: Array, known: int, which: Array
) -> tuple[Any, Any]:
    """Fill `which` from `first` on; add what is new to the tables. Returns (where it stopped for lack of room, or the
    end; how many are known then)."""
    mask, room, count = U64(len(slots) - 1), min(len(spans) - 1, len(slots) >> 1), U64(len(starts))
    keys, at = np.empty((SIDE_BY_SIDE, 3), np.uint64), U64(first)
    while at < count:
        many, start = min(U64(SIDE_BY_SIDE), count - at), U64(starts[at])
        for place in range(many):
            following = at + place + _ONE
            stop = U64(starts[following] if following < count else len(data))
            head, tail = _fast_key_of(data, start, stop - start)
            slot, start = _slot_of(head, tail, mask), stop
            keys[place, 0], keys[place, 1], keys[place, 2] = head, tail, slot
            _call_for(slots, slot)
        for place in range(many):
            head, tail, slot = keys[place, 0], keys[place, 1], keys[place, 2]
            held, now = slots[slot, 1], at + place
            which[now] = _told(held)
            if slots[slot, 0] == head and held & _KEY == tail and tail >> _SIZE <= _EXACT:
                continue
            start, stop = U64(starts[now]), U64(starts[now + _ONE] if now + _ONE < count else len(data))
            slot, found, free = _find(data, start, stop, head, tail, slot, slots, arena, spans)
            if not found:
                if known >= room or spans[known] + np.int64(stop - start) > len(arena):
                    return np.int64(now), known
                _add(data, start, stop, arena, spans, known)
                if free:
                    slots[slot, 0], slots[slot, 1] = head, tail | (U64(known) << _NUMBER)
                known += 1
            which[now] = _told(slots[slot, 1]) if found else np.int32(known - 1)
        at += many
    return np.int64(count), known


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _find(
    data: Array, start: Any, stop: Any, head: Any, tail: Any, slot: Any, slots: Array, arena: Array, spans: Array
) -> tuple[Any, bool, bool]:
    """(the slot where the search from `slot` on ended, whether the segment stands there, whether nothing does)."""
    mask = U64(len(slots) - 1)
    for _ in range(MOST_TRIES):
        held = slots[slot, 1]
        if held == _ZERO:
            return slot, False, True
        if slots[slot, 0] == head and held & _KEY == tail:
            number = np.int64(held >> _NUMBER)
            if stop - start <= _EXACT or _equal(data, start, stop, arena, spans[number], spans[number + 1]):
                return slot, True, False
        slot = (slot + _ONE) & mask
    return slot, False, False


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _add(data: Array, start: Any, stop: Any, arena: Array, spans: Array, known: int) -> None:
    """Note the bytes of segment `known`, for which there is room."""
    end = spans[known]
    arena[end : end + np.int64(stop - start)] = data[start:stop]
    spans[known + 1] = end + np.int64(stop - start)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def settle(slots: Array, arena: Array, spans: Array, first: int, last: int, pool: Array, borders: Array) -> None:
    """Put ~id in the place of the number of each segment from `first` to `last` that has but one id."""
    mask = U64(len(slots) - 1)
    for number in range(first, last):
        size, only = spans[number + 1] - spans[number], pool[borders[number]] if len(pool) else 0
        if borders[number + 1] - borders[number] != 1 or size > EXACT or only >= MOST_SINGLE:
            continue
        head, tail = _key_of(arena, U64(spans[number]), U64(size))
        slot, wanted = _slot_of(head, tail, mask), tail | (U64(number) << _NUMBER)
        for _ in range(MOST_TRIES):
            if slots[slot, 1] == _ZERO:
                break
            if slots[slot, 0] == head and slots[slot, 1] == wanted:
                slots[slot, 1] = tail | (U64(~np.int64(only)) << _NUMBER)
                break
            slot = (slot + _ONE) & mask


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
def fill(slots: Array, old: Array) -> None:
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
