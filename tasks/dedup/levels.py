"""Paragraphs and lines that kept documents have in common, or twice.

In: dedup/spans of all parts and the kept documents in rank order. Out: for each part the spans, paragraphs and lines,
that stand already in a better ranked document (*duplicate*) or earlier in the same one (*repeated*). It cuts nothing,
and knows nothing of the spans of earlier releases.

Of equal spans the first one stays: that of the best ranked document, its first there. So the result is a function of
the set of documents.

Memory: spans that may stand twice are spilled by partition of their hashes, at most about SPANS_AT_ONCE in one, and
what is found by part; a table of bits that knows the others (tasks.text.recurring) takes 32 MB at most.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tasks.dedup.documents import Documents
from tasks.dedup.greedy import STAYS
from tasks.dedup.scratch import Scratch, read_partition
from tasks.step import Counts, Reads
from tasks.text.recurring import Recurring

SPANS_AT_ONCE = 1 << 20
REASONS = ("duplicate_paragraph", "duplicate_line", "repeated_paragraph", "repeated_line")
"""Two levels of two kinds; a span's reason is REASONS[2 * repeated + level]."""
SPAN = np.dtype([("hash", "<u8"), ("start", "<i8"), ("rank", "<i4"), ("at", "<i4"), ("row", "<i8"), ("level", "i1")])
FOUND = np.dtype([("row", "<i8"), ("reason", "i1")])


class Found(NamedTuple):
    """What stands elsewhere too, of one part."""

    places: np.ndarray
    """int64, ascending: rows of the part's dedup/spans."""
    reasons: np.ndarray
    """int8: numbers of REASONS."""


def find_duplicates(
    reads: Reads, documents: Documents, survivors_R: np.ndarray, scratch: Scratch
) -> Callable[[int], Found]:
    """What was found, place by place of `documents`."""
    own = [at for at, place in enumerate(documents.places) if not place.release]
    total = sum(reads.table("dedup/spans", [], unit=documents.places[at].unit).num_rows for at in own)
    partitions, twice = 1 + total // SPANS_AT_ONCE, Recurring(total)
    for at in own:
        table = reads.table("dedup/spans", ["row", "level", "hash"], unit=documents.places[at].unit)
        twice.note(_keys(table)[_ranks(table, documents, survivors_R, at) >= 0])
        scratch.relax()
    spans = scratch.spill("spans", SPAN, partitions)
    for at in own:
        table = reads.table("dedup/spans", ["row", "level", "start", "hash"], unit=documents.places[at].unit)
        records = _records(table, _ranks(table, documents, survivors_R, at), twice.ask(_keys(table)), at)
        spans.add((records["hash"] % np.uint64(partitions)).astype(np.int64), records)
        scratch.relax()
    spans.close()
    found = scratch.spill("found", FOUND, len(documents.places))
    for partition in range(partitions):
        found.add(*_twice(read_partition(spans.path, SPAN, partition)))
    path = found.close()
    return lambda at: _of_part(path, at)


def _of_part(path: Path, at: int) -> Found:
    records = np.sort(read_partition(path, FOUND, at), order="row")
    return Found(records["row"], records["reason"])


def counts_of(spans: pa.Table, found: Found) -> Counts:
    """duplicate_paragraphs and its like: spans found; duplicate_paragraph_characters: their code points."""
    characters = spans.column("characters").to_numpy()[found.places]
    counts: Counts = {}
    for number, reason in enumerate(REASONS):
        mine = found.reasons == number
        counts[f"{reason}s"], counts[f"{reason}_characters"] = int(mine.sum()), int(characters[mine].sum())
    return counts


def _ranks(spans: pa.Table, documents: Documents, survivors_R: np.ndarray, at: int) -> np.ndarray:
    """int32: for each span of the part the rank of its document, -1 where that does not stay."""
    ranks, rows = documents.ranks_N[documents.numbers(at)], documents.rows_N[documents.numbers(at)]
    keeps = survivors_R[ranks] == STAYS
    of_row = np.full(int(rows.max(initial=-1)) + 2, -1, np.int32)
    of_row[rows[keeps]] = ranks[keeps]
    return np.asarray(of_row[np.minimum(spans.column("row").to_numpy(), len(of_row) - 1)])


def _keys(spans: pa.Table) -> np.ndarray:
    """uint64: equal where hash and level are: a paragraph of one line is no second one."""
    return np.asarray(spans.column("hash").to_numpy() + spans.column("level").to_numpy().astype(np.uint64))


def _records(spans: pa.Table, ranks: np.ndarray, recur: np.ndarray, at: int) -> np.ndarray:
    """SPAN records of the part's kept documents that may stand twice; `row` is the span's row in the part's table."""
    chosen = np.flatnonzero(recur & (ranks >= 0))
    records = np.empty(len(chosen), SPAN)
    records["rank"], records["row"], records["at"] = ranks[chosen], chosen, at
    for name in ("hash", "start", "level"):
        records[name] = spans.column(name).to_numpy()[chosen]
    return records


def _twice(spans: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(part, FOUND) of the spans that are not the first of their text."""
    order, keys = _in_order(spans)
    same = keys[1:] >> 32 == keys[:-1] >> 32
    repeated = keys[1:] == keys[:-1]
    found = spans[order[1:][same]]
    records = np.empty(len(found), FOUND)
    records["row"], records["reason"] = found["row"], 2 * repeated[same] + found["level"]
    return found["at"], records


def _in_order(spans: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(places of the spans by hash, level, rank and start, int64; a key of each, int64: its hash's number, level and
    rank, which has the lower half). One key sorts several times as fast as four."""
    order, alike = _sorted(spans["hash"])
    numbers = np.empty(len(spans), np.int64)
    numbers[order] = np.cumsum(~alike)
    keys = numbers << 33 | spans["level"].astype(np.int64) << 32 | spans["rank"]
    order, alike = _sorted(keys)
    keys = keys[order]
    tied = np.flatnonzero(alike | np.append(alike[1:], np.zeros(min(1, len(alike)), np.bool_)))
    order[tied] = order[tied][np.lexsort((spans["start"][order[tied]], keys[tied]))]
    return order, keys


def _sorted(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(int64: places in ascending order; whether each value equals the one before it)."""
    values = np.ascontiguousarray(values)
    order = np.argsort(values)
    alike = np.zeros(len(order), np.bool_)
    alike[1:] = values[order[1:]] == values[order[:-1]]
    return order, alike
