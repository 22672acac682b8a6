"""Paragraphs and lines that kept documents have in common, or twice.

In: dedup/spans of all parts and the kept documents in rank order. Out: for each part the spans, paragraphs and lines,
that stand already in a better ranked document (*duplicate*) or earlier in the same one (*repeated*). It cuts nothing.

Of equal spans the first one stays: that of the best ranked document, its first there. So the result is a function of
the set of documents.

Memory: spans are matched by partition of their hashes, at most about SPANS_AT_ONCE of them at a time, 40 bytes each;
besides, 9 bytes for each span found.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tasks.dedup.documents import Documents
from tasks.step import Counts, Reads

SPANS_AT_ONCE = 1 << 22
REASONS = ("duplicate_paragraph", "duplicate_line", "repeated_paragraph", "repeated_line")
"""Two levels of two kinds; a span's reason is REASONS[2 * repeated + level]."""


class Found(NamedTuple):
    """What stands elsewhere too, of one part."""

    places: np.ndarray
    """int64, ascending: rows of the part's dedup/spans."""
    reasons: np.ndarray
    """int8: numbers of REASONS."""


def find_duplicates(reads: Reads, units: list[str], documents: Documents, keeps_N: np.ndarray) -> list[Found]:
    """Part by part. keeps_N: bool, which documents are kept."""
    ranks = [_ranks(documents, keeps_N, number) for number in range(len(units))]
    total = sum(reads.table("dedup/spans", ["row"], unit=unit).num_rows for unit in units)
    partitions = 1 + total // SPANS_AT_ONCE
    found: list[list[Found]] = [[] for _ in units]
    for partition in range(partitions):
        for number, one in enumerate(_of_partition(reads, units, ranks, partition, partitions)):
            found[number].append(one)
    return [_joined(parts) for parts in found]


def counts_of(spans: pa.Table, found: Found) -> Counts:
    """duplicate_paragraphs and its like: spans found; duplicate_paragraph_characters: their code points."""
    characters = spans.column("characters").to_numpy()[found.places]
    counts: Counts = {}
    for number, reason in enumerate(REASONS):
        mine = found.reasons == number
        counts[f"{reason}s"], counts[f"{reason}_characters"] = int(mine.sum()), int(characters[mine].sum())
    return counts


def _ranks(documents: Documents, keeps_N: np.ndarray, number: int) -> np.ndarray:
    """int64 by row of the part: the document's rank, -1 where none is kept."""
    mine = np.flatnonzero((documents.parts_N == number) & keeps_N)
    ranks = np.full(int(documents.rows_N[mine].max(initial=-1)) + 1, -1, np.int64)
    ranks[documents.rows_N[mine]] = mine
    return ranks


def _of_partition(
    reads: Reads, units: list[str], ranks: list[np.ndarray], partition: int, partitions: int
) -> list[Found]:
    columns = [
        _chosen(reads.table("dedup/spans", unit=unit), ranks[number], partition, partitions)
        for number, unit in enumerate(units)
    ]
    bounds = np.cumsum([0, *(len(places) for places, *_ in columns)])
    places, ranks_S, levels, starts, hashes = (np.concatenate(column) for column in zip(*columns, strict=True))
    order = np.lexsort((starts, ranks_S, levels, hashes))
    same = (hashes[order][1:] == hashes[order][:-1]) & (levels[order][1:] == levels[order][:-1])
    repeated = same & (ranks_S[order][1:] == ranks_S[order][:-1])
    reasons = np.full(len(order), -1, np.int8)
    reasons[order[1:][same]] = (2 * repeated + levels[order][1:])[same]
    pieces = [(places[a:b], reasons[a:b]) for a, b in pairwise(bounds.tolist())]
    return [Found(place[reason >= 0], reason[reason >= 0]) for place, reason in pieces]


def _chosen(spans: pa.Table, ranks: np.ndarray, partition: int, partitions: int) -> tuple[np.ndarray, ...]:
    """(place, rank, level, start, hash) of the spans of kept documents in the partition."""
    rows, hashes = spans.column("row").to_numpy(), spans.column("hash").to_numpy()
    inside = rows < len(ranks)
    inside[inside] = ranks[rows[inside]] >= 0
    places = np.flatnonzero(inside & (hashes % np.uint64(partitions) == partition))
    levels = spans.column("level").to_numpy()[places].astype(np.int64)
    return places, ranks[rows[places]], levels, spans.column("start").to_numpy()[places], hashes[places]


def _joined(parts: list[Found]) -> Found:
    places = np.concatenate([one.places for one in parts])
    order = np.argsort(places, kind="stable")
    return Found(places[order], np.concatenate([one.reasons for one in parts])[order])
