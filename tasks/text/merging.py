"""Byte-pair encoding of short words: neighbours are merged, the best pair first, of equals the leftmost.

In: symbols as numbers, the pairs that may merge, and how good each is. Out: the symbols that are left. That is what
SentencePiece's BPE and Hugging Face's do with one word; it knows neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numba
import numpy as np

Array = np.ndarray[Any, Any]
U64 = np.uint64
_NEVER, _RESULT = np.int64((2**31 - 1) << 32), np.int64(2**32 - 1)
"""The value of a pair is its rank, and in the lower half what it becomes; that of one that does not merge is above."""
EACH = 8
"""Bits for a slot of the table; those of its pairs are set. Half of all pairs that are asked for never merge."""
_njit = numba.njit(nogil=True, cache=True, forceinline=True)


class Merges:
    """Which pairs merge into what. left, right, result: int64 [n]; rank: int32 [n], lower goes first."""

    def __init__(self, left: Array, right: Array, result: Array, rank: Array) -> None:
        size = 1 << (2 * len(left) + 1).bit_length()
        self._table, self._bits = np.full((size, 2), -1, np.int64), np.zeros(max(1, size * EACH // 64), np.uint64)
        _fill(self._table, self._bits, (left << 32) | right, (rank.astype(np.int64) << 32) | result)

    def merged(self, symbols: Array, stops: Array) -> tuple[Array, Array]:
        """(symbols left int32, how many of each word int64 [m]). symbols: int32, word after word; stops: int64 [m].

        Time grows with the square of a word's length: 1 MB of words of 8 bytes take 0.05 CPU seconds.
        """
        out, sizes = np.empty(len(symbols), np.int32), np.empty(len(stops), np.int64)
        end = _merge_all(symbols, stops, self._table, self._bits, out, sizes)
        return out[:end], sizes


def with_others(ids: Array, sizes: Array, whole: Mapping[int, list[int]]) -> tuple[Array, Array]:
    """(ids int32, sizes int64) with the ids of the words in `whole`, by number, which have none yet."""
    if not whole:
        return ids, sizes
    rows = np.array(sorted(whole))
    counts = np.array([len(whole[row]) for row in rows])
    places = np.repeat((np.cumsum(sizes) - sizes)[rows], counts)
    sizes[rows] = counts
    return np.insert(ids, places, np.concatenate([whole[row] for row in rows])).astype(np.int32), sizes


@_njit  # type: ignore[untyped-decorator]
def _mixed(key: Any) -> Any:
    """splitmix64's multiplier (Steele, Lea, Flood 2014) between two shifts."""
    mixed = (U64(key) ^ (U64(key) >> U64(31))) * U64(0x9E3779B97F4A7C15)
    return mixed ^ (mixed >> U64(32))


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _fill(table: Array, bits: Array, pairs: Array, values: Array) -> None:
    for at in range(len(pairs)):
        mixed, mask = _mixed(pairs[at]), U64(len(table) - 1)
        slot, bit = mixed & mask, mixed & U64(64 * len(bits) - 1)
        bits[bit >> U64(6)] |= U64(1) << (bit & U64(63))
        while table[slot, 0] >= 0 and table[slot, 0] != pairs[at]:
            slot = (slot + U64(1)) & mask
        if table[slot, 0] < 0:  # a pair named twice keeps its first rank
            table[slot, 0], table[slot, 1] = pairs[at], values[at]


@_njit  # type: ignore[untyped-decorator]
def _pair(left: Any, right: Any, table: Array, bits: Array) -> Any:
    """The value of a pair, _NEVER where it does not merge: mostly a bit says so, and the table is not looked at."""
    key = (np.int64(left) << 32) | np.int64(right)
    mixed, mask = _mixed(key), U64(len(table) - 1)
    slot, bit = mixed & mask, mixed & U64(64 * len(bits) - 1)
    if not (bits[bit >> U64(6)] >> (bit & U64(63))) & U64(1):
        return _NEVER
    while table[slot, 0] != key:
        if table[slot, 0] < 0:
            return _NEVER
        slot = (slot + U64(1)) & mask
    return table[slot, 1]


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _merge_all(symbols: Array, stops: Array, table: Array, bits: Array, out: Array, sizes: Array) -> int:
    longest, start, end = 0, 0, 0
    for stop in stops:
        longest, start = max(longest, stop - start), stop
    word, value, start = np.empty(longest, np.int32), np.empty(longest, np.int64), 0
    for number in range(len(stops)):
        size = stops[number] - start
        word[:size] = symbols[start : stops[number]]
        start = stops[number]
        for at in range(size - 1):
            value[at] = _pair(word[at], word[at + 1], table, bits)
        while size > 1:
            best, lowest = 0, value[0]
            for at in range(1, size - 1):
                if value[at] >> 32 < lowest >> 32:
                    best, lowest = at, value[at]
            if lowest == _NEVER:
                break
            word[best] = np.int32(lowest & _RESULT)
            size -= 1
            for at in range(best + 1, size):
                word[at], value[at] = word[at + 1], value[at + 1]
            if best > 0:
                value[best - 1] = _pair(word[best - 1], word[best], table, bits)
            if best < size - 1:
                value[best] = _pair(word[best], word[best + 1], table, bits)
        out[end : end + size] = word[:size]
        sizes[number] = size
        end += size
    return end
