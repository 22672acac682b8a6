"""Texts as Arrow holds them: a str is made of one only where somebody asks for it.

In: a column of texts, and which of its rows. Out: a sequence of str, whose bytes can be had without any. It reads no
file and copies no text but where rows are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Array = np.ndarray[Any, Any]


class Texts(Sequence[str]):
    """Some rows of a column, in order. Asked for one it gives a str, for a slice (of step 1) Texts.

    sizes: bytes of each in UTF-8, int64 [n].
    """

    def __init__(self, column: pa.ChunkedArray, rows: Array | None = None) -> None:
        """column: large_string without nulls. rows: int64 [n], rising; all of them by default."""
        self._column = column
        self._rows = np.arange(len(column)) if rows is None else rows
        self.sizes = lengths_of(column)[self._rows]

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> Texts: ...
    def __getitem__(self, at: int | slice) -> str | Texts:
        if isinstance(at, slice):
            some = object.__new__(Texts)
            some._column, some._rows, some.sizes = self._column, self._rows[at], self.sizes[at]
            return some
        text: str = self._column[int(self._rows[at])].as_py()
        return text

    def __iter__(self) -> Iterator[str]:
        return iter(self.array().to_pylist())

    def array(self) -> pa.LargeStringArray:
        """All of them side by side; a view where no row between them is left out."""
        if not len(self):
            return pa.array([], pa.large_string())
        first = int(self._rows[0])
        held = self._column.slice(first, int(self._rows[-1]) + 1 - first)
        if len(held) > len(self):
            wanted = np.zeros(len(held), bool)
            wanted[self._rows - first] = True
            held = held.filter(pa.array(wanted))
        return held.chunk(0) if held.num_chunks == 1 else held.combine_chunks()


def as_texts(texts: Sequence[str]) -> Texts:
    """`texts` themselves where they are in Arrow already."""
    return texts if isinstance(texts, Texts) else Texts(pa.chunked_array([pa.array(texts, pa.large_string())]))


def lengths_of(column: pa.ChunkedArray) -> Array:
    """Bytes of each text, int64 [n]."""
    return np.asarray(pc.binary_length(column).to_numpy(), np.int64)


def utf8_of(texts: pa.LargeStringArray) -> tuple[Array, Array]:
    """(UTF-8 of all, uint8; where each text begins in it and the last ends, int64 [n + 1])."""
    if not len(texts):
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    _, places, data = texts.buffers()
    offsets = np.frombuffer(places, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return np.frombuffer(data or b"", np.uint8)[offsets[0] : offsets[-1]], offsets - offsets[0]


def bulk(texts: Sequence[str]) -> int:
    """Their characters, or bytes where these are known: how much there is to do."""
    return int(texts.sizes.sum()) if isinstance(texts, Texts) else sum(map(len, texts))
