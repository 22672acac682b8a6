"""Rows of a batch of Arrow as documents, without a Python object for a row.

In: a batch. Out: what tasks.ingest.columns and tasks.ingest.fields make of it by way of canonical JSON, of the
commonest batch only: plain columns, a text in `text` or `content`. A row's line of JSON is still what its id is made
of. The texts stay in Arrow's buffers. None where the long way must look at the whole batch; rows that it must look at
one by one are named. A test holds both ways against each other.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa

from tasks.ingest.columns import is_text
from tasks.ingest.known import Known, documents_of, ids_of, truths, whole_texts
from tasks.ingest.records import named
from tasks.text.columns import text_buffers
from tasks.text.json_texts import CONTENT, TEXT
from tasks.text.objects import ABSENT, NULL, THERE, Column, objects

Array = np.ndarray[Any, Any]


class Cells(NamedTuple):
    """A column's values as text. quoted: in JSON they stand in quotes, else as they are."""

    values: pa.LargeStringArray
    quoted: bool

    def column(self, name: str, states: Array) -> Column:
        offsets, data = text_buffers(self.values)
        return Column(orjson.dumps(name), data, offsets, self.quoted, states)

    @property
    def states(self) -> Array:
        if not self.values.null_count:
            return np.full(len(self.values), THERE, np.uint8)
        return np.where(truths(self.values.is_null()), NULL, THERE).astype(np.uint8)


def quick_rows(batch: pa.RecordBatch, source: str, kind: str, limit: int, most: int | None) -> Known | None:
    """The rows of a batch; None where the long way must look at all of them.

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
    lines, places = _lines(cells, states, batch.num_rows)
    sizes = np.diff(places)
    texts, there = cells.pop(shape).values, states.pop(shape) == THERE
    known = there & (sizes <= limit) & whole_texts(texts, kind == "code", most)
    columns = {"text": texts} | _facts(cells, states, batch.num_rows)
    table = documents_of(source, kind, ids_of(named(source, lines, places[:-1], places[1:])), columns)
    return Known(table, sizes, known, np.full(batch.num_rows, TEXT if shape == "text" else CONTENT, np.uint8))


def _lines(cells: dict[str, Cells], states: dict[str, Array], rows: int) -> tuple[Array, Array]:
    return objects([column.column(name, states[name]) for name, column in cells.items()], rows)


def _facts(cells: dict[str, Cells], states: dict[str, Array], rows: int) -> dict[str, pa.Array]:
    """url and created where they are text, all else in the metadata."""
    left, facts = dict(states), {}
    for name in ("url", "created"):
        if name in left and cells[name].quoted:
            facts[name] = cells[name].values.cast(pa.string())
            left[name] = np.where(left[name] == NULL, NULL, ABSENT).astype(np.uint8)
    return facts | {"metadata": _metadata({name: cells[name] for name in left}, left, rows)}


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
