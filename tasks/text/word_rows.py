"""Which rows of a fastText classifier's table a text has: those of its words, of their parts and of its phrases.

In: texts as Arrow holds them, and what a Classifier consists of. Out: the numbers of rows, in the order of the text, as
fastText has it. Words are found in blocks of 64 bytes, and the rows of those that were looked at last are remembered by
their spelling: of running text nine words in ten are among them, and cost no hash of fastText's (FNV-1a, every byte
taken as a signed one). Little-endian machines only.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

Array = np.ndarray
U64, _U64 = np.uint64, types.uint64
_BASIS, _PRIME, _LOW = 2166136261, 16777619, 0xFFFFFFFF
_PHRASE = np.uint64(116049371)
_SLOT_BITS, _WORD, _ROWS = 15, 24, 24  # words remembered, as a power of two; bytes and rows of each at most
_NEAR, _FAR = 8, 16  # rows that lie beside the word, in one line of the caches, and those elsewhere
_SLOT, _COUNT, _FIRST = 8, U64(3), U64(8)  # uint64 of its slot; the one with its rows' number; the int32 they begin at
_BLOCK, COPIED = 64, 8  # bytes looked at and rows copied in one go: so many more there must be
KNOWN = (1 << _SLOT_BITS) * (_SLOT + _FAR // 2)  # uint64 of the memory for words
END = np.frombuffer(b"</s>", np.uint8)
_END_KEY = U64(int.from_bytes(b"</s>", "little"))
_ZERO, _ONE, _TWO, _THREE, _EIGHT, _SIXTEEN, _64 = (U64(number) for number in (0, 1, 2, 3, 8, 16, _BLOCK))
_FULL, _STEP, _MIX = U64((1 << 64) - 1), U64(0x9E3779B97F4A7C15), U64(0xFF51AFD7ED558CCD)
_TURN, _SHIFT, _NEXT, _SET = U64(32), U64(65 - _SLOT_BITS), U64(_SLOT), U64(2 * _SLOT)
_FAR_FROM, _FAR_STEP = U64(2 * _SLOT << _SLOT_BITS), U64(_FAR // _SLOT)
_njit = numba.njit(nogil=True, cache=True, forceinline=True)


@intrinsic  # type: ignore[untyped-decorator]
def _pointer(_typing: Any, array: Any) -> Any:
    """The address of an array's first element, which is indexed as the array is."""
    kind = types.CPointer(array.dtype)(array)
    return kind, lambda context, builder, _, given: context.make_array(array)(context, builder, given[0]).data


def _at(builder: Any, kind: Any, pointer: Any, at: Any) -> Any:
    """Code for the place `at` of an address, as that of a value of another kind."""
    return builder.bitcast(builder.gep(pointer, [at]), kind.as_pointer())


@intrinsic  # type: ignore[untyped-decorator]
def _eight_bytes(_typing: Any, data: Any, at: Any) -> Any:
    """uint64: the eight bytes from data[at] on, the first lowest."""
    word = ir.IntType(64)
    return _U64(data, at), lambda _context, builder, _, given: builder.load(_at(builder, word, *given), align=1)


@intrinsic  # type: ignore[untyped-decorator]
def _copy_rows(_typing: Any, source: Any, first: Any, target: Any, at: Any) -> Any:
    """COPIED numbers from source[first] on to target[at] on."""
    vector = ir.VectorType(ir.IntType(32), COPIED)

    def emit(context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        held = builder.load(_at(builder, vector, *given[:2]), align=1)
        builder.store(held, _at(builder, vector, *given[2:]), align=1)
        return context.get_dummy_value()

    return types.void(source, first, target, at), emit


@intrinsic  # type: ignore[untyped-decorator]
def _words_of_64(_typing: Any, data: Any, at: Any) -> Any:
    """uint64: bit i is set where data[at + i] is no white space of ASCII and no NUL."""
    vector = ir.VectorType(ir.IntType(8), _BLOCK)

    def emit(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        def every(value: int) -> Any:
            return ir.Constant(vector, [value] * _BLOCK)

        block = builder.load(_at(builder, vector, *given), align=1)
        lines = builder.icmp_unsigned("<=", builder.sub(block, every(9)), every(4))
        alone = [builder.icmp_unsigned("==", block, every(byte)) for byte in (0, 32)]
        blank = builder.or_(builder.or_(*alone), lines)
        return builder.bitcast(builder.not_(blank), ir.IntType(64))

    return _U64(data, at), emit


@intrinsic  # type: ignore[untyped-decorator]
def _zeros_below(_typing: Any, value: Any) -> Any:
    """uint64: zeros below the lowest one of a uint64; 64 of 0."""
    return _U64(value), lambda _context, builder, _, given: builder.cttz(given[0], ir.Constant(ir.IntType(1), 0))


@intrinsic  # type: ignore[untyped-decorator]
def _ones(_typing: Any, number: Any) -> Any:
    """How many bits of a number are set, in one instruction."""
    return _U64(number), lambda _context, builder, _, given: builder.ctpop(given[0])


# Plain addresses, or functions put into the kernel: counting references to arrays would cost more than all else.


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def note_rows(
    data: Array, offsets_D1: Array, sizes: Any, spelled: Array, starts: Array, table_S2: Array, kept_B2: Array,
    known_S: Array, numbers_S: Array, scratch: Array, phrases: Array, found_N: Array, rows_D1: Array,
) -> None:  # fmt: skip
    """Put the rows of each text into found_N, from rows_D1 on.

    data: 64 bytes longer than the texts. sizes: least and most characters of a part, words of a phrase, buckets, and
    (factor, shift): hash * factor >> shift is hash // buckets or one less. known_S, numbers_S: one memory, of KNOWN,
    for the words that are remembered. scratch: for a word, < and > around it, a byte. phrases: for a text's words."""
    end, noted, words_of_model = _BASIS, np.int64(0), len(starts) - 1
    for byte in END:
        end = _fold(end, byte)
    bytes_P, known_P, numbers_P = _pointer(data), _pointer(known_S), _pointer(numbers_S)
    found_P, scratch_P = _pointer(found_N), _pointer(scratch)
    for text in range(len(offsets_D1) - 1):
        words, state, stop = 0, (U64(offsets_D1[text]), _ZERO, _ZERO), U64(offsets_D1[text + 1])
        while True:
            state, first, size = _next_word(bytes_P, state, stop)
            if not size:
                break
            key = _key(bytes_P, first, size)
            if size == 4 and key[0] == _END_KEY:
                continue
            slot, known = _slot_of(known_P, key)
            if known and size <= _WORD:
                count = np.int64(known_P[slot + _COUNT])
                _copy_rows(numbers_P, slot + slot + _FIRST, found_P, noted)
                for at in range(_NEAR, count, COPIED):
                    _copy_rows(numbers_P, _FAR_FROM + slot * _FAR_STEP + U64(at - _NEAR), found_P, noted + at)
                noted += count
            else:
                begin, hashed = noted, _spell(bytes_P, first, size, scratch_P)
                found_P[noted] = _place_of(hashed, scratch_P, np.int64(size), spelled, starts, table_S2)
                noted += found_P[noted] >= 0
                if sizes[1] > 0:
                    noted = _parts(scratch_P, np.int64(size) + 2, sizes, words_of_model, found_P, noted)
                noted = _keep(found_P, begin, noted, kept_B2)
                if size <= _WORD and noted - begin <= _ROWS:
                    _remember(known_P, numbers_P, slot + U64(noted & 1) * _NEXT, key, found_P, begin, noted - begin)
            if sizes[2] > 1:
                phrases[words] = np.int32(np.uint32(_spell(bytes_P, first, size, scratch_P)))
                words += 1
        for place in range(len(END)):
            scratch_P[place + 1] = END[place]
        found_P[noted] = _place_of(end, scratch_P, len(END), spelled, starts, table_S2)
        noted += found_P[noted] >= 0
        if sizes[2] > 1:
            phrases[words] = np.int32(np.uint32(end))
            noted = _phrases(phrases, words + 1, sizes, words_of_model, kept_B2, found_P, noted)
        rows_D1[text + 1] = noted


@_njit  # type: ignore[untyped-decorator]
def _next_word(data: Any, state: Any, stop: Any) -> Any:
    """(state, first byte, size) of the next word before `stop`, size 0 where there is none. state: where a block
    begins, its bytes, and which of them are in words that are still to be found."""
    base, left, mask = state
    while True:
        if not mask:
            base += left
            if base >= stop:
                return (base, _ZERO, _ZERO), base, _ZERO
            left = min(_64, stop - base)
            mask = _words_of_64(data, base) & (_FULL >> (_64 - left))
            continue
        start = _zeros_below(mask)
        size = _zeros_below(~(mask >> start))
        if start + size < left or base + left >= stop:
            return (base, left, mask & (mask + (_ONE << start))), base + start, size
        if start:  # it may go on: all of it with the next block
            base, left, mask = base + start, _ZERO, _ZERO
            continue
        while base + size < stop and _words_of_64(data, base + size) & _ONE:
            size += _ONE
        return (base + size, _ZERO, _ZERO), base, size


@_njit  # type: ignore[untyped-decorator]
def _low_bytes(count: Any) -> Any:
    """The lowest `count` bytes, 8 at most."""
    half = min(count, _EIGHT) << _TWO
    return ~(_FULL << half << half)


@_njit  # type: ignore[untyped-decorator]
def _key(data: Any, at: Any, size: Any) -> Any:
    """The first 24 bytes of a word, zeros behind it. No branch: how long a word is cannot be foretold."""
    one, other = max(size, _EIGHT) - _EIGHT, max(size, _SIXTEEN) - _SIXTEEN
    first, second = _eight_bytes(data, at) & _low_bytes(size), _eight_bytes(data, at + _EIGHT) & _low_bytes(one)
    return first, second, _eight_bytes(data, at + _SIXTEEN) & _low_bytes(other)


@_njit  # type: ignore[untyped-decorator]
def _slot_of(known: Any, key: Any) -> Any:
    """(where the uint64 of the word's slot begin, True), or of the two that it may have, and False."""
    state = (key[0] * _STEP) ^ (key[1] * _MIX)
    slot = ((state ^ (state >> _TURN) ^ key[2]) * _STEP >> _SHIFT) * _SET
    second = slot + _NEXT
    here = (known[slot] ^ key[0]) | (known[slot + _ONE] ^ key[1]) | (known[slot + _TWO] ^ key[2])
    there = (known[second] ^ key[0]) | (known[second + _ONE] ^ key[1]) | (known[second + _TWO] ^ key[2])
    return (slot if there else second), not here or not there


@_njit  # type: ignore[untyped-decorator]
def _remember(known: Any, numbers: Any, slot: Any, key: Any, found: Any, begin: Any, count: Any) -> None:
    known[slot], known[slot + _ONE], known[slot + _TWO], known[slot + _COUNT] = key[0], key[1], key[2], U64(count)
    near, far = slot + slot + _FIRST, _FAR_FROM + slot * _FAR_STEP
    for place in range(count):
        numbers[near + U64(place) if place < _NEAR else far + U64(place - _NEAR)] = found[begin + place]


@numba.njit(inline="always")  # type: ignore[untyped-decorator]
def _spell(data: Any, first: Any, size: Any, scratch: Any) -> Any:
    """fastText's hash of the word; the word in scratch[1:]."""
    state = _BASIS
    for place in range(np.int64(size)):
        byte = data[np.int64(first) + place]
        state = _fold(state, byte)
        scratch[place + 1] = byte
    return state


@numba.njit(inline="always")  # type: ignore[untyped-decorator]
def _fold(state: int, byte: int) -> Any:
    return ((state ^ (np.int64(np.int8(byte)) & _LOW)) * _PRIME) & _LOW


@numba.njit(inline="always")  # type: ignore[untyped-decorator]
def _place_of(state: int, scratch: Any, size: int, spelled: Array, starts: Array, table_S2: Array) -> Any:
    """The place of the word at scratch[1:size + 1], of which `state` is the hash; -1 where it is unknown."""
    mask = len(table_S2) - 1
    slot = state & mask
    while table_S2[slot, 0] >= 0:
        if table_S2[slot, 1] == state:
            place = np.int64(table_S2[slot, 0])
            first = starts[place]
            same, at = starts[place + 1] - first == size, 0
            while same and at < size:
                same = spelled[first + at] == scratch[at + 1]
                at += 1
            if same:
                return place
        slot = (slot + 1) & mask
    return np.int64(-1)


@numba.njit(inline="always")  # type: ignore[untyped-decorator]
def _parts(scratch: Any, size: int, sizes: Any, words: int, found: Any, noted: Any) -> Any:
    """Note the buckets of the parts of <word>, which lies in scratch[:size]; returns how many there are then."""
    shortest, longest, _, buckets, factor, shift = sizes
    scratch[0], scratch[size - 1], scratch[size] = 60, 62, 0
    for start in range(size):
        if scratch[start] & 0xC0 == 0x80:
            continue
        state, at, characters = _BASIS, start, 0
        while at < size and characters < longest:
            state = _fold(state, scratch[at])
            at += 1
            if scratch[at] & 0xC0 != 0x80:
                characters += 1
                if characters >= shortest:
                    bucket = state - (state * factor >> shift) * buckets
                    bucket -= buckets * (bucket >= buckets)
                    found[noted] = words + bucket
                    noted += (characters > 1) | ((start > 0) & (at < size))
    return noted


@numba.njit(inline="always")  # type: ignore[untyped-decorator]
def _phrases(hashes: Array, count: int, sizes: Any, words: int, kept_B2: Array, found: Any, noted: Any) -> Any:
    """Note runs of 2 words and more, of which the hashes, as signed numbers, make the bucket."""
    begin = noted
    for first in range(count):
        state = np.uint64(np.int64(hashes[first]))
        for place in range(first + 1, min(first + sizes[2], count)):
            state = state * _PHRASE + np.uint64(np.int64(hashes[place]))
            found[noted] = words + np.int64(state % np.uint64(sizes[3]))
            noted += 1
    return _keep(found, begin, noted, kept_B2)


@numba.njit(inline="always")  # type: ignore[untyped-decorator]
def _keep(found: Any, begin: Any, noted: Any, kept_B2: Array) -> Any:
    """Put rows in the place of the words and buckets from `begin` on, leave out what has none; returns where they end.
    No branch, so that the processor waits for many places of the table at once."""
    count = np.int64(begin)
    if not len(kept_B2):
        return np.int64(noted)
    for number in range(begin, noted):
        block, place = found[number] >> 5, found[number] & 31
        mask = np.int64(kept_B2[block, 0])
        found[count] = np.int64(kept_B2[block, 1]) + np.int64(_ones(U64(mask & ((1 << place) - 1))))
        count += mask >> place & 1
    return count
