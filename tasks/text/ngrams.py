"""Windows of n words as 64-bit hashes: shingles of dedup, n-grams of decontamination.

In: word hashes (tasks.text.words). Out: the hash of every window, and where windows of a given list occur. It
reads no text and gives back no words.

*Hash of a window*: the polynomial w_1 * B^(n-1) + ... + w_n mod 2^64 over its word hashes, with n mixed in,
then the 64-bit finalizer of MurmurHash3 (project; polynomial as in Karp and Rabin, 1987, "Efficient
randomized pattern-matching algorithms"). Word hashes being well mixed, two different windows are equal with
odds of 2^-64: a trillion windows against a million of the list give 0.05 false hits in expectation.

Cost on one core: 3 ns a window; 6 ns a word to look up one length (about 1 GB/s of text).
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

_BASE = np.uint64(0x9E3779B97F4A7C15)
_LENGTH = np.uint64(0xD6E8FEB86659FD93)
_MIX_1, _MIX_2, _SHIFT = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53), np.uint64(33)
_BITS_PER_NGRAM = 16
_LONGEST_FILTER = 1 << 30


def window_hashes(hashes_W: np.ndarray, offsets_D1: np.ndarray, lengths_D: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(hashes uint64 [G], offsets int64 [D + 1]) of the windows of each of D texts, in order, repeats
    included.

    hashes_W: uint64 word hashes, those of text d at offsets_D1[d]:offsets_D1[d + 1].
    lengths_D: words in a window of text d; 0 gives no windows, and neither does a text with fewer words.
    """
    words_D = np.diff(offsets_D1)
    windows_D = np.where(lengths_D > 0, np.maximum(words_D - lengths_D + 1, 0), 0)
    windows_D1 = np.concatenate([np.zeros(1, np.int64), np.cumsum(windows_D)])
    hashes_G = np.empty(windows_D1[-1], np.uint64)
    _windows(hashes_W, offsets_D1, lengths_D.astype(np.int64), windows_D1, hashes_G)
    return hashes_G, windows_D1


class NgramTable(NamedTuple):
    """A list of n-grams, made to be looked up: open addressing behind a filter of single bits that fits the
    cache."""

    filter_B: np.ndarray
    """uint64 words of the bit filter; a power of two of them."""
    keys_T: np.ndarray
    """uint64 [slots]: the n-gram's hash; a power of two of slots, at most half of them taken."""
    numbers_T: np.ndarray
    """int64 [slots]: the n-gram's number, -1 where the slot is free."""


def ngram_table(hashes_G: np.ndarray) -> NgramTable:
    """The table of different n-grams, numbered in the order given. About 40 bytes an n-gram."""
    count = max(1, len(hashes_G))
    bits = min(_LONGEST_FILTER, _power_of_two(max(64, count * _BITS_PER_NGRAM)))
    slots = _power_of_two(2 * count)
    table = NgramTable(np.zeros(bits // 64, np.uint64), np.zeros(slots, np.uint64), np.full(slots, -1, np.int64))
    _fill(hashes_G.astype(np.uint64), *table)
    return table


def find_ngrams(
    hashes_W: np.ndarray, offsets_D1: np.ndarray, length: int, table: NgramTable
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(texts, words, numbers), each int64 [hits]: n-gram `numbers` begins at word `words` of text `texts`.

    length: words in the n-grams looked for; those of other lengths in the table do not match, their hash
    differs.
    """
    hits = _find(hashes_W, offsets_D1, length, *table, np.empty((3, 64), np.int64))
    return hits[0], hits[1], hits[2]


def _power_of_two(least: int) -> int:
    return 1 << max(0, (int(least) - 1).bit_length())


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _finish(state: np.uint64, length: int) -> np.uint64:
    state ^= np.uint64(length) * _LENGTH
    state = (state ^ (state >> _SHIFT)) * _MIX_1
    state = (state ^ (state >> _SHIFT)) * _MIX_2
    return state ^ (state >> _SHIFT)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _power(length: int) -> np.uint64:
    power = np.uint64(1)
    for _ in range(length):
        power *= _BASE
    return power


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _windows(
    hashes_W: np.ndarray,
    offsets_D1: np.ndarray,
    lengths_D: np.ndarray,
    windows_D1: np.ndarray,
    hashes_G: np.ndarray,
) -> None:
    for text in range(len(lengths_D)):
        if windows_D1[text] == windows_D1[text + 1]:
            continue
        length, begin, window = lengths_D[text], offsets_D1[text], windows_D1[text]
        power, state = _power(length), np.uint64(0)
        for word in range(begin, offsets_D1[text + 1]):
            state = state * _BASE + hashes_W[word]
            if word - begin >= length:
                state -= power * hashes_W[word - length]
            if word - begin >= length - 1:
                hashes_G[window] = _finish(state, length)
                window += 1


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _bit(key: np.uint64, filter_B: np.ndarray) -> tuple[np.uint64, np.uint64]:
    """(index of the filter's word, the bit in it), from the upper half of the hash."""
    place = key >> np.uint64(32)
    return (place >> np.uint64(6)) & np.uint64(len(filter_B) - 1), np.uint64(1) << (place & np.uint64(63))


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _slot(key: np.uint64, keys_T: np.ndarray, numbers_T: np.ndarray) -> np.uint64:
    """The slot that holds the key, or the free one where it belongs."""
    last = np.uint64(len(keys_T) - 1)
    slot = key & last
    while numbers_T[slot] >= 0 and keys_T[slot] != key:
        slot = (slot + np.uint64(1)) & last
    return slot


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _fill(hashes_G: np.ndarray, filter_B: np.ndarray, keys_T: np.ndarray, numbers_T: np.ndarray) -> None:
    for number in range(len(hashes_G)):
        word, bit = _bit(hashes_G[number], filter_B)
        filter_B[word] |= bit
        slot = _slot(hashes_G[number], keys_T, numbers_T)
        keys_T[slot], numbers_T[slot] = hashes_G[number], number


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _find(
    hashes_W: np.ndarray,
    offsets_D1: np.ndarray,
    length: int,
    filter_B: np.ndarray,
    keys_T: np.ndarray,
    numbers_T: np.ndarray,
    hits_3H: np.ndarray,
) -> np.ndarray:
    power, count = _power(length), 0
    for text in range(len(offsets_D1) - 1):
        begin, state = offsets_D1[text], np.uint64(0)
        for word in range(begin, offsets_D1[text + 1]):
            state = state * _BASE + hashes_W[word]
            if word - begin >= length:
                state -= power * hashes_W[word - length]
            if word - begin < length - 1:
                continue
            key = _finish(state, length)
            place, bit = _bit(key, filter_B)
            if filter_B[place] & bit == 0:
                continue
            number = numbers_T[_slot(key, keys_T, numbers_T)]
            if number < 0:
                continue
            if count == hits_3H.shape[1]:
                hits_3H = np.concatenate((hits_3H, np.empty_like(hits_3H)), axis=1)
            hits_3H[0, count], hits_3H[1, count], hits_3H[2, count] = text, word - begin - length + 1, number
            count += 1
    return hits_3H[:, :count]
