"""Columns as JSON objects, one a row, as bytes: canonical JSON (sorted keys, no spaces, UTF-8) without a Python object
for each value.

In: columns as bytes and offsets. Out: all objects in one array. It parses nothing, and trusts that texts are UTF-8 and
that keys are given in their order. What is escaped, and how, is what orjson and json escape: quotes, backslashes and
controls below U+0020. A test holds the bytes against both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numba
import numpy as np

ABSENT, NULL, THERE = 0, 1, 2
"""What a row has of a column: no key at all, null, or a value."""

_QUOTE, _BACKSLASH, _BRACE, _END, _COMMA, _UNICODE = 34, 92, 123, 125, 44, 117
_SHORT = {8: "b", 9: "t", 10: "n", 12: "f", 13: "r", _QUOTE: '"', _BACKSLASH: "\\"}
_WAYS = np.array([ord(_SHORT.get(code, "u" if code < 32 else "\0")) for code in range(256)], np.uint8)
"""What follows the backslash that a byte is written with; 0 where it stands for itself."""
_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)
_NULL = np.frombuffer(b"null", np.uint8)
_COUNTED, _BLOCK, _ONE, _ESCAPED, _LONG = np.uint64(48), np.uint64(32), np.uint64(1), np.uint64(2), np.uint64(6)
"""Bytes that are counted or copied at once, in loops of fixed length and by unsigned places, which the compiler turns
into wide registers: 7 GB a CPU second are counted, and 1 (code) to 4 (prose) written."""

Array = np.ndarray[Any, Any]


class Column(NamedTuple):
    """name: its key, as JSON with its quotes. data uint8, offsets_R1 int64: the values; quoted: they are texts, else
    they are JSON as they stand. states_R uint8: ABSENT, NULL or THERE.
    """

    name: bytes
    data: Array
    offsets_R1: Array
    quoted: bool
    states_R: Array


def objects(columns: Sequence[Column], rows: int) -> tuple[Array, Array]:
    """(bytes, offsets int64 [rows + 1]) of an object a row."""
    sizes_R = np.full(rows, 2, np.int64)
    begun_R = np.zeros(rows, np.uint8)
    for column in columns:
        there_R = column.states_R != ABSENT
        own_R = np.where(column.states_R == NULL, len(_NULL), _value_sizes(column))
        sizes_R += np.where(there_R, own_R + len(column.name) + 1 + begun_R, 0)
        begun_R |= there_R
    offsets_R1 = np.concatenate(([0], np.cumsum(sizes_R)))
    out, at_R = np.empty(int(offsets_R1[-1]), np.uint8), offsets_R1[:-1] + 1
    out[offsets_R1[:-1]] = _BRACE
    begun_R[:] = 0
    for column in columns:
        label = np.frombuffer(b"," + column.name + b":", np.uint8)
        _put(out, at_R, begun_R, label, *column[1:], _WAYS)
    out[at_R] = _END
    return out, offsets_R1


def written_sizes(data: Array, offsets_R1: Array) -> Array:
    """int64 [R]: bytes of each text as JSON, its quotes among them."""
    sizes_R = np.empty(len(offsets_R1) - 1, np.int64)
    _count(data, offsets_R1, sizes_R, _WAYS)
    return sizes_R


def _value_sizes(column: Column) -> Array:
    return written_sizes(column.data, column.offsets_R1) if column.quoted else np.diff(column.offsets_R1)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _count(data: Array, offsets_R1: Array, sizes_R: Array, ways: Array) -> None:
    for row in range(len(sizes_R)):
        at, end = np.uint64(offsets_R1[row]), np.uint64(offsets_R1[row + 1])
        more = np.int64(2)
        while at + _COUNTED <= end:
            here = np.uint8(0)
            for place in range(_COUNTED):
                code = data[at + np.uint64(place)]
                one = np.uint8(np.uint8(code < 32) | np.uint8(code == _QUOTE) | np.uint8(code == _BACKSLASH))
                plain = np.uint8(np.uint8(code < 8) | np.uint8(code == 11) | np.uint8((code > 13) & (code < 32)))
                here = np.uint8(here + np.uint8(one + np.uint8(plain * np.uint8(4))))
            more += np.int64(here)
            at += _COUNTED
        while at < end:
            code = data[at]
            if ways[code] != 0:
                more += 5 if ways[code] == _UNICODE else 1
            at += _ONE
        sizes_R[row] = offsets_R1[row + 1] - offsets_R1[row] + more


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _put(
    out: Array,
    at_R: Array,
    begun_R: Array,
    label: Array,
    data: Array,
    offsets_R1: Array,
    quoted: bool,
    states_R: Array,
    ways: Array,
) -> None:
    """Write a column's key and value in each row from at_R on; the comma of its label is left out of the first."""
    for row in range(len(at_R)):
        if states_R[row] == ABSENT:
            continue
        to = at_R[row]
        for place in range(1 - begun_R[row], len(label)):
            out[to] = label[place]
            to += 1
        begun_R[row] = 1
        if states_R[row] == NULL:
            for place in range(len(_NULL)):
                out[to + place] = _NULL[place]
            to += len(_NULL)
        elif quoted:
            out[to] = _QUOTE
            to = _write(data, offsets_R1[row], offsets_R1[row + 1], out, to + 1, ways)
            out[to] = _QUOTE
            to += 1
        else:
            for place in range(offsets_R1[row], offsets_R1[row + 1]):
                out[to] = data[place]
                to += 1
        at_R[row] = to


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _write(data: Array, begin: int, stop: int, out: Array, first: int, ways: Array) -> int:
    """Write a text; returns one past its last byte. A block is copied as it stands first: what is written is never
    shorter than the text, so that it stays within its own place."""
    at, end, to = np.uint64(begin), np.uint64(stop), np.uint64(first)
    while at < end:
        stop_here = end
        if at + _BLOCK <= end:
            special = np.uint8(0)
            for place in range(_BLOCK):
                code = data[at + np.uint64(place)]
                out[to + np.uint64(place)] = code
                special |= np.uint8(np.uint8(code < 32) | np.uint8(code == _QUOTE) | np.uint8(code == _BACKSLASH))
            stop_here = at + _BLOCK
            if special == 0:
                at, to = stop_here, to + _BLOCK
                continue
        while at < stop_here:
            code = data[at]
            way = ways[code]
            out[to] = code
            if way == 0:
                to += _ONE
            elif way != _UNICODE:
                out[to], out[to + _ONE] = _BACKSLASH, way
                to += _ESCAPED
            else:
                out[to], out[to + _ONE] = _BACKSLASH, _UNICODE
                out[to + np.uint64(2)] = out[to + np.uint64(3)] = 48
                out[to + np.uint64(4)] = 48 + (code >> 4)
                out[to + np.uint64(5)] = _DIGITS[code & 15]
                to += _LONG
            at += _ONE
    return int(np.int64(to))
