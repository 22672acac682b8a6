"""ingest/documents: the documents of a part.

In: the part's units as the plan names them. Out: <part>.parquet, tasks.artifacts.documents.DOCUMENTS. The key
holds the source's name, its kind and the digests of the units, neither paths nor offsets: a file that was
moved, or a record that was put in before, costs no document anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.compute as pc

from tasks.artifacts.documents import DOCUMENTS as SCHEMA
from tasks.ingest.reading import read_documents
from tasks.step import Made, Reads

if TYPE_CHECKING:
    from tasks.ingest import IngestParams

__all__ = ["SCHEMA", "make"]


def make(reads: Reads, params: IngestParams) -> Made:
    """Read a part. Counts: records_in, documents_out, characters_out, bytes_out."""
    table, records = read_documents(reads, params.record_bytes_max)
    counts = {
        "records_in": records,
        "documents_out": table.num_rows,
        "characters_out": pc.sum(pc.utf8_length(table["text"])).as_py() or 0,
        "bytes_out": pc.sum(pc.binary_length(table["text"])).as_py() or 0,
    }
    return Made({".parquet": table}, counts)
