"""Words of byte-level tokenizers in ASCII, 64 bytes at a time.

In: UTF-8, and where texts begin in it. Out: where words begin, a bit a byte, and the stretches that another must judge:
those around what is no ASCII, or a control character, from one seam to the next.

The rules are those of tasks.text.byte_level_words, which goes character by character and is the one to read. Here they
are read off what stands side by side, so that 64 positions are settled at once. A word begins where another kind
begins, but not after a space, which begins it; at the first white character of a run; at the last of a run that
something follows. GPT-2's endings are looked for at each apostrophe that begins a word. `modern`: letters also go on
after a tab, or after a single mark that no space stands before; newlines go on after marks; white characters up to the
last newline of a run are one word. Little-endian machines only.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

Array = np.ndarray[Any, Any]
U64, _U64 = np.uint64, numba.types.uint64
WIDTH = 64
"""Bytes of a block; bits have a word for each, and one more."""
LONG = 32
"""Bytes of a word that stay together: longer ones are seldom seen twice, and merging takes a square."""
_ZERO, _ONE, _SIX, _LAST = U64(0), U64(1), U64(6), U64(63)
_KINDS = ((0x61, 0x7A, 0x20), (0x30, 0x39, 0), (0x20, 0x20, 0), (0x09, 0x09, 0), (0x0A, 0x0A, 0), (0x0D, 0x0D, 0))
"""First and last byte, and a bit to set before: letters, digits, spaces, tabs, and both of the newlines."""
_njit = numba.njit(nogil=True, cache=True, forceinline=True)


def ascii_words(data: Array, borders: Array, modern: bool, digits: int, joined: Array) -> tuple[Array, Array]:
    """(bits uint64 [n // 64 + 2]: bit i % 64 of word i // 64 says that a word begins at byte i; stretches int64 [s, 2]:
    first byte and end of what is not judged, rising, whose bits say nothing).

    data: uint8 [n]; borders: int64, where each text begins. digits: the most that one word has, or 0. joined: bool
    [128, 128]; beyond its first LONG bytes a word is cut wherever nothing joins two neighbours. A stretch begins and
    ends where a text does, or at a space that follows a visible character of ASCII. 2 GB a CPU second.
    """
    blocks = len(data) // WIDTH + 1
    padded = np.empty((blocks + 1) * WIDTH, np.uint8)
    padded[: len(data)], padded[len(data) :] = data, 0
    opens = np.zeros(blocks + 1, np.uint64)
    _set(opens, borders)
    _set(opens, np.array([len(data)]))
    bits, stretches = np.zeros(blocks + 1, np.uint64), np.empty((len(data) // 2 + 2, 2), np.int64)
    found = _mark(padded, len(data), opens, (modern, digits), joined, bits, stretches)
    return bits, stretches[:found]


@intrinsic  # type: ignore[untyped-decorator]
def _kinds_of_64(_typing: Any, data: Any, at: Any) -> Any:
    """(letters, digits, spaces, tabs, newlines, apostrophes, what is not known here), uint64: bit i is data[at + i]."""
    vector = ir.VectorType(ir.IntType(8), WIDTH)

    def every(value: int) -> Any:
        return ir.Constant(vector, [value] * WIDTH)

    def emit(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        def within(values: Any, first: int, last: int) -> Any:
            return builder.icmp_unsigned("<=", builder.sub(values, every(first)), every(last - first))

        bytes_of = context.make_array(signature.args[0])(context, builder, given[0]).data
        place = builder.bitcast(builder.gep(bytes_of, [given[1]]), vector.as_pointer())
        block = builder.load(place, align=1)
        letters, digits, spaces, tabs, *lines = (
            within(builder.or_(block, every(bit)), first, last) for first, last, bit in _KINDS
        )
        newlines = builder.or_(*lines)
        known = builder.or_(within(block, 0x20, 0x7E), builder.or_(tabs, newlines))
        masks = (letters, digits, spaces, tabs, newlines, within(block, 0x27, 0x27), builder.not_(known))
        whole = [builder.bitcast(mask, ir.IntType(64)) for mask in masks]
        return context.make_tuple(builder, signature.return_type, whole)

    return numba.types.UniTuple(_U64, 7)(data, at), emit


@intrinsic  # type: ignore[untyped-decorator]
def _zeros_below(_typing: Any, value: Any) -> Any:
    """uint64: zeros below the lowest one of a uint64 that is not 0."""
    return _U64(value), lambda _context, builder, _, given: builder.cttz(given[0], ir.Constant(ir.IntType(1), 1))


@intrinsic  # type: ignore[untyped-decorator]
def _zeros_above(_typing: Any, value: Any) -> Any:
    """uint64: zeros above the highest one of a uint64 that is not 0."""
    return _U64(value), lambda _context, builder, _, given: builder.ctlz(given[0], ir.Constant(ir.IntType(1), 1))


@_njit  # type: ignore[untyped-decorator]
def _after(now: Any, before: Any) -> Any:
    """Which bytes follow one of those of this block and the one before."""
    return (now << _ONE) | (before >> _LAST)


@_njit  # type: ignore[untyped-decorator]
def _holds(bits: Array, at: Any) -> Any:
    return (bits[at >> _SIX] >> (at & _LAST)) & _ONE


@_njit  # type: ignore[untyped-decorator]
def _ending(data: Array, opens: Array, at: Any, fold: Any) -> Any:
    """Bytes of 's, 't, 'm, 'd, 're, 've or 'll at the apostrophe `at`, else 0. fold: 0x20 for letters of any case."""
    if _holds(opens, at + _ONE):
        return _ZERO
    first, second = data[at + _ONE] | fold, data[at + U64(2)] | fold
    if first == 0x73 or first == 0x74 or first == 0x6D or first == 0x64:
        return U64(2)
    two = (second == 0x65 and (first == 0x72 or first == 0x76)) or (first == 0x6C and second == 0x6C)
    return U64(3) if two and not _holds(opens, at + U64(2)) else _ZERO


@_njit  # type: ignore[untyped-decorator]
def _with_endings(data: Array, opens: Array, block: Any, starts: Any, marks: Any, fold: Any) -> Any:
    """(starts, of the next block: bits to clear, bits to set) with the endings of those of `marks` that start words."""
    clear, more, marks = _ZERO, _ZERO, marks & starts
    while marks:
        at = _zeros_below(marks)
        marks &= marks - _ONE
        size = _ending(data, opens, block * U64(WIDTH) + at, fold)
        if size:
            if at < _LAST:
                starts &= ~(_ONE << (at + _ONE))
            else:
                clear = _ONE
            if at + size <= _LAST:
                starts |= _ONE << (at + size)
            else:
                more |= _ONE << (at + size - U64(WIDTH))
    return starts, clear, more


@_njit  # type: ignore[untyped-decorator]
def _gpt2(now: Any, before: Any, follows: Any, opens: Any) -> Any:
    """Starts of a block but for endings. now, before: letters, digits, spaces, white ones, marks; follows: what
    something visible of the same text follows."""
    letters, digits, spaces, white, marks, _ = now
    others = (letters & ~_after(letters, before[0])) | (digits & ~_after(digits, before[1]))
    others |= marks & ~_after(marks, before[4])
    return (others & ~_after(spaces, before[2])) | (white & (~_after(white, before[3]) | follows)) | opens


@_njit  # type: ignore[untyped-decorator]
def _grouped(digits: Any, runs: Any, most: Any, phase: Any) -> tuple[Any, Any]:
    """(starts of words of at most so many digits, the digits in the last one). runs: where runs of digits begin."""
    starts = runs
    while digits:
        at = digits & (~digits + _ONE)
        digits ^= at
        phase = _ZERO if runs & at or phase == most else phase
        if not phase:
            starts |= at
        phase += _ONE
    return starts, phase


@_njit  # type: ignore[untyped-decorator]
def _last_lines(data: Array, size: Any, opens: Array, block: Any, blanks: Any) -> Any:
    """Those of `blanks`, white characters after a newline, that no newline follows but what is visible or the end."""
    found = _ZERO
    while blanks:
        bit = blanks & (~blanks + _ONE)
        blanks ^= bit
        at = block * U64(WIDTH) + _zeros_below(bit) + _ONE
        while at < size and (data[at] == 0x20 or data[at] == 0x09) and not _holds(opens, at):
            at += _ONE
        if at >= size or _holds(opens, at) or not (data[at] == 0x0A or data[at] == 0x0D):
            found |= bit
    return found


@_njit  # type: ignore[untyped-decorator]
def _modern(now: Any, before: Any, follows: Any, opens: Any) -> Any:
    """(starts of a block but for endings, groups of digits and blanks after lines; newlines that marks take along;
    marks that take letters along; blanks after a newline). now, before: as in _gpt2, and newlines; before also the
    second and third of these."""
    letters, _, spaces, white, marks, newlines = now
    blanks, opened = white & ~newlines, ~opens
    alone = marks & ~((_after(marks, before[4]) | _after(spaces, before[2])) & opened)
    starts = letters & ~_after(letters | blanks | alone, before[0] | (before[3] & ~before[5]) | before[7])
    starts |= marks & ~_after(marks | spaces, before[4] | before[2])
    inner = newlines & opened
    taken = inner & ~(inner + (inner & _after(marks, before[4]) | (inner & _ONE & (before[6] >> _LAST))))
    after_taken = _after(taken, before[6])
    starts |= (white & ~taken & (~_after(white, before[3]) | after_taken)) | (blanks & follows)
    return starts | opens, taken, alone, blanks & opened & _after(newlines, before[5]) & ~after_taken


@_njit  # type: ignore[untyped-decorator]
def _stretched(odd: Any, seams: Any, block: Any, begin: Any, seam: Any, stretches: Array, found: Any) -> Any:
    """(where an open stretch began or -1, the last seam, stretches found) after a block."""
    if not odd and begin < 0 and not seams:
        return begin, seam, found
    places = odd | seams
    while places:
        bit = places & (~places + _ONE)
        places ^= bit
        at = np.int64(block * U64(WIDTH) + _zeros_below(bit))
        if seams & bit:
            seam = at
            if begin >= 0:
                stretches[found, 0], stretches[found, 1] = begin, at
                begin, found = np.int64(-1), found + 1
        if odd & bit and begin < 0:
            begin = seam
    return begin, seam, found


@_njit  # type: ignore[untyped-decorator]
def _far(starts: Any, before: Any) -> Any:
    """Which bytes of a block lie LONG bytes or more after the last start of it and the block before."""
    for power in range(5):
        step = _ONE << U64(power)
        starts |= (starts << step) | (before >> (U64(WIDTH) - step))
        before |= before << step
    return ~starts


@_njit  # type: ignore[untyped-decorator]
def _seams_within(data: Array, block: Any, joined: Array, places: Any) -> Any:
    """Those of `places` whose byte nothing joins to the one before, both of ASCII."""
    found = _ZERO
    while places:
        bit = places & (~places + _ONE)
        places ^= bit
        at = block * U64(WIDTH) + _zeros_below(bit)
        if at and data[at] < 0x80 and data[at - _ONE] < 0x80 and not joined[data[at - _ONE], data[at]]:
            found |= bit
    return found


@_njit  # type: ignore[untyped-decorator]
def _masks(data: Array, size: Any, block: Any) -> Any:
    """((letters, digits, spaces, white, marks, newlines), apostrophes, what is not known here) of a block."""
    letters, digits, spaces, tabs, newlines, quotes, odd = _kinds_of_64(data, block * U64(WIDTH))
    white = spaces | tabs | newlines
    left = size - block * U64(WIDTH)
    valid = (_ONE << left) - _ONE if left < WIDTH else ~_ZERO
    return (letters, digits, spaces, white, ~(letters | digits | white), newlines), quotes, odd & valid


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _mark(data: Array, size: int, opens: Array, how: Any, joined: Array, bits: Array, stretches: Array) -> int:
    """Fill bits and stretches; returns how many of these. how: modern, digits."""
    modern, most = how
    end, groups, fold = U64(size), U64(most if most else size), U64(0x20) if modern else _ZERO
    now, quotes, odd = _masks(data, end, _ZERO)
    before = (_ZERO, _ZERO, _ZERO, _ZERO, _ZERO, _ZERO, _ZERO, _ZERO)
    odd_before = starts_before = phase = clear = more = _ZERO
    begin, seam, found = np.int64(-1), np.int64(0), 0
    for number in range(len(bits) - 1):
        block = U64(number)
        then, quotes_then, odd_then = _masks(data, end, block + _ONE)
        opened = opens[block]
        visible, visible_then = ~now[3] & ~opened, ~then[3] & ~opens[block + _ONE]
        follows = (visible >> _ONE) | (visible_then << _LAST)
        taken = alone = _ZERO
        if modern:
            starts, taken, alone, lines = _modern(now, before, follows, opened)
            if now[1]:
                found_digits, phase = _grouped(now[1], now[1] & (~_after(now[1], before[1]) | opened), groups, phase)
                starts |= found_digits
            starts |= _last_lines(data, end, opens, block, lines)
        else:
            starts = _gpt2(now, before, follows, opened)
        starts = (starts & ~clear) | more
        starts, clear, more = _with_endings(data, opens, block, starts, quotes, fold)
        bits[block] = starts | _seams_within(data, block, joined, _far(starts, starts_before))
        starts_before = starts
        seams = (now[2] & _after(~now[3] & ~odd, ~before[3] & ~odd_before) & ~opened) | opened
        if odd or begin >= 0:
            begin, seam, found = _stretched(odd, seams, block, begin, seam, stretches, found)
        elif seams:
            seam = np.int64(block * U64(WIDTH) + _LAST - _zeros_above(seams))
        before, odd_before = (now[0], now[1], now[2], now[3], now[4], now[5], taken, alone), odd
        now, quotes, odd = then, quotes_then, odd_then
    bits[end >> _SIX] &= (_ONE << (end & _LAST)) - _ONE
    return found


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _set(bits: Array, places: Array) -> None:
    for place in places:
        at = U64(place)
        bits[at >> _SIX] |= _ONE << (at & _LAST)
