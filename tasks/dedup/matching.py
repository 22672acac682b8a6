"""Which documents share a band: the LSH join, partition by partition on disk.

In: ranked documents and the spilled keys of their bands. Out: for each leader its *buckets* (a bucket: the leaders that
agree in one band), spilled by blocks of rank, and the sizes of all buckets. It compares no texts.

Each partition is one piece of work that needs nothing but files, so that partitions run on the workers. Leaders of
equal texts but of different kinds share a bucket of their own, which never fills.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tasks.dedup.documents import AT_ONCE, KEYS, Documents
from tasks.dedup.scratch import Scratch, each, mapped, read_partitions
from tasks.step import Reads
from tasks.text.bands import shared_keys
from tasks.text.recurring import recurring

BLOCK = 1 << 17
"""Documents that are decided at once."""
ENTRY = np.dtype([("rank", "<i4"), ("bucket", "<i8")])


class Buckets(NamedTuple):
    """What leaders share."""

    entries: Path
    """Spill of ENTRY by rank // BLOCK: the buckets of leaders, those of one leader in the order of the bands."""
    firsts_K1: np.ndarray
    """int64 [K + 1]: where the survivors of each bucket have their places; a bucket has at most survivors_max."""
    candidates_R: np.ndarray
    """uint8: 1 where the document shares a band, and so may be compared."""


def match_documents(reads: Reads, documents: Documents, bands: int, survivors_max: int, scratch: Scratch) -> Buckets:
    """The buckets of all leaders."""
    count = len(documents.order_R)
    candidates_R = scratch.array("candidates", np.uint8, count)
    entries = scratch.spill("entries", ENTRY, 1 + count // BLOCK)
    firsts, first, room = scratch.folder / "firsts", 0, 0
    np.zeros(1, np.int64).tofile(firsts)
    for by_text, (ranks, buckets, sizes) in _all_buckets(reads, documents, bands, scratch):
        records = np.empty(len(ranks), ENTRY)
        records["rank"], records["bucket"] = ranks, buckets + first
        entries.add(ranks // BLOCK, records)
        candidates_R[ranks] |= not by_text
        ends = room + np.cumsum(sizes if by_text else np.minimum(sizes, survivors_max))
        with firsts.open("ab") as file:
            ends.astype(np.int64).tofile(file)
        first, room = first + len(sizes), int(ends[-1]) if len(ends) else room
        scratch.relax()
    return Buckets(entries.close(), mapped(firsts, np.int64), candidates_R)


def _all_buckets(
    reads: Reads, documents: Documents, bands: int, scratch: Scratch
) -> Iterator[tuple[bool, tuple[np.ndarray, np.ndarray, np.ndarray]]]:
    """(by text, (ranks, buckets from 0, sizes)): first of equal texts of several kinds, then of each partition."""
    yield True, _of_texts(documents)
    partitions = bands * documents.spread
    together = max(1, AT_ONCE // max(1, len(documents.order_R)))
    firsts = range(0, partitions, together)
    wanted = [(None, (str(scratch.folder), first, min(partitions, first + together))) for first in firsts]
    for made in each(reads, scratch, match_partitions, wanted):
        place = scratch.folder / made
        entries, sizes = (mapped(place.with_suffix(suffix), np.int32) for suffix in (".entries", ".rooms"))
        yield False, (*entries.reshape(2, -1).astype(np.int64), sizes.astype(np.int64))
        for suffix in (".entries", ".rooms"):
            place.with_suffix(suffix).unlink()


def _of_texts(documents: Documents) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Leaders whose text another leader has, too."""
    ranks = [np.zeros(0, np.int64)]
    for start in range(0, len(documents.order_R), BLOCK):
        block = slice(start, start + BLOCK)
        leaders, texts = documents.leaders_R[block], documents.texts_R[block]
        others = np.flatnonzero((leaders == np.arange(start, start + len(leaders))) & (leaders != texts))
        ranks.append(start + others)
    others = np.concatenate(ranks)
    texts, buckets, sizes = np.unique(documents.texts_R[others], return_inverse=True, return_counts=True)
    return np.concatenate([texts, others]), np.concatenate([np.arange(len(texts)), buckets]), sizes + 1


def match_partitions(_reads: Any, item: tuple[str, int, int]) -> str:
    """Match some partitions of the keys in the folder, and leave their entries and sizes there under a name: it."""
    folder, (first, stop) = Path(item[0]), item[1:]
    ranks_N, leaders_R = mapped(folder / "ranks", np.int32), mapped(folder / "leaders", np.int32)
    matched, buckets = [(np.zeros((2, 0), np.int64), np.zeros(0, np.int64))], 0
    for records in read_partitions(folder / "keys", KEYS, range(first, stop)):
        records = records[recurring(records["key"])]
        ranks = ranks_N[records["number"]]
        leads = leaders_R[ranks] == ranks
        entries_2E, sizes = shared_keys(records["key"][leads], ranks[leads])
        entries_2E[1] += buckets
        buckets += len(sizes)
        matched.append((entries_2E, sizes))
    name = f"matched-{first}"
    np.concatenate([entries for entries, _ in matched], axis=1).astype(np.int32).tofile(folder / f"{name}.entries")
    np.concatenate([sizes for _, sizes in matched]).astype(np.int32).tofile(folder / f"{name}.rooms")
    return name
