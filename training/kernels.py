"""The innermost loops of reading a pin: rows gathered, documents' borders found, positions counted.

Compiled by numba where it is installed; without it numpy does the same in more passes over memory, so that a machine
that has torch alone trains too. Both are held against each other (tests/test_kernels.py). Compiling takes seconds once,
afterwards importing costs the half second of numba itself, before any pin is opened. Legend: n rows, T1 ids of a row,
m documents.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

HALF_PAGE = 2048
"""Bytes: what a processor fetches ahead by itself ends with a page of 4 KB."""

try:
    if os.environ.get("GRISTMILL_KERNELS") == "numpy":
        raise ImportError
    from numba import njit as njit

    COMPILED = True
except ImportError:
    COMPILED = False

    def njit(*_: Any, **__: Any) -> Any:
        """Leaves a function as it is; what is not compiled is not called."""
        return lambda function: function


def gather(flat: Array, starts: Array, out: Array) -> None:
    """out [n, T1] = the T1 >= 1 ids from each of `starts` int64 [n] on, widened where out's type is wider. flat [ids]:
    one dimension. 0.5 us a row of 4 KB, 0.7 widened to int64: as fast as numpy's take (one core, 2026)."""
    if COMPILED:
        _gather(flat, starts, out)
        return
    width = out.shape[1]
    rows = np.ndarray((max(0, len(flat) - width + 1), width), flat.dtype, flat.data, strides=flat.strides * 2)
    out[...] = rows[starts]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _fetch(flat: Array, starts: Array, width: np.uint64) -> Any:
    """Look at an id of each half page and each row's last: all rows wait for memory together. Gives what it saw, or the
    compiler would leave it out."""
    seen = np.uint64(0)
    for row in range(len(starts)):
        begin = np.uint64(starts[row])
        for place in range(np.uint64(0), width, np.uint64(HALF_PAGE // flat.itemsize)):
            seen ^= np.uint64(flat[begin + place])
        seen ^= np.uint64(flat[begin + width - np.uint64(1)])
    return seen


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _gather(flat: Array, starts: Array, out: Array) -> Any:
    # Unsigned indices: a signed one may count from the end, and the test for that keeps the loop from being a copy.
    width = np.uint64(out.shape[1])
    seen = _fetch(flat, starts, width)
    for row in range(len(starts)):
        begin, own = np.uint64(starts[row]), out[row]
        for place in range(width):
            own[place] = flat[begin + place]
    return seen


SLACK = 128
"""Places behind the positions of a batch that are written too: pieces are counted in strides of so many, of which the
compiler makes vectors, and what a stride writes beyond its piece the next piece overwrites."""


def gather_bordered(flat: Array, starts: Array, begins: Array, out: Array, ahead: int) -> Array:
    """As `gather`, and in the same call the borders of the inputs, as `piece_borders` gives them; begins, ahead: as
    there. Compiled only."""
    borders = np.empty(len(begins) + 1, np.int32)
    kept = _gather_bordered(flat, starts, begins, out, ahead, borders)
    return borders if kept == len(borders) else borders[:kept]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _gather_bordered(flat: Array, starts: Array, begins: Array, out: Array, ahead: int, borders: Array) -> Any:
    width = np.uint64(out.shape[1])
    borders[0] = np.int32(_fetch(flat, starts, width))
    for row in range(len(starts)):
        begin, own = np.uint64(starts[row]), out[row]
        for place in range(width):
            own[place] = flat[begin + place]
    return _piece_borders(begins, len(starts), out.shape[1] - ahead, ahead, borders)


def gather_apart(
    flat: Array, starts: Array, begins: Array, out: Array, ahead: int, labels: Array, positions: Array, ignored: int
) -> Array:
    """As `gather_bordered`, and in the same pass labels [n, T1]: the ids, but `ignored` where a document begins; and
    positions [n * (T1 - ahead) + SLACK]: places since the last border. All of one type. 1.0 us a row of 2,048 ids in
    int64 (one core, 2026)."""
    borders = np.empty(len(begins) + 1, np.int32)
    kept = _gather_apart(flat, starts, begins, out, ahead, borders, labels, positions, ignored)
    return borders if kept == len(borders) else borders[:kept]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _gather_apart(
    flat: Array,
    starts: Array,
    begins: Array,
    out: Array,
    ahead: int,
    borders: Array,
    labels: Array,
    positions: Array,
    ignored: int,
) -> Any:
    width = np.uint64(out.shape[1])
    borders[0] = np.int32(_fetch(flat, starts, width))
    for row in range(len(starts)):
        begin, own, learnt = np.uint64(starts[row]), out[row], labels[row]
        for place in range(width):
            own[place] = flat[begin + place]
        for place in range(width):
            learnt[place] = flat[begin + place]
    for begin in begins:
        labels[begin // out.shape[1], begin % out.shape[1]] = ignored
    kept = _piece_borders(begins, len(starts), out.shape[1] - ahead, ahead, borders)
    for piece in range(kept - 1):
        at, size = np.uint64(borders[piece]), np.uint64(borders[piece + 1] - borders[piece])
        for first in range(np.uint64(0), size, np.uint64(SLACK)):
            for place in range(np.uint64(SLACK)):
                positions[at + first + place] = first + place
    return kept


def positions(borders: Array) -> Array:
    """int64 [total]: places since the last of `borders` [m + 1], which ascend from 0 to total."""
    total = int(borders[-1])
    if COMPILED:
        out = np.empty(total, np.int64)
        _positions(borders, out)
        return out
    counted: Array = np.arange(total) - np.repeat(borders[:-1], np.diff(borders)).astype(np.int64)
    return counted


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _positions(borders: Array, out: Array) -> None:
    for piece in range(len(borders) - 1):
        own = out[borders[piece] : borders[piece + 1]]
        for place in range(len(own)):
            own[place] = place


def piece_borders(begins: Array, rows: int, width: int, ahead: int) -> Array:
    """int32 [m + 1]: where documents begin among rows * width places, and their end. begins int64 [m]: row *
    (width + ahead) + place, of rows that are `ahead` (0 or 1) ids longer; one that begins there begins nowhere here."""
    if COMPILED:
        out = np.empty(len(begins) + 1, np.int32)
        return out[: _piece_borders(begins, rows, width, ahead, out)]
    row, place = np.divmod(begins, width + ahead)
    inside = place < width
    kept: Array = np.append((row * width + place)[inside], rows * width).astype(np.int32)
    return kept


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _piece_borders(begins: Array, rows: int, width: int, ahead: int, out: Array) -> int:
    kept, row, end = 0, 0, width + ahead
    for begin in begins:
        while begin >= end:
            row, end = row + 1, end + width + ahead
        if begin < end - ahead:
            out[kept] = begin - row * ahead
            kept += 1
    out[kept] = rows * width
    return kept + 1


class Drawing(NamedTuple):
    """How positions draw from sources, int64: starts [stages]; source and rank of each place of a stage's period
    [stages, period]; what each source has given at a stage's start and gives in a period of it [stages, sources]; its
    sequences [sources]."""

    starts: Array
    tables: Array
    ranks: Array
    cursors: Array
    quotas: Array
    sizes: Array


def draw(positions: Array, by: Drawing) -> Array:
    """int64 [4, n]: stage, source, epoch, and the place in that epoch of what each of `positions` int64 [n] draws."""
    if COMPILED:
        drawn = np.empty((4, len(positions)), np.int64)
        _draw(positions, *by, drawn)
        return drawn
    stage = np.searchsorted(by.starts, positions, side="right") - 1
    periods, offset = np.divmod(positions - by.starts[stage], by.tables.shape[1])
    source = by.tables[stage, offset]
    given = by.cursors[stage, source] + periods * by.quotas[stage, source] + by.ranks[stage, offset]
    return np.stack([stage, source, *np.divmod(given, by.sizes[source])])


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _draw(
    positions: Array,
    starts: Array,
    tables: Array,
    ranks: Array,
    cursors: Array,
    quotas: Array,
    sizes: Array,
    out: Array,
) -> None:
    stage = 0
    for at in range(len(positions)):
        position = positions[at]
        while stage + 1 < len(starts) and starts[stage + 1] <= position:
            stage += 1
        while starts[stage] > position:
            stage -= 1
        # Unsigned, as none is below 0: a signed division rounds down with more work.
        since, period = np.uint64(position - starts[stage]), np.uint64(tables.shape[1])
        offset = since % period
        source = tables[stage, offset]
        given = np.uint64(
            cursors[stage, source] + np.int64(since // period) * quotas[stage, source] + ranks[stage, offset]
        )
        size = np.uint64(sizes[source])
        out[0, at], out[1, at], out[2, at], out[3, at] = stage, source, given // size, given % size
