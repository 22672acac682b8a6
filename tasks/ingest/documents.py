"""ingest/documents: the documents of a part.

In: the part's units as the plan names them. Out: <part>.parquet, tasks.artifacts.documents.DOCUMENTS. The key
holds the source's name, its kind and the digests of the units, neither paths nor offsets: a file that was
moved, or a record that was put in before, costs no document anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.compute as pc

from tasks.artifacts.documents import DOCUMENTS as SCHEMA
from tasks.ingest.reading import limits_of, read_documents
from tasks.step import Made, Reads
from tasks.text.byte_counts import character_counts

if TYPE_CHECKING:
    from tasks.ingest import IngestParams

__all__ = ["SCHEMA", "make"]


def make(reads: Reads, params: IngestParams) -> Made:
    """Read a part.

    Counts: records_in, documents_out, characters_out, bytes_out; documents|shape=..., how their text was found;
    records_cut and pieces, the rows that they became; skipped and skipped|reason=..., records of web archives that were
    never meant to be documents.
    """
    table, counted = read_documents(reads, limits_of(params))
    counts = {
        "records_in": 0,
        "records_cut": 0,
        "pieces": 0,
        "skipped": 0,
        "documents_out": table.num_rows,
        "characters_out": pc.sum(character_counts(table["text"])).as_py() or 0,
        "bytes_out": pc.sum(pc.binary_length(table["text"])).as_py() or 0,
    }
    return Made({".parquet": table}, counts | dict(sorted(counted.items())))
