"""Which part of a long text tells what it is: windows on its longest lines, some hundred characters together.

In: UTF-8 texts as Arrow holds them. Out: their windows, as texts again. It judges nothing.

A text of at most `characters` is taken whole. Of a longer one four windows of a quarter each are taken, and they begin
where stretches of lines do that fill a window: the four that divide the text's evenly if it has more, and so neither
the head nor the foot of a page decides. What they leave is filled with the longest of the shorter lines, from the top
where they are equally long. Navigation, with its short lines, comes last. All of it stands in the text's order.

Speed: 900 MB of text a CPU second (one core, 2026).
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

Array = np.ndarray
WINDOWS = 4
_NEWLINE = 10
_NEAR = 40  # bytes in which a window that begins inside a line looks for a blank to begin behind
_LONGEST = 4  # bytes of a character


def window_texts(offsets_D1: Array, data: Array, characters: int) -> tuple[Array, Array]:
    """(offsets int64 [D + 1], data uint8) of the windows of D texts, each text's joined by line feeds.

    characters: how many of a text are taken at most, give or take a few; 4 or more.
    """
    offsets = np.zeros(len(offsets_D1), np.int64)
    sizes_D = np.minimum(np.diff(offsets_D1), characters * (_LONGEST + 1)) + 2 * WINDOWS
    out = np.empty(int(sizes_D.sum()), np.uint8)
    _take(data, offsets_D1, characters, offsets, out, np.empty(characters * _LONGEST // WINDOWS + 2, np.int64))
    return offsets, out[: offsets[-1]]


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _take(data: Array, offsets_D1: Array, characters: int, offsets: Array, out: Array, lengths: Array) -> None:
    end = 0
    for text in range(len(offsets_D1) - 1):
        span = data[offsets_D1[text] : offsets_D1[text + 1]]
        held = _characters(span) if len(span) > characters else 0
        if held <= characters:
            out[end : end + len(span)] = span
            end += len(span)
        else:
            window = max(1, characters * len(span) // held // WINDOWS)
            end = _of_lines(span, window, lengths, out, end)
        offsets[text + 1] = end


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _characters(span: Array) -> int:
    count = 0
    for byte in span:
        count += (byte & 0xC0) != 0x80
    return count


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _line_end(span: Array, at: int) -> int:
    while at < len(span) and span[at] != _NEWLINE:
        at += 1
    return at


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _of_lines(span: Array, window: int, lengths: Array, out: Array, end: int) -> Any:
    """Put the windows of a text into `out` from `end` on; returns where they end. window: bytes of one."""
    lengths[: window + 1] = 0
    full, start = 0, 0
    while start < len(span):
        stop = _line_end(span, start)
        full += (stop - start) // window
        lengths[(stop - start) % window] += 1
        start = stop + 1
    room = (WINDOWS - min(full, WINDOWS)) * window
    least = window
    while room > 0 and least > 1:
        least -= 1
        room -= lengths[least] * least
    surplus = (least - 1 - room) // least if room < 0 else 0  # of those of length `least`
    equal = lengths[least] - surplus if least < window else 0
    return _copy(span, window, (full, least, equal), out, end)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _copy(span: Array, window: int, chosen: Any, out: Array, end: int) -> Any:
    """chosen: how many stretches fill a window; bytes of the shortest line, or end of a line, taken whole, and how many
    of just so many."""
    full, least, equal = chosen
    start, passed, taken = 0, 0, 0
    while start < len(span):
        stop = _line_end(span, start)
        own, at = (stop - start) // window, start
        for _ in range(own):
            wanted = passed if full <= WINDOWS else (2 * taken + 1) * full // (2 * WINDOWS)
            if taken < WINDOWS and passed == wanted:
                first = _beginning(span, at, start, min(stop, at + window))
                end = _put(span, first, _border(span, at + window), out, end)
                taken += 1
            passed += 1
            at += window
        rest = stop - at
        if least < window and (rest > least or (rest == least and equal > 0)):
            equal -= rest == least
            end = _put(span, _border(span, at), stop, out, end)
        start = stop + 1
    return end


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _put(span: Array, first: int, last: int, out: Array, end: int) -> Any:
    if first >= last or end + last - first + 1 > len(out):
        return end
    out[end : end + last - first] = span[first:last]
    out[end + last - first] = _NEWLINE
    return end + last - first + 1


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _beginning(span: Array, at: int, line: int, stop: int) -> Any:
    """Where a window begins: behind the next blank where it would begin inside a word."""
    if at > line:
        for place in range(at - 1, min(at + _NEAR, stop - 1)):
            if span[place] == 32:
                return place + 1
    return _border(span, at)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _border(span: Array, at: int) -> int:
    """`at`, or where the character ends that it lies in."""
    while at < len(span) and span[at] & 0xC0 == 0x80:
        at += 1
    return at
