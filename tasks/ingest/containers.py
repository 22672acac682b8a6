"""Opening a file of a source: from its bytes on disk to the stream of bytes that holds its records.

In: a file (or its bytes) and its format. Out: blocks of bytes of the text or of JSON lines; a Parquet row
becomes one line of canonical JSON. What is damaged (truncated, bad checksum, bytes after the end) raises
SourceError with the file's name and is never passed on as a short file. It cuts no records and parses none.

Compressed streams are read by pyarrow: it goes on over all gzip members and zstd frames and raises on
truncation, where the standard library and zstandard each miss one of both (measured).
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tasks.errors import SourceError

BLOCK = 1 << 20
BATCH_BYTES = 8 << 20
CODECS = {"jsonl.gz": "gzip", "jsonl.zst": "zstd"}


def blocks(file: pa.NativeFile, form: str, named: str) -> Iterator[bytes]:
    """The bytes that hold the records of `file`, in blocks of about a MiB; form: a format of tasks.sources.

    Raises SourceError naming `named` where the file is damaged.
    """
    try:
        if form == "parquet":
            yield from _rows(file)
        elif form in CODECS:
            yield from _decompressed(file, CODECS[form], named)
        else:
            yield from _read(file)
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).split("\n")[0]
        raise SourceError(f"{named} is damaged: {reason}", "fetch it again, or take it out of its source") from error


def file_blocks(path: Path, start: int, stop: int) -> Iterator[bytes]:
    """The bytes [start, stop) of a plain file."""
    with path.open("rb") as file:
        file.seek(start)
        left = stop - start
        while left > 0 and (block := file.read(min(BLOCK, left))):
            left -= len(block)
            yield block


def _read(stream: pa.NativeFile) -> Iterator[bytes]:
    while block := stream.read(BLOCK):
        yield block


def _decompressed(file: pa.NativeFile, codec: str, named: str) -> Iterator[bytes]:
    if file.size() == 0:
        raise SourceError(f"{named} is damaged: 0 bytes are no {codec} stream", "fetch it again, or delete it")
    with pa.CompressedInputStream(file, codec) as stream:
        yield from _read(stream)


def _rows(file: pa.NativeFile) -> Iterator[bytes]:
    """Rows as lines of canonical JSON, a batch a block.

    Batches are cut by the mean bytes of a row of the file, so that a row group of gigabytes is not held at
        once: a group of 328 MB in rows of 8 KiB took 115 MB, as did 50,000 groups of a row.
    """
    with pq.ParquetFile(file, pre_buffer=False, buffer_size=BLOCK) as parquet:
        groups = [parquet.metadata.row_group(group) for group in range(parquet.num_row_groups)]
        weight = sum(group.total_byte_size for group in groups) // max(1, parquet.metadata.num_rows)
        rows = max(1, min(4096, BATCH_BYTES // max(1, weight)))
        for batch in parquet.iter_batches(batch_size=rows, use_threads=False):
            yield b"".join(_line(row) for row in _listed(batch))


def _listed(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows of a batch. A column of text may hold bytes that are no UTF-8: then all text is taken as
    bytes.
    """
    try:
        return list(batch.to_pylist())
    except UnicodeDecodeError:
        columns = [
            column.cast(pa.large_binary()) if pa.types.is_string(column.type) else column for column in batch.columns
        ]
        return list(pa.RecordBatch.from_arrays(columns, names=batch.schema.names).to_pylist())


def _line(row: dict[str, Any]) -> bytes:
    """A row as canonical JSON and a newline. Bytes that are not UTF-8 stay as they are, so that the record is
    rejected
    for its encoding like any other."""
    text = json.dumps(_plain(row), ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True)
    return text.encode("utf-8", "surrogateescape") + b"\n"


def _plain(value: Any) -> Any:
    """A Parquet value as JSON knows it: NaN and infinities are null, times ISO 8601, decimals text."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, bytes):  # bytes that are no UTF-8 come out of _line as they went in
        return value.decode("utf-8", "surrogateescape")
    if value is None or isinstance(value, (str, int, bool)):
        return value
    return value.isoformat() if isinstance(value, (datetime.date, datetime.time)) else str(value)
