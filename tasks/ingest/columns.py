"""Rows of Parquet and Arrow files as lines of canonical JSON (sorted keys, no spaces).

In: an open file. Out: a batch of rows a block. Columns of text may be string, large_string, string_view, dictionary or
binary. Where a string is no UTF-8, its bytes go into the line as they are, so that the record is rejected for its
encoding like any other; where a binary value is none (an image), {"bytes": n, "sha256": hex} stands for it. NaN and
infinities become null, times ISO 8601 (the file's numbers, where one of a batch lies outside of the years 1 to 9999),
decimals and intervals text, a map the object of its keys.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from tasks.ingest.page_sizes import check_pages

BATCH_BYTES = 8 << 20
BUFFER = 1 << 20
_SORTED = orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE


def parquet_lines(file: pa.NativeFile) -> Iterator[bytes]:
    """The rows of a Parquet file.

    Batches are cut by the mean bytes of a row of the file, so that a row group of gigabytes is not held at
    once: a group of 328 MB in rows of 8 KiB took 115 MB, as did 50,000 groups of a row. Checksums of pages are
    verified.
    """
    for batch in parquet_batches(file):
        yield lines_of(batch)


def parquet_batches(file: pa.NativeFile, chosen: range | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of the row groups `chosen`, whose pages a scan has looked at, or of all where it is None."""
    if chosen is None:
        check_pages(file)
        file.seek(0)
    with pq.ParquetFile(file, pre_buffer=False, buffer_size=BUFFER, page_checksum_verification=True) as parquet:
        groups = (parquet.metadata.row_group(group).total_byte_size for group in range(parquet.num_row_groups))
        weight = sum(groups) // max(1, parquet.metadata.num_rows)
        rows = max(1, min(4096, BATCH_BYTES // max(1, weight)))
        yield from parquet.iter_batches(batch_size=rows, row_groups=chosen, use_threads=False)


def arrow_lines(file: pa.NativeFile, head: bytes) -> Iterator[bytes]:
    """The rows of an Arrow IPC file (Feather) or, where it does not begin with ARROW1, of an IPC stream.

    Arrow trusts the offsets that such a file holds, so each batch is validated before it is read.
    """
    for batch in _batches(file, head):
        for column in batch.columns:
            _as_binary(column).validate(full=True)
        rows = max(1, min(4096, batch.num_rows * BATCH_BYTES // max(1, batch.nbytes)))
        for start in range(0, batch.num_rows, rows):
            yield lines_of(batch.slice(start, rows))


def lines_of(batch: pa.RecordBatch) -> bytes:
    """The rows of a batch as lines."""
    names = batch.schema.names
    if len(set(names)) < len(names):
        raise ValueError(f"two columns have one name: {', '.join(sorted(names))}"[:200])
    simple = all(_is_simple(column.type) for column in batch.columns)
    rows = _listed(batch)
    if simple:
        return b"".join(map(_simple_line, rows))
    texts = [name for name, kind in zip(names, batch.schema.types, strict=True) if is_text(kind)]
    return b"".join(json_line(row, texts) for row in rows)


def json_line(row: dict[str, Any], texts: Iterable[str]) -> bytes:
    """A row as canonical JSON and a line feed; texts: the columns whose bytes are text, whatever they hold."""
    for name in texts:
        if isinstance(row[name], bytes):
            row[name] = row[name].decode("utf-8", "surrogateescape")
    return json_text(_plain(row))


def json_text(value: Any) -> bytes:
    """A JSON value, canonical, and a line feed; text may hold bytes that are no UTF-8 as surrogates."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True)
    return text.encode("utf-8", "surrogateescape") + b"\n"


def _simple_line(row: dict[str, Any]) -> bytes:
    """Text, whole numbers, truth values and null: orjson's line is json's, byte for byte, and five times as fast."""
    try:
        return orjson.dumps(row, option=_SORTED)
    except TypeError:
        return json_line(row, row)


def _is_simple(kind: pa.DataType) -> bool:
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer, pa.types.is_boolean, pa.types.is_null)
    return any(test(kind) for test in tests)


def _batches(file: pa.NativeFile, head: bytes) -> Iterable[pa.RecordBatch]:
    if not head.startswith(b"ARROW1"):
        yield from pa.ipc.open_stream(file)
        return
    reader = pa.ipc.open_file(file)
    for number in range(reader.num_record_batches):
        yield reader.get_batch(number)


def _as_binary(column: pa.Array) -> pa.Array:
    """A column of text as binary, without a copy: whether it is UTF-8 is asked record by record."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(column.indices, _as_binary(column.dictionary))
    for text, binary in ((pa.string(), pa.binary()), (pa.large_string(), pa.large_binary())):
        if kind == text:
            return column.view(binary)
    return column.view(pa.binary_view()) if pa.types.is_string_view(kind) else column


def _listed(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows of a batch. A column of text may hold bytes that are no UTF-8: then all text is taken as bytes."""
    try:
        return list(batch.to_pylist())
    except UnicodeDecodeError:
        columns = [_as_binary(column) for column in batch.columns]
        return list(pa.RecordBatch.from_arrays(columns, names=batch.schema.names).to_pylist())
    except KeyError as error:
        raise ValueError(f"a column of times names a time zone that is none: {error}") from error
    except OverflowError:
        return list(_numbered(batch).to_pylist())


def _numbered(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with the numbers of its times, in the file's units: some lie outside of the years 1 to 9999."""
    columns = [column.cast(_number(column.type)) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _number(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_number(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_number(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _number(kind.item_type))
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return pa.int32()
    return pa.int64() if pa.types.is_temporal(kind) else kind


def _plain(value: Any) -> Any:
    """A value of Arrow as JSON knows it."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return _pairs(value) if _is_map(value) else [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, bytes):
        return _of_bytes(value)
    if value is None or isinstance(value, (str, int, bool)):
        return value
    return value.isoformat() if isinstance(value, (datetime.date, datetime.time)) else str(value)


def _of_bytes(value: bytes) -> Any:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return {"bytes": len(value), "sha256": hashlib.sha256(value).hexdigest()}


def is_text(kind: pa.DataType) -> bool:
    """Whether a column's values are text, however it is laid out."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_map(value: Any) -> bool:
    """Arrow gives maps as lists of (key, value) tuples; nothing else comes as tuples."""
    return bool(value) and all(isinstance(item, tuple) and len(item) == 2 for item in value)


def _pairs(value: Any) -> dict[str, Any]:
    return {str(key): _plain(item) for key, item in value}
