"""What stands in many texts that may call for cleaning, 64 bytes at a time.

In: UTF-8 texts as Arrow holds them. Out: a byte of bits for each: something beyond ASCII, a control, a blank at the end
of a line, a run of blanks or a tab, three line feeds, four. It says nothing of what a text needs (tasks.text.cleaning).
A comparison of 64 bytes is one instruction of AVX-512 and a word of 64 bits, and what stands behind or before what is a
shift of such words: 9 GB of text a CPU second, where a loop over bytes with their neighbours does 1.8.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

WIDE, CONTROL, TRAILING, RUN, LINES_3, LINES_4 = 1, 2, 4, 8, 16, 32

_BLOCK = 64
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_1, _2, _3, _61, _62, _63 = (np.uint64(count) for count in (1, 2, 3, 61, 62, 63))

Array = np.ndarray[Any, Any]


def signs(data: Array, offsets_D1: Array) -> Array:
    """uint8 [D]: the bits of what stands in each text."""
    signs_D = np.zeros(len(offsets_D1) - 1, np.uint8)
    _find(data, offsets_D1, signs_D)
    return signs_D


@intrinsic  # type: ignore[untyped-decorator]
def _kinds_of_64(_typing: Any, data: Any, at: Any) -> Any:
    """(beyond ASCII, other controls, tabs, line feeds, spaces), uint64 each: bit i is of data[at + i]."""
    vector = ir.VectorType(ir.IntType(8), _BLOCK)

    def emit(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        def all_of(byte: int) -> Any:
            return ir.Constant(vector, [byte] * _BLOCK)

        def is_(byte: int) -> Any:
            return builder.icmp_unsigned("==", block, all_of(byte))

        address = builder.gep(context.make_array(data)(context, builder, given[0]).data, [given[1]])
        block = builder.load(builder.bitcast(address, vector.as_pointer()), align=1)
        wide, low = (builder.icmp_unsigned(sign, block, all_of(byte)) for sign, byte in ((">=", 128), ("<", 32)))
        tab, feed = is_(9), is_(10)
        control = builder.or_(builder.and_(low, builder.not_(builder.or_(tab, feed))), is_(127))
        masks = wide, control, tab, feed, is_(32)
        return context.make_tuple(
            builder, signature.return_type, [builder.bitcast(mask, ir.IntType(64)) for mask in masks]
        )

    return types.UniTuple(types.uint64, 5)(data, types.int64), emit


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _find(data: Array, offsets_D1: Array, signs_D: Array) -> None:
    scratch = np.zeros(_BLOCK, np.uint8)
    for text in range(len(offsets_D1) - 1):
        at, stop = offsets_D1[text], offsets_D1[text + 1]
        wides = controls = trailing = runs = three = four = np.uint64(0)
        feeds_before = spaces_before = blanks_before = np.uint64(0)
        while at < stop:
            known = _ALL >> np.uint64(_BLOCK - min(_BLOCK, stop - at))
            if at + _BLOCK <= len(data):
                wide, control, tab, feed, space = _kinds_of_64(data, at)
            else:
                scratch[: len(data) - at] = data[at:]
                wide, control, tab, feed, space = _kinds_of_64(scratch, 0)
            tab, feed, space = tab & known, feed & known, space & known
            wides, controls, blank = wides | wide & known, controls | control & known, tab | space
            trailing |= (blank << _1 | blanks_before >> _63) & feed
            runs |= tab | (space & (space << _1 | spaces_before >> _63))
            thrice = feed & (feed << _1 | feeds_before >> _63) & (feed << _2 | feeds_before >> _62)
            three, four = three | thrice, four | thrice & (feed << _3 | feeds_before >> _61)
            feeds_before, spaces_before, blanks_before, at = feed, space, blank, at + _BLOCK
        found = (wides != 0) * WIDE | (controls != 0) * CONTROL | (trailing != 0) * TRAILING
        signs_D[text] = found | (runs != 0) * RUN | (three != 0) * LINES_3 | (four != 0) * LINES_4
