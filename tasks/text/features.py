"""What a fastText classifier knows of a text, as one vector: the mean of the rows of its words, parts and phrases.

In: texts as Arrow holds them and a Classifier. Out: a vector for each. It weighs no label (tasks.text.scoring).

Rows are noted first and added some thousand at a time, in the order of the text and in float32, as fastText adds them,
so that the sums are its sums: the processor then waits for many rows at once. Each byte of a text is looked at once for
its word's end and the word's hash (FNV-1a, every byte taken as a signed one, as fastText has it).
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
_END = np.frombuffer(b"</s>", np.uint8)


def mean_rows(offsets_D1: Array, data: Array, classifier: Classifier) -> tuple[Array, Array]:
    """(vectors float32 [D, n], bool [D]: whether any word or part of one is known).

    The text d is data[offsets_D1[d]:offsets_D1[d + 1]], valid UTF-8.
    """
    texts = len(offsets_D1) - 1
    mean_Dn, known_D = np.zeros((texts, classifier.rows.shape[1]), np.float32), np.zeros(texts, np.bool_)
    arrays = *classifier.words, classifier.sizes, _inverse(classifier.sizes[3]), classifier.buckets, classifier.rows
    _mean(data, offsets_D1, arrays, mean_Dn, known_D)
    return mean_Dn, known_D


def _inverse(buckets: int) -> tuple[int, int]:
    """(factor, shift): hash * factor >> shift is hash // buckets or one less, for a hash of 32 bits, within 63 bits."""
    shift = 30 + max(1, buckets).bit_length()
    return (1 << shift) // max(1, buckets), shift


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _mean(data: Array, offsets_D1: Array, arrays: Any, mean_Dn: Array, known_D: Array) -> None:
    _, longest, phrase, _ = arrays[3]
    most = 0
    for text in range(len(offsets_D1) - 1):
        most = max(most, offsets_D1[text + 1] - offsets_D1[text])
    scratch, found_N = np.empty(most + 6, np.uint8), np.empty(_HELD + max(2, longest + 1, phrase), np.int64)
    phrases = np.empty((most // 2 + 2) if phrase > 1 else 0, np.int32)
    for text in range(len(offsets_D1) - 1):
        count = _sum(data, (offsets_D1[text], offsets_D1[text + 1]), arrays, (scratch, phrases, found_N), mean_Dn[text])
        known_D[text] = count > 0
        if count:
            mean_Dn[text] *= np.float32(1.0 / np.float32(count))


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _sum(data: Array, span: Any, arrays: Any, room: Any, hidden: Array) -> Any:
    """Add the rows of a text's words, parts of words and phrases; returns how many. room: scratch, phrases, found."""
    scratch, phrases, found_N = room
    sizes = arrays[3]
    every, noted, words, at, stop = 0, 0, 0, span[0], span[1]
    while at <= stop:
        first, state, wide = at, _BASIS, 0
        while at < stop and not _blank(data[at]):
            state = _fold(state, data[at])
            wide |= data[at]
            scratch[at - first + 1] = data[at]
            at += 1
        size, ending = at - first, at == stop and first == at
        if ending:
            for place in range(len(_END)):
                state, scratch[place + 1] = _fold(state, _END[place]), _END[place]
            size = len(_END)
        if ending or (size > 0 and not _is_end(scratch, size)):
            place = _place_of(state, scratch, size, arrays)
            if place >= 0:
                found_N[noted] = place
                noted += 1
            if not ending and sizes[1] > 0:
                scratch[0], scratch[size + 1] = 60, 62
                summed, noted = _parts(scratch, size + 2, wide, arrays, found_N, noted, hidden)
                every += summed
            if len(phrases):
                phrases[words] = np.int32(np.uint32(state))
            words += 1
        if noted >= _HELD:
            every, noted = every + _add(hidden, arrays, found_N, noted), 0
        at += at < stop or ending
    if len(phrases):
        summed, noted = _phrases(phrases[:words], arrays, found_N, noted, hidden)
        every += summed
    return every + _add(hidden, arrays, found_N, noted)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _blank(byte: int) -> bool:
    return byte == 32 or 9 <= byte <= 13 or byte == 0


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _fold(state: int, byte: int) -> Any:
    wide = np.int64(byte)
    if wide > 127:
        wide |= _SIGN
    return ((state ^ wide) * _PRIME) & _LOW


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _is_end(scratch: Array, size: int) -> bool:
    same = size == len(_END)
    for place in range(len(_END)):
        same &= scratch[place + 1] == _END[place]
    return same


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _place_of(state: int, scratch: Array, size: int, arrays: Any) -> Any:
    """The place of the word at scratch[1:size + 1], of which `state` is the hash; -1 where it is unknown."""
    spelled, starts, table_S2 = arrays[0], arrays[1], arrays[2]
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


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _rows(found_N: Array, count: int, kept_B2: Array) -> Any:
    """Put rows in the place of the words and buckets found, and leave out what has none; returns how many there are.

    A loop of its own and no branch: so the processor waits for many places of the table at once.
    """
    if len(kept_B2) == 0:
        return count
    left = 0
    for number in range(count):
        own, place = found_N[number] >> 5, found_N[number] & 31
        mask = np.int64(kept_B2[own, 0])
        found_N[left] = np.int64(kept_B2[own, 1]) + _ones(mask & ((1 << place) - 1))
        left += mask >> place & 1
    return left


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _parts(scratch: Array, size: int, wide: int, arrays: Any, found_N: Array, noted: Any, hidden: Array) -> Any:
    """(rows of the parts of <word> that were added, rows that are noted now). wide: any bit that any byte has."""
    words, sizes, (factor, shift) = len(arrays[1]) - 1, arrays[3], arrays[4]
    shortest, longest, buckets = max(1, sizes[0]), sizes[1], max(1, sizes[3])
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
            summed, noted = summed + _add(hidden, arrays, found_N, noted), 0
    return summed, noted


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _phrases(hashes: Array, arrays: Any, found_N: Array, noted: Any, hidden: Array) -> Any:
    """As _parts, of runs of 2 words and more, of which the hashes, as signed numbers, make the bucket."""
    words, sizes = len(arrays[1]) - 1, arrays[3]
    summed: Any = 0
    for first in range(len(hashes)):
        state = np.uint64(np.int64(hashes[first]))
        for place in range(first + 1, min(first + sizes[2], len(hashes))):
            state = state * _PHRASE + np.uint64(np.int64(hashes[place]))
            found_N[noted] = words + np.int64(state % np.uint64(sizes[3]))
            noted += 1
        if noted >= _HELD:
            summed, noted = summed + _add(hidden, arrays, found_N, noted), 0
    return summed, noted


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _add(hidden: Array, arrays: Any, found_N: Array, noted: int) -> Any:
    """Add the rows of what was found, in its order, eight for each time that the sum is fetched; returns how many."""
    rows, at = arrays[6], 0
    count = _rows(found_N, noted, arrays[5])
    while at + 8 <= count:
        a, b, c, d = rows[found_N[at]], rows[found_N[at + 1]], rows[found_N[at + 2]], rows[found_N[at + 3]]
        e, f, g, h = rows[found_N[at + 4]], rows[found_N[at + 5]], rows[found_N[at + 6]], rows[found_N[at + 7]]
        for place in range(len(hidden)):
            four = hidden[place] + a[place] + b[place] + c[place] + d[place]
            hidden[place] = four + e[place] + f[place] + g[place] + h[place]
        at += 8
    for number in range(at, count):
        own = rows[found_N[number]]
        for place in range(len(hidden)):
            hidden[place] += own[place]
    return count
