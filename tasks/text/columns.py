"""Columns of texts as bytes: what kernels read.

In: an Arrow column of strings of any kind. Out: its offsets and its bytes, without a copy where it is one array of
large_string already.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def text_buffers(texts: pa.Array | pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """(offsets int64 [D + 1], data uint8) of a column of strings, made one by `one_array`."""
    texts = one_array(texts)
    if not len(texts):
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    _, offsets, data = texts.buffers()
    offsets_D1 = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return offsets_D1, np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)


def one_array(texts: pa.Array | pa.ChunkedArray) -> pa.LargeStringArray:
    """A column of strings as one array of large_string without nulls; no copy where it is that already.

    Nulls become empty texts: Arrow lets their slots cover bytes that mean nothing.
    """
    if not pa.types.is_large_string(texts.type):
        texts = texts.cast(pa.large_string())
    if texts.null_count:
        texts = pc.fill_null(texts, "")
    if isinstance(texts, pa.ChunkedArray):
        return texts.chunk(0) if texts.num_chunks == 1 else texts.combine_chunks()
    return texts


def slices(offsets_D1: np.ndarray, size: int) -> Iterator[tuple[int, int]]:
    """(first row, rows) of texts with such offsets that hold about `size` bytes together: at least one, of a row if
    any."""
    start, rows = 0, len(offsets_D1) - 1
    while start < rows or rows == 0:
        stop = int(np.searchsorted(offsets_D1, offsets_D1[start] + size, side="right")) - 1
        stop = min(rows, max(stop, start + 1))
        yield start, stop - start
        if stop == rows:
            return
        start = stop


def largest(offsets_D1: np.ndarray, spans: list[tuple[int, int]]) -> int:
    """Bytes of the largest of some slices."""
    return max(int(offsets_D1[at + rows] - offsets_D1[at]) for at, rows in spans)
