"""Where n-grams of a given list occur: hashes of windows of words (tasks.text.ngrams), looked up.

In: word hashes (tasks.text.words) of texts, and of what is looked for. Out: the places. It reads no text.

*Sampling without loss*: n words in a row hold a run of n - s + 1 words that begins at a multiple of s, for any s; with
s = (n + 1) // 2 one place in 7 of a text is looked at for n = 13, and the n-grams around it only where that run stands
in some text looked for (project; decon of OLMo 3 samples every tenth token, with loss).

*Whole texts* of many lengths are looked for by their first words alone (anchors), and those by their first two; only
where an anchor stands, the lengths that such texts have are looked up one by one. So twelve lengths cost as much as
one.

*Filters* have 16 bits and more for each key, of which it sets two in one word of 64, the lower six bits of the word's
place and the upper six of the key: less than two in a hundred others pass.

Cost on one core: 1 to 2 ns a word to look up one length, 2 to 3 ns for the anchors.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from tasks.text.ngrams import window_hashes

Array = np.ndarray
_BASE = np.uint64(0x9E3779B97F4A7C15)
_LENGTH = np.uint64(0xD6E8FEB86659FD93)
_MIX_1, _MIX_2, _SHIFT = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53), np.uint64(33)
_UNMIX_1, _UNMIX_2 = np.uint64(0x4F74430C22A54005), np.uint64(0x9CB4B2F8129337DB)  # inverses of the two
_BITS_PER_NGRAM = 16
_LONGEST_FILTER = 1 << 30


class NgramTable(NamedTuple):
    """A list of n-grams, made to be looked up: open addressing behind a filter of bits that fits the cache."""

    filter_B: np.ndarray
    """uint64 words of the filter; a power of two of them."""
    keys_T: np.ndarray
    """uint64 [slots]: the n-gram's hash; a power of two of slots, at most half of them taken."""
    numbers_T: np.ndarray
    """int64 [slots]: the n-gram's number, -1 where the slot is free."""


class Anchors(NamedTuple):
    """The first words of texts that are looked for whole."""

    words: int
    """in an anchor; no text looked for has fewer."""
    begins_B: np.ndarray
    """uint64: bits of their first two words, or of the only one."""
    table: NgramTable
    masks_A: np.ndarray
    """uint64 by the anchor's number: bit n is set where a text of n words begins so. Below 64 words."""


def ngram_table(hashes_G: np.ndarray) -> NgramTable:
    """The table of different n-grams, numbered in the order given. About 40 bytes an n-gram."""
    count = max(1, len(hashes_G))
    bits = min(_LONGEST_FILTER, _power_of_two(max(64, count * _BITS_PER_NGRAM)))
    slots = _power_of_two(2 * count)
    table = NgramTable(np.zeros(bits // 64, np.uint64), np.zeros(slots, np.uint64), np.full(slots, -1, np.int64))
    _fill(hashes_G.astype(np.uint64), *table)
    return table


def anchors_of(hashes_W: np.ndarray, offsets_D1: np.ndarray) -> Anchors | None:
    """The anchors of D texts of 1 to 63 words each; None of no text. As long as the shortest of them, so that one hash
    serves all."""
    words_D = np.diff(offsets_D1)
    if not len(words_D):
        return None
    length = int(words_D.min())
    hashes_G, offsets_G1 = window_hashes(hashes_W, offsets_D1, np.full(len(words_D), length))
    different, places = np.unique(hashes_G[offsets_G1[:-1]], return_inverse=True)
    masks_A = np.zeros(len(different), np.uint64)
    np.bitwise_or.at(masks_A, places, np.uint64(1) << words_D.astype(np.uint64))
    hashes_G, offsets_G1 = window_hashes(hashes_W, offsets_D1, np.full(len(words_D), min(2, length)))
    begins_B = ngram_table(np.unique(hashes_G[offsets_G1[:-1]])).filter_B
    return Anchors(length, begins_B, ngram_table(different), masks_A)


class Sampled(NamedTuple):
    """What a place of a text must hold for n-grams around it to be looked up."""

    words: int
    """n."""
    filter_B: np.ndarray
    """uint64: bits of the runs of n - s + 1 words of the texts looked for."""


def sampled(hashes_W: np.ndarray, offsets_D1: np.ndarray, length: int) -> Sampled:
    """The filter for n-grams of `length` words of D texts."""
    run = length - _stride(length) + 1
    hashes_G, _ = window_hashes(hashes_W, offsets_D1, np.full(len(offsets_D1) - 1, run))
    return Sampled(length, ngram_table(np.unique(hashes_G)).filter_B)


def find_ngrams(hashes_W: np.ndarray, offsets_D1: np.ndarray, of: Sampled, table: NgramTable) -> np.ndarray:
    """int64 [4, hits]: (text, first word in it, n-gram's number, words) of every n-gram of that many words that the
    table has; those of other lengths do not match, their hash differs."""
    stride, found = _stride(of.words), np.empty((4, 64), np.int64)
    hits: np.ndarray = _find_sampled(hashes_W, offsets_D1, of.words, stride, of.filter_B, *table, found)
    return hits


def _stride(length: int) -> int:
    return (length + 1) // 2


def find_whole(hashes_W: np.ndarray, offsets_D1: np.ndarray, anchors: Anchors, table: NgramTable) -> np.ndarray:
    """int64 [4, hits], as find_ngrams: where a text that has an anchor stands as a whole; `table` has its hash."""
    found = np.empty((4, 64), np.int64)
    starts = _find(hashes_W, offsets_D1, anchors.words, anchors.begins_B, *anchors.table, found)
    hits: np.ndarray = _longer(hashes_W, offsets_D1, starts, anchors.masks_A, table.keys_T, table.numbers_T, found)
    return hits


def _power_of_two(least: int) -> int:
    return 1 << max(0, (int(least) - 1).bit_length())


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _finish(state: np.uint64, length: int) -> np.uint64:
    """What tasks.text.ngrams makes of a window's polynomial."""
    state ^= np.uint64(length) * _LENGTH
    state = (state ^ (state >> _SHIFT)) * _MIX_1
    state = (state ^ (state >> _SHIFT)) * _MIX_2
    return state ^ (state >> _SHIFT)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _unmixed(key: np.uint64) -> np.uint64:
    """What the finalizer made the key of: the filter is asked by it, so that a window that is not looked for is never
    mixed."""
    key = (key ^ (key >> _SHIFT)) * _UNMIX_2
    key = (key ^ (key >> _SHIFT)) * _UNMIX_1
    return key ^ (key >> _SHIFT)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _state(hashes_W: Array, first: int, length: int) -> np.uint64:
    """The polynomial of the window that begins at a word."""
    state = np.uint64(0)
    for word in range(first, first + length):
        state = state * _BASE + hashes_W[word]
    return state


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _bits(unmixed: np.uint64, filter_B: Array) -> tuple[np.uint64, np.uint64]:
    """(index of the filter's word, two bits in it), from the upper bits, which all of a window's words reach."""
    place = unmixed >> np.uint64(28)
    bits = (np.uint64(1) << (place & np.uint64(63))) | (np.uint64(1) << (unmixed >> np.uint64(58)))
    return (place >> np.uint64(6)) & np.uint64(len(filter_B) - 1), bits


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _slot(key: np.uint64, keys_T: Array, numbers_T: Array) -> np.uint64:
    """The slot that holds the key, or the free one where it belongs."""
    last = np.uint64(len(keys_T) - 1)
    slot = key & last
    while numbers_T[slot] >= 0 and keys_T[slot] != key:
        slot = (slot + np.uint64(1)) & last
    return slot


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _fill(hashes_G: Array, filter_B: Array, keys_T: Array, numbers_T: Array) -> None:
    for number in range(len(hashes_G)):
        word, bits = _bits(_unmixed(hashes_G[number]), filter_B)
        filter_B[word] |= bits
        slot = _slot(hashes_G[number], keys_T, numbers_T)
        keys_T[slot], numbers_T[slot] = hashes_G[number], number


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _number(state: np.uint64, length: int, filter_B: Array, keys_T: Array, numbers_T: Array) -> int:
    """The number of the n-gram with this polynomial, -1 where it is not looked for: mostly the filter says so."""
    place, bits = _bits(state ^ (np.uint64(length) * _LENGTH), filter_B)
    if filter_B[place] & bits != bits:
        return -1
    return int(numbers_T[_slot(_finish(state, length), keys_T, numbers_T)])


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _put(hits_4H: Array, count: int, text: int, word: int, number: int, length: int) -> Array:
    if count == hits_4H.shape[1]:
        hits_4H = np.concatenate((hits_4H, np.empty_like(hits_4H)), axis=1)
    hits_4H[0, count], hits_4H[1, count], hits_4H[2, count], hits_4H[3, count] = text, word, number, length
    return hits_4H


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _find(
    hashes_W: Array,
    offsets_D1: Array,
    length: int,
    begins_B: Array,
    filter_B: Array,
    keys_T: Array,
    numbers_T: Array,
    hits_4H: Array,
) -> Array:
    """Windows that begin, by their first two words or the only one, as one that is looked for."""
    begun, count = min(2, length), 0
    base, mark = _BASE if begun == 2 else np.uint64(0), np.uint64(begun) * _LENGTH
    for text in range(len(offsets_D1) - 1):
        begin, stop = offsets_D1[text], offsets_D1[text + 1]
        firsts, seconds = hashes_W[begin : max(begin, stop - length + 1)], hashes_W[begin + begun - 1 : stop]
        for word in range(len(firsts)):
            state = firsts[word] * base + seconds[word]
            place, bits = _bits(state ^ mark, begins_B)
            if begins_B[place] & bits != bits:
                continue
            number = _number(_state(hashes_W, begin + word, length), length, filter_B, keys_T, numbers_T)
            if number >= 0:
                hits_4H = _put(hits_4H, count, text, word, number, length)
                count += 1
    return hits_4H[:, :count]


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _runs(words: Array, run: int, stride: int) -> Array:
    """The polynomials of the runs that begin at multiples of the stride, word after word of all of them."""
    states = words[: max(0, len(words) - run + 1) : stride].copy()
    for word in range(1, run):
        following = words[word::stride]
        for at in range(len(states)):
            states[at] = states[at] * _BASE + following[at]
    return states


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _find_sampled(
    hashes_W: Array,
    offsets_D1: Array,
    length: int,
    stride: int,
    samples_B: Array,
    filter_B: Array,
    keys_T: Array,
    numbers_T: Array,
    hits_4H: Array,
) -> Array:
    run, count = length - stride + 1, 0
    mark = np.uint64(run) * _LENGTH
    for text in range(len(offsets_D1) - 1):
        begin, words = offsets_D1[text], offsets_D1[text + 1] - offsets_D1[text]
        states = _runs(hashes_W[begin : begin + words], run, stride)
        for sample in range(len(states)):
            at, bits = _bits(states[sample] ^ mark, samples_B)
            if samples_B[at] & bits != bits:
                continue
            place = sample * stride
            for first in range(max(0, place - stride + 1), min(place, words - length) + 1):
                number = _number(_state(hashes_W, begin + first, length), length, filter_B, keys_T, numbers_T)
                if number >= 0:
                    hits_4H = _put(hits_4H, count, text, first, number, length)
                    count += 1
    return hits_4H[:, :count]


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _longer(
    hashes_W: Array,
    offsets_D1: Array,
    starts_4S: Array,
    masks_A: Array,
    keys_T: Array,
    numbers_T: Array,
    hits_4H: Array,
) -> Array:
    """Of each place where an anchor stands: the lengths that texts with it have."""
    hits_4H, count = np.empty_like(hits_4H), 0
    for at in range(starts_4S.shape[1]):
        text, first, mask = starts_4S[0, at], starts_4S[1, at], masks_A[starts_4S[2, at]]
        begin, state, length = offsets_D1[text] + first, np.uint64(0), 0
        most = min(np.int64(63), offsets_D1[text + 1] - begin)
        while length < most and mask >> np.uint64(length + 1):
            state = state * _BASE + hashes_W[begin + length]
            length += 1
            if (mask >> np.uint64(length)) & np.uint64(1):
                number = numbers_T[_slot(_finish(state, length), keys_T, numbers_T)]
                if number >= 0:
                    hits_4H = _put(hits_4H, count, text, first, number, length)
                    count += 1
    return hits_4H[:, :count]
