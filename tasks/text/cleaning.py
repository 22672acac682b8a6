"""What a text needs to be clean, and its bytes with line feeds for line ends and nothing invisible.

In: UTF-8 texts as Arrow holds them (offsets [D + 1] and bytes) and the tables of tasks.text.forms. Out: what each text
needs; the stripped bytes of those that need it. Nothing here composes characters: spans whose form is not sure are
found, taken out and put back by `gather` and `replace`. Blanks are the work of tasks.text.blanks.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from tasks.text.signs import signs

KEEP = 0
"""Of the ways of white space, the place in tasks.text.whitespace.WHITESPACE."""
CLEAN, SPACED, STRIPPED = 0, 1, 2
"""What a text needs: nothing, other blanks and blank lines, or to be stripped before."""

_LINE_END, _INVISIBLE, _JOINER, _BLANK, _MARK, _UNSURE, _CHANGED = 1, 2, 4, 8, 16, 32, 64  # as in tasks.text.forms
_WIDE, _CONTROL, _TRAILING, _RUN, _LINES_3, _LINES_4 = 1, 2, 4, 8, 16, 32  # as in tasks.text.signs
_ONE, _BLOCK = np.uint64(1), np.uint64(64)

Array = np.ndarray[Any, Any]


def find_needs(data: Array, offsets_D1: Array, classes: Array, orders: Array, way: int, marks_max: int) -> Array:
    """uint8 [D]: what each text needs. Those with joiners are stripped, though they may come out as they were."""
    needs_D = np.empty(len(offsets_D1) - 1, np.uint8)
    _find_needs(data, offsets_D1, signs(data, offsets_D1), classes, orders, way, marks_max, needs_D)
    return needs_D


def strip(
    data: Array, offsets_D1: Array, needs_D: Array, classes: Array, orders: Array, marks_max: int
) -> tuple[Array, Array, Array]:
    """(bytes, places int64 [D + 1], spans int64 [S, 2]): the texts to be stripped with line feeds for line ends and
    nothing invisible, the others empty; and the spans of those bytes whose form is not sure, in order."""
    size = int(np.diff(offsets_D1)[needs_D == STRIPPED].sum())
    out, places_D1 = np.empty(size, np.uint8), np.zeros(len(offsets_D1), np.int64)
    spans_S2 = np.empty((256, 2), np.int64)
    spans_S2, count = _strip(data, offsets_D1, needs_D, classes, orders, marks_max, out, places_D1, spans_S2)
    return out, places_D1, spans_S2[:count]


def gather(data: Array, spans_S2: Array) -> Array:
    """The bytes of the spans, a zero byte behind each."""
    out = np.empty(int((spans_S2[:, 1] - spans_S2[:, 0]).sum()) + len(spans_S2), np.uint8)
    _gather(data, spans_S2, out)
    return out


def replace(data: Array, places_D1: Array, spans_S2: Array, others: bytes) -> tuple[Array, Array]:
    """(bytes, places) with `others`, a zero byte behind each, in the place of the spans."""
    gone = int((spans_S2[:, 1] - spans_S2[:, 0]).sum())
    out = np.empty(int(places_D1[-1]) - gone + len(others) - len(spans_S2), np.uint8)
    return out, _replace(data, places_D1, spans_S2, np.frombuffer(others, np.uint8), out)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _find_needs(
    data: Array,
    offsets_D1: Array,
    signs_D: Array,
    classes: Array,
    orders: Array,
    way: int,
    marks_max: int,
    needs_D: Array,
) -> None:
    for text in range(len(offsets_D1) - 1):
        span, found = data[offsets_D1[text] : offsets_D1[text + 1]], signs_D[text]
        need = SPACED if found & _ill(way) or not _has_clean_ends(span, way) else CLEAN
        if found & _CONTROL:
            need = STRIPPED
        elif found & _WIDE:
            need = max(need, _wide_need(span, classes, orders, way, marks_max))
        needs_D[text] = need


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _ill(way: int) -> int:
    """The signs that call for other blanks or blank lines."""
    return _TRAILING | (_LINES_4 if way == KEEP else _RUN | _LINES_3)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _has_clean_ends(span: Array, way: int) -> bool:
    if len(span) == 0:
        return True
    first, last = span[0], span[-1]
    if last == 10 or last == 32 or last == 9 or first == 10:
        return False
    return bool(way == KEEP or (first != 32 and first != 9))


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _wide_need(span: Array, classes: Array, orders: Array, way: int, marks_max: int) -> int:
    """What a text needs for its characters beyond ASCII."""
    at, stop, order, marks, need = 0, len(span), 0, 0, CLEAN
    while at < stop:
        if span[at] < 0x80:
            order, marks, at = 0, 0, _next_wide(span, at + 1, stop)
            continue
        code, size = _decode(span, at)
        found, at = classes[code], at + size
        if found == _MARK:
            marks += 1
            if marks > marks_max or orders[code] < order:
                return STRIPPED
            order = orders[code]
            continue
        if found & ~_BLANK != 0:
            return STRIPPED
        order, marks = 0, 0
        if found != 0 and (way != KEEP or at == stop or span[at] == 10):
            need = SPACED
    return need


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _next_wide(span: Array, at: int, stop: int) -> Any:
    """The first byte of a character beyond ASCII, `stop` where there is none: 64 bytes are looked at in one go."""
    place, end = np.uint64(at), np.uint64(stop)
    while place + _BLOCK <= end:
        wide = np.uint8(0)
        for ahead in range(_BLOCK):
            wide |= span[place + np.uint64(ahead)]
        if wide >= 0x80:
            break
        place += _BLOCK
    while place < end and span[place] < 0x80:
        place += _ONE
    return np.int64(place)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _strip(
    data: Array,
    offsets_D1: Array,
    needs_D: Array,
    classes: Array,
    orders: Array,
    marks_max: int,
    out: Array,
    places_D1: Array,
    spans_S2: Array,
) -> Any:
    to, count = 0, 0
    for text in range(len(offsets_D1) - 1):
        at, stop = _bounds(offsets_D1, needs_D, text)
        shift = to - at  # of the bytes from `kept` on, which are not written yet
        kept, border, sure, order, marks = at, to, True, 0, 0
        while at < stop:
            if 32 <= data[at] < 127 or data[at] == 10:
                spans_S2, count = _close(spans_S2, count, sure, border, at + shift)
                at = _skip_ascii(data, at + 1, stop)
                border, sure, order, marks = at - 1 + shift, True, 0, 0
                continue
            code, size = _decode(data, at)
            found = classes[code]
            if found & (_LINE_END | _INVISIBLE) != 0:
                to = _copy(data, kept, at, out, to)
                if found & _LINE_END != 0:
                    spans_S2, count = _close(spans_S2, count, sure, border, to)
                    border, sure, order, marks = to, True, 0, 0
                    size += data[at] == 13 and at + 1 < stop and data[at + 1] == 10
                    out[to] = 10
                    to += 1
                at += size
                kept, shift = at, to - at
                continue
            if found & _MARK != 0:
                marks += 1
                sure, order = sure and marks <= marks_max and orders[code] >= order, orders[code]
            elif found & _UNSURE != 0:
                sure, order, marks = False, 0, 0
            else:
                spans_S2, count = _close(spans_S2, count, sure, border, at + shift)
                border, sure, order, marks = at + shift, found & _CHANGED == 0, 0, 0
            at += size
        to = _copy(data, kept, at, out, to)
        spans_S2, count = _close(spans_S2, count, sure, border, to)
        places_D1[text + 1] = to
    return spans_S2, count


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _bounds(offsets_D1: Array, needs_D: Array, text: int) -> Any:
    """The bytes of a text that are to be stripped: all or none."""
    start = np.int64(offsets_D1[text])
    return start, np.int64(offsets_D1[text + 1]) if needs_D[text] == STRIPPED else start


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _skip_ascii(data: Array, at: int, stop: int) -> Any:
    """The first byte that is neither visible ASCII nor space, tab or line feed."""
    place, end = np.uint64(at), np.uint64(stop)
    while place < end:
        byte = data[place]
        if (byte < 32 and byte != 10 and byte != 9) or byte >= 127:
            break
        place += _ONE
    return np.int64(place)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _copy(data: Array, start: int, stop: int, out: Array, to: int) -> int:
    """Unsigned places save numba its test for negative ones, without which twenty times as many bytes are copied."""
    place, first, begin = np.uint64(0), np.uint64(start), np.uint64(to)
    while place < np.uint64(stop - start):
        out[begin + place] = data[first + place]
        place += _ONE
    return to + stop - start


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _close(spans_S2: Array, count: int, sure: bool, start: int, stop: int) -> Any:
    """Note the span that ends here where its form is not sure."""
    if sure:
        return spans_S2, count
    if count == len(spans_S2):
        spans_S2 = np.concatenate((spans_S2, np.empty_like(spans_S2)))
    spans_S2[count, 0], spans_S2[count, 1] = start, stop
    return spans_S2, count + 1


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _gather(data: Array, spans_S2: Array, out: Array) -> None:
    to = 0
    for span in range(len(spans_S2)):
        for at in range(spans_S2[span, 0], spans_S2[span, 1]):
            out[to] = data[at]
            to += 1
        out[to] = 0
        to += 1


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _replace(data: Array, places_D1: Array, spans_S2: Array, others: Array, out: Array) -> Array:
    changed_D1 = np.zeros_like(places_D1)
    at, to, span, other = 0, 0, 0, 0
    for text in range(len(places_D1) - 1):
        while span < len(spans_S2) and spans_S2[span, 0] < places_D1[text + 1]:
            to = _copy(data, at, spans_S2[span, 0], out, to)
            at, span = spans_S2[span, 1], span + 1
            while others[other] != 0:
                out[to] = others[other]
                other, to = other + 1, to + 1
            other += 1
        to = _copy(data, at, places_D1[text + 1], out, to)
        at = places_D1[text + 1]
        changed_D1[text + 1] = to
    return changed_D1


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
