"""ingest/places: where each document of a part came from.

Out: <part>.parquet, row-aligned with ingest/documents: file (path in its source), record (its line or row,
from 0), offset (its first byte after decompression; -1 in Parquet, whose rows have none) and bytes (its
length; of a Parquet row that of its canonical JSON). The key holds paths, offsets and numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasks.artifacts.documents import PLACES as SCHEMA
from tasks.ingest.reading import read_around
from tasks.step import Made, Reads

if TYPE_CHECKING:
    from tasks.ingest import IngestParams

__all__ = ["SCHEMA", "make"]


def make(reads: Reads, params: IngestParams) -> Made:
    """Read a part's places. It counts nothing: documents does."""
    places, _ = read_around(reads, params.record_bytes_max)
    return Made({".parquet": places})
