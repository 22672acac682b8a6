"""The innermost loops of reading a pin: rows gathered, documents' borders found, positions counted.

Compiled by numba where it is installed; without it numpy does the same in more passes over memory, so that a machine
that has torch alone trains too. Both are held against each other (tests/test_kernels.py). Compiling takes seconds once,
afterwards importing costs the half second of numba itself, before any pin is opened. Legend: n rows, T1 ids of a row,
m documents.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

try:
    if os.environ.get("GRISTMILL_KERNELS") == "numpy":
        raise ImportError
    from numba import njit

    COMPILED = True
except ImportError:
    COMPILED = False

    def njit(*_: Any, **__: Any) -> Any:
        """Leaves a function as it is; what is not compiled is not called."""
        return lambda function: function


def gather(flat: Array, starts: Array, out: Array) -> None:
    """out [n, T1] = the T1 ids from each of `starts` int64 [n] on, widened where out's type is wider. flat [ids]: one
    dimension. 0.5 us a row of 4 KB, 0.8 widened to int64: as fast as numpy's take (one core, 2026)."""
    if COMPILED:
        _gather(flat, starts, out)
        return
    width = out.shape[1]
    rows = np.ndarray((max(0, len(flat) - width + 1), width), flat.dtype, flat.data, strides=flat.strides * 2)
    out[...] = rows[starts]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _gather(flat: Array, starts: Array, out: Array) -> None:
    # Unsigned indices: a signed one may count from the end, and the test for that keeps the loop from being a copy.
    width = np.uint64(out.shape[1])
    for row in range(len(starts)):
        begin, own = np.uint64(starts[row]), out[row]
        for place in range(width):
            own[place] = flat[begin + place]


def positions(begins: Array, total: int) -> Array:
    """int64 [total]: places since the last of `begins` int64 [m], which ascend from 0."""
    if COMPILED:
        out = np.empty(total, np.int64)
        _positions(begins, out)
        return out
    sizes = np.diff(begins, append=total)
    counted: Array = np.arange(total) - np.repeat(begins, sizes)
    return counted


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _positions(begins: Array, out: Array) -> None:
    for piece in range(len(begins)):
        begin = begins[piece]
        end = begins[piece + 1] if piece + 1 < len(begins) else len(out)
        own = out[begin:end]
        for place in range(len(own)):
            own[place] = place


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
def _borders(words: Array, spans: Array, width: int, item: int, begins: Array, of_row: Array) -> int:
    found, guesses = 0, np.zeros(spans.shape[1], np.int64)
    _guesses(words, spans, guesses)
    for row in range(spans.shape[1]):
        pointers, documents, start, stop = spans[0, row], spans[1, row], spans[3, row], spans[4, row]
        of_row[row] = found
        for number in range(_upto(words, pointers, documents, start, guesses[row]), documents):
            byte = words[pointers + 8 * number]
            if byte >= stop:
                break
            if found < len(begins):
                begins[found] = row * width + max(0, byte - start) // item
            found += 1
    of_row[spans.shape[1]] = found
    return found


def borders(words: Array, spans: Array, width: int, item: int) -> tuple[Array, Array]:
    """(begins int64 [m]: row * width + place of each document that a row holds; of_row int64 [n + 1]: which of them
    are whose). words: int64 at every address; spans int64 [5, n]: see training.borders.Spans; item: bytes of an id.
    0.2 us a row. Compiled only: training.borders is what there is without.
    """
    of_row = np.empty(spans.shape[1] + 1, np.int64)
    begins = np.empty(4 * spans.shape[1] + 64, np.int64)
    found = _borders(words, spans, width, item, begins, of_row)
    if found > len(begins):
        begins = np.empty(found, np.int64)
        _borders(words, spans, width, item, begins, of_row)
    return begins[:found], of_row
