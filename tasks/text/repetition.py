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
words, longer ones by the classes of the two (n-1)-grams in them, exactly. Only those are looked at whose hash another
2-gram's may share, and then those whose two halves both repeat, so that n = 3 to 10 together cost less than n = 2 where
little repeats; and one that goes on as the first of its (n-1)-grams does is of the class named by that, without a look
into any table.

Speed: 1.3 GB of English a CPU second, texts of 330 words (one of two busy cores, 2026).
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import types
from numba.extending import intrinsic

TOP, REPEATED = (2, 3, 4), (5, 6, 7, 8, 9, 10)
_LONGEST = 10
NAMES = ("repeated_3grams", *(f"top_{n}" for n in TOP), *(f"repeated_{n}" for n in REPEATED))
_STEP, _MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xFF51AFD7ED558CCD)
_ONE, _HALF, _LOW = np.uint64(1), np.uint64(32), np.uint64(0xFFFFFFFF)
_FLAGS, _SLOTS = 8, 4
"""Flags for each 2-gram of a text, and slots for each pair that is classed, at least: few then meet by chance."""
Array = np.ndarray
_njit = numba.njit(nogil=True, cache=True, forceinline=True)


def count_repetition(hashes_W: Array, ends_W1: Array, offsets_D1: Array) -> Array:
    """int64 [D, K] of NAMES: repeated_3grams, and top_2 ... top_4 and repeated_5 ... repeated_10 in characters.

    ends_W1: uint32, characters in all words up to each, from 0 on. offsets_D1: the words of text d are those from
    offsets_D1[d] to offsets_D1[d + 1].
    """
    rows_DK = np.zeros((len(offsets_D1) - 1, _LONGEST + 1), np.int64)
    most = int(np.diff(offsets_D1).max(initial=0))
    size = 2 << max(4, most.bit_length())
    tables = np.empty(2 * size, np.int32), np.empty(_FLAGS * size, np.uint8)
    rooms = tuple(np.empty(most + 2, np.int32) for _ in range(7)), np.zeros(most + 2, np.uint8)
    _count(hashes_W, ends_W1, offsets_D1, tables, rooms, rows_DK)
    return rows_DK[:, 1:]


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
def _count(hashes_W: Array, ends_W1: Array, offsets_D1: Array, tables: Any, rooms: Any, rows_DK: Array) -> None:
    """rooms: by word its class and the next longer one, how many are of a class; the words listed and those to be
    classed; two more for what is counted of a class; and up to which n the word begins repeated n-grams."""
    class_W, next_W, count_W, list_W = (
        _pointer(rooms[0][0]),
        _pointer(rooms[0][1]),
        _pointer(rooms[0][2]),
        _pointer(rooms[0][3]),
    )
    later_W, free_W, found_W, level_W = (
        _pointer(rooms[0][4]),
        _pointer(rooms[0][5]),
        _pointer(rooms[0][6]),
        _pointer(rooms[1]),
    )
    table, flags = _pointer(tables[0]), _pointer(tables[1])
    for text in range(len(offsets_D1) - 1):
        start, row = offsets_D1[text], rows_DK[text]
        hashes_N, ends_N = _from(_pointer(hashes_W), start), _from(_pointer(ends_W1), start)
        listed = _likely(hashes_N, offsets_D1[text + 1] - start - 1, flags, later_W, list_W, level_W)
        _classify(hashes_N, list_W, listed, table, class_W, count_W, later_W)
        listed, row[2] = _top(2, ends_N, list_W, listed, class_W, count_W, level_W, free_W, found_W)
        for n in range(3, _LONGEST + 1):
            if not listed:
                break
            listed = _longer(n - 1, list_W, listed, table, (class_W, next_W), count_W, level_W, later_W)
            class_W, next_W = next_W, class_W
            if n <= 4:
                listed, row[n] = _top(n, ends_N, list_W, listed, class_W, count_W, level_W, free_W, found_W)
            else:
                listed, row[n] = _passed_before(n, ends_N, list_W, listed, class_W, count_W, level_W, free_W)
            if n == 3:
                row[1] = _surplus(list_W, listed, class_W)


@_njit  # type: ignore[untyped-decorator]
def _room(count: int) -> Any:
    size = 32
    while size < count:
        size *= 2
    return size


@_njit  # type: ignore[untyped-decorator]
def _likely(hashes_N: Any, grams: int, flags: Any, slot_W: Any, list_W: Any, level_W: Any) -> int:
    """List the words where 2-grams begin that may be repeated: those whose flag was set more than once. No branch."""
    if grams < 2:
        return 0
    size = _room(_FLAGS * grams)
    for place in range(size):
        flags[place] = 0
    mask = np.uint64(size - 1)
    for at in range(grams):
        slot = (hashes_N[at] * _STEP + hashes_N[at + 1]) >> _HALF & mask
        slot_W[at] = slot
        flags[slot] = flags[slot] << 1 | 1
    listed = 0
    for at in range(grams):
        list_W[listed], level_W[at] = at, 0
        listed += flags[np.uint64(slot_W[at])] >> 1 & 1
    level_W[grams] = 0
    return listed


@_njit  # type: ignore[untyped-decorator]
def _classify(keys_N: Any, list_W: Any, listed: int, owners_T: Any, class_W: Any, count_W: Any, rest_W: Any) -> None:
    """The class of each pair of keys that begins at a word listed, which is where it stood first, and how many each
    has.

    owners_T: by slot the word behind the first pair of it. Who equals that belongs to its class, and no branch tells;
    the others, few, go on to the next slot in a table of their own. rest_W: room for them, the list itself if need be.
    """
    mask, rest = _cleared(owners_T, listed), 0
    for place in range(listed):
        at = np.int64(list_W[place])
        one, other = keys_N[at], keys_N[at + 1]
        slot = (np.uint64(one) * _STEP + np.uint64(other) * _MIX) >> _HALF & mask
        known = np.int64(owners_T[slot])
        owner = known - 1 if known else at
        owners_T[slot] = owner + 1
        alike = ((keys_N[owner] ^ one) | (keys_N[owner + 1] ^ other)) == 0
        class_W[at], count_W[at], rest_W[rest] = owner, 0, at
        count_W[owner] += alike
        rest += not alike
    if not rest:
        return
    mask = _cleared(owners_T, rest)
    for place in range(rest):
        at = np.int64(rest_W[place])
        one, other = keys_N[at], keys_N[at + 1]
        slot = (np.uint64(one) * _MIX + np.uint64(other) * _STEP) >> _HALF & mask
        known = np.int64(owners_T[slot])
        while known and ((keys_N[known - 1] ^ one) | (keys_N[known] ^ other)):
            slot = (slot + _ONE) & mask
            known = np.int64(owners_T[slot])
        owner = known - 1 if known else at
        owners_T[slot] = owner + 1
        class_W[at] = owner
        count_W[owner] += 1


@_njit  # type: ignore[untyped-decorator]
def _cleared(owners_T: Any, count: int) -> Any:
    """The bits of a slot's number, in a table for so many; its slots are cleared."""
    size = _room(_SLOTS * count)
    for place in range(size):
        owners_T[place] = 0
    return np.uint64(size - 1)


@_njit  # type: ignore[untyped-decorator]
def _longer(
    n: int, list_W: Any, listed: int, table: Any, classes: Any, count_W: Any, level_W: Any, later_W: Any
) -> int:
    """List the words where a repeated n-gram begins and at the next word another, with the class of both together.

    One that goes on as the first of its n-grams does is of the class of that; the others come later.
    """
    class_W, next_W = classes
    found, later = 0, 0
    for place in range(listed - 1):
        at = np.int64(list_W[place])
        first = np.int64(class_W[at])
        goes_on = list_W[place + 1] == at + 1
        alike = (level_W[first + 1] == n) & (class_W[first + 1] == class_W[at + 1])
        list_W[found], later_W[later], next_W[at], count_W[at] = at, at, first, 0
        count_W[first] += goes_on & alike
        found, later = found + goes_on, later + (goes_on & (not alike))
    if later:
        _classify(class_W, later_W, later, table, next_W, count_W, later_W)
    return found


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
    return np.int64((np.uint64(ends_N[at + n]) - np.uint64(ends_N[at])) & _LOW)


# Both go over the list once: they keep those whose class has more than one member, of which alone something is counted,
# and mark them. The first of a class comes first, so nothing need be cleared before.


@_njit  # type: ignore[untyped-decorator]
def _top(
    n: int, ends_N: Any, list_W: Any, listed: int, class_W: Any, count_W: Any, level_W: Any, free_W: Any, found_W: Any
) -> Any:
    """(how many are kept, the most characters that one n-gram covers)."""
    kept, most, likeliest = np.int64(0), np.int64(0), np.int64(0)
    for place in range(listed):
        at = np.int64(list_W[place])
        own = np.int64(class_W[at])
        count = np.int64(count_W[own])
        repeated = count > 1
        list_W[kept], level_W[at], kept = at, n * repeated, kept + np.int64(repeated)
        covered = count * _spelled(ends_N, own, n) * repeated
        likeliest = own if covered > most else likeliest
        most = max(most, covered)
    if kept and not _apart(n, list_W, kept, class_W, likeliest):
        most = _top_apart(n, ends_N, list_W, kept, class_W, free_W, found_W)
    return kept, most


@_njit  # type: ignore[untyped-decorator]
def _apart(n: int, list_W: Any, listed: int, class_W: Any, own: int) -> bool:
    """Whether no two of a class, of those listed, overlap."""
    free, overlap = np.int64(0), False
    for place in range(listed):
        at = np.int64(list_W[place])
        if class_W[at] == own:
            overlap = overlap or bool(at < free)
            free = at + n
    return not overlap


@_njit  # type: ignore[untyped-decorator]
def _top_apart(n: int, ends_N: Any, list_W: Any, listed: int, class_W: Any, free_W: Any, found_W: Any) -> Any:
    """The most characters that one n-gram covers, those left out that overlap one before. free_W, found_W: of each
    class where its next place is, and how many were counted."""
    most = np.int64(0)
    for place in range(listed):
        at = np.int64(list_W[place])
        own = np.int64(class_W[at])
        earlier = at != own
        free = np.int64(free_W[own]) * earlier
        alone = at >= free
        free_W[own] = at + n if alone else free
        found = np.int64(found_W[own]) * earlier + alone
        found_W[own] = found
        most = max(most, found * _spelled(ends_N, own, n) * (found > 1))
    return most


@_njit  # type: ignore[untyped-decorator]
def _passed_before(
    n: int, ends_N: Any, list_W: Any, listed: int, class_W: Any, count_W: Any, level_W: Any, seen_W: Any
) -> Any:
    """(how many are kept, characters of those that were passed before). seen_W: whether one of a class was passed."""
    kept, free, characters = 0, np.int64(0), np.int64(0)
    for place in range(listed):
        at = np.int64(list_W[place])
        own = np.int64(class_W[at])
        repeated = count_W[own] > 1
        list_W[kept], level_W[at], kept = at, n * repeated, kept + repeated
        seen, here = (at != own) & (seen_W[own] != 0), at >= free
        characters += _spelled(ends_N, at, n) * (here & seen)
        free = at + n if here & seen else free
        seen_W[own] = seen | here
    return kept, characters
