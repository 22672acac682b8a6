"""The documents that take part in deduplication, in the order of their rank.

In: every part's ids and digests, filter's verdicts and the sketches; no text. Out: numbers, document by document, in
mapped temporary files, and the keys of their bands, spilled. It compares nothing.

A document has a *number*, in the order in which parts and rows are read, and a *rank* (tasks.dedup.ranking), 0 the
best. Documents of equal text and kind have one *leader*, the best ranked of them, and only leaders are compared: what
becomes of a leader says what becomes of the others.

Memory: 22 bytes a document, mapped; on disk 450 more, 252 of them keys of 21 bands.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.dedup.places import Place, places_of, sketches_of
from tasks.dedup.ranking import Ranker, rank_keys
from tasks.dedup.scratch import Scratch, Spill, read_partition
from tasks.errors import ParamsError
from tasks.step import Reads
from tasks.text.bands import band_keys
from tasks.text.recurring import recurring

if TYPE_CHECKING:
    from tasks.dedup import DedupParams

AT_ONCE = 1 << 18
"""Records that a partition of a spill holds in the mean; sorting one takes about 60 bytes each."""
MOST = (1 << 31) - 1
KEYS = np.dtype([("key", "<u8"), ("number", "<i4")])
TEXTS = np.dtype([("sha", "<u8", 4), ("number", "<i4")])
COLUMNS = ["id", "text_sha", "source", "kind", "created"]


class Documents(NamedTuple):
    """N documents: by number (N) or, best first, by rank (R)."""

    places: list[Place]
    bounds_P1: np.ndarray
    """int64 [places + 1]: the numbers of a place's documents are bounds_P1[p] up to bounds_P1[p + 1]."""
    fixed: int
    """How many documents are of earlier releases: ranks below it, all of which stay."""
    rows_N: np.ndarray
    """int32: row in the part."""
    ranks_N: np.ndarray
    """int32: the document's rank."""
    sizes_N: np.ndarray
    """int32: different shingles."""
    order_R: np.ndarray
    """int32: the document's number."""
    kinds_R: np.ndarray
    """uint8: number of the kind among the sorted kinds of `threshold`."""
    leaders_R: np.ndarray
    """int32: rank of the best document of the same text and kind."""
    texts_R: np.ndarray
    """int32: rank of the best document of the same text."""
    keys: Path
    """Spill of KEYS: those of band b in partitions b * spread up to (b + 1) * spread."""
    spread: int

    def names(self, numbers: np.ndarray) -> pa.Array:
        """The part of each document, as survivor_part says it."""
        at = np.searchsorted(self.bounds_P1, numbers, side="right") - 1
        return pa.array([place.name for place in self.places], pa.string()).take(pa.array(at))

    def numbers(self, place: int) -> slice:
        """The numbers of a place's documents."""
        return slice(int(self.bounds_P1[place]), int(self.bounds_P1[place + 1]))


def rank_documents(reads: Reads, params: DedupParams, scratch: Scratch) -> Documents:
    """All documents that filter keeps, and those of earlier releases, ranked."""
    places = places_of(reads)
    sizes = [len(place.stands(reads)) for place in places]
    bounds_P1 = np.cumsum([0, *sizes])
    count, own = int(bounds_P1[-1]), sum(bool(place.release) for place in places)
    if count > MOST:
        raise ParamsError(f"dedup takes at most {MOST:,} documents, not {count:,}", "divide the corpus")
    arrays = [
        scratch.array(name, dtype, count)
        for name, dtype in (
            *((name, np.int32) for name in ("rows", "ranks", "sizes", "order")),
            ("kinds", np.uint8), ("leaders", np.int32), ("texts", np.int32), ("kinds_of_numbers", np.uint8),
        )
    ]  # fmt: skip
    spread = 1 + count // AT_ONCE
    keys = scratch.spill("keys", KEYS, params.bands * spread)
    texts, ranker = scratch.spill("shas", TEXTS, spread), Ranker(scratch.folder / "rank_keys")
    rows_N, ranks_N, sizes_N, order_R, kinds_R, leaders_R, texts_R, kinds_N = arrays
    of_ranks = (order_R, kinds_R, leaders_R, texts_R)
    found = Documents(places, bounds_P1, int(bounds_P1[own]), rows_N, ranks_N, sizes_N, *of_ranks, keys.path, spread)
    for number in range(len(places)):
        _read_part(reads, params, found, number, kinds_N, (keys, texts, ranker))
        scratch.relax()
    keys.close()
    _order(ranker, found, kinds_N)
    scratch.relax()
    _lead(texts.close(), found)
    return found


def _read_part(
    reads: Reads,
    params: DedupParams,
    documents: Documents,
    at: int,
    kinds_N: np.ndarray,
    spills: tuple[Spill, Spill, Ranker],
) -> None:
    """Note the part's documents by number; spill the keys of their bands, their texts' digests and their rank keys."""
    place, numbers = documents.places[at], documents.numbers(at)
    rows = place.stands(reads)
    table = _chosen(place.table(reads, "normalize/text", COLUMNS), rows)
    sketches = sketches_of(reads, place, params, ["characters", "words", "shingles", "signature"])
    signatures, sketches = sketches.column("signature"), _chosen(sketches.drop_columns("signature"), rows)
    shingles = sketches.column("shingles").to_numpy()
    documents.rows_N[numbers], documents.sizes_N[numbers] = rows, shingles
    kinds_N[numbers] = _places(table.column("kind"), sorted(params.threshold))
    priority = _places(table.column("source"), params.source_priority)
    ranked = np.stack([priority, *(sketches.column(name).to_numpy() for name in ("words", "characters"))])
    keys, texts, ranker = spills
    levels = np.full(len(rows), place.level)
    ranker.add(rank_keys(levels, ranked, table.column("created"), table.column("id"), numbers.start))
    counted = np.arange(numbers.start, numbers.stop, dtype=np.int32)
    _spill_texts(texts, table.column("text_sha"), counted)
    shingled = shingles > 0  # texts without shingles share nothing: all their signatures are equal
    _spill_keys(keys, (signatures, rows[shingled]), counted[shingled], params, documents.spread)


def _chosen(table: pa.Table, rows: np.ndarray) -> pa.Table:
    return table if len(rows) == table.num_rows else table.take(rows)


def _places(values: pa.ChunkedArray, among: list[str] | tuple[str, ...]) -> np.ndarray:
    """int64: the place of each value in `among`, len(among) where it is not there."""
    places = pc.index_in(values, value_set=pa.array(among, pa.string()))
    return np.asarray(pc.fill_null(places, len(among)).to_numpy(), np.int64)


def _spill_texts(texts: Spill, digests: pa.ChunkedArray, numbers: np.ndarray) -> None:
    records = np.empty(len(numbers), TEXTS)
    written = bytes.fromhex("".join(digests.to_pylist()))
    records["sha"], records["number"] = np.frombuffer(written, "<u8").reshape(-1, 4), numbers
    texts.add(_spread(records["sha"][:, 0], texts.partitions), records)


def _spill_keys(
    keys: Spill, of_rows: tuple[pa.ChunkedArray, np.ndarray], numbers: np.ndarray, params: DedupParams, spread: int
) -> None:
    """of_rows: the part's signatures, and the rows that `numbers` are of."""
    signatures, rows = of_rows
    first = 0
    for chunk in signatures.chunks:
        mine = slice(*np.searchsorted(rows, (first, first + len(chunk))))
        values_DP = chunk.flatten().to_numpy().reshape(-1, chunk.type.list_size)
        keys_DB = band_keys(values_DP, params.bands, params.rows, rows[mine] - first)
        for band in range(params.bands):
            records = np.empty(len(keys_DB), KEYS)
            records["key"], records["number"] = keys_DB[:, band], numbers[mine]
            keys.add(band * spread + _spread(records["key"], spread), records)
        first += len(chunk)


def _spread(hashes: np.ndarray, among: int) -> np.ndarray:
    """int64 below `among`, by the upper bits of a hash."""
    return ((hashes >> np.uint64(32)) * np.uint64(among) >> np.uint64(32)).astype(np.int64)


def _order(ranker: Ranker, documents: Documents, kinds_N: np.ndarray) -> None:
    first = 0
    for numbers in ranker.blocks():
        ranks = slice(first, first + len(numbers))
        documents.order_R[ranks] = numbers
        documents.kinds_R[ranks] = kinds_N[numbers]
        documents.ranks_N[numbers] = np.arange(ranks.start, ranks.stop, dtype=np.int32)
        first = ranks.stop


def _lead(texts: Path, documents: Documents) -> None:
    """Fill in leaders_R and texts_R."""
    count = len(documents.order_R)
    for start in range(0, count, AT_ONCE):
        block = slice(start, min(count, start + AT_ONCE))
        documents.texts_R[block] = documents.leaders_R[block] = np.arange(block.start, block.stop, dtype=np.int32)
    for ranks, firsts in _equal_texts(texts, documents):
        documents.texts_R[ranks] = ranks[firsts]
        kinds = documents.kinds_R[ranks]
        order = np.lexsort((ranks, kinds, firsts))
        begins = np.ones(len(order), np.bool_)
        begins[1:] = (firsts[order][1:] != firsts[order][:-1]) | (kinds[order][1:] != kinds[order][:-1])
        heads = np.flatnonzero(begins)[np.cumsum(begins) - 1]
        documents.leaders_R[ranks[order]] = ranks[order][heads]


def _equal_texts(texts: Path, documents: Documents) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(ranks, for each the place of the best rank of its text) of all documents whose text may stand twice, partition
    by partition."""
    for partition in range(documents.spread):
        records = read_partition(texts, TEXTS, partition)
        records = records[recurring(records["sha"][:, 0])]
        ranks = documents.ranks_N[records["number"]]
        order = np.lexsort((ranks, *records["sha"].T))
        ranks, digests = ranks[order], records["sha"][order]
        begins = np.ones(len(ranks), np.bool_)
        begins[1:] = (digests[1:] != digests[:-1]).any(axis=1)
        yield ranks, np.flatnonzero(begins)[np.cumsum(begins) - 1]
