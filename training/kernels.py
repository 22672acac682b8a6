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

REACH = 32
"""Documents, a power of two: three guesses come within it for 99.6 % of the rows of lognormal documents."""

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
def _gather(flat: Array, starts: Array, out: Array) -> Any:
    # Unsigned indices: a signed one may count from the end, and the test for that keeps the loop from being a copy.
    width, seen = np.uint64(out.shape[1]), np.uint64(0)
    # An id of each half page and each row's last, before any row is copied: all rows wait for memory together.
    for row in range(len(starts)):
        begin = np.uint64(starts[row])
        for place in range(np.uint64(0), width, np.uint64(HALF_PAGE // flat.itemsize)):
            seen ^= np.uint64(flat[begin + place])
        seen ^= np.uint64(flat[begin + width - np.uint64(1)])
    for row in range(len(starts)):
        begin, own = np.uint64(starts[row]), out[row]
        for place in range(width):
            own[place] = flat[begin + place]
    return seen  # or the compiler would leave the first loop out


def find(words: Array, places: Array, shards: Array, place: Array, item: int, *, spans: bool) -> tuple[Array, ...]:
    """(ids, lengths, spans): number of each sequence's first id in the mapped range, its ids, both int64 [n], and
    training.borders.Spans as int64 [5, n], or [5, 0] if not asked.

    words: int64 at every address; places int64 [6, shards]: a shard's first id, the addresses of its starts, stops and
    pointers, its documents and ids; shards, place int64 [n]: of each sequence; item: bytes of an id.
    """
    ids, lengths = np.empty_like(place), np.empty_like(place)
    found = np.empty((5, len(place) if spans else 0), np.int64)
    if COMPILED:
        _find(words, places, shards, place, item, ids, lengths, found)
        return ids, lengths, found
    first, starts, stops, pointers, documents, held = places[:, shards]
    start = words[starts + 8 * place]
    lengths[:] = words[stops + 8 * place] - start
    ids[:] = first + start
    if spans:
        found[:] = pointers, documents, held * item, start * item, (start + lengths) * item
    return ids, lengths, found


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _find(
    words: Array, places: Array, shards: Array, place: Array, item: int, ids: Array, lengths: Array, spans: Array
) -> None:
    for row in range(len(place)):
        shard, at = shards[row], 8 * place[row]
        start, stop = words[places[1, shard] + at], words[places[2, shard] + at]
        ids[row], lengths[row] = places[0, shard] + start, stop - start
        if spans.shape[1]:
            spans[0, row], spans[1, row], spans[2, row] = places[3, shard], places[4, shard], places[5, shard] * item
            spans[3, row], spans[4, row] = start * item, stop * item


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


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _guesses(words: Array, spans: Array, guesses: Array) -> None:
    """guesses [n]: a document near the one that each row begins in. By the mean size, thrice: where sizes vary, the
    first guess is off as a random walk is, the next by the root of that. All rows at once, so that they wait for memory
    together."""
    for turn in range(3):
        for row in range(len(guesses)):
            pointers, documents, held, start = spans[0, row], spans[1, row], spans[2, row], spans[3, row]
            found = words[pointers + 8 * guesses[row]] if turn else 0
            nearer = guesses[row] + np.int64((start - found) * (documents / max(1, held)))
            guesses[row] = min(max(nearer, 0), documents - 1)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _upto(words: Array, pointers: int, documents: int, start: int, guess: int) -> int:
    """Number of the last document that begins at or before byte `start` of its shard's ids, from `guess` on in doubling
    steps, then by halving. words: int64 at every address; pointers: address of the shard's first."""
    low, high, step = guess, guess, 1
    if words[pointers + 8 * guess] <= start:
        high = guess + 1
        while high < documents and words[pointers + 8 * high] <= start:
            low, step = high, 2 * step
            high = min(documents, high + step)
    else:
        low = guess - 1
        while low > 0 and words[pointers + 8 * low] > start:
            high, step = low, 2 * step
            low = max(0, low - step)
    while high - low > 1:
        middle = (low + high) >> 1
        if words[pointers + 8 * middle] <= start:
            low = middle
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _nearer(words: Array, spans: Array, guesses: Array) -> None:
    """guesses [n] to the last document that begins at or before each row's start, where it lies within REACH of them;
    else somewhere near. By halving, all rows a step at a time and without a branch, as none could be foretold."""
    for row in range(len(guesses)):
        guesses[row] = max(0, guesses[row] - REACH)
    step = REACH
    while step:
        for row in range(len(guesses)):
            middle = min(guesses[row] + step, spans[1, row] - 1)
            reached = np.int64(words[spans[0, row] + 8 * middle] <= spans[3, row])
            guesses[row] += (middle - guesses[row]) * reached
        step >>= 1


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _borders(words: Array, spans: Array, width: int, shift: int, group: int, begins: Array, of_row: Array) -> int:
    found, base, nearby = 0, -width, np.zeros(spans.shape[1], np.int64)
    _guesses(words, spans, nearby)
    _nearer(words, spans, nearby)
    for row in range(spans.shape[1]):
        pointers, documents, start, stop = spans[0, row], spans[1, row], spans[3, row], spans[4, row]
        first = nearby[row]
        past = first + 1 < documents and words[pointers + 8 * (first + 1)] <= start
        if past or words[pointers + 8 * first] > start:
            first = _upto(words, pointers, documents, start, first)
        base = base + width if base + width < group * width else 0
        of_row[row] = found
        if found < len(begins):
            begins[found] = base
        found += 1
        for number in range(first + 1, documents):
            byte = words[pointers + 8 * number]
            if byte >= stop:
                break
            if found < len(begins):
                begins[found] = base + ((byte - start) >> shift)
            found += 1
    of_row[spans.shape[1]] = found
    return found


def borders(words: Array, spans: Array, width: int, item: int, group: int) -> tuple[Array, Array]:
    """(begins int64 [m]: row % group * width + place of each document that a row holds; of_row int64 [n + 1]: which of
    them are whose). words: int64 at every address; spans int64 [5, n]: training.borders.Spans; item: bytes of an id.
    0.05 us a row. Compiled only: training.borders is what there is without.
    """
    shift = item.bit_length() - 1  # a division would cost more than all else
    of_row = np.empty(spans.shape[1] + 1, np.int64)
    begins = np.empty(4 * spans.shape[1] + 64, np.int64)
    found = _borders(words, spans, width, shift, group, begins, of_row)
    if found > len(begins):
        begins = np.empty(found, np.int64)
        _borders(words, spans, width, shift, group, begins, of_row)
    return begins[:found], of_row


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
