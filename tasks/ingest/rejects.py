"""ingest/rejects: the records of a part that are no documents, where they stand and why.

Out: <part>.parquet, tasks.artifacts.documents.REJECTS, in the order of the records. The reasons are those of
tasks.ingest.fields.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tasks.artifacts.documents import REJECTS as SCHEMA
from tasks.ingest.reading import limits_of, read_around
from tasks.step import Made, Reads

if TYPE_CHECKING:
    from tasks.ingest import IngestParams

__all__ = ["SCHEMA", "make"]


def make(reads: Reads, params: IngestParams) -> Made:
    """Read a part's rejects. Counts: rejected, rejected|reason=<reason>."""
    _, rejects = read_around(reads, limits_of(params))
    reasons = Counter(rejects["reason"].to_pylist())
    counts = {"rejected": rejects.num_rows} | {f"rejected|reason={name}": n for name, n in sorted(reasons.items())}
    return Made({".parquet": rejects}, counts)
