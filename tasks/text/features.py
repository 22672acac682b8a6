"""What a fastText classifier knows of a text, as one vector: the mean of the rows of its words, parts and phrases.

In: texts as Arrow holds them and a Classifier. Out: a vector for each. It weighs no label (tasks.text.scoring) and
knows no word (tasks.text.word_rows).

Rows are noted in the order of the text and then added, in that order and in float32, as fastText adds them, so that the
sums are its sums; sixteen numbers of a row at a time.

Speed: 240 MB of English a CPU second by the model of languages (one core with AVX-512, 2026).
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tasks.text.classifier import Classifier
from tasks.text.columns import largest, slices
from tasks.text.word_rows import COPIED, END, KNOWN, note_rows

Array = np.ndarray
SLICE_BYTES = 1 << 18
"""Texts are taken in slices of about as many bytes, so that what is noted of them stays in the caches."""
_LANES, _BEHIND, _LINE = 16, 64, 64


def mean_rows(offsets_D1: Array, data: Array, classifier: Classifier) -> tuple[Array, Array]:
    """(vectors float32 [D, n], bool [D]: whether any word or part of one is known).

    The text d is data[offsets_D1[d]:offsets_D1[d + 1]], valid UTF-8. Needs memory for some ten bytes to each byte of
    the longest text.
    """
    texts, (shortest, longest, phrase, buckets) = len(offsets_D1) - 1, classifier.sizes
    mean_Dn, known_D = np.zeros((texts, classifier.rows.shape[1]), np.float32), np.zeros(texts, np.bool_)
    if len(data) < int(offsets_D1[-1]) + _BEHIND:
        data = np.concatenate((data, np.zeros(_BEHIND, np.uint8)))
    spans = list(slices(offsets_D1, SLICE_BYTES))
    size, most = largest(offsets_D1, spans), int(np.diff(offsets_D1).max(initial=0))
    rooms = (
        *(*_word_memory(), np.empty(most + len(END) + 3, np.uint8)),
        np.empty((most // 2 + 2) if phrase > 1 else 0, np.int32),
        np.empty(_room_for(size, max(count for _, count in spans), longest, phrase), np.int32),
    )
    sizes = max(1, shortest), longest, phrase, max(1, buckets), *_inverse(buckets)
    for at, count in spans:
        rows_D1 = np.zeros(count + 1, np.int64)
        note_rows(data, offsets_D1[at : at + count + 1], sizes, *classifier.words, classifier.buckets, *rooms, rows_D1)
        known_D[at : at + count] = np.diff(rows_D1) > 0
        _add_rows(rooms[-1], rows_D1, classifier.rows, mean_Dn[at : at + count])
    return mean_Dn, known_D


def _room_for(size: int, texts: int, longest: int, phrase: int) -> int:
    """Rows of so many bytes at most: a word has two with its blank and two for < and >, a text's end is a word too."""
    return (size + texts) * (2 * longest + phrase + 1) + texts * (phrase + 2) + COPIED


def _word_memory() -> tuple[Array, Array]:
    """Memory for words and, the same, for their rows, from where a line of the caches begins."""
    memory = np.zeros(KNOWN + _LINE // 8, np.uint64)
    memory = memory[-memory.ctypes.data % _LINE // 8 :]
    return memory, memory.view(np.int32)


def _inverse(buckets: int) -> tuple[int, int]:
    """(factor, shift): hash * factor >> shift is hash // buckets or one less, for a hash of 32 bits, within 63 bits."""
    shift = 30 + max(1, buckets).bit_length()
    return (1 << shift) // max(1, buckets), shift


@intrinsic  # type: ignore[untyped-decorator]
def _add_lanes(_typing: Any, rows: Any, found: Any, begin: Any, stop: Any, first: Any, total: Any) -> Any:
    """Put the sum of rows[found[begin:stop], first : first + 16] into total[first : first + 16]; begin < stop."""

    def emit(context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        vector, number, (begin, stop, first) = ir.VectorType(ir.FloatType(), _LANES), ir.IntType(64), given[2:5]
        table, places, out = (context.make_array(kind)(context, builder, array) for kind, array in (
            (rows, given[0]), (found, given[1]), (total, given[5])))  # fmt: skip
        width = builder.extract_value(table.shape, 1)
        before, loop, done = builder.block, builder.append_basic_block("row"), builder.append_basic_block("added")
        builder.branch(loop)
        builder.position_at_end(loop)
        at, held = builder.phi(number), builder.phi(vector)
        row = builder.sext(builder.load(builder.gep(places.data, [at])), number)
        lanes = builder.gep(table.data, [builder.add(builder.mul(row, width), first)])
        summed = builder.fadd(held, builder.load(builder.bitcast(lanes, vector.as_pointer()), align=4))
        following = builder.add(at, ir.Constant(number, 1))
        at.add_incoming(begin, before)
        at.add_incoming(following, loop)
        held.add_incoming(ir.Constant(vector, [0.0] * _LANES), before)
        held.add_incoming(summed, loop)
        builder.cbranch(builder.icmp_signed("<", following, stop), loop, done)
        builder.position_at_end(done)
        place = builder.bitcast(builder.gep(out.data, [first]), vector.as_pointer())
        builder.store(summed, place, align=4)
        return context.get_dummy_value()

    return types.void(rows, found, types.int64, types.int64, types.int64, total), emit


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _add_rows(found_N: Array, rows_D1: Array, rows: Array, mean_Dn: Array) -> None:
    """Put the mean of the rows found_N[rows_D1[d]:rows_D1[d + 1]] of `rows`, float32 [R, n], into mean_Dn[d], which is
    0; it stays so where there are none."""
    width = rows.shape[1]
    for text in range(len(rows_D1) - 1):
        begin, stop, total = rows_D1[text], rows_D1[text + 1], mean_Dn[text]
        if begin == stop:
            continue
        for first in range(0, width - _LANES + 1, _LANES):
            _add_lanes(rows, found_N, begin, stop, first, total)
        for place in range(width - width % _LANES, width):
            for at in range(begin, stop):
                total[place] += rows[found_N[at], place]
        for place in range(width):
            total[place] *= np.float32(1.0 / np.float32(stop - begin))
