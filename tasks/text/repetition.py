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

Method: n-grams are put into classes, each named by the word where it stands first: 2-grams by the hashes of their two
words, longer ones by the classes of the two (n-1)-grams in them, exactly. Only those whose two halves both repeat are
looked at, so that n = 3 to 10 together cost less than n = 2 where little repeats; and one that goes on as the first of
its (n-1)-grams does is of the class named by that, without a look into any table.

Speed: 1.2 GB of English a CPU second, texts of 330 words (one core, 2026).
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import types
from numba.extending import intrinsic

TOP, REPEATED = (2, 3, 4), (5, 6, 7, 8, 9, 10)
_LONGEST, _MARK_BITS, _LEVELS = 10, 4, 3
_STEP = np.uint64(0x9E3779B97F4A7C15)
_ONE, _HALF = np.uint64(1), np.uint64(32)
Array = np.ndarray
_njit = numba.njit(nogil=True, cache=True, forceinline=True)


def count_repetition(hashes_W: Array, ends_W: Array, offsets_D1: Array) -> dict[str, Array]:
    """int64 [D] of repeated_3grams, and of top_2 ... top_4 and repeated_5 ... repeated_10 in characters.

    ends_W: characters in the words of the text up to and with this one. offsets_D1: the words of text d are those from
    offsets_D1[d] to offsets_D1[d + 1].
    """
    rows_DK = np.zeros((len(offsets_D1) - 1, _LONGEST + 1), np.int64)
    most = int(np.diff(offsets_D1).max(initial=0))
    firsts_T = np.zeros(2 << max(4, most.bit_length()), np.int32)
    rooms = [np.zeros(most + 2, np.int64 if place == _LEVELS else np.int32) for place in range(7)]
    _count(hashes_W, ends_W, offsets_D1, firsts_T, tuple(rooms), rows_DK)
    names = {1: "repeated_3grams", **{n: f"top_{n}" for n in TOP}, **{n: f"repeated_{n}" for n in REPEATED}}
    return {name: rows_DK[:, place].copy() for place, name in names.items()}


@intrinsic  # type: ignore[untyped-decorator]
def _pointer(_typing: Any, array: Any) -> Any:
    """The address of an array's first element, which is indexed as the array is: no references to it are counted."""
    kind = types.CPointer(array.dtype)(array)
    return kind, lambda context, builder, _, given: context.make_array(array)(context, builder, given[0]).data


@intrinsic  # type: ignore[untyped-decorator]
def _from(_typing: Any, pointer: Any, at: Any) -> Any:
    """The address of the element `at`."""
    return pointer(pointer, at), lambda _context, builder, _, given: builder.gep(given[0], [given[1]])


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _count(hashes_W: Array, ends_W: Array, offsets_D1: Array, firsts_T: Array, rooms: Any, rows_DK: Array) -> None:
    """rooms: by word its class and the next longer one, how many are of a class, the text and n it is listed for; the
    words listed; two more for what is counted of a class."""
    class_W, next_W, count_W, level_W = (
        _pointer(rooms[0]),
        _pointer(rooms[1]),
        _pointer(rooms[2]),
        _pointer(rooms[_LEVELS]),
    )
    list_W, seen_W, found_W, table = _pointer(rooms[4]), _pointer(rooms[5]), _pointer(rooms[6]), _pointer(firsts_T)
    for text in range(len(offsets_D1) - 1):
        start, row, mark = offsets_D1[text], rows_DK[text], (text + 1) << _MARK_BITS
        hashes_N, ends_N = _from(_pointer(hashes_W), start), _from(_pointer(ends_W), start)
        listed = _pairs(hashes_N, offsets_D1[text + 1] - start, table, class_W, count_W)
        listed = _keep_repeated(mark + 2, listed, class_W, count_W, list_W, level_W, seen_W, found_W, True)
        if not listed:
            continue
        row[2] = _top(2, ends_N, list_W, listed, class_W, seen_W, found_W)
        for n in range(3, _LONGEST + 1):
            listed = _longer(mark + n - 1, list_W, listed, table, (class_W, next_W), count_W, level_W, seen_W)
            class_W, next_W = next_W, class_W
            listed = _keep_repeated(mark + n, listed, class_W, count_W, list_W, level_W, seen_W, found_W, False)
            if not listed:
                break
            if n == 3:
                row[1] = _surplus(list_W, listed, class_W)
            if n <= 4:
                row[n] = _top(n, ends_N, list_W, listed, class_W, seen_W, found_W)
            else:
                row[n] = _passed_before(n, ends_N, list_W, listed, class_W, seen_W)


@_njit  # type: ignore[untyped-decorator]
def _room(count: int) -> Any:
    size = 32
    while size < 2 * count:
        size *= 2
    return size


@_njit  # type: ignore[untyped-decorator]
def _pairs(hashes_N: Any, words: int, firsts_T: Any, class_W: Any, count_W: Any) -> int:
    """The class of the 2-gram at every word, which is where it stood first, and how many there are of each.

    firsts_T: open addressed, the word behind the first of each class; what stands there says which 2-gram it is."""
    grams = words - 1
    if grams < 2:
        return 0
    size = _room(grams)
    for place in range(size):
        firsts_T[place] = 0
    for at in range(grams):
        count_W[at] = 0
    mask = np.uint64(size - 1)
    for at in range(grams):
        one, other = hashes_N[at], hashes_N[at + 1]
        slot = (one * _STEP + other) >> _HALF & mask
        known = np.int64(firsts_T[slot])
        while known and ((hashes_N[known - 1] ^ one) | (hashes_N[known] ^ other)):
            slot = (slot + _ONE) & mask
            known = np.int64(firsts_T[slot])
        first = known - 1 if known else at
        firsts_T[slot] = first + 1
        class_W[at] = first
        count_W[first] += 1
    return grams


@_njit  # type: ignore[untyped-decorator]
def _longer(
    mark: int, list_W: Any, listed: int, table: Any, classes: Any, count_W: Any, level_W: Any, later_W: Any
) -> int:
    """List the words where a repeated (n-1)-gram begins and at the next word another, with the class of both together.

    An n-gram that goes on as the first of its (n-1)-grams does is of the class of that; the others come later. mark: of
    the (n-1)-grams of this text that are repeated.
    """
    class_W, next_W = classes
    found, later = 0, 0
    for place in range(listed - 1):
        at = np.int64(list_W[place])
        first = np.int64(class_W[at])
        goes_on = list_W[place + 1] == at + 1
        alike = (level_W[first + 1] == mark) & (class_W[first + 1] == class_W[at + 1])
        list_W[found], later_W[later], next_W[at], count_W[at] = at, at, first, 0
        count_W[first] += goes_on & alike
        found, later = found + goes_on, later + (goes_on & (not alike))
    if later:
        _class_others(later_W, later, table, class_W, next_W, count_W)
    return found


@_njit  # type: ignore[untyped-decorator]
def _class_others(later_W: Any, later: int, firsts_T: Any, class_W: Any, next_W: Any, count_W: Any) -> None:
    size = _room(later)
    for place in range(size):
        firsts_T[place] = 0
    mask = np.uint64(size - 1)
    for place in range(later):
        at = np.int64(later_W[place])
        one, other = class_W[at], class_W[at + 1]
        slot = (np.uint64(one) << _HALF | np.uint64(other)) * _STEP >> _HALF & mask
        known = np.int64(firsts_T[slot])
        while known and ((class_W[known - 1] ^ one) | (class_W[known] ^ other)):
            slot = (slot + _ONE) & mask
            known = np.int64(firsts_T[slot])
        first = known - 1 if known else at
        firsts_T[slot] = first + 1
        next_W[at] = first
        count_W[first] += 1


@_njit  # type: ignore[untyped-decorator]
def _keep_repeated(
    mark: int,
    listed: int,
    class_W: Any,
    count_W: Any,
    list_W: Any,
    level_W: Any,
    seen_W: Any,
    found_W: Any,
    every: bool,
) -> int:
    """Keep of the list (of every word up to `listed`) those whose class has more than one member, and mark them."""
    kept = 0
    for place in range(listed):
        at = np.int64(place) if every else np.int64(list_W[place])
        list_W[kept] = at
        kept += count_W[class_W[at]] > 1
    for place in range(kept):
        own = class_W[list_W[place]]
        level_W[list_W[place]], seen_W[own], found_W[own] = mark, 0, 0
    return kept


@_njit  # type: ignore[untyped-decorator]
def _surplus(list_W: Any, listed: int, class_W: Any) -> int:
    """Listed n-grams that are not the first of their class."""
    count = 0
    for place in range(listed):
        count += class_W[list_W[place]] != list_W[place]
    return count


@_njit  # type: ignore[untyped-decorator]
def _spelled(ends_N: Any, at: int, n: int) -> Any:
    """Characters of the n words from `at` on."""
    return ends_N[at + n - 1] - (ends_N[at - 1] if at else 0)


@_njit  # type: ignore[untyped-decorator]
def _top(n: int, ends_N: Any, list_W: Any, listed: int, class_W: Any, free_W: Any, found_W: Any) -> Any:
    """free_W, found_W: 0 of each class; where its next place is, and how many were counted."""
    most = np.int64(0)
    for place in range(listed):
        at = np.int64(list_W[place])
        own = np.int64(class_W[at])
        free = np.int64(free_W[own])
        alone = at >= free
        free_W[own] = at + n if alone else free
        found = np.int64(found_W[own]) + alone
        found_W[own] = found
        most = max(most, found * _spelled(ends_N, own, n) * (found > 1))
    return most


@_njit  # type: ignore[untyped-decorator]
def _passed_before(n: int, ends_N: Any, list_W: Any, listed: int, class_W: Any, seen_W: Any) -> Any:
    """seen_W: 0 of each class."""
    free, repeated = np.int64(0), np.int64(0)
    for place in range(listed):
        at = np.int64(list_W[place])
        own = np.int64(class_W[at])
        seen, here = seen_W[own] != 0, at >= free
        repeated += _spelled(ends_N, at, n) * (here & seen)
        free = at + n if here & seen else free
        seen_W[own] = seen | here
    return repeated
