"""Texts cut where no merge can reach across, so that each different segment is encoded but once.

In: UTF-8 bytes and the borders of the texts in them. Out: where segments start, which of them are equal,
and a gather of their ids. It knows no tokenizer; which texts may be cut so is tasks.encoder's affair.

A segment is a run of spaces with what follows up to the next space, or one newline, or one tab.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

Array = np.ndarray[Any, Any]

SPACE, NEWLINE, TAB = 0x20, 0x0A, 0x09
MOST_TRIES = 64
"""Places looked at for a segment; beyond them it counts as one more. So text made to collide costs no more
time."""


def segment_starts(data: Array, borders: Array) -> Array:
    """First byte of each segment, int64 [m], rising.

    data: uint8 [n]. borders: int64 [texts + 1], where each text begins, and n. Every text begins a segment.
    """
    if not len(data):
        return np.empty(0, np.int64)
    marked = np.zeros(len(data) + 1, bool)
    alone = (data == NEWLINE) | (data == TAB)
    space = data == SPACE
    marked[1:-1] = (space[1:] & ~space[:-1]) | alone[1:] | alone[:-1]
    marked[borders] = True
    return np.flatnonzero(marked[:-1])


def distinct(data: Array, starts: Array) -> tuple[Array, Array]:
    """(which int64 [m], firsts int64 [u]): segment i has the bytes of segment firsts[which[i]].

    Equal means equal bytes, the hash only finds candidates; equal segments may be told apart, never the
    reverse.
    """
    slots = 1 << max(4, int(2 * len(starts)).bit_length())
    which, firsts, found = _distinct(data, starts, np.full(slots, -1, np.int64))
    return which, firsts[:found]


def gathered(pool: Array, borders: Array, which: Array) -> tuple[Array, Array]:
    """(ids [k], stops int64 [m]): the ids pool[borders[w] : borders[w + 1]] of each w in `which`, one after
    another, and where each ends.
    """
    stops = np.cumsum(np.diff(borders)[which])
    return _gathered(pool, borders, which, np.empty(int(stops[-1]) if len(stops) else 0, pool.dtype)), stops


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _distinct(data: Array, starts: Array, table: Array) -> tuple[Array, Array, int]:
    mask = np.uint64(len(table) - 1)
    number_of = len(starts)
    which, firsts = np.empty(number_of, np.int64), np.empty(number_of, np.int64)
    hashes = np.empty(number_of, np.uint64)
    found = 0
    for number in range(number_of):
        start = starts[number]
        size = (starts[number + 1] if number + 1 < number_of else len(data)) - start
        mixed = np.uint64(14695981039346656037)  # FNV-1a
        for at in range(start, start + size):
            mixed = (mixed ^ np.uint64(data[at])) * np.uint64(1099511628211)
        slot = (mixed ^ (mixed >> np.uint64(32))) & mask
        which[number] = -1
        for _ in range(MOST_TRIES):
            known = table[np.int64(slot)]
            if known < 0:
                table[np.int64(slot)] = found
                break
            if hashes[known] == mixed and _same(data, starts, firsts[known], start, size):
                which[number] = known
                break
            slot = (slot + np.uint64(1)) & mask
        if which[number] < 0:
            which[number], firsts[found], hashes[found] = found, number, mixed
            found += 1
    return which, firsts, found


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _same(data: Array, starts: Array, known: int, start: int, size: int) -> bool:
    first = starts[known]
    after = starts[known + 1] if known + 1 < len(starts) else len(data)
    equal = after - first == size
    at = 0
    while equal and at < size:
        equal = data[first + at] == data[start + at]
        at += 1
    return bool(equal)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _gathered(pool: Array, borders: Array, which: Array, out: Array) -> Array:
    end = 0
    for known in which:
        for at in range(borders[known], borders[known + 1]):
            out[end] = pool[at]
            end += 1
    return out
