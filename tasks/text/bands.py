"""The LSH join: which signatures share a band.

In: signatures. Out: the keys of their bands, and band by band the buckets, those of a single signature left out. It
compares no texts: two signatures of one bucket are candidates, nothing more.

Cost on one core: 21 bands of a million signatures take 3 s, nearly all of it in sorting.
"""

from __future__ import annotations

import numba
import numpy as np

_MIX_1, _MIX_2, _SHIFT = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53), np.uint64(33)


def band_keys(signatures_DP: np.ndarray, bands: int, rows: int) -> np.ndarray:
    """uint64 [D, bands]: a hash of each band's `rows` values; equal values give equal keys.

    Raises ValueError where the signatures have fewer than bands * rows values.
    """
    if bands * rows > signatures_DP.shape[1]:
        raise ValueError(f"{bands} bands of {rows} rows want {bands * rows} values, not {signatures_DP.shape[1]}")
    keys_DB = np.empty((len(signatures_DP), bands), np.uint64)
    _band_keys(np.ascontiguousarray(signatures_DP), rows, keys_DB)
    return keys_DB


def buckets_of_band(keys_D: np.ndarray, takes_part_D: np.ndarray, first: int) -> tuple[np.ndarray, ...]:
    """(signatures int64 [E], buckets int64 [E], sizes int64 [K]): the signatures that share one band with another.

    keys_D: the band's keys. takes_part_D: bool; the others (empty sets, whose signatures are all equal) share nothing.
    first: number of the first bucket; the numbers mean nothing beyond being equal or not. sizes: signatures in bucket
    first + k. Needs 33 bytes a signature.
    """
    rows_D = np.flatnonzero(takes_part_D)
    rows_D = rows_D[np.argsort(keys_D[rows_D], kind="stable")]
    keys = keys_D[rows_D]
    begins = np.ones(len(keys), np.bool_)
    begins[1:] = keys[1:] != keys[:-1]
    counts = np.diff(np.append(np.flatnonzero(begins), len(keys)))
    shared = np.repeat(counts > 1, counts)
    sizes = counts[counts > 1]
    return rows_D[shared], np.repeat(np.arange(first, first + len(sizes)), sizes), sizes


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _band_keys(signatures_DP: np.ndarray, rows: int, keys_DB: np.ndarray) -> None:
    for text in range(len(keys_DB)):
        for band in range(keys_DB.shape[1]):
            state = np.uint64(0)
            for at in range(band * rows, (band + 1) * rows):
                state = (state ^ np.uint64(signatures_DP[text, at])) * _MIX_1
                state ^= state >> _SHIFT
            keys_DB[text, band] = state * _MIX_2
