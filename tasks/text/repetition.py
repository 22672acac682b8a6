"""How much of a text its own n-grams of words repeat.

In: word hashes (tasks.text.words) and how many characters each word has. Out: one row of exact counts a text. It reads
no text. In scripts without spaces a word is a character, so n-grams are over characters there.

*repeated_3grams*: 3-grams minus different 3-grams.
*top_n* (Gopher: "fraction of characters in the most frequent n-gram", n = 2, 3, 4): of all n-grams that occur at least
twice without overlapping themselves, the most characters that one covers: occurrences times characters of its words. So
a text in which nothing repeats has 0 and none has more than all, where DataTrove counts overlapping occurrences, and
an n-gram that occurs once.
*repeated_n* (Gopher: "characters in duplicate n-grams", n = 5 ... 10): DataTrove's greedy scan from the left: an n-gram
that was passed before counts with the characters of its words, and the scan goes on behind it; else it is noted and the
scan goes on with the next word.

Method: 2-grams are put into classes by a hash of their words' hashes (64 bits); an n-gram is the pair of the classes of
the two (n-1)-grams in it, exactly, and only those whose two halves both repeat are looked at, so that n = 3 to 10
together cost less than n = 2 where little repeats. Speed: 500 MB of English a CPU second (one core, 2026).
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

TOP, REPEATED = (2, 3, 4), (5, 6, 7, 8, 9, 10)
_LONGEST = 10
_STEP = np.uint64(0x9E3779B97F4A7C15)
_EMPTY, _ONE, _HALF = np.uint64(0), np.uint64(1), np.uint64(32)
Array = np.ndarray


def count_repetition(hashes_W: Array, ends_W: Array, offsets_D1: Array) -> dict[str, Array]:
    """int64 [D] of repeated_3grams, and of top_2 ... top_4 and repeated_5 ... repeated_10 in characters.

    ends_W: characters in the words of the text up to and with this one. offsets_D1: the words of text d are those from
    offsets_D1[d] to offsets_D1[d + 1].
    """
    rows_DK = np.zeros((len(offsets_D1) - 1, _LONGEST + 1), np.int64)
    most = int(np.diff(offsets_D1).max(initial=0))
    keys_T = np.zeros(2 << max(4, most.bit_length()), np.uint64)
    firsts_T = np.zeros(len(keys_T), np.int32)
    scratch = np.zeros((5, most + 1), np.int32)
    _count(hashes_W, ends_W, offsets_D1, keys_T, firsts_T, scratch, rows_DK)
    names = {1: "repeated_3grams", **{n: f"top_{n}" for n in TOP}, **{n: f"repeated_{n}" for n in REPEATED}}
    return {name: rows_DK[:, place].copy() for place, name in names.items()}


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _count(
    hashes_W: Array, ends_W: Array, offsets_D1: Array, keys_T: Array, firsts_T: Array, scratch: Array, rows_DK: Array
) -> None:
    class_W, count_W, list_W, seen_W, found_W = scratch
    for text in range(len(offsets_D1) - 1):
        start, stop, row = offsets_D1[text], offsets_D1[text + 1], rows_DK[text]
        hashes_N, ends_N = hashes_W[start:stop], ends_W[start:stop]
        listed = _pairs(hashes_N, keys_T, firsts_T, class_W, count_W)
        listed = _keep_repeated(listed, class_W, count_W, list_W, True)
        if not listed:
            continue
        row[2] = _top(2, ends_N, list_W, listed, class_W, seen_W, found_W)
        for n in range(3, _LONGEST + 1):
            listed = _longer(list_W, listed, keys_T, firsts_T, class_W, count_W)
            listed = _keep_repeated(listed, class_W, count_W, list_W, False)
            if not listed:
                break
            if n == 3:
                row[1] = _surplus(list_W, listed, class_W)
            if n <= 4:
                row[n] = _top(n, ends_N, list_W, listed, class_W, seen_W, found_W)
            else:
                row[n] = _passed_before(n, ends_N, list_W, listed, class_W, seen_W)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _room(count: int) -> int:
    size = 32
    while size < 2 * count:
        size *= 2
    return size


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _pairs(hashes_N: Array, keys_T: Array, firsts_T: Array, class_W: Array, count_W: Array) -> int:
    """The class of the 2-gram at every word, which is where it stood first, and how many there are of each."""
    grams = len(hashes_N) - 1
    if grams < 2:
        return 0
    size = _room(grams)
    keys_T[:size] = _EMPTY
    mask = np.uint64(size - 1)
    count_W[:grams] = 0
    for at in range(grams):
        gram = (hashes_N[at] * _STEP) + hashes_N[at + 1]
        gram = gram ^ (gram >> _HALF) | _ONE
        slot = (gram >> _ONE) & mask
        key = keys_T[slot]
        while (key != _EMPTY) & (key != gram):
            slot = (slot + _ONE) & mask
            key = keys_T[slot]
        keys_T[slot] = gram
        first = at if key == _EMPTY else np.int64(firsts_T[slot])  # no branch: which it is cannot be foretold
        firsts_T[slot] = first
        class_W[np.uint64(at)] = first
        count_W[np.uint64(first)] += 1
    return grams


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _longer(list_W: Array, listed: int, keys_T: Array, firsts_T: Array, class_W: Array, count_W: Array) -> int:
    """List the words where a repeated n-gram begins and at the next word another, with the class of both together."""
    found = 0
    for place in range(listed - 1):
        at = list_W[place]
        list_W[found] = at
        count_W[at] = 0
        found += list_W[place + 1] == at + 1
    size = _room(found)
    keys_T[:size] = _EMPTY
    mask = np.uint64(size - 1)
    for place in range(found):
        at = np.uint64(list_W[place])
        gram = np.uint64(class_W[at] + 1) << _HALF | np.uint64(class_W[at + _ONE])
        slot = ((gram * _STEP) >> _HALF) & mask
        key = keys_T[slot]
        while (key != _EMPTY) & (key != gram):
            slot = (slot + _ONE) & mask
            key = keys_T[slot]
        keys_T[slot] = gram
        first = np.int64(at) if key == _EMPTY else np.int64(firsts_T[slot])
        firsts_T[slot] = first
        class_W[at] = first
        count_W[np.uint64(first)] += 1
    return found


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _keep_repeated(listed: int, class_W: Array, count_W: Array, list_W: Array, every: bool) -> int:
    """Keep of the list (of every word up to `listed`) those whose class has more than one member."""
    kept = 0
    for place in range(listed):
        at = place if every else list_W[place]
        list_W[kept] = at
        kept += count_W[class_W[at]] > 1
    return kept


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _surplus(list_W: Array, listed: int, class_W: Array) -> int:
    """Listed n-grams that are not the first of their class."""
    count = 0
    for place in range(listed):
        count += class_W[list_W[place]] != list_W[place]
    return count


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _spelled(ends_N: Array, at: int, n: int) -> Any:
    """Characters of the n words from `at` on."""
    return ends_N[at + n - 1] - (ends_N[at - 1] if at else 0)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _top(n: int, ends_N: Array, list_W: Array, listed: int, class_W: Array, free_W: Array, found_W: Array) -> Any:
    for place in range(listed):
        free_W[class_W[list_W[place]]], found_W[class_W[list_W[place]]] = 0, 0
    most = np.int64(0)
    for place in range(listed):
        at = np.int64(list_W[place])
        own = np.uint64(class_W[at])
        free = np.int64(free_W[own])
        alone = at >= free
        free_W[own] = at + n if alone else free
        found = np.int64(found_W[own]) + alone
        found_W[own] = found
        most = max(most, found * _spelled(ends_N, np.int64(own), n) * (found > 1))
    return most


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _passed_before(n: int, ends_N: Array, list_W: Array, listed: int, class_W: Array, seen_W: Array) -> Any:
    for place in range(listed):
        seen_W[class_W[list_W[place]]] = 0
    free, repeated = np.int64(0), np.int64(0)
    for place in range(listed):
        at = np.int64(list_W[place])
        own = np.uint64(class_W[at])
        seen, here = seen_W[own] != 0, at >= free
        repeated += _spelled(ends_N, at, n) * (here & seen)
        free = at + n if here & seen else free
        seen_W[own] = seen | here
    return repeated
