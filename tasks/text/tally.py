"""How often each of some small numbers occurs.

In: numbers of any width. Out: a count for each. numpy's bincount makes them all int64 first: eight bytes for the two of
a token's id.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

Array = np.ndarray[Any, Any]


def tallied(numbers: Array, size: int) -> tuple[Array, int]:
    """(how often 0 to size - 1 occur int64 [size], the first number that is none of these, or -1). numbers: [n]."""
    counts = np.zeros(size, np.int64)
    return counts, int(_count(numbers, counts))


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _count(numbers: Array, counts: Array) -> int:
    size, odd = np.uint64(len(counts)), np.int64(-1)
    for number in numbers:
        place = np.uint64(np.int64(number))
        if place < size:
            counts[place] += 1
        elif odd == -1:
            odd = np.int64(number)
    return int(odd)
