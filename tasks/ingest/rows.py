"""Rows of a batch of Arrow as documents, without a Python object for a row.

In: a batch. Out: what tasks.ingest.columns and tasks.ingest.fields make of it by way of canonical JSON, of the
commonest batch only: plain columns, a text in `text` or `content`. A row's line of JSON is still what its id is made
of. The texts stay in Arrow's buffers. None where the long way must look at the whole batch; rows that it must look at
one by one are named. A test holds both ways against each other.
"""

from __future__ import annotations

import hashlib
import math
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from tasks.artifacts.documents import DOCUMENTS, MESSAGES
from tasks.ingest.columns import is_text
from tasks.text.columns import text_buffers
from tasks.text.encodings import mended
from tasks.text.mojibake import may_be_mended
from tasks.text.objects import ABSENT, NULL, THERE, Column, objects

ID_BYTES, ID_LETTERS = 32, 32
"""Of a digest, and of what stands of it, in hexadecimal digits, in an id."""

Array = np.ndarray[Any, Any]


class Rows(NamedTuple):
    """documents: DOCUMENTS [R]. sizes: bytes of each row's line, int64 [R]. known: whether the row is what stands
    here, bool [R]; the long way must look at the others. shape: how their text was found.
    """

    documents: pa.Table
    sizes: Array
    known: Array
    shape: str


class Cells(NamedTuple):
    """A column's values as text. quoted: in JSON they stand in quotes, else as they are."""

    values: pa.LargeStringArray
    quoted: bool

    def column(self, name: str, states: Array) -> Column:
        offsets, data = text_buffers(self.values)
        return Column(orjson.dumps(name), data, offsets, self.quoted, states)

    @property
    def states(self) -> Array:
        return np.where(self.values.is_null(), NULL, THERE).astype(np.uint8)


def quick_rows(batch: pa.RecordBatch, source: str, kind: str, limit: int, most: int | None) -> Rows | None:
    """The rows of a batch, each a document of one row where it is known; None where that is not sure of any.

    limit: bytes of a record; most: characters of a text that is not cut.
    """
    names = batch.schema.names
    shape = "text" if "text" in names else "content"
    if len(set(names)) < len(names) or shape not in names or not all(map(_is_plain, batch.schema.types)):
        return None
    if not is_text(batch.schema.field(shape).type):
        return None
    try:
        cells = {name: _cells(batch.column(name)) for name in sorted(names)}
    except (UnicodeDecodeError, OverflowError, KeyError, pa.ArrowException):
        return None
    states = {name: column.states for name, column in cells.items()}
    lines, places = _lines(cells, states, batch.num_rows, source.encode() + b"\0")
    sizes = np.diff(places) - len(source.encode()) - 1
    texts = cells[shape].values
    known = (states[shape] == THERE) & (sizes <= limit) & _whole(texts, kind == "code", most)
    table = _table(cells, states, shape, _ids(lines, places), (source, kind))
    return Rows(table, sizes, known, shape)


def _lines(cells: dict[str, Cells], states: dict[str, Array], rows: int, ahead: bytes = b"") -> tuple[Array, Array]:
    return objects([column.column(name, states[name]) for name, column in cells.items()], rows, ahead)


def _ids(lines: Array, places: Array) -> pa.StringArray:
    """32 hex of the SHA-256 of each line."""
    view, sha256, rows = memoryview(lines.data), hashlib.sha256, len(places) - 1
    raw = b"".join([sha256(view[begin:end]).digest() for begin, end in pairwise(places.tolist())])
    letters = np.frombuffer(raw.hex().encode(), np.uint8).reshape(rows, 2 * ID_BYTES)[:, :ID_LETTERS]
    offsets = np.arange(rows + 1, dtype=np.int32) * ID_LETTERS
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(letters.tobytes()))


def _table(
    cells: dict[str, Cells], states: dict[str, Array], shape: str, ids: pa.StringArray, named: tuple[str, str]
) -> pa.Table:
    """The documents: url and created where they are text, all else but the text in the metadata."""
    others = {name: state for name, state in states.items() if name != shape}
    rows, known = len(ids), {}
    for name in ("url", "created"):
        if name in others and cells[name].quoted:
            known[name] = cells[name].values.cast(pa.string())
            others[name] = np.where(others[name] == NULL, NULL, ABSENT).astype(np.uint8)
    columns = {
        "id": ids,
        "source": pa.repeat(pa.scalar(named[0]), rows),
        "kind": pa.repeat(pa.scalar(named[1]), rows),
        "text": cells[shape].values,
        "messages": pa.nulls(rows, MESSAGES),
        "offsets": pa.nulls(rows, DOCUMENTS.field("offsets").type),
        "url": known.get("url", pa.nulls(rows, pa.string())),
        "created": known.get("created", pa.nulls(rows, pa.string())),
        "metadata": _metadata({name: cells[name] for name in others}, others, rows),
    }
    return pa.table(columns)


def _metadata(cells: dict[str, Cells], states: dict[str, Array], rows: int) -> pa.Array:
    """JSON of a row's other fields, null where there are none."""
    said = np.zeros(rows, np.bool_)
    for state in states.values():
        said |= state != ABSENT
    if not said.any():
        return pa.nulls(rows, pa.string())
    data, places = _lines(cells, states, rows)
    validity = pa.py_buffer(np.packbits(said, bitorder="little"))
    buffers = [validity, pa.py_buffer(places), pa.py_buffer(data)]
    return pa.LargeStringArray.from_buffers(rows, *buffers[1:], buffers[0]).cast(pa.string())


def _whole(texts: pa.LargeStringArray, code: bool, most: int | None) -> Array:
    """Which texts are neither empty nor to be cut or mended, bool [R]."""
    offsets, data = text_buffers(texts)
    whole: Array = np.diff(offsets) > 0
    if most is not None:
        long = pc.greater(pc.utf8_length(texts), most)
        whole &= ~pc.fill_null(long, False).to_numpy(zero_copy_only=False)
    for row in [] if code else np.flatnonzero(may_be_mended(data, offsets)).tolist():
        whole[row] &= mended(texts[row].as_py()) is None
    return whole


def _is_plain(kind: pa.DataType) -> bool:
    tests = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_null, pa.types.is_floating, pa.types.is_temporal)
    return is_text(kind) or (not pa.types.is_duration(kind) and any(test(kind) for test in tests))


def _cells(column: pa.Array) -> Cells:
    """A column's values as json writes them: floats by their repr, times by ISO 8601."""
    if is_text(column.type):
        values = column.cast(pa.large_string())
        values.validate(full=True)
        return Cells(values, True)
    if pa.types.is_floating(column.type):
        numbers = [None if v is None or not math.isfinite(v) else repr(v) for v in column.to_pylist()]
        return Cells(pa.array(numbers, pa.large_string()), False)
    if pa.types.is_temporal(column.type):
        times = [None if v is None else v.isoformat() for v in column.to_pylist()]
        return Cells(pa.array(times, pa.large_string()), True)
    return Cells(column.cast(pa.large_string()), False)
