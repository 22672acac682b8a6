"""Paragraphs and lines of texts, known by a hash of their bytes: what is looked for in other places.

In: UTF-8 texts as Arrow holds them. Out: the spans of at least so many characters, with their hashes. It decides
nothing about them.

*Line*: what stands between line feeds, white space (space, tab) at both ends left out. *Paragraph*: a run of lines with
no blank one between, from its first character to its last. A paragraph of a single line is both. *Hash*: FNV-1a of 64
bits, then the 64-bit finalizer of MurmurHash3; two different spans of a billion are equal with odds of 0.03.

Cost on one core: 1 ns a byte.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import pyarrow as pa

from tasks.text.words import text_buffers

PARAGRAPH, LINE = 0, 1
_PRIME, _BASIS = np.uint64(0x100000001B3), np.uint64(0xCBF29CE484222325)
_MIX_1, _MIX_2, _SHIFT = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53), np.uint64(33)


class Spans(NamedTuple):
    """S spans, sorted by text and end; of equal ends the line first."""

    texts_S: np.ndarray
    """int64: number of the text."""
    levels_S: np.ndarray
    """int64: PARAGRAPH or LINE."""
    starts_S: np.ndarray
    """int64: first byte in the text,"""
    stops_S: np.ndarray
    """int64: and one past the last."""
    characters_S: np.ndarray
    """int64: code points."""
    hashes_S: np.ndarray
    """uint64."""


def find_spans(texts: pa.Array | pa.ChunkedArray, characters_min: int) -> Spans:
    """The paragraphs and lines of `characters_min` code points or more. Needs 48 bytes a span."""
    offsets_D1, data = text_buffers(texts)
    rows = _find(data, offsets_D1.astype(np.int64), characters_min, np.empty((6, 1024), np.int64))
    return Spans(rows[0], rows[1], rows[2], rows[3], rows[4], rows[5].view(np.uint64))


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _put(
    rows: np.ndarray, count: int, text: int, level: int, start: int, stop: int, characters: int, state: np.uint64
) -> np.ndarray:
    if count == rows.shape[1]:
        rows = np.concatenate((rows, np.empty_like(rows)), axis=1)
    state = (state ^ (state >> _SHIFT)) * _MIX_1
    state = (state ^ (state >> _SHIFT)) * _MIX_2
    rows[0, count], rows[1, count], rows[2, count], rows[3, count] = text, level, start, stop
    rows[4, count], rows[5, count] = characters, np.int64(state ^ (state >> _SHIFT))
    return rows


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _hash(data: np.ndarray, start: int, stop: int) -> tuple[np.uint64, int]:
    """(FNV-1a, code points) of data[start:stop]."""
    state, characters = _BASIS, 0
    for at in range(start, stop):
        state = (state ^ np.uint64(data[at])) * _PRIME
        characters += (data[at] & 0xC0) != 0x80
    return state, characters


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _find(data: np.ndarray, offsets_D1: np.ndarray, characters_min: int, rows: np.ndarray) -> np.ndarray:
    count = 0
    for text in range(len(offsets_D1) - 1):
        begin, end = offsets_D1[text], offsets_D1[text + 1]
        line, first, last = begin, -1, -1  # of the paragraph so far
        while line <= end:
            after = line
            while after < end and data[after] != 10:
                after += 1
            start, stop = line, after
            while start < stop and (data[start] == 32 or data[start] == 9):
                start += 1
            while stop > start and (data[stop - 1] == 32 or data[stop - 1] == 9):
                stop -= 1
            if start < stop:
                state, characters = _hash(data, start, stop)
                if characters >= characters_min:
                    rows = _put(rows, count, text, 1, start - begin, stop - begin, characters, state)
                    count += 1
                first, last = start if first < 0 else first, stop
            if first >= 0 and (start == stop or after >= end):
                state, characters = _hash(data, first, last)
                if characters >= characters_min:
                    rows = _put(rows, count, text, 0, first - begin, last - begin, characters, state)
                    count += 1
                first = -1
            line = after + 1
    return rows[:, :count]
