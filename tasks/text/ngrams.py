"""Windows of n words as 64-bit hashes: shingles of dedup, n-grams of decontamination.

In: word hashes (tasks.text.words). Out: the hash of every window. It reads no text and gives back no words.

*Hash of a window*: the polynomial w_1 * B^(n-1) + ... + w_n mod 2^64 over its word hashes, with n mixed in,
then the 64-bit finalizer of MurmurHash3 (project; polynomial as in Karp and Rabin, 1987, "Efficient
randomized pattern-matching algorithms"). Word hashes being well mixed, two different windows are equal with
odds of 2^-64: a trillion windows against a million of the list give 0.05 false hits in expectation.

Cost on one core: 1 ns a window.
"""

from __future__ import annotations

import numba
import numpy as np

Array = np.ndarray
_BASE = np.uint64(0x9E3779B97F4A7C15)
_LENGTH = np.uint64(0xD6E8FEB86659FD93)
_MIX_1, _MIX_2, _SHIFT = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53), np.uint64(33)
_TOGETHER = 512


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


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _finish(state: np.uint64, length: int) -> np.uint64:
    state ^= np.uint64(length) * _LENGTH
    state = (state ^ (state >> _SHIFT)) * _MIX_1
    state = (state ^ (state >> _SHIFT)) * _MIX_2
    return state ^ (state >> _SHIFT)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _windows(hashes_W: Array, offsets_D1: Array, lengths_D: Array, windows_D1: Array, hashes_G: Array) -> None:
    """Word after word of many windows at a time: each of these loops becomes vector instructions."""
    for text in range(len(lengths_D)):
        length, begin, last = lengths_D[text], offsets_D1[text], windows_D1[text + 1]
        for start in range(windows_D1[text], last, _TOGETHER):
            states = hashes_G[start : min(last, start + _TOGETHER)]
            words = hashes_W[begin + start - windows_D1[text] :]
            states[:] = words[: len(states)]
            for word in range(1, length):
                for at in range(len(states)):
                    states[at] = states[at] * _BASE + words[at + word]
            for at in range(len(states)):
                states[at] = _finish(states[at], length)
