"""Paragraphs and lines of texts, known by a hash of their bytes: what is looked for in other places.

In: UTF-8 texts as Arrow holds them. Out: the spans of at least so many characters, with their hashes. It decides
nothing about them.

*Line*: what stands between line feeds, white space (space, tab) at both ends left out. *Paragraph*: a run of lines with
no blank one between, from its first character to its last. A paragraph of a single line is both. *Hash*: FNV-1a of 64
bits, then the 64-bit finalizer of MurmurHash3; two different spans of a billion are equal with odds of 0.03.

Each byte of a hash waits for the one before, so that four spans are hashed side by side. Cost on one core: 0.4 ns a
byte.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
import pyarrow as pa
from llvmlite import ir
from numba.extending import intrinsic

from tasks.text.words import text_buffers

PARAGRAPH, LINE = 0, 1
WIDTH, LANES = 64, 4
"""Bytes looked at for line feeds at once; spans hashed side by side."""
_PRIME, _BASIS = np.uint64(0x100000001B3), np.uint64(0xCBF29CE484222325)
_MIX_1, _MIX_2, _SHIFT = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53), np.uint64(33)


class Spans(NamedTuple):
    """S spans, sorted by text and end; of equal ends the line first."""

    texts_S: np.ndarray
    """int64: number of the text."""
    levels_S: np.ndarray
    """int64: PARAGRAPH or LINE."""
    starts_S: np.ndarray
    """int64: first byte in the text,"""
    stops_S: np.ndarray
    """int64: and one past the last."""
    characters_S: np.ndarray
    """int64: code points."""
    hashes_S: np.ndarray
    """uint64."""


def find_spans(texts: pa.Array | pa.ChunkedArray, characters_min: int) -> Spans:
    """The paragraphs and lines of `characters_min` code points or more. Needs 48 bytes a span."""
    offsets_D1, data = text_buffers(texts)
    offsets_D1 = offsets_D1.astype(np.int64)
    rows = _find(data, offsets_D1, characters_min, np.empty((6, 1024), np.int64))
    begins_S = offsets_D1[rows[0]]
    _hash(data, begins_S + rows[2], begins_S + rows[3], rows[5].view(np.uint64))
    return Spans(rows[0], rows[1], rows[2], rows[3], rows[4], rows[5].view(np.uint64))


@intrinsic  # type: ignore[untyped-decorator]
def _of_64(_typing: Any, data: Any, at: Any) -> Any:
    """(line feeds, bytes within characters, spaces and tabs), uint64: bit i is data[at + i]."""
    vector = ir.VectorType(ir.IntType(8), WIDTH)

    def emit(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        bytes_of = context.make_array(signature.args[0])(context, builder, given[0]).data
        block = builder.load(builder.bitcast(builder.gep(bytes_of, [given[1]]), vector.as_pointer()), align=1)
        feeds = builder.icmp_unsigned("==", block, ir.Constant(vector, [0x0A] * WIDTH))
        within = builder.icmp_signed("<", block, ir.Constant(vector, [-64] * WIDTH))  # 0x80 to 0xBF
        spaces, tabs = (builder.icmp_unsigned("==", block, ir.Constant(vector, [byte] * WIDTH)) for byte in (32, 9))
        masks = [builder.bitcast(mask, ir.IntType(64)) for mask in (feeds, within, builder.or_(spaces, tabs))]
        return context.make_tuple(builder, signature.return_type, masks)

    return numba.types.UniTuple(numba.types.uint64, 3)(data, at), emit


@intrinsic  # type: ignore[untyped-decorator]
def _zeros_below(_typing: Any, value: Any) -> Any:
    """Zeros below the lowest one of a uint64 that is not 0."""
    return numba.types.int64(value), lambda _context, builder, _, given: builder.cttz(
        given[0], ir.Constant(ir.IntType(1), 1)
    )


@intrinsic  # type: ignore[untyped-decorator]
def _ones(_typing: Any, value: Any) -> Any:
    return numba.types.int64(value), lambda _context, builder, _, given: builder.ctpop(given[0])


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _line_end(data: np.ndarray, at: int, end: int) -> Any:
    """The next line feed from `at` on, or `end`."""
    while at + WIDTH <= end:
        feeds = _of_64(data, at)[0]
        if feeds:
            return at + _zeros_below(feeds)
        at += WIDTH
    while at < end and data[at] != 10:
        at += 1
    return at


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _begin(data: np.ndarray, at: int, stop: int) -> Any:
    """The first byte from `at` on that is neither space nor tab, or `stop`."""
    while at < stop and at + WIDTH <= len(data):
        blanks = _of_64(data, at)[2]
        if ~blanks:
            return min(stop, at + _zeros_below(~blanks))
        at += WIDTH
    while at < stop and (data[at] == 32 or data[at] == 9):
        at += 1
    return min(stop, at)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _characters(data: np.ndarray, start: int, stop: int) -> int:
    count, at = stop - start, start
    while at + WIDTH <= stop:
        within = _of_64(data, at)[1]
        count -= _ones(within)
        at += WIDTH
    for byte in range(at, stop):
        count -= (data[byte] & 0xC0) == 0x80
    return count


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _put(rows: np.ndarray, count: int, text: int, level: int, start: int, stop: int, characters: int) -> np.ndarray:
    if count == rows.shape[1]:
        rows = np.concatenate((rows, np.empty_like(rows)), axis=1)
    rows[0, count], rows[1, count], rows[2, count], rows[3, count] = text, level, start, stop
    rows[4, count] = characters
    return rows


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _find(data: np.ndarray, offsets_D1: np.ndarray, characters_min: int, rows: np.ndarray) -> np.ndarray:
    """All of the spans but their hashes."""
    count = 0
    for text in range(len(offsets_D1) - 1):
        begin, end = offsets_D1[text], offsets_D1[text + 1]
        line, first, last, lines = begin, -1, -1, 0  # of the paragraph so far
        while line <= end:
            after = _line_end(data, line, end)
            start, stop = _begin(data, line, after), after
            while stop > start and (data[stop - 1] == 32 or data[stop - 1] == 9):
                stop -= 1
            characters = 0
            if start < stop:
                if stop - start >= characters_min:
                    characters = _characters(data, start, stop)
                if characters and characters >= characters_min:
                    rows = _put(rows, count, text, 1, start - begin, stop - begin, characters)
                    count += 1
                first, last, lines = start if first < 0 else first, stop, lines + 1
            if first >= 0 and (start == stop or after >= end):
                if last - first >= characters_min:
                    if lines > 1 or start == stop:
                        characters = _characters(data, first, last)
                    if characters >= characters_min:
                        rows = _put(rows, count, text, 0, first - begin, last - begin, characters)
                        count += 1
                first, lines = -1, 0
            line = after + 1
    return rows[:, :count]


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _mixed(state: Any) -> Any:
    state = (state ^ (state >> _SHIFT)) * _MIX_1
    state = (state ^ (state >> _SHIFT)) * _MIX_2
    return state ^ (state >> _SHIFT)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _hash(data: np.ndarray, starts_S: np.ndarray, stops_S: np.ndarray, hashes_S: np.ndarray) -> None:
    """Fill hashes_S. A paragraph of one line has the hash of the line before it."""
    lanes, ats, stops = np.full(LANES, -1), np.zeros(LANES, np.int64), np.zeros(LANES, np.int64)
    states, taken, busy = np.zeros(LANES, np.uint64), 0, LANES
    while busy == LANES:
        for lane in range(LANES):
            if ats[lane] < stops[lane]:
                continue
            if lanes[lane] >= 0:
                hashes_S[lanes[lane]] = _mixed(states[lane])
            while taken < len(starts_S) and _repeats(starts_S, stops_S, taken):
                taken += 1
            if taken < len(starts_S):
                lanes[lane], ats[lane], stops[lane], states[lane] = taken, starts_S[taken], stops_S[taken], _BASIS
                taken += 1
            else:
                lanes[lane], busy = -1, busy - 1
        if busy == LANES:
            _on(data, ats, stops, states)
    for lane in range(LANES):
        if lanes[lane] >= 0:
            for at in range(ats[lane], stops[lane]):
                states[lane] = (states[lane] ^ np.uint64(data[at])) * _PRIME
            hashes_S[lanes[lane]] = _mixed(states[lane])
    for span in range(1, len(starts_S)):
        if _repeats(starts_S, stops_S, span):
            hashes_S[span] = hashes_S[span - 1]


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _repeats(starts_S: np.ndarray, stops_S: np.ndarray, span: int) -> bool:
    return span > 0 and starts_S[span] == starts_S[span - 1] and stops_S[span] == stops_S[span - 1]


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _on(data: np.ndarray, ats: np.ndarray, stops: np.ndarray, states: np.ndarray) -> None:
    """Four hashes up to where the first of them ends. Places without a sign are not looked at for being negative."""
    count = min(min(stops[0] - ats[0], stops[1] - ats[1]), min(stops[2] - ats[2], stops[3] - ats[3]))
    first, second, third, fourth = np.uint64(ats[0]), np.uint64(ats[1]), np.uint64(ats[2]), np.uint64(ats[3])
    a, b, c, d = states[0], states[1], states[2], states[3]
    for at in range(np.uint64(count)):
        a = (a ^ np.uint64(data[first + at])) * _PRIME
        b = (b ^ np.uint64(data[second + at])) * _PRIME
        c = (c ^ np.uint64(data[third + at])) * _PRIME
        d = (d ^ np.uint64(data[fourth + at])) * _PRIME
    states[0], states[1], states[2], states[3] = a, b, c, d
    for lane in range(LANES):
        ats[lane] += count
