"""The long text of a JSON object taken out of its bytes: what is left is short, and any parser reads it at once.

In: records as bytes, each a line. Out: the texts at the keys `text` and `content`, unescaped, in one array, and the
records with an empty text in that place, as one JSON array. It is strict on what it takes out (escapes, controls,
surrogates) and on where a record begins and ends, and leaves all else to whoever parses what is left: a record's
brackets close at its end and not before, so that a parser which accepts the array has found one object for each record.
A record where something is not as expected (no such key or two of them, another value, an escape in a key) is named as
such. That texts are UTF-8 is for the caller to ask: an escape makes a whole character, so what is UTF-8 unescaped was
so before.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

OTHER, TEXT, CONTENT = 0, 1, 2
"""What a record is: for others to look at, or an object with its text at that key."""

_QUOTE, _BACKSLASH, _OPEN, _SHUT, _LIST, _LIST_END, _COMMA, _COLON = 34, 92, 123, 125, 91, 93, 44, 58
_WIDE, _ONE = np.uint64(32), np.uint64(1)
"""Bytes looked at in one go: a loop of fixed length over unsigned places, which the compiler puts in wide registers."""
_KEYS = np.frombuffer(b"textcontent", np.uint8)
_ESCAPES = np.zeros(128, np.uint8)
for _name, _byte in zip(b'"\\/bfnrt', b'"\\/\b\f\n\r\t', strict=True):
    _ESCAPES[_name] = _byte

Array = np.ndarray[Any, Any]


class Taken(NamedTuple):
    """kinds_R uint8: OTHER, TEXT or CONTENT. texts, offsets_R1 int64: bytes of the texts, none of others. rest,
    places_R1 int64: the records without them, `null` for others, each with the comma or bracket before it, and at the
    end of it all a bracket.
    """

    kinds_R: Array
    texts: Array
    offsets_R1: Array
    rest: Array
    places_R1: Array


def take_texts(data: Array, starts_R: Array, sizes_R: Array) -> Taken:
    """Take the text out of each of the records of `data`, uint8."""
    rows, size = len(starts_R), int(sizes_R.sum())
    kinds_R, offsets_R1, places_R1 = (
        np.zeros(rows, np.uint8),
        np.zeros(rows + 1, np.int64),
        np.zeros(rows + 1, np.int64),
    )
    texts, rest = np.empty(size + int(_WIDE), np.uint8), np.empty(size + 6 * rows + 2, np.uint8)
    _take(data, starts_R, sizes_R, kinds_R, texts, offsets_R1, rest, places_R1)
    end = int(places_R1[-1])
    rest[0], rest[end] = _LIST, _LIST_END
    return Taken(kinds_R, texts[: offsets_R1[-1]], offsets_R1, rest[: end + 1] if rows else rest[:0], places_R1)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _take(
    data: Array,
    starts_R: Array,
    sizes_R: Array,
    kinds_R: Array,
    texts: Array,
    offsets_R1: Array,
    rest: Array,
    places_R1: Array,
) -> None:
    to, put = 0, 0
    for row in range(len(starts_R)):
        record = data[starts_R[row] : starts_R[row] + sizes_R[row]]
        kind, begin, end, after = _walk(record, texts, to)
        kinds_R[row] = kind
        rest[put] = _COMMA
        put += 1
        if kind == OTHER:
            for letter in (110, 117, 108, 108):
                rest[put] = letter
                put += 1
        else:
            to = after
            for at in range(begin):
                rest[put] = record[at]
                put += 1
            rest[put] = _QUOTE
            for at in range(end - 1, len(record)):
                put += 1
                rest[put] = record[at]
            put += 1
        offsets_R1[row + 1], places_R1[row + 1] = to, put


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _walk(record: Array, texts: Array, to: int) -> tuple[int, int, int, int]:
    """What a record is, where its text begins and ends with its quotes, and one past what it has in `texts` from `to`
    on. A text at `content` is unescaped last: it counts where there is no `text`."""
    at, found, begin, end, after = _skip_blanks(record, 0), OTHER, 0, 0, to
    other = (OTHER, 0, 0, to)
    if at >= len(record) or record[at] != _OPEN:
        return other
    at, depth, key = at + 1, 1, True
    while at < len(record):
        code = record[at]
        if code == _QUOTE and depth == 1 and key:
            kind, at = _key(record, at)
            key, text = False, 0 <= at < len(record) and record[at] == _QUOTE
            if at < 0 or (kind != OTHER and kind == found) or (kind == TEXT and not text):
                return other
            if kind == OTHER or (kind == CONTENT and (found == TEXT or not text)):
                continue
            if kind == TEXT:
                stop, after = _unescape(record, at + 1, texts, to)
            else:
                stop = _string_end(record, at)
            if stop < 0:
                return other
            found, begin, end, at = kind, at, stop, stop
            continue
        if code == _QUOTE:
            at = _string_end(record, at)
            if at < 0:
                return other
            continue
        if code in (_OPEN, _LIST):
            depth += 1
        elif code in (_SHUT, _LIST_END):
            depth -= 1
            if depth == 0:
                break
        elif code == _COMMA and depth == 1:
            key = True
        at += 1
    if depth != 0 or found == OTHER or _skip_blanks(record, at + 1) < len(record):
        return other
    if found == CONTENT:
        stop, after = _unescape(record, begin + 1, texts, to)
        if stop < 0:
            return other
    return (found, begin, end, after) if after > to else other


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _skip_blanks(record: Array, at: int) -> int:
    while at < len(record) and (record[at] == 32 or record[at] == 9 or record[at] == 13):
        at += 1
    return at


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _key(record: Array, at: int) -> tuple[int, int]:
    """(TEXT, CONTENT or OTHER, where its value begins) of the key at `at`; -1 where it is none or has an escape."""
    begin = at + 1
    end = begin
    while end < len(record) and record[end] != _QUOTE:
        if record[end] == _BACKSLASH:
            return OTHER, -1
        end += 1
    at = _skip_blanks(record, end + 1)
    if at >= len(record) or record[at] != _COLON:
        return OTHER, -1
    at = _skip_blanks(record, at + 1)
    size, kind, first = end - begin, OTHER, 0
    if size == 4:
        kind = TEXT
    elif size == 7:
        kind, first = CONTENT, 4
    for place in range(size if kind != OTHER else 0):
        if record[begin + place] != _KEYS[first + place]:
            return OTHER, at
    return kind, at


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _string_end(record: Array, begin: int) -> int:
    """One past the closing quote of the text that opens at `begin`; -1 where there is none."""
    at, end = np.uint64(begin + 1), np.uint64(len(record))
    while at < end:
        if at + _WIDE <= end:
            special = np.uint8(0)
            for place in range(_WIDE):
                code = record[at + np.uint64(place)]
                special |= np.uint8(np.uint8(code == _QUOTE) | np.uint8(code == _BACKSLASH))
            if special == 0:
                at += _WIDE
                continue
        stop = min(end, at + _WIDE)
        while at < stop:
            code = record[at]
            at += _ONE
            if code == _QUOTE:
                return int(np.int64(at))
            if code == _BACKSLASH:
                at += _ONE
    return -1


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _unescape(record: Array, begin: int, texts: Array, first: int) -> tuple[int, int]:
    """Write the text whose first byte is at `begin` to `texts` from `first` on: (one past its closing quote, one past
    what was written); -1 where it is not whole, or has a control or an escape that stands for no character."""
    at, end, to = np.uint64(begin), np.uint64(len(record)), np.uint64(first)
    while at < end:
        if at + _WIDE <= end:
            special = np.uint8(0)
            for place in range(_WIDE):
                code = record[at + np.uint64(place)]
                texts[to + np.uint64(place)] = code
                special |= np.uint8(np.uint8(code < 32) | np.uint8(code == _QUOTE) | np.uint8(code == _BACKSLASH))
            if special == 0:
                at, to = at + _WIDE, to + _WIDE
                continue
        stop = min(end, at + _WIDE)
        while at < stop:
            code = record[at]
            at += _ONE
            if code == _BACKSLASH:
                if at >= end:
                    return -1, 0
                code = record[at]
                at += _ONE
                if code == 117:
                    letter, size = _hexadecimal(record, np.int64(at))
                    if size == 0:
                        return -1, 0
                    at += np.uint64(size)
                    to = np.uint64(_encode(letter, texts, np.int64(to)))
                    continue
                code = _ESCAPES[code] if code < 128 else np.uint8(0)
                if code == 0:
                    return -1, 0
            elif code == _QUOTE:
                return int(np.int64(at)), int(np.int64(to))
            elif code < 32:
                return -1, 0
            texts[to] = code
            to += _ONE
    return -1, 0


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _hexadecimal(record: Array, at: int) -> tuple[int, int]:
    """The character of an escape whose digits begin at `at`, and its bytes: 4, or 10 of a pair; 0 where it is none."""
    high = _four(record, at)
    if high < 0 or 0xDC00 <= high < 0xE000:
        return 0, 0
    if high < 0xD800 or high >= 0xE000:
        return high, 4
    if at + 10 > len(record) or record[at + 4] != _BACKSLASH or record[at + 5] != 117:
        return 0, 0
    low = _four(record, at + 6)
    if low < 0xDC00 or low >= 0xE000:
        return 0, 0
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00), 10


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _four(record: Array, at: int) -> int:
    """The number of four hexadecimal digits, -1 where one of them is none."""
    if at + 4 > len(record):
        return -1
    number = 0
    for place in range(at, at + 4):
        code = int(record[place])
        if 48 <= code < 58:
            number = number * 16 + code - 48
        elif 97 <= code | 32 < 103:
            number = number * 16 + (code | 32) - 87
        else:
            return -1
    return number


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _encode(letter: int, texts: Array, to: int) -> int:
    """Write a character in UTF-8; returns one past its last byte."""
    if letter < 0x80:
        texts[to] = letter
        return to + 1
    size = 2 if letter < 0x800 else 3 if letter < 0x10000 else 4
    for place in range(size - 1, 0, -1):
        texts[to + place] = 0x80 | (letter & 0x3F)
        letter >>= 6
    texts[to] = letter | (0xF00 >> size & 0xFF)
    return to + size
