"""ingest/places: where each document of a part came from.

Out: <part>.parquet, row-aligned with ingest/documents: file (path in its source), record (its line or row,
from 0), offset (its first byte after decompression; -1 where records do not stand in the file byte by byte: rows of
Parquet, Arrow and CSV, items of JSON arrays, web archives), bytes (its length; of those, that of its canonical JSON)
and piece (which piece of an over-long record, from 0). The key holds paths, offsets and numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasks.artifacts.documents import PLACES as SCHEMA
from tasks.ingest.reading import limits_of, read_around
from tasks.step import Made, Reads

if TYPE_CHECKING:
    from tasks.ingest import IngestParams

__all__ = ["SCHEMA", "make"]


def make(reads: Reads, params: IngestParams) -> Made:
    """Read a part's places. It counts nothing: documents does."""
    places, _ = read_around(reads, limits_of(params))
    return Made({".parquet": places})
