"""Where segments begin, as one bit a byte: stretches of the data taken out, judged by another, and put back.

In: bits of tasks.text.ascii_words, and starts of what it does not judge. Out: the positions of all. 3 GB a CPU second.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

Array = np.ndarray[Any, Any]
U64, _U64 = np.uint64, numba.types.uint64
WIDTH = 64
_ZERO, _ONE, _SIX, _LAST = U64(0), U64(1), U64(6), U64(63)


def cut_out(data: Array, stretches: Array) -> tuple[Array, Array]:
    """(the bytes of the stretches, one after another; int64: where each one begins in them)."""
    sizes = stretches[:, 1] - stretches[:, 0]
    begins = np.cumsum(sizes) - sizes
    own = np.empty(int(sizes.sum()), np.uint8)
    _copy(data, stretches, own)
    return own, begins


def put_back(bits: Array, stretches: Array, begins: Array, starts: Array) -> None:
    """Let words of the stretches begin at `starts`, int64, rising, and nowhere else. begins, starts: places in what was
    cut out; a stretch begins with a word."""
    _clear(bits, stretches)
    _set(bits, stretches, begins, starts)


def starts_of(bits: Array) -> Array:
    """int64: where words begin."""
    starts = np.empty(int(np.bitwise_count(bits).sum()), np.int64)
    _positions(bits, starts)
    return starts


@intrinsic  # type: ignore[untyped-decorator]
def _zeros_below(_typing: Any, value: Any) -> Any:
    """uint64: zeros below the lowest one of a uint64 that is not 0."""
    return _U64(value), lambda _context, builder, _, given: builder.cttz(given[0], ir.Constant(ir.IntType(1), 1))


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _set(bits: Array, stretches: Array, begins: Array, starts: Array) -> None:
    number = moved = 0
    for start in starts:
        while number < len(begins) and begins[number] <= start:
            moved = stretches[number, 0] - begins[number]
            number += 1
        at = U64(start + moved)
        bits[at >> _SIX] |= _ONE << (at & _LAST)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _clear(bits: Array, stretches: Array) -> None:
    for number in range(len(stretches)):
        at, stop = U64(stretches[number, 0]), U64(stretches[number, 1])
        while at < stop:
            count = min(U64(WIDTH) - (at & _LAST), stop - at)
            held = ~_ZERO if count == WIDTH else (_ONE << count) - _ONE
            bits[at >> _SIX] &= ~(held << (at & _LAST))
            at += count


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _positions(bits: Array, starts: Array) -> None:
    found = _ZERO
    for block in range(U64(len(bits))):
        left = bits[block]
        while left:
            starts[found] = np.int64(block * U64(WIDTH) + _zeros_below(left))
            left &= left - _ONE
            found += _ONE


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _copy(data: Array, stretches: Array, own: Array) -> None:
    at = 0
    for number in range(len(stretches)):
        size = stretches[number, 1] - stretches[number, 0]
        own[at : at + size] = data[stretches[number, 0] : stretches[number, 1]]
        at += size
