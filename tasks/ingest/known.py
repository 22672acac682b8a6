"""Records that are documents of one row as they stand, many at a time, as columns.

In: their texts and facts. Out: DOCUMENTS, and which of the records the long way (tasks.ingest.fields) must look at.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.artifacts.documents import DOCUMENTS, MESSAGES
from tasks.text.byte_counts import character_counts
from tasks.text.columns import text_buffers
from tasks.text.encodings import mended
from tasks.text.json_texts import CONTENT, TEXT
from tasks.text.mojibake import may_be_mended

DIGEST_LETTERS, ID_LETTERS = 64, 32
"""Hexadecimal digits of a digest, and of an id, which is how a digest begins."""
FILE = 3
"""Of a record that is a whole file of text, where those of JSON are TEXT or CONTENT."""
SHAPES = {TEXT: "text", CONTENT: "content", FILE: "file"}

Array = np.ndarray[Any, Any]


class Known(NamedTuple):
    """documents: DOCUMENTS [R]. sizes: bytes of each record, int64 [R]. known: whether the record is what stands here,
    bool [R]. shapes: how its text was found, uint8 [R], one of SHAPES where it is known.
    """

    documents: pa.Table
    sizes: Array
    known: Array
    shapes: Array

    def counts(self, begin: int, end: int) -> dict[str, int]:
        """Shape -> how many of rows [begin, end)."""
        numbers = np.bincount(self.shapes[begin:end], minlength=max(SHAPES) + 1)
        return {name: int(numbers[code]) for code, name in SHAPES.items() if numbers[code]}


def ids_of(digests: bytes) -> pa.StringArray:
    """The ids of records with such digests, 32 bytes each, one after another."""
    rows = len(digests) * 2 // DIGEST_LETTERS
    letters = np.frombuffer(digests.hex().encode(), np.uint8).reshape(rows, DIGEST_LETTERS)[:, :ID_LETTERS]
    offsets = np.arange(rows + 1, dtype=np.int32) * ID_LETTERS
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(letters.tobytes()))


def documents_of(source: str, kind: str, ids: pa.StringArray, columns: dict[str, pa.Array]) -> pa.Table:
    """DOCUMENTS of one source without messages; columns: text and, where there are some, url, created, metadata."""
    rows = len(ids)
    whole = {
        "id": ids,
        "source": pa.repeat(pa.scalar(source, pa.string()), rows),
        "kind": pa.repeat(pa.scalar(kind, pa.string()), rows),
        "messages": pa.nulls(rows, MESSAGES),
        **columns,
    }
    empty = {field.name: field.type for field in DOCUMENTS if field.name not in whole}
    whole |= {name: pa.nulls(rows, kind) for name, kind in empty.items()}
    return pa.table({name: whole[name] for name in DOCUMENTS.names})


def are_utf8(texts: pa.LargeStringArray) -> Array:
    """bool [R]; asked one by one only where one of them is not."""
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return np.array([_is_utf8(text) for text in texts.view(pa.large_binary()).to_pylist()], np.bool_)
    return np.ones(len(texts), np.bool_)


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def emptied(texts: pa.LargeStringArray, known: Array) -> pa.LargeStringArray:
    """`texts` where they are known, else nothing: what is there need not be UTF-8."""
    if known.all():
        return texts
    return pc.if_else(pa.array(known), texts.view(pa.large_binary()), b"").view(pa.large_string())


def whole_texts(texts: pa.LargeStringArray, code: bool, most: int | None) -> Array:
    """Which texts are neither empty nor to be cut or mended, bool [R]; most: characters of a text that is not cut;
    code: nothing is mended.
    """
    offsets, data = text_buffers(texts)
    whole: Array = np.diff(offsets) > 0
    if most is not None:
        whole &= ~truths(pc.fill_null(pc.greater(character_counts(texts), most), False))
    for row in [] if code else np.flatnonzero(may_be_mended(data, offsets)).tolist():
        whole[row] &= mended(texts[row].as_py()) is None
    return whole


def truths(column: pa.BooleanArray) -> Array:
    """A column without nulls as bool [R]."""
    return np.frombuffer(column.cast(pa.uint8()).buffers()[1], np.bool_, len(column))
