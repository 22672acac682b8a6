"""Row groups of a Parquet file as units of work: what they are named by, and their rows without lines of JSON between.

In: an open Parquet file. Out: a row of a scan for each group. A group is named by its bytes as they stand in the file,
with the schema and what its columns are packed with: a file that is written again with a group more keeps the names of
the others. A file with a group above the limit of a part has none; it is read as lines.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tasks.artifacts.canonical import canonical
from tasks.ingest.page_sizes import check_pages
from tasks.ingest.scans import ROW, write_scan
from tasks.ingest.streams import BLOCK


def has_groups(file: pa.NativeFile, most: int) -> bool:
    """Whether the file's groups hold at most `most` bytes each, as their columns unpack; a damaged file has none."""
    try:
        check_pages(file)
        file.seek(0)
        about = pq.read_metadata(file)
    except (pa.ArrowException, OSError, ValueError):
        return False
    groups = [about.row_group(group).total_byte_size for group in range(about.num_row_groups)]
    return bool(groups) and max(groups) <= most


def scan_groups(file: Path, source: str, found: Path) -> None:
    """Write the scan of a file: `offset` is a group's number, `size` its bytes unpacked, `number` its first row."""
    with pa.OSFile(str(file)) as data, pq.ParquetFile(data) as parquet:
        schema = parquet.schema_arrow.to_string(show_field_metadata=False, show_schema_metadata=False)
        counts = [parquet.metadata.row_group(group).num_rows for group in range(parquet.num_row_groups)]
        rows = np.zeros(len(counts), ROW)
        rows["number"] = np.cumsum([0, *counts[:-1]])
        for group in range(len(counts)):
            about = parquet.metadata.row_group(group)
            digest = _digest(data, schema, about, source)
            rows[group] = (group, about.total_byte_size, rows[group]["number"], np.frombuffer(digest, np.uint8))
    write_scan(found, [rows], lambda: sum(counts))


def _digest(data: pa.NativeFile, schema: str, group: Any, source: str) -> bytes:
    columns = [group.column(column) for column in range(group.num_columns)]
    packed = [[c.path_in_schema, c.physical_type, c.compression, list(c.encodings), c.num_values] for c in columns]
    whole = hashlib.sha256(source.encode() + b"\0" + canonical([schema, group.num_rows, packed]))
    for column in columns:
        first = column.data_page_offset
        if column.has_dictionary_page and 0 < column.dictionary_page_offset < first:
            first = column.dictionary_page_offset
        data.seek(first)
        left = column.total_compressed_size
        while left > 0 and (block := data.read(min(BLOCK, left))):
            whole.update(block)
            left -= len(block)
        if left:
            raise OSError(f"column {column.path_in_schema} ends {left} bytes behind the end of the file")
    return whole.digest()
