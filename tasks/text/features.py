"""What a fastText classifier knows of a text, as one vector: the mean of the rows of its words, parts and phrases.

In: texts as Arrow holds them and a Classifier. Out: a vector for each. It weighs no label (tasks.text.scoring).

A word's own row and those of its parts are added up by themselves, then words to the text's sum, in float32: fastText
adds row by row, which differs in the seventh digit. So the sum of a word is the same wherever it stands, and the words
that were looked at last are remembered with their sums: of running text nine words in ten are among them. Each byte is
looked at once for its word's end and the word's hash (FNV-1a, every byte taken as a signed one, as fastText has it).
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
_HEAD, _WORD = 8, 56  # bytes of what is remembered of a word before its sum: its size and rows, then its spelling
_KNOWN = 1 << 22  # bytes of all words that are remembered
_END = np.frombuffer(b"</s>", np.uint8)


def mean_rows(offsets_D1: Array, data: Array, classifier: Classifier) -> tuple[Array, Array]:
    """(vectors float32 [D, n], bool [D]: whether any word or part of one is known).

    The text d is data[offsets_D1[d]:offsets_D1[d + 1]], valid UTF-8.
    """
    texts = len(offsets_D1) - 1
    mean_Dn, known_D = np.zeros((texts, classifier.rows.shape[1]), np.float32), np.zeros(texts, np.bool_)
    size = _HEAD + _WORD + 4 * classifier.rows.shape[1]
    known = np.zeros((1 << max(4, (_KNOWN // size).bit_length() - 1), size), np.uint8)
    most, (shortest, longest, phrase, buckets) = int(np.diff(offsets_D1).max(initial=0)), classifier.sizes
    rooms = (
        np.empty(most + len(_END) + 2, np.uint8),
        np.empty((most // 2 + 2) if phrase > 1 else 0, np.int32),
        np.empty(_HELD + max(2, longest + 1, phrase), np.int64),
        np.empty(classifier.rows.shape[1], np.float32),
    )
    sizes = max(1, shortest), longest, phrase, max(1, buckets), *_inverse(buckets)
    tables = *classifier.words, classifier.buckets, classifier.rows
    remembered = known, known.view(np.int32), known.view(np.float32)
    _mean(data, offsets_D1, sizes, *tables, *remembered, *rooms, mean_Dn, known_D)
    return mean_Dn, known_D


def _inverse(buckets: int) -> tuple[int, int]:
    """(factor, shift): hash * factor >> shift is hash // buckets or one less, for a hash of 32 bits, within 63 bits."""
    shift = 30 + max(1, buckets).bit_length()
    return (1 << shift) // max(1, buckets), shift


# Arrays are handed over one by one and never as a tuple or a view: numba counts references to what it takes out of one,
# which cost more than all else that is done for a word.


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _mean(
    data: Array, offsets_D1: Array, sizes: Any, spelled: Array, starts: Array, table_S2: Array, kept_B2: Array,
    rows: Array, known_S: Array, counts_S: Array, sums_S: Array, scratch: Array, phrases: Array, found_N: Array,
    own: Array, mean_Dn: Array, known_D: Array,
) -> None:  # fmt: skip
    """known_S, counts_S, sums_S: one memory: of each word that is remembered its size, its number of rows, its spelling
    and its sum. scratch: the word with < and > around it. found_N: words and buckets whose rows are to be added."""
    end = _BASIS
    for byte in _END:
        end = _fold(end, byte)
    for text in range(len(offsets_D1) - 1):
        every, words, at, stop = 0, 0, offsets_D1[text], offsets_D1[text + 1]
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
            every += _word(
                state, size, wide, sizes, spelled, starts, table_S2, kept_B2, rows, known_S, counts_S, sums_S,
                scratch, found_N, own, mean_Dn, text,
            )  # fmt: skip
            if sizes[2] > 1:
                phrases[words] = np.int32(np.uint32(state))
                words += 1
        for place in range(len(_END)):
            scratch[place + 1] = _END[place]
        own[:] = 0
        found_N[0] = _place_of(end, scratch, len(_END), spelled, starts, table_S2)
        every += _add(own, rows, kept_B2, found_N, int(found_N[0] >= 0))
        if sizes[2] > 1:
            phrases[words] = np.int32(np.uint32(end))
            every += _phrases(phrases, words + 1, sizes, len(starts) - 1, kept_B2, rows, found_N, own)
        for place in range(len(own)):
            mean_Dn[text, place] = (mean_Dn[text, place] + own[place]) * np.float32(1.0 / np.float32(max(1, every)))
        known_D[text] = every > 0


@numba.njit(inline="always")  # type: ignore[untyped-decorator]
def _word(
    state: int, size: int, wide: int, sizes: Any, spelled: Array, starts: Array, table_S2: Array, kept_B2: Array,
    rows: Array, known_S: Array, counts_S: Array, sums_S: Array, scratch: Array, found_N: Array, own: Array,
    mean_Dn: Array, text: int,
) -> Any:  # fmt: skip
    """Add the sum of the word at scratch[1:size + 1]; returns how many rows it is of."""
    slot = state & (len(known_S) - 1)
    if counts_S[slot, 0] == size:
        same, at = True, 0
        while same and at < size:
            same = known_S[slot, _HEAD + at] == scratch[at + 1]
            at += 1
        if same:
            for place in range(len(own)):
                mean_Dn[text, place] += sums_S[slot, (_HEAD + _WORD) // 4 + place]
            return np.int64(counts_S[slot, 1])
    found_N[0] = _place_of(state, scratch, size, spelled, starts, table_S2)
    noted, count = int(found_N[0] >= 0), 0
    for place in range(len(own)):
        own[place] = 0
    if sizes[1] > 0:
        scratch[0], scratch[size + 1] = 60, 62
        count, noted = _parts(scratch, size + 2, wide, sizes, len(starts) - 1, kept_B2, rows, found_N, noted, own)
    count += _add(own, rows, kept_B2, found_N, noted)
    if size <= _WORD:
        counts_S[slot, 0], counts_S[slot, 1] = size, count
        for place in range(size):
            known_S[slot, _HEAD + place] = scratch[place + 1]
        for place in range(len(own)):
            sums_S[slot, (_HEAD + _WORD) // 4 + place] = own[place]
    for place in range(len(own)):
        mean_Dn[text, place] += own[place]
    return np.int64(count)


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
    noted: Any, own: Array,
) -> Any:  # fmt: skip
    """(rows of the parts of <word> that were added, what is noted now). wide: any bit that any byte has."""
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
            summed, noted = summed + _add(own, rows, kept_B2, found_N, noted), 0
    return summed, noted


@numba.njit(inline="always")  # type: ignore[untyped-decorator]
def _phrases(
    hashes: Array, count: int, sizes: Any, words: int, kept_B2: Array, rows: Array, found_N: Array, own: Array
) -> Any:
    """Add the rows of runs of 2 words and more, of which the hashes, as signed numbers, make the bucket."""
    summed, noted = 0, 0
    for first in range(count):
        state = np.uint64(np.int64(hashes[first]))
        for place in range(first + 1, min(first + sizes[2], count)):
            state = state * _PHRASE + np.uint64(np.int64(hashes[place]))
            found_N[noted] = words + np.int64(state % np.uint64(sizes[3]))
            noted += 1
        if noted >= _HELD:
            summed, noted = summed + _add(own, rows, kept_B2, found_N, noted), 0
    return summed + _add(own, rows, kept_B2, found_N, noted)


@numba.njit(inline="always")  # type: ignore[untyped-decorator]
def _add(own: Array, rows: Array, kept_B2: Array, found_N: Array, noted: int) -> Any:
    """Add the rows of what was found, in its order, and leave out what has none; returns how many were added."""
    count = noted
    if len(kept_B2):
        count = 0
        for number in range(noted):  # no branch, so that the processor waits for many places of the table at once
            block, place = found_N[number] >> 5, found_N[number] & 31
            mask = np.int64(kept_B2[block, 0])
            found_N[count] = np.int64(kept_B2[block, 1]) + _ones(mask & ((1 << place) - 1))
            count += mask >> place & 1
    for number in range(count):
        row = found_N[number]
        for place in range(len(own)):
            own[place] += rows[row, place]
    return count
