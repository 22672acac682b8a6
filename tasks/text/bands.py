"""The LSH join: which signatures share a band.

In: signatures. Out: the keys of their bands, and band by band the buckets, those of a single signature left out. It
compares no texts: two signatures of one bucket are candidates, nothing more.

Cost on one core: 21 bands of a million signatures take 3 s, nearly all of it in sorting.
"""

from __future__ import annotations

import numba
import numpy as np

_MIX_1, _MIX_2, _SHIFT = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53), np.uint64(33)


def band_keys(signatures_DP: np.ndarray, bands: int, rows: int, of_D: np.ndarray | None = None) -> np.ndarray:
    """uint64 [D, bands]: a hash of each band's `rows` values; equal values give equal keys.

    of_D: whole numbers, the signatures that are wanted; all of them without it.

    Raises ValueError where the signatures have fewer than bands * rows values.
    """
    if bands * rows > signatures_DP.shape[1]:
        raise ValueError(f"{bands} bands of {rows} rows want {bands * rows} values, not {signatures_DP.shape[1]}")
    of_D = np.arange(len(signatures_DP)) if of_D is None else of_D.astype(np.int64)
    keys_DB = np.empty((len(of_D), bands), np.uint64)
    _band_keys(np.ascontiguousarray(signatures_DP), of_D, rows, keys_DB)
    return keys_DB


def shared_keys(keys_D: np.ndarray, ranks_D: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(entries int64 [2, E], sizes int64 [K]): which of the ranks share their band's key with another.

    keys_D: uint64. ranks_D: whole numbers, each once. entries: rank and number of its bucket, buckets in the order of
    their lowest ranks and the members of each ascending, so that what is near in rank is near in the file. sizes:
    members of each bucket, 2 or more. Needs 40 bytes a key, 60 more for each that is shared.
    """
    order = np.argsort(keys_D)
    keys = keys_D[order]
    begins = np.ones(len(keys), np.bool_)
    begins[1:] = keys[1:] != keys[:-1]
    counts = np.diff(np.append(np.flatnonzero(begins), len(keys)))
    members = ranks_D[order[np.repeat(counts > 1, counts)]].astype(np.int64)
    sizes = counts[counts > 1]
    buckets = np.repeat(np.arange(len(sizes)), sizes)
    members = members[np.lexsort((members, buckets))]
    by_lowest = np.argsort(members[np.cumsum(sizes) - sizes])
    numbers = np.empty(len(sizes), np.int64)
    numbers[by_lowest] = np.arange(len(sizes))
    placed = np.argsort(numbers[buckets], kind="stable")
    return np.stack([members[placed], numbers[buckets][placed]]), sizes[by_lowest]


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _band_keys(signatures_DP: np.ndarray, of_D: np.ndarray, rows: int, keys_DB: np.ndarray) -> None:
    for text in range(len(keys_DB)):
        signature = signatures_DP[of_D[text]]
        for band in range(keys_DB.shape[1]):
            state = np.uint64(0)
            for at in range(band * rows, (band + 1) * rows):
                state = (state ^ np.uint64(signature[at])) * _MIX_1
                state ^= state >> _SHIFT
            keys_DB[text, band] = state * _MIX_2
