"""Blanks, blank lines and joiners of texts, as their way of white space wants them: the last pass of cleaning.

In: UTF-8 texts as Arrow holds them, what each needs (tasks.text.cleaning) and the classes of tasks.text.forms. Out: the
bytes and offsets of all texts. Order and reasons stand in tasks.text.whitespace.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

KEEP, INSIDE, COLLAPSE = 0, 1, 2
"""Ways of white space, in the order of tasks.text.whitespace.WHITESPACE."""

_CLEAN, _SPACED, _STRIPPED = 0, 1, 2  # as in tasks.text.cleaning
_JOINER, _BLANK = 4, 8  # as in tasks.text.forms
_BLOCK, _ONE = 64, np.uint64(1)

Array = np.ndarray[Any, Any]


def assemble(
    data: Array, offsets_D1: Array, needs_D: Array, stripped: Array, places_D1: Array, classes: Array, way: int
) -> tuple[Array, Array]:
    """(bytes, offsets int64 [D + 1]) of all texts: the clean ones of `data`; of the others what it or `stripped` holds
    with its blanks and blank lines as `way` wants them, and without joiners that touch white space or an end."""
    sizes_D = np.where(needs_D == _STRIPPED, np.diff(places_D1), np.diff(offsets_D1))
    out, wholes_D1 = np.empty(int(sizes_D.sum()), np.uint8), np.zeros(len(offsets_D1), np.int64)
    _assemble(data, offsets_D1, needs_D, stripped, places_D1, classes, way, out, wholes_D1)
    return out[: wholes_D1[-1]], wholes_D1


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _assemble(
    data: Array,
    offsets_D1: Array,
    needs_D: Array,
    stripped: Array,
    places_D1: Array,
    classes: Array,
    way: int,
    out: Array,
    wholes_D1: Array,
) -> None:
    to = 0
    for text in range(len(offsets_D1) - 1):
        begin, end = offsets_D1[text], offsets_D1[text + 1]
        if needs_D[text] == _CLEAN:
            to = _copy(data, begin, end, out, to)
        elif needs_D[text] == _SPACED:
            to = _space(data[begin:end], classes, way, out, to)
        else:
            to = _space(stripped[places_D1[text] : places_D1[text + 1]], classes, way, out, to)
        wholes_D1[text + 1] = to


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _space(span: Array, classes: Array, way: int, out: Array, to: int) -> int:
    """Write a text from `to` on; returns one past its last byte. White space waits until something visible follows, so
    that none stands at the end of a line or of the text: `feeds` line feeds and the blanks from `white` on."""
    at, stop, begin, white, feeds, after_white = 0, len(span), to, 0, 0, True
    while at < stop:
        code, size = _decode(span, at)
        found = classes[code]
        if code == 10:
            at, feeds, after_white = at + 1, feeds + 1, True
            white = at
        elif found & _BLANK != 0:
            at, after_white = at + size, True
        else:
            end = _joiners_end(span, at) if found & _JOINER != 0 else at + size
            if found & _JOINER != 0 and (after_white or end == stop or _is_white(span, end, classes)):
                white, at = _pull_out(span, white, at, end), end
                continue
            if white < at or feeds:
                to = _put_white(span[white:at], feeds, way, out, to, begin)
            end = _skip_words(span, end, classes, way)
            to = _copy(span, at, end, out, to)
            at, white, feeds, after_white = end, end, 0, False
    return to


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _skip_words(span: Array, at: int, classes: Array, way: int) -> int:
    """The end of what stays as it is from `at` on, behind something visible: visible characters, and between two of
    them a space or a line feed. White space is never the last of it."""
    last, tried, wait = len(span) - 1, -1, _BLOCK
    while at <= last:
        if at > tried:
            begin, at = at, _skip_blocks(span, at, np.uint8(way != KEEP))
            wait = _BLOCK if at > begin else min(2 * wait, 16 * _BLOCK)
            tried = at + wait
            while span[at - 1] <= 32:
                at -= 1
        byte = span[np.uint64(at)]
        if 32 < byte < 127:
            at += 1
            continue
        ahead = at
        if byte == 32 or byte == 10:
            if at == last or span[at + 1] <= 32:
                break
            ahead = at + 1
        elif byte < 0x80:
            break
        code, size = _decode(span, ahead)
        if classes[np.uint64(code)] & (_BLANK | _JOINER) != 0:
            break
        at = ahead + size
    return at


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _skip_blocks(span: Array, at: int, strict: np.uint8) -> int:
    """Pass over blocks of visible ASCII, single spaces (strict; else any that end no line) and up to two line feeds.
    What is looked at beside a byte are the three behind it."""
    stop, three = len(span) - _BLOCK - 3, np.uint8(10) if strict else np.uint8(255)
    double, tab = (np.uint8(32), np.uint8(255)) if strict else (np.uint8(255), np.uint8(9))
    while at <= stop:
        a, ill = span[at : at + _BLOCK + 3], np.uint8(0)
        for place in range(_BLOCK):
            w, x, y, z = a[place], a[place + 1], a[place + 2], a[place + 3]
            white, feeds = (w == 32) | (w == tab), (w == 10) & (x == 10)
            ill |= np.uint8((w > 126) | ((w < 32) & (w != 10) & (w != tab)) | (white & ((x == 10) | (x == double))))
            ill |= np.uint8(feeds & ((y == three) | ((y == 10) & (z == 10))))
        if ill:
            break
        at += _BLOCK
    return at


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _put_white(blanks: Array, feeds: int, way: int, out: Array, to: int, begin: int) -> int:
    """Write what stands between two visible characters, or before the first one (to == begin)."""
    if to == begin:
        if way != KEEP:
            return to
        feeds = 0
    for _ in range(min(feeds, 3 if way == KEEP else 2)):
        out[to] = 10
        to += 1
    if len(blanks) and (way == COLLAPSE or (way == INSIDE and feeds == 0)):
        out[to] = 32
        return to + 1
    for blank in blanks:
        out[to] = blank
        to += 1
    return to


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _joiners_end(span: Array, at: int) -> int:
    """Where the run of U+200C and U+200D at `at` ends."""
    while at + 2 < len(span) and span[at] == 0xE2 and span[at + 1] == 0x80 and 0x8C <= span[at + 2] <= 0x8D:
        at += 3
    return at


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _pull_out(span: Array, white: int, start: int, stop: int) -> int:
    """Move the blanks from `white` to `start` up to `stop`, over joiners; returns where they begin now."""
    to = stop
    for at in range(start - 1, white - 1, -1):
        to -= 1
        span[to] = span[at]
    return to


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _is_white(span: Array, at: int, classes: Array) -> bool:
    code, _ = _decode(span, at)
    return bool(code == 10 or classes[code] & _BLANK != 0)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _copy(data: Array, start: int, stop: int, out: Array, to: int) -> int:
    """Unsigned places save numba its test for negative ones, without which twenty times as many bytes are copied."""
    place, first, begin = np.uint64(0), np.uint64(start), np.uint64(to)
    while place < np.uint64(stop - start):
        out[begin + place] = data[first + place]
        place += _ONE
    return to + stop - start


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _decode(data: Array, at: int) -> tuple[Any, int]:
    """(code point, bytes) of the character at `at` of valid UTF-8."""
    place = np.uint64(at)
    first = np.int64(data[place])
    if first < 0x80:
        return first, 1
    second = np.int64(data[place + _ONE])
    if first < 0xE0:
        return (first & 0x1F) << 6 | (second & 0x3F), 2
    third = np.int64(data[place + _ONE + _ONE])
    if first < 0xF0:
        return (first & 0x0F) << 12 | (second & 0x3F) << 6 | (third & 0x3F), 3
    fourth = np.int64(data[place + _ONE + _ONE + _ONE]) & 0x3F
    return (first & 0x07) << 18 | (second & 0x3F) << 12 | (third & 0x3F) << 6 | fourth, 4
