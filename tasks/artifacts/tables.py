"""One writer and one reader for every Parquet file of the house: same table, same bytes.

Row groups are cut at fixed rows and at fixed bytes of text, so that neither the number of workers nor the way a table
was put together shows in the file. Packed with lz4: a text is written twice and read four times on the way from a
source to the verdicts of filter, and then again by each later step. Without dictionaries: of texts, counts and digests
none comes twice, and to find that out took a third of writing them. A column of a row group is one page, so that its
reader makes room for the values once; docs/decisions.md has the figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

ROWS_PER_GROUP = 10_000
BYTES_PER_GROUP = 32 << 20
PAGE_BYTES = (1 << 31) - 1
"""Of a column's page, before it is packed: as many as it may have, so that a column of a row group is one page. Pages
end at borders of chunks, so that with others the way a table was put together would show.
"""
MADE = b"made"
"""Metadata of a table that say how its values were made, for those that mean nothing without."""
SETTINGS: Mapping[str, Any] = {
    "compression": "lz4",
    "use_dictionary": False,
    "store_schema": True,
    "write_batch_size": ROWS_PER_GROUP,
    "data_page_size": PAGE_BYTES,
}


def write_payload(path: Path, payload: pa.Table | np.ndarray[Any, Any] | bytes, schema: pa.Schema | None) -> None:
    """Write what a folder's function made: a Table as Parquet (with `schema`, else its own), an array as .npy where the
    path says so and flat in its own byte order elsewhere, bytes as they are.

    What the table's own metadata says under MADE stands in the file too.
    """
    if isinstance(payload, pa.Table):
        said = {key: text for key, text in (payload.schema.metadata or {}).items() if key == MADE}
        write_table(path, payload, payload.schema if schema is None else schema.with_metadata(said or None))
    elif isinstance(payload, np.ndarray) and path.suffix == ".npy":
        np.save(path, payload, allow_pickle=False)
    else:
        path.write_bytes(np.ascontiguousarray(payload).data if isinstance(payload, np.ndarray) else payload)


def write_table(path: Path, table: pa.Table, schema: pa.Schema) -> None:
    """Write `table` as Parquet with exactly `schema`; raises ArrowInvalid where a column does not fit it."""
    table = table.select(schema.names).cast(schema)
    with pq.ParquetWriter(path, schema, **SETTINGS) as writer:
        for start, stop in _row_groups(table):
            writer.write_table(table.slice(start, stop - start), row_group_size=max(1, stop - start))


def read_table(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Read the named columns (all of them by default), in that order, of a file that write_table wrote.

    Raises KeyError for a column that is not there. In this thread alone: pyarrow's read_table goes by way of a data set
    and a pool of threads, which costs a tenth more of a text, and half a millisecond more of anything. Mapped: what is
    packed is copied nowhere before it is unpacked, another tenth.
    """
    with pq.ParquetFile(path, memory_map=True) as file:
        if columns is None:
            return file.read(use_threads=False)
        return file.read(list(columns), use_threads=False).select(list(columns))


def _row_groups(table: pa.Table) -> list[tuple[int, int]]:
    """[start, stop) of each row group: at most ROWS_PER_GROUP rows and about BYTES_PER_GROUP bytes of text."""
    rows = table.num_rows
    per_row = _text_bytes(table) // max(1, rows) + 1
    step = max(1, min(ROWS_PER_GROUP, BYTES_PER_GROUP // per_row))
    return [(start, min(rows, start + step)) for start in range(0, rows, step)]


def _text_bytes(table: pa.Table) -> int:
    """Bytes of the strings, counted by their values: a table's buffers may differ by how it was put together."""
    strings = (pa.string(), pa.large_string())
    texts = (column for column in table.columns if column.type in strings)
    return sum(pc.sum(pc.binary_length(column)).as_py() or 0 for column in texts)
