"""Texts as sets of shingles: overlapping windows of words.

In: a column of texts. Out: 64-bit hashes of each text's shingles, the number of different ones, and the sets
themselves, sorted. Signatures are made of the lower 32 bits (tasks.text.minhash), similarities of all 64
(tasks.dedup.greedy).

*Shingle*: `shingle_words` consecutive words. In scripts without spaces every character is a word already
(tasks.text.words); a text that consists mostly of such words takes `shingle_characters` of them instead, so
that the two can be set apart (a Chinese word has about 1.5 characters). A text with fewer words than that is
one shingle, all of it: "cat" and "dog" differ. A text without any word has no shingle and takes no part in
near deduplication.

Cost on one core: 3 ns a shingle, 4 ns more to count the different ones, 10 ns more to sort them.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import pyarrow as pa

from tasks.text.ngrams import window_hashes
from tasks.text.words import ALONE, Words, character_tables, split_words, text_buffers

_LEAD_OF_3_BYTES = 0xE0  # no script without spaces lies below U+0800
_CROWDED = 64  # a shingle repeated so often, or hashes that do not spread, are left to a common sort


class Shingles(NamedTuple):
    """The shingles of D texts, S in all, text after text, repeats included."""

    hashes_S: np.ndarray
    """uint64: hash of the shingle."""
    offsets_D1: np.ndarray
    """int64 [D + 1]: those of text d are offsets_D1[d] up to offsets_D1[d + 1]."""
    by_character_D: np.ndarray
    """bool: the text was cut by `shingle_characters`."""


def shingle_texts(
    texts: pa.Array | pa.ChunkedArray, shingle_words: int, shingle_characters: int
) -> tuple[Shingles, Words]:
    """The shingles of each text, and the words they were made of. Needs about 40 bytes a word."""
    words = split_words(texts)
    by_character_D = _mostly_alone(texts, words)
    lengths_D = np.where(by_character_D, shingle_characters, shingle_words)
    lengths_D = np.minimum(lengths_D, np.diff(words.offsets_D1))
    hashes_S, offsets_D1 = window_hashes(words.hashes_W, words.offsets_D1, lengths_D)
    return Shingles(hashes_S, offsets_D1, by_character_D), words


def count_different(shingles: Shingles) -> np.ndarray:
    """int64 [D]: different shingles of each text, exact."""
    different_D: np.ndarray = _count_different(shingles.hashes_S, shingles.offsets_D1)
    return different_D


def shingle_sets(shingles: Shingles) -> tuple[np.ndarray, np.ndarray]:
    """(hashes uint64 [M], offsets int64 [D + 1]): the different shingles of each text, ascending."""
    hashes_S, sizes_D = shingles.hashes_S.copy(), np.zeros(len(shingles.by_character_D), np.int64)
    kept = _sort_sets(hashes_S, shingles.offsets_D1, sizes_D)
    return hashes_S[:kept].copy(), np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes_D)])


def _mostly_alone(texts: pa.Array | pa.ChunkedArray, words: Words) -> np.ndarray:
    """bool [D]: more than half of the text's words are single characters of a script without spaces."""
    text_offsets_D1, data = text_buffers(texts)
    alone_D = np.zeros(len(text_offsets_D1) - 1, np.int64)
    _count_alone(data, text_offsets_D1, words.starts_W, words.offsets_D1, character_tables()[0], ALONE, alone_D)
    return 2 * alone_D > np.diff(words.offsets_D1)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _count_alone(
    data: np.ndarray,
    text_offsets_D1: np.ndarray,
    starts_W: np.ndarray,
    offsets_D1: np.ndarray,
    classes: np.ndarray,
    alone: int,
    alone_D: np.ndarray,
) -> None:
    for text in range(len(alone_D)):
        for word in range(offsets_D1[text], offsets_D1[text + 1]):
            at = text_offsets_D1[text] + starts_W[word]
            lead = np.int64(data[at])
            if lead < _LEAD_OF_3_BYTES:
                continue
            code = (np.int64(data[at + 1]) & 63) << 6 | (np.int64(data[at + 2]) & 63)
            if lead < 0xF0:
                code |= (lead & 15) << 12
            else:
                code = (lead & 7) << 18 | code << 6 | (np.int64(data[at + 3]) & 63)
            alone_D[text] += classes[code] == alone


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _count_different(hashes_S: np.ndarray, offsets_D1: np.ndarray) -> np.ndarray:
    """Counts with one open table for all texts; a slot belongs to a text while it bears its number."""
    texts, most = len(offsets_D1) - 1, 1
    for text in range(texts):
        most = max(most, offsets_D1[text + 1] - offsets_D1[text])
    slots = 2
    while slots < 2 * most:
        slots *= 2
    keys_T, owners_T = np.empty(slots, np.uint64), np.full(slots, -1, np.int64)
    different_D = np.zeros(texts, np.int64)
    for text in range(texts):
        size = 2
        while size < 2 * (offsets_D1[text + 1] - offsets_D1[text]):
            size *= 2
        last = np.uint64(size - 1)
        for at in range(offsets_D1[text], offsets_D1[text + 1]):
            slot = hashes_S[at] & last
            while owners_T[slot] == text and keys_T[slot] != hashes_S[at]:
                slot = (slot + np.uint64(1)) & last
            if owners_T[slot] != text:
                keys_T[slot], owners_T[slot] = hashes_S[at], text
                different_D[text] += 1
    return different_D


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _sort_sets(hashes_S: np.ndarray, offsets_D1: np.ndarray, sizes_D: np.ndarray) -> int:
    """Sort each text's hashes and move the different ones to the front, in place; returns their number."""
    kept = 0
    for text in range(len(sizes_D)):
        begin, first = offsets_D1[text], kept
        ordered = _sorted(hashes_S[begin : offsets_D1[text + 1]])
        for at in range(len(ordered)):
            if at == 0 or ordered[at] != ordered[at - 1]:
                hashes_S[kept] = ordered[at]
                kept += 1
        sizes_D[text] = kept - first
    return kept


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _sorted(hashes: np.ndarray) -> np.ndarray:
    """Ascending copy. Hashes spread evenly, so their upper bits put nearly all of them in place at once."""
    bits = 1
    while 1 << bits < len(hashes):
        bits += 1
    shift = np.uint64(64 - bits)
    ends = np.zeros((1 << bits) + 1, np.int64)
    for value in hashes:
        ends[np.int64(value >> shift) + 1] += 1
    if ends.max() > _CROWDED:
        return np.sort(hashes)
    ends = np.cumsum(ends)
    ordered = np.empty_like(hashes)
    for value in hashes:
        bucket = np.int64(value >> shift)
        ordered[ends[bucket]] = value
        ends[bucket] += 1
    for at in range(1, len(ordered)):
        value, place = ordered[at], at
        while place > 0 and ordered[place - 1] > value:
            ordered[place] = ordered[place - 1]
            place -= 1
        ordered[place] = value
    return ordered
