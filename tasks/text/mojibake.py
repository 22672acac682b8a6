"""Which of many texts may hold UTF-8 that was read as windows-1252, so that tasks.text.encodings.mended must look.

In: texts as bytes and offsets. Out: a truth value for each; True where one of its letters is among those that the
commonest first bytes of two, three and four look like, and the first of its characters beyond ASCII looks like such a
byte with another one behind it, as it must where all of them are UTF-8 read wrongly. It mends nothing.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

_LEAD, _ONE = 0xC3, np.uint64(1)
"""The letters that are looked for, ÃâÂÐåäã, are this byte and one that _look knows: U+00C2, C3, D0 and E2 to E5."""
_LOWEST, _HIGHEST = 0x82, 0xB4
"""After _LEAD, what the first bytes of UTF-8, C2 to F4, look like."""

Array = np.ndarray[Any, Any]


def may_be_mended(data: Array, offsets_R1: Array) -> Array:
    """bool [R]; 8 GB a CPU second."""
    found_R = np.zeros(len(offsets_R1) - 1, np.bool_)
    _look(data, offsets_R1, found_R)
    return found_R


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _look(data: Array, offsets_R1: Array, found_R: Array) -> None:
    for row in range(len(found_R)):
        found = np.uint8(0)
        for place in range(offsets_R1[row], offsets_R1[row + 1] - 1):
            at = np.uint64(place)
            code = data[at + _ONE]
            second = (
                np.uint8((code & 0xFE) == 0x82) | np.uint8(code == 0x90) | np.uint8((code >= 0xA2) & (code <= 0xA5))
            )
            found |= np.uint8(np.uint8(data[at] == _LEAD) & second)
        found_R[row] = found != 0 and _may_begin(data, offsets_R1[row], offsets_R1[row + 1])


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _may_begin(data: Array, at: int, end: int) -> bool:
    """Whether the first character beyond ASCII may be a first byte of UTF-8 that was read wrongly."""
    while at < end and data[at] < 0x80:
        at += 1
    return at + 2 < end and data[at] == _LEAD and _LOWEST <= data[at + 1] <= _HIGHEST and data[at + 2] >= 0x80
