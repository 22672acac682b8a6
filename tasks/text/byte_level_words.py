"""Text cut into words as the expressions of byte-level tokenizers do it.

In: bytes, what each one's character is, and where segments lie in them. Out: where each word ends. What is a letter, a
digit or white is the affair of the library that the ids are of (tasks.character_kinds); ASCII is known here, but for
control characters.

GPT-2's: endings, then an optional space and letters, digits or marks, then white characters but the last before a word.
Llama 3's and Qwen's (`modern`): endings in any case; letters may follow one character of any kind but a newline; digits
come in groups; newlines go with the marks or the white characters before them.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

Array = np.ndarray[Any, Any]

LETTER, DIGIT, SPACE, WHITE, NEWLINE, MARK, OTHER = range(7)
"""Kinds of characters. MARK: none of those before it; OTHER: one of which this module must not judge."""

ASCII = np.full(128, OTHER, np.uint8)
ASCII[0x21:0x7F] = MARK
ASCII[[*range(0x41, 0x5B), *range(0x61, 0x7B)]] = LETTER
ASCII[0x30:0x3A] = DIGIT
ASCII[0x20], ASCII[0x09], ASCII[[0x0A, 0x0D]] = SPACE, WHITE, NEWLINE


def simple(kinds: Array, stops: Array) -> Array:
    """Whether no character of a segment (up to its stop; bool [m]) is OTHER. kinds: uint8 [n], of each byte."""
    if not len(stops) or kinds.max() < OTHER:  # a hundredth of the time that it takes by segments
        return np.ones(len(stops), bool)
    return np.maximum.reduceat(kinds, np.concatenate([[0], stops[:-1]])) < OTHER


def word_stops(
    data: Array, kinds: Array, stops: Array, chosen: Array, modern: bool, digits: int
) -> tuple[Array, Array]:
    """(end of each word in data int64, words of each segment int64 [m]) of the chosen segments; the others have none.

    kinds: uint8 [n], each byte of a character has its kind. digits: the most that one word has; 0 for no limit.
    """
    ends, counts = np.empty(len(data), np.int64), np.zeros(len(stops), np.int64)
    found = _cut(data, kinds, stops, chosen, modern, digits, ends, counts)
    return ends[:found], counts


def mark_words(data: Array, kinds: Array, stops: Array, modern: bool, digits: int, marked: Array) -> None:
    """Put into `marked` where segments begin (up to their stops; int64 [m]), and words in those without OTHER.

    marked: bool [n + 1]. What is marked within a word stays, in segments with OTHER it goes.
    """
    _mark(data, kinds, stops, simple(kinds, stops), modern, digits, marked)


def spread(data: Array, kind_of: Array) -> tuple[Array, int]:
    """(the kind of each byte's character uint8 [n], the highest). data: UTF-8; kind_of: uint8, by code point."""
    kinds = np.empty(len(data), np.uint8)
    return kinds, _spread(data, kind_of, kinds)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _spread(data: Array, kind_of: Array, kinds: Array) -> int:
    at, size, highest, one = np.uint64(0), np.uint64(len(data)), np.uint8(0), np.uint64(1)
    while at < size:
        byte = data[at]
        if byte < 0x80:
            kind = kind_of[byte]
            kinds[at] = kind
            highest = max(highest, kind)
            at += one
            continue
        step = np.uint64(2 if byte < 0xE0 else 3 if byte < 0xF0 else 4)
        stop = min(at + step, size)
        point = np.uint64(byte) & (np.uint64(0xFF) >> (step + one))
        for later in range(at + one, stop):
            point = (point << np.uint64(6)) | np.uint64(data[later] & 0x3F)
        kind = kind_of[point]
        for later in range(at, stop):
            kinds[later] = kind
        highest = max(highest, kind)
        at = stop
    return int(highest)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _mark(data: Array, kinds: Array, stops: Array, chosen: Array, modern: bool, digits: int, marked: Array) -> None:
    at = 0
    for number in range(len(stops)):
        stop = stops[number]
        if not chosen[number]:
            marked[at:stop] = False
            marked[at] = True
            at = stop
        while at < stop:
            marked[at] = True
            at = _next_modern(data, kinds, at, stop, digits) if modern else _next_gpt2(data, kinds, at, stop)


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
def _after(data: Array, at: int, stop: int) -> Any:
    """One past the character that begins at `at`."""
    at += 1
    while at < stop and data[at] & 0xC0 == 0x80:
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
def _white(data: Array, kinds: Array, at: int, stop: int) -> Any:
    """One past the white characters from `at` on, but for the last where a word follows more than one."""
    end = at
    while end < stop and 2 <= kinds[end] <= 4:
        end += 1
    if end == stop:
        return end
    last = end - 1
    while data[last] & 0xC0 == 0x80:
        last -= 1
    return last if last > at else end


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _next_gpt2(data: Array, kinds: Array, at: int, stop: int) -> Any:
    size = _ending(data, at, stop, 0)
    if size:
        return at + size
    first = at + 1 if kinds[at] == 2 and at + 1 < stop else at
    kind = kinds[first]
    if kind == 0 or kind == 1 or kind == 5:
        return _run(kinds, first, stop, kind)
    return _white(data, kinds, at, stop)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _next_modern(data: Array, kinds: Array, at: int, stop: int, digits: int) -> Any:
    size = _ending(data, at, stop, 0x20)
    if size:
        return at + size
    kind = kinds[at]
    if kind == 0:
        return _run(kinds, at, stop, 0)
    if kind == 1:
        return _digits(data, kinds, at, stop, digits)
    second = _after(data, at, stop)
    if kind != 4 and second < stop and kinds[second] == 0:
        return _run(kinds, second, stop, 0)
    first = at + 1 if kind == 2 and at + 1 < stop else at
    if kinds[first] == 5:
        return _run(kinds, _run(kinds, first, stop, 5), stop, 4)
    last, end = -1, at
    while end < stop and 2 <= kinds[end] <= 4:
        if kinds[end] == 4:
            last = end
        end += 1
    return last + 1 if last >= 0 else _white(data, kinds, at, stop)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _digits(data: Array, kinds: Array, at: int, stop: int, digits: int) -> Any:
    """One past the digits from `at` on, so many of them at most."""
    if not digits:
        return _run(kinds, at, stop, 1)
    for _ in range(digits):
        if at < stop and kinds[at] == 1:
            at = _after(data, at, stop)
    return at
