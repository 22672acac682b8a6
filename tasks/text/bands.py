"""The LSH join: which signatures share a band.

In: signatures. Out: for each signature and band the bucket it lies in, buckets of a single signature left
out. It compares no texts: two signatures of one bucket are candidates, nothing more.

Cost on one core: 21 bands of a million signatures take 3 s and 170 MB, nearly all of it in sorting.
"""

from __future__ import annotations

import numba
import numpy as np

ALONE = -1
"""The bucket of a signature that shares the band with none."""

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


def buckets(keys_DB: np.ndarray, takes_part_D: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(buckets int64 [D, B], sizes int64 [K]): number of the bucket of each band, ALONE if nobody shares it.

    keys_DB: from `band_keys`; overwritten, the buckets lie in its memory.
    takes_part_D: bool; the others (empty sets, whose signatures are all equal) share nothing with anyone.
    Buckets of different bands have different numbers; the numbers mean nothing beyond being equal or not.
    """
    buckets_DB, sizes, first = keys_DB.view(np.int64), [np.zeros(0, np.int64)], 0
    for band in range(keys_DB.shape[1]):
        keys = keys_DB[takes_part_D, band]
        _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
        numbers = np.where(counts > 1, np.cumsum(counts > 1) - 1 + first, ALONE)
        buckets_DB[~takes_part_D, band] = ALONE
        buckets_DB[takes_part_D, band] = numbers[inverse]
        sizes.append(counts[counts > 1])
        first += len(sizes[-1])
    return buckets_DB, np.concatenate(sizes)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _band_keys(signatures_DP: np.ndarray, rows: int, keys_DB: np.ndarray) -> None:
    for text in range(len(keys_DB)):
        for band in range(keys_DB.shape[1]):
            state = np.uint64(0)
            for at in range(band * rows, (band + 1) * rows):
                state = (state ^ np.uint64(signatures_DP[text, at])) * _MIX_1
                state ^= state >> _SHIFT
            keys_DB[text, band] = state * _MIX_2
