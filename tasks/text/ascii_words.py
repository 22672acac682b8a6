"""ASCII text cut into words as the expressions of byte-level tokenizers do it.

In: bytes and where segments lie in them. Out: where each word ends. It holds for the characters of SIMPLE alone, on
which every version of every library agrees what is a letter, a digit or white.

GPT-2's: endings, then an optional space and letters, digits or marks, then white characters but the last before a word.
Llama 3's and Qwen's (`modern`): endings in any case; letters may follow one character of any kind but a newline; digits
come in groups; newlines go with the marks or the white characters before them.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

Array = np.ndarray[Any, Any]

LETTER, DIGIT, SPACE, TAB, NEWLINE, MARK, OTHER = range(7)
KINDS = np.full(256, OTHER, np.uint8)
KINDS[0x21:0x7F] = MARK
KINDS[[*range(0x41, 0x5B), *range(0x61, 0x7B)]] = LETTER
KINDS[0x30:0x3A] = DIGIT
KINDS[0x20], KINDS[0x09], KINDS[[0x0A, 0x0D]] = SPACE, TAB, NEWLINE


def simple(data: Array, stops: Array) -> Array:
    """Whether each segment (up to its stop; bool [m]) holds but letters, digits, marks, spaces, tabs and newlines."""
    if not len(stops):
        return np.empty(0, bool)
    begins = np.concatenate([[0], stops[:-1]])
    return np.maximum.reduceat(KINDS[data], begins) < OTHER


def word_stops(data: Array, stops: Array, chosen: Array, modern: bool, digits: int) -> tuple[Array, Array]:
    """(end of each word in data int64, words of each segment int64 [m]) of the chosen segments; the others have none.

    digits: the most that one word has; 0 for no limit.
    """
    ends, counts = np.empty(len(data), np.int64), np.zeros(len(stops), np.int64)
    found = _cut(data, KINDS[data], stops, chosen, modern, digits, ends, counts)
    return ends[:found], counts


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _cut(
    data: Array, kinds: Array, stops: Array, chosen: Array, modern: bool, digits: int, ends: Array, counts: Array
) -> int:
    found, begin = 0, 0
    for number in range(len(stops)):
        stop = stops[number]
        if chosen[number]:
            at = begin
            while at < stop:
                at = _next_modern(data, kinds, at, stop, digits) if modern else _next_gpt2(data, kinds, at, stop)
                ends[found] = at
                found += 1
                counts[number] += 1
        begin = stop
    return found


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _run(kinds: Array, at: int, stop: int, kind: int) -> Any:
    """One past the run of `kind` that begins at `at`."""
    while at < stop and kinds[at] == kind:
        at += 1
    return at


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _ending(data: Array, at: int, stop: int, fold: int) -> int:
    """Length of 's, 't, 'm, 'd, 're, 've or 'll at `at`, else 0. fold: 0x20 for letters of any case."""
    if data[at] != 0x27 or at + 1 >= stop:
        return 0
    first = data[at + 1] | fold
    if first == 0x73 or first == 0x74 or first == 0x6D or first == 0x64:
        return 2
    if at + 2 < stop:
        second = data[at + 2] | fold
        if (first == 0x72 and second == 0x65) or (first == 0x76 and second == 0x65):
            return 3
        if first == 0x6C and second == 0x6C:
            return 3
    return 0


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _white(kinds: Array, at: int, stop: int) -> Any:
    """One past the white characters from `at` on, but for the last where a word follows more than one."""
    end = at
    while end < stop and 2 <= kinds[end] <= 4:
        end += 1
    return end if end == stop or end - at == 1 else end - 1


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _next_gpt2(data: Array, kinds: Array, at: int, stop: int) -> Any:
    size = _ending(data, at, stop, 0)
    if size:
        return at + size
    first = at + 1 if kinds[at] == 2 and at + 1 < stop else at
    kind = kinds[first]
    if kind == 0 or kind == 1 or kind == 5:
        return _run(kinds, first, stop, kind)
    return _white(kinds, at, stop)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _next_modern(data: Array, kinds: Array, at: int, stop: int, digits: int) -> Any:
    size = _ending(data, at, stop, 0x20)
    if size:
        return at + size
    kind = kinds[at]
    if kind == 0:
        return _run(kinds, at, stop, 0)
    if kind != 1 and kind != 4 and at + 1 < stop and kinds[at + 1] == 0:
        return _run(kinds, at + 1, stop, 0)
    if kind == 1:
        end = _run(kinds, at, stop, 1)
        return min(end, at + digits) if digits else end
    first = at + 1 if kind == 2 and at + 1 < stop else at
    if kinds[first] == 5:
        return _run(kinds, _run(kinds, first, stop, 5), stop, 4)
    last, end = -1, at
    while end < stop and 2 <= kinds[end] <= 4:
        if kinds[end] == 4:
            last = end
        end += 1
    return last + 1 if last >= 0 else _white(kinds, at, stop)
