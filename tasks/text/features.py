"""What a fastText classifier knows of a text, as one vector: the mean of the rows of its words, parts and phrases.

In: texts as Arrow holds them and a Classifier. Out: a vector for each. It weighs no label (tasks.text.scoring).

Rows are noted first and added some thousand at a time, in the order of the text and in float32, as fastText adds them,
so that the sums are its sums. The rows of the words that were looked at last are remembered: of running text nine words
in ten are among them. Each byte is looked at once for its word's end and the word's hash (FNV-1a, every byte taken as a
signed one, as fastText has it).
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import types
from numba.extending import intrinsic

from tasks.text.classifier import Classifier

Array = np.ndarray
_BASIS, _PRIME, _LOW, _SIGN = 2166136261, 16777619, 0xFFFFFFFF, 0xFFFFFF00
_PHRASE = np.uint64(116049371)
_HELD = 4096
_SLOTS = 1 << 14
_WORD, _ROWS = 24, 56  # bytes and rows of a word that is remembered
_AT, _FROM, _SLOT = 8, 8, 256  # of its slot: the byte where its spelling begins, the int32 where its rows do, all bytes
_END = np.frombuffer(b"</s>", np.uint8)


def mean_rows(offsets_D1: Array, data: Array, classifier: Classifier) -> tuple[Array, Array]:
    """(vectors float32 [D, n], bool [D]: whether any word or part of one is known).

    The text d is data[offsets_D1[d]:offsets_D1[d + 1]], valid UTF-8.
    """
    texts = len(offsets_D1) - 1
    mean_Dn, known_D = np.zeros((texts, classifier.rows.shape[1]), np.float32), np.zeros(texts, np.bool_)
    known = np.zeros((_SLOTS, _SLOT), np.uint8)
    most, (shortest, longest, phrase, buckets) = int(np.diff(offsets_D1).max(initial=0)), classifier.sizes
    rooms = (
        np.empty(most + len(_END) + 2, np.uint8),
        np.empty((most // 2 + 2) if phrase > 1 else 0, np.int32),
        np.empty(_HELD + max(_ROWS, longest, phrase) + 1, np.int64),
    )
    sizes = max(1, shortest), longest, phrase, max(1, buckets), *_inverse(buckets)
    tables = *classifier.words, classifier.buckets, classifier.rows
    _mean(data, offsets_D1, sizes, *tables, known, known.view(np.int32), *rooms, mean_Dn, known_D)
    return mean_Dn, known_D


def _inverse(buckets: int) -> tuple[int, int]:
    """(factor, shift): hash * factor >> shift is hash // buckets or one less, for a hash of 32 bits, within 63 bits."""
    shift = 30 + max(1, buckets).bit_length()
    return (1 << shift) // max(1, buckets), shift


# One kernel that all else is put into: numba counts references to each array that a function is called with or that a
# tuple holds, which cost more than all that is done for a word.


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _mean(
    data: Array, offsets_D1: Array, sizes: Any, spelled: Array, starts: Array, table_S2: Array, kept_B2: Array,
    rows: Array, known_S: Array, numbers_S: Array, scratch: Array, phrases: Array, found_N: Array, mean_Dn: Array,
    known_D: Array,
) -> None:  # fmt: skip
    """known_S, numbers_S: one memory, in which of each word that is remembered its size, how many rows it has, its
    spelling and its rows are. scratch: a word with < and > around it. found_N: rows that are to be added."""
    end = _BASIS
    for byte in _END:
        end = _fold(end, byte)
    for text in range(len(offsets_D1) - 1):
        every, noted, words, at, stop = 0, 0, 0, offsets_D1[text], offsets_D1[text + 1]
        while at < stop:
            first, state, wide = at, _BASIS, 0
            while at < stop and not _blank(data[at]):
                state = _fold(state, data[at])
                wide |= data[at]
                scratch[at - first + 1] = data[at]
                at += 1
            size = at - first
            at += 1
            if size == 0 or (state == end and _is_end(scratch, size)):
                continue
            summed, noted = _word(
                state, size, wide, sizes, spelled, starts, table_S2, kept_B2, rows, known_S, numbers_S, scratch,
                found_N, noted, mean_Dn, text,
            )  # fmt: skip
            every += summed
            if sizes[2] > 1:
                phrases[words] = np.int32(np.uint32(state))
                words += 1
        for place in range(len(_END)):
            scratch[place + 1] = _END[place]
        found_N[noted] = _place_of(end, scratch, len(_END), spelled, starts, table_S2)
        noted += found_N[noted] >= 0
        if sizes[2] > 1:
            phrases[words] = np.int32(np.uint32(end))
            summed, noted = _phrases(
                phrases, words + 1, sizes, len(starts) - 1, kept_B2, rows, found_N, noted, mean_Dn, text
            )
            every += summed
        every += _add(mean_Dn, text, rows, found_N, noted)
        known_D[text] = every > 0
        for place in range(mean_Dn.shape[1]):
            mean_Dn[text, place] *= np.float32(1.0 / np.float32(max(1, every)))


@numba.njit(inline="always")  # type: ignore[untyped-decorator]
def _word(
    state: int, size: int, wide: int, sizes: Any, spelled: Array, starts: Array, table_S2: Array, kept_B2: Array,
    rows: Array, known_S: Array, numbers_S: Array, scratch: Array, found_N: Array, noted: Any, mean_Dn: Array,
    text: int,
) -> Any:  # fmt: skip
    """Note the rows of the word at scratch[1:size + 1] and of its parts; returns how many were added, and noted now."""
    slot, summed = state & (_SLOTS - 1), 0
    if _is_known(slot, size, scratch, known_S, numbers_S):
        for place in range(numbers_S[slot, 1]):
            found_N[noted + place] = numbers_S[slot, _FROM + place]
        noted += numbers_S[slot, 1]
    else:
        begin = noted
        found_N[noted] = _place_of(state, scratch, size, spelled, starts, table_S2)
        noted += found_N[noted] >= 0
        if sizes[1] > 0:
            scratch[0], scratch[size + 1] = 60, 62
            summed, begin, noted = _parts(
                scratch, size + 2, wide, sizes, len(starts) - 1, kept_B2, rows, found_N, begin, noted, mean_Dn, text
            )
        noted = _keep(found_N, begin, noted, kept_B2)
        if size <= _WORD and noted - begin <= _ROWS:
            numbers_S[slot, 0], numbers_S[slot, 1] = size, noted - begin
            for place in range(size):
                known_S[slot, _AT + place] = scratch[place + 1]
            for place in range(noted - begin):
                numbers_S[slot, _FROM + place] = found_N[begin + place]
    if noted >= _HELD:
        summed, noted = summed + _add(mean_Dn, text, rows, found_N, noted), 0
    return summed, noted


@numba.njit(inline="always")  # type: ignore[untyped-decorator]
def _blank(byte: int) -> bool:
    return byte == 32 or 9 <= byte <= 13 or byte == 0


@numba.njit(inline="always")  # type: ignore[untyped-decorator]
def _fold(state: int, byte: int) -> Any:
    wide = np.int64(byte)
    if wide > 127:
        wide |= _SIGN
    return ((state ^ wide) * _PRIME) & _LOW


@numba.njit(inline="always")  # type: ignore[untyped-decorator]
def _is_end(scratch: Array, size: int) -> bool:
    same = size == len(_END)
    for place in range(len(_END)):
        same &= scratch[place + 1] == _END[place]
    return same


@numba.njit(inline="always")  # type: ignore[untyped-decorator]
def _is_known(slot: int, size: int, scratch: Array, known_S: Array, numbers_S: Array) -> Any:
    same, at = numbers_S[slot, 0] == size, 0
    while same and at < size:
        same = known_S[slot, _AT + at] == scratch[at + 1]
        at += 1
    return same


@numba.njit(inline="always")  # type: ignore[untyped-decorator]
def _place_of(state: int, scratch: Array, size: int, spelled: Array, starts: Array, table_S2: Array) -> Any:
    """The place of the word at scratch[1:size + 1], of which `state` is the hash; -1 where it is unknown."""
    mask = len(table_S2) - 1
    slot = state & mask
    while table_S2[slot, 0] >= 0:
        if table_S2[slot, 1] == state:
            place = np.int64(table_S2[slot, 0])
            first = starts[place]
            same, at = starts[place + 1] - first == size, 0
            while same and at < size:
                same = spelled[first + at] == scratch[at + 1]
                at += 1
            if same:
                return place
        slot = (slot + 1) & mask
    return np.int64(-1)


@intrinsic  # type: ignore[untyped-decorator]
def _ones(typing: Any, number: Any) -> Any:
    """How many bits of a number are set, in one instruction."""
    return types.int64(types.int64), lambda context, builder, signature, args: builder.ctpop(args[0])


@numba.njit(inline="always")  # type: ignore[untyped-decorator]
def _parts(
    scratch: Array, size: int, wide: int, sizes: Any, words: int, kept_B2: Array, rows: Array, found_N: Array,
    begin: Any, noted: Any, mean_Dn: Array, text: int,
) -> Any:  # fmt: skip
    """Note the buckets of the parts of <word>, behind all rows before `begin`; add what is too much to be noted.

    Returns how many rows were added, and begin and noted as they are now. wide: any bit that any byte has."""
    shortest, longest, _, buckets, factor, shift = sizes
    summed: Any = 0
    for start in range(size):
        if scratch[start] & 0xC0 == 0x80:
            continue
        state, at, characters = _BASIS, start, 0
        while at < size and characters < longest:
            state = _fold(state, scratch[at])
            at += 1
            while wide > 127 and at < size and scratch[at] & 0xC0 == 0x80:
                state = _fold(state, scratch[at])
                at += 1
            characters += 1
            if characters >= shortest and (characters > 1 or (start > 0 and at < size)):
                bucket = state - (state * factor >> shift) * buckets
                bucket -= buckets * (bucket >= buckets)
                found_N[noted] = words + bucket
                noted += 1
        if noted >= _HELD:
            noted = _keep(found_N, begin, noted, kept_B2)
            summed, begin, noted = summed + _add(mean_Dn, text, rows, found_N, noted), 0, 0
    return summed, begin, noted


@numba.njit(inline="always")  # type: ignore[untyped-decorator]
def _phrases(
    hashes: Array, count: int, sizes: Any, words: int, kept_B2: Array, rows: Array, found_N: Array, noted: Any,
    mean_Dn: Array, text: int,
) -> Any:  # fmt: skip
    """(rows added, rows noted) of runs of 2 words and more, of which the hashes, as signed numbers, make the bucket."""
    summed, begin = 0, noted
    for first in range(count):
        state = np.uint64(np.int64(hashes[first]))
        for place in range(first + 1, min(first + sizes[2], count)):
            state = state * _PHRASE + np.uint64(np.int64(hashes[place]))
            found_N[noted] = words + np.int64(state % np.uint64(sizes[3]))
            noted += 1
        if noted >= _HELD:
            noted = _keep(found_N, begin, noted, kept_B2)
            summed, begin, noted = summed + _add(mean_Dn, text, rows, found_N, noted), 0, 0
    return summed, _keep(found_N, begin, noted, kept_B2)


@numba.njit(inline="always")  # type: ignore[untyped-decorator]
def _keep(found_N: Array, begin: Any, noted: Any, kept_B2: Array) -> Any:
    """Put rows in the place of the words and buckets from `begin` on, leave out what has none; returns where they end.

    No branch, so that the processor waits for many places of the table at once."""
    count = begin
    if len(kept_B2):
        for number in range(begin, noted):
            block, place = found_N[number] >> 5, found_N[number] & 31
            mask = np.int64(kept_B2[block, 0])
            found_N[count] = np.int64(kept_B2[block, 1]) + _ones(mask & ((1 << place) - 1))
            count += mask >> place & 1
        return count
    return noted


@numba.njit(inline="always")  # type: ignore[untyped-decorator]
def _add(mean_Dn: Array, text: int, rows: Array, found_N: Array, noted: Any) -> Any:
    """Add the rows in their order, four for each time that the sum is fetched; returns how many there are."""
    at = 0
    while at + 4 <= noted:
        a, b, c, d = found_N[at], found_N[at + 1], found_N[at + 2], found_N[at + 3]
        for place in range(mean_Dn.shape[1]):
            two = mean_Dn[text, place] + rows[a, place] + rows[b, place]
            mean_Dn[text, place] = two + rows[c, place] + rows[d, place]
        at += 4
    while at < noted:
        for place in range(mean_Dn.shape[1]):
            mean_Dn[text, place] += rows[found_N[at], place]
        at += 1
    return noted
