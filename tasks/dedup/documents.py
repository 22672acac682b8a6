"""The documents that take part in deduplication, in the order of their rank.

In: every part's ids and digests, filter's verdicts and the sketches; no text. Out: numbers, document by
document. It compares nothing.

*Rank*, best first: the source's place in `source_priority` (sources not named come last, as equals), more
words, more characters, earlier `created` (none comes last), lower id, and between equal records of one source
the earlier in the corpus. Everything but that last tie is a property of the document, so that the kept set
does not depend on where a document lies.

With 21 bands it needs about 600 bytes a document at its peak, besides the signatures of one part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.artifacts.verdicts import DROP
from tasks.step import Reads
from tasks.text.bands import band_keys, buckets

if TYPE_CHECKING:
    from tasks.dedup import DedupParams

COLUMNS = ["id", "text_sha", "source", "kind", "created"]


class Documents(NamedTuple):
    """N documents, best rank first, of U different texts."""

    parts_N: np.ndarray
    """int64: number of the part, in manifest order."""
    rows_N: np.ndarray
    """int64: row in the part."""
    texts_N: np.ndarray
    """int64: number of the text, 0 to U - 1; equal texts, equal numbers."""
    kinds_N: np.ndarray
    """int64: number of the kind among the sorted kinds of `threshold`."""
    leaders_U: np.ndarray
    """int64: the best ranked document of each text."""
    buckets_UB: np.ndarray
    """int64: bucket of each text and band, ALONE where no other text shares it."""
    sizes_K: np.ndarray
    """int64: texts in each bucket."""


class _Part(NamedTuple):
    """The documents of one part that take part."""

    strings: pa.Table  # id, text_sha, created
    numbers_7N: np.ndarray  # part, row, kind, priority, -words, -characters and whether it has shingles
    keys_NB: np.ndarray


def rank_documents(reads: Reads, params: DedupParams) -> Documents:
    """All documents that filter keeps, ranked, with the buckets of their signatures."""
    parts = [_read_part(reads, params, number, unit) for number, unit in enumerate(reads.units("normalize/text"))]
    if not parts:
        return _none(params.bands)
    numbers = np.concatenate([part.numbers_7N for part in parts], axis=1)
    order_N, texts = _order(pa.concat_tables([part.strings for part in parts]), numbers)
    part_N, row_N, kind_N, *_, shingled_N = numbers[:, order_N]
    texts_N = texts[order_N]
    _, leaders_U = np.unique(texts_N, return_index=True)
    keys_UB = _keys_of([part.keys_NB for part in parts], order_N[leaders_U])
    del parts
    buckets_UB, sizes_K = buckets(keys_UB, shingled_N[leaders_U] > 0)
    return Documents(part_N, row_N, texts_N, kind_N, leaders_U, buckets_UB, sizes_K)


def _keys_of(parts: list[np.ndarray], chosen_U: np.ndarray) -> np.ndarray:
    """uint64 [U, bands]: the keys of the chosen documents, numbered through the parts."""
    keys_UB = np.empty((len(chosen_U), parts[0].shape[1]), np.uint64)
    order = np.argsort(chosen_U)
    bounds = np.cumsum([0, *(len(keys) for keys in parts)])
    places = np.searchsorted(chosen_U[order], bounds)
    for number, keys in enumerate(parts):
        mine = order[places[number] : places[number + 1]]
        keys_UB[mine] = keys[chosen_U[mine] - bounds[number]]
    return keys_UB


def _none(bands: int) -> Documents:
    nothing = np.zeros(0, np.int64)
    return Documents(nothing, nothing, nothing, nothing, nothing, np.zeros((0, bands), np.int64), nothing)


def _read_part(reads: Reads, params: DedupParams, number: int, unit: str) -> _Part:
    verdicts = reads.table("filter/verdicts", ["verdict"], unit=unit).column("verdict")
    rows_N = np.flatnonzero(pc.not_equal(verdicts, DROP).to_numpy())
    documents = reads.table("normalize/text", COLUMNS, unit=unit).take(rows_N)
    columns = ["characters", "words", "shingles", "signature"]
    sketches = reads.table("dedup/sketches", columns, unit=unit).take(rows_N)
    numbers = [
        np.full(len(rows_N), number),
        rows_N,
        _places(documents.column("kind"), sorted(params.threshold)),
        _places(documents.column("source"), params.source_priority),
        -sketches.column("words").to_numpy(),
        -sketches.column("characters").to_numpy(),
        sketches.column("shingles").to_numpy(),
    ]
    signatures = sketches.column("signature")
    values_DP = signatures.combine_chunks().flatten().to_numpy().reshape(-1, signatures.type.list_size)
    keys_NB = band_keys(values_DP, params.bands, params.rows)
    return _Part(documents.select(["id", "text_sha", "created"]), np.stack(numbers).astype(np.int64), keys_NB)


def _places(values: pa.ChunkedArray, among: list[str] | tuple[str, ...]) -> np.ndarray:
    """int64: the place of each value in `among`, len(among) where it is not there."""
    places = pc.index_in(values, value_set=pa.array(among, pa.string()))
    return np.asarray(pc.fill_null(places, len(among)).to_numpy(), np.int64)


def _order(strings: pa.Table, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(the documents' order by rank, the number of each document's text in the order they were read)."""
    ids, texts, created = (_dense_ranks(strings.column(name)) for name in ("id", "text_sha", "created"))
    part, row, _, priority, fewer_words, fewer_characters, _ = numbers
    order = np.lexsort((row, part, ids, created, fewer_characters, fewer_words, priority))
    return order, texts


def _dense_ranks(values: pa.ChunkedArray) -> np.ndarray:
    """int64 from 0: equal values get equal numbers, lower ones lower numbers, nulls the highest."""
    ranks = pc.rank(values, sort_keys="ascending", tiebreaker="dense")
    return np.asarray(ranks.to_numpy(), np.int64) - 1
