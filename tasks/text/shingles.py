"""Texts as sets of shingles: overlapping windows of words.

In: a column of texts. Out: 64-bit hashes of each text's shingles, the number of different ones, and the sets
themselves, sorted. Signatures are made of the lower 32 bits (tasks.text.minhash), similarities of all 64
(tasks.dedup.greedy).

*Shingle*: `shingle_words` consecutive words. In scripts without spaces every character is a word already
(tasks.text.words); a text that consists mostly of such words takes `shingle_characters` of them instead, so
that the two can be set apart (a Chinese word has about 1.5 characters). A text with fewer words than that is
one shingle, all of it: "cat" and "dog" differ. A text without any word has no shingle and takes no part in
near deduplication.

Cost on one core: 1 ns a shingle, 2 ns more to count the different ones, 5 ns more to sort them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numba
import numpy as np
import pyarrow as pa

from tasks.text.ngrams import window_hashes
from tasks.text.words import ALONE, Words, character_tables, split_slices, split_words, text_buffers

HASH = "fmix64 of words by 8 bytes, polynomial of windows, lower 32 bits"
"""What a signature is made of (tasks.text.words, tasks.text.ngrams); another hash has another name."""
SLICE_BYTES = 1 << 19
"""Texts are taken in slices of about as many bytes, whose words and shingles take eight times as many."""
_LEAD_OF_3_BYTES = 0xE0  # no script without spaces lies below U+0800
_ONE, _TOP_BITS = np.uint64(1), np.uint64(58)  # the top six bits choose one of 64
_CROWDED = 8  # hashes that do not spread, so many places off in the mean, are left to a common sort


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
    return _shingles(texts, words, shingle_words, shingle_characters), words


def shingle_slices(
    texts: pa.Array | pa.ChunkedArray, shingle_words: int, shingle_characters: int, rows: np.ndarray | None = None
) -> Iterator[tuple[slice, Shingles, Words]]:
    """(which, their shingles, their words) of all texts or of some rows, slice after slice; the words are there until
    the next one."""
    for which, part, words in split_slices(texts, SLICE_BYTES, rows):
        yield which, _shingles(part, words, shingle_words, shingle_characters), words


def _shingles(texts: pa.Array | pa.ChunkedArray, words: Words, shingle_words: int, shingle_characters: int) -> Shingles:
    by_character_D = _mostly_alone(texts, words)
    lengths_D = np.where(by_character_D, shingle_characters, shingle_words)
    lengths_D = np.minimum(lengths_D, np.diff(words.offsets_D1))
    hashes_S, offsets_D1 = window_hashes(words.hashes_W, words.offsets_D1, lengths_D)
    return Shingles(hashes_S, offsets_D1, by_character_D)


def count_different(shingles: Shingles) -> np.ndarray:
    """int64 [D]: different shingles of each text, exact."""
    different_D: np.ndarray = _count_different(shingles.hashes_S, shingles.offsets_D1)
    return different_D


def shingle_sets(shingles: Shingles) -> tuple[np.ndarray, np.ndarray]:
    """(hashes uint64 [M], offsets int64 [D + 1]): the different shingles of each text, ascending."""
    sets_M, sizes_D = np.empty(len(shingles.hashes_S) + 1, np.uint64), np.zeros(len(shingles.by_character_D), np.int64)
    kept = _sort_sets(shingles.hashes_S, shingles.offsets_D1, sets_M, sizes_D)
    return sets_M[:kept], np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes_D)])


def _mostly_alone(texts: pa.Array | pa.ChunkedArray, words: Words) -> np.ndarray:
    """bool [D]: more than half of the text's words are single characters of a script without spaces."""
    text_offsets_D1, data = text_buffers(texts)
    alone_D = np.zeros(len(text_offsets_D1) - 1, np.int64)
    words_D = np.diff(words.offsets_D1)
    # Each takes two bytes more than an ASCII character, so that a text with as few more as words is never cut so.
    maybe_D = np.flatnonzero(np.diff(text_offsets_D1) - words.characters_D > words_D)
    if len(maybe_D):
        classes = character_tables()[0]
        _count_alone(data, text_offsets_D1, words.starts_W, words.offsets_D1, maybe_D, classes, ALONE, alone_D)
    return 2 * alone_D > words_D


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _count_alone(
    data: np.ndarray,
    text_offsets_D1: np.ndarray,
    starts_W: np.ndarray,
    offsets_D1: np.ndarray,
    some: np.ndarray,
    classes: np.ndarray,
    alone: int,
    alone_D: np.ndarray,
) -> None:
    for text in some:
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
    """Counts by bits, 64 a hash: a hash whose bit no other has is different from all. Those that share one are counted
    one by one in an open table for all texts, of which a slot belongs to a text while it bears its number."""
    texts, most = len(offsets_D1) - 1, 1
    for text in range(texts):
        most = max(most, offsets_D1[text + 1] - offsets_D1[text])
    slots = _above(most)
    seen_B, shared_B = np.empty(slots // 2, np.uint64), np.empty(slots // 2, np.uint64)
    keys_T, owners_T = np.empty(slots, np.uint64), np.full(slots, -1, np.int64)
    different_D = np.zeros(texts, np.int64)
    for text in range(texts):
        hashes = hashes_S[offsets_D1[text] : offsets_D1[text + 1]]
        different_D[text], size = len(hashes), _above(len(hashes))
        shares = _mark(hashes, seen_B[: size // 2], shared_B[: size // 2])
        last, word = np.uint64(size - 1), np.uint64(size // 2 - 1)
        for value in hashes if shares else hashes[:0]:
            if not (shared_B[value & word] >> (value >> _TOP_BITS)) & _ONE:
                continue
            slot = value & last
            while owners_T[slot] == text and keys_T[slot] != value:
                slot = (slot + _ONE) & last
            different_D[text] -= owners_T[slot] == text
            keys_T[slot], owners_T[slot] = value, text
    return different_D


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _above(count: int) -> int:
    """A power of two, twice `count` and more."""
    size = 2
    while size < 2 * count:
        size *= 2
    return size


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _mark(hashes: np.ndarray, seen_B: np.ndarray, shared_B: np.ndarray) -> bool:
    """Set the bit of each hash in `seen`, and in `shared` where another had it; whether one is shared."""
    seen_B[:], shared_B[:], last, shares = 0, 0, np.uint64(len(seen_B) - 1), False
    for value in hashes:
        word, bit = value & last, _ONE << (value >> _TOP_BITS)
        if seen_B[word] & bit:
            shared_B[word] |= bit
            shares = True
        seen_B[word] |= bit
    return shares


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _sort_sets(hashes_S: np.ndarray, offsets_D1: np.ndarray, sets_M: np.ndarray, sizes_D: np.ndarray) -> int:
    """Write the different hashes of each text, ascending, one text after another; returns their number."""
    kept, most = 0, 1
    for text in range(len(sizes_D)):
        most = max(most, offsets_D1[text + 1] - offsets_D1[text])
    once_L, twice_L, ends_2B = (
        np.empty(most, np.uint64),
        np.empty(most, np.uint64),
        np.empty((2, _above(most)), np.int64),
    )
    for text in range(len(sizes_D)):
        hashes, first = hashes_S[offsets_D1[text] : offsets_D1[text + 1]], kept
        _sort(hashes, once_L, twice_L[: len(hashes)], ends_2B)
        for at in range(len(hashes)):
            sets_M[kept] = twice_L[at]
            kept += at + 1 == len(hashes) or twice_L[at] != twice_L[at + 1]
        sizes_D[text] = kept - first
    return kept


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _sort(hashes: np.ndarray, once: np.ndarray, twice: np.ndarray, ends_2B: np.ndarray) -> None:
    """Sort into `twice`. Hashes spread evenly: two passes by so many of their upper bits as number them, twice over,
    leave hardly one out of place, and that one near it."""
    bits, size = np.uint64(1), 2
    while size < len(hashes):
        bits, size = bits + _ONE, 2 * size
    low, high, mask = np.uint64(64) - bits - bits, np.uint64(64) - bits, np.uint64(size - 1)
    lows, highs = ends_2B[0, :size], ends_2B[1, :size]
    lows[:], highs[:] = 0, 0
    for value in hashes:
        lows[(value >> low) & mask] += 1
        highs[value >> high] += 1
    before_low, before_high = 0, 0
    for digit in range(size):
        lows[digit], before_low = before_low, before_low + lows[digit]
        highs[digit], before_high = before_high, before_high + highs[digit]
    for value in hashes:
        once[lows[(value >> low) & mask]] = value
        lows[(value >> low) & mask] += 1
    for value in once[: len(hashes)]:
        twice[highs[value >> high]] = value
        highs[value >> high] += 1
    spare = _CROWDED * len(twice)
    for at in range(1, len(twice)):
        value, place = twice[at], at
        while place > 0 and twice[place - 1] > value:
            twice[place] = twice[place - 1]
            place -= 1
        twice[place] = value
        spare -= at - place
        if spare < 0:
            twice[:] = np.sort(twice)
            return
