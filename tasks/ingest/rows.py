"""Rows of a batch of Arrow as documents, without a line of JSON being parsed for them.

In: a batch. Out: what tasks.ingest.columns and tasks.ingest.fields make of it by way of canonical JSON, of the
commonest batch only: plain columns, a text in `text` or `content`. A row's line of JSON is still what its id is made
of. The texts stay in Arrow's buffers. None where the long way must look; a test holds both ways against each other.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import orjson
import pyarrow as pa

from tasks.ingest.columns import is_text
from tasks.ingest.records import seed
from tasks.text.encodings import mended

_SORTED = orjson.OPT_SORT_KEYS


class Rows(NamedTuple):
    """A column of values for each field of documents that differs by row, and the bytes of each row's line."""

    text: pa.Array
    digests: list[bytes]
    urls: list[str | None]
    created: list[str | None]
    metadata: list[str | None]
    sizes: list[int]
    shape: str


def quick_rows(batch: pa.RecordBatch, source: str, code: bool, limit: int, most: int | None) -> Rows | None:
    """The rows of a batch, all of them documents of one row; None where that is not sure.

    limit: bytes of a record; most: characters of a text that is not cut.
    """
    names = batch.schema.names
    shape = "text" if "text" in names else "content"
    if len(set(names)) < len(names) or shape not in names or not all(map(_is_plain, batch.schema.types)):
        return None
    text = batch.column(shape)
    if not is_text(text.type) or text.null_count:
        return None
    try:
        columns = [_values(column) for column in batch.columns]
    except UnicodeDecodeError:
        return None
    texts = columns[names.index(shape)]
    if not all(texts) or not _whole(texts, code, most):
        return None
    kept = text if text.type in (pa.string(), pa.large_string()) else pa.array(texts, pa.large_string())
    return _rows(dict(zip(names, columns, strict=True)), shape, kept.cast(pa.large_string()), source, limit)


def _rows(columns: dict[str, list[Any]], shape: str, text: pa.Array, source: str, limit: int) -> Rows | None:
    begun, names = seed(source), list(columns)
    rows = Rows(text, [], [], [], [], [], shape)
    for values in zip(*columns.values(), strict=True):
        row = dict(zip(names, values, strict=True))
        line = orjson.dumps(row, option=_SORTED)
        if len(line) > limit:
            return None
        digest = begun.copy()
        digest.update(line)
        rows.digests.append(digest.digest())
        rows.sizes.append(len(line))
        del row[shape]
        rows.urls.append(row.pop("url") if type(row.get("url")) is str else None)
        rows.created.append(row.pop("created") if type(row.get("created")) is str else None)
        rows.metadata.append(orjson.dumps(row, option=_SORTED).decode() if row else None)
    return rows


def _whole(texts: list[str], code: bool, most: int | None) -> bool:
    """Whether no text is to be cut or mended."""
    if most is not None and max(map(len, texts)) > most:
        return False
    return code or all(text.isascii() or mended(text) is None for text in texts)


def _is_plain(kind: pa.DataType) -> bool:
    tests = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_null, pa.types.is_floating, pa.types.is_temporal)
    return is_text(kind) or (not pa.types.is_duration(kind) and any(test(kind) for test in tests))


def _values(column: pa.Array) -> list[Any]:
    """A column's values as orjson writes them as json would: floats by their repr, times by ISO 8601."""
    values = column.to_pylist()
    if pa.types.is_floating(column.type):
        return [None if v is None or not math.isfinite(v) else orjson.Fragment(repr(v)) for v in values]
    if pa.types.is_temporal(column.type):
        return [None if v is None else v.isoformat() for v in values]
    return list(values)
