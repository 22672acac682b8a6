"""The documents that take part in deduplication, in the order of their rank.

In: every part's ids and digests, filter's verdicts and the sketches; no text. Out: numbers, document by
document. It compares nothing.

*Rank*, best first: the source's place in `source_priority` (sources not named come last, as equals), more
words, more characters, earlier `created` (none comes last), lower id, and between equal records of one source
the earlier in the corpus. Everything but that last tie is a property of the document, so that the kept set
does not depend on where a document lies.

The keys of the bands, 168 bytes a document with 21 of them, and the buckets found are spilled to temporary files and
matched band by band. Memory at the peak: 100 to 500 bytes a document measured at 500,000, most of it ids and digests as
Arrow holds them, besides one part.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from typing import IO, TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.artifacts.verdicts import DROP
from tasks.step import Reads
from tasks.text.bands import band_keys, buckets_of_band

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
    offsets_U1: np.ndarray
    """int64 [U + 1]: where each text's buckets begin in buckets_E."""
    buckets_E: np.ndarray
    """int32 (int64 from 16 million texts on): the buckets that a text shares with another, text after text, in the
    order of the bands."""
    sizes_K: np.ndarray
    """int64: texts in each bucket."""


class _Part(NamedTuple):
    """The documents of one part that take part."""

    strings: pa.Table  # id, text_sha, created
    numbers_7N: np.ndarray  # part, row, kind, priority, -words, -characters and whether it has shingles


def rank_documents(reads: Reads, params: DedupParams) -> Documents:
    """All documents that filter keeps, ranked, with the buckets of their signatures."""
    with tempfile.TemporaryFile() as keys:
        parts = [
            _read_part(reads, params, number, unit, keys) for number, unit in enumerate(reads.units("normalize/text"))
        ]
        if not parts:
            return _none()
        numbers = np.concatenate([part.numbers_7N for part in parts], axis=1)
        order_N, texts = _order(pa.concat_tables([part.strings for part in parts]), numbers)
        sizes = [part.numbers_7N.shape[1] for part in parts]
        del parts
        part_N, row_N, kind_N, shingled_N = (numbers[line][order_N] for line in (0, 1, 2, -1))
        del numbers
        texts_N = texts[order_N]
        _, leaders_U = np.unique(texts_N, return_index=True)
        bands = (_keys_of_band(keys, sizes, band, params.bands)[order_N[leaders_U]] for band in range(params.bands))
        return Documents(part_N, row_N, texts_N, kind_N, leaders_U, *_join(bands, shingled_N[leaders_U] > 0))


def _keys_of_band(keys: IO[bytes], sizes: list[int], band: int, bands: int) -> np.ndarray:
    """uint64, in the order the documents were read."""
    found, before = [], 0
    for size in sizes:
        keys.seek(8 * (before * bands + band * size))
        found.append(np.frombuffer(keys.read(8 * size), np.uint64))
        before += size
    return np.concatenate(found)


def _join(bands: Iterable[np.ndarray], takes_part_U: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(offsets_U1, buckets_E, sizes_K) of Documents, band by band."""
    sizes, first, counts_U = [np.zeros(0, np.int64)], 0, np.zeros(len(takes_part_U), np.int64)
    dtype = np.int32 if 128 * len(takes_part_U) < 1 << 31 else np.int64
    with tempfile.TemporaryFile() as shared:
        for keys_U in bands:
            texts, buckets, counts = buckets_of_band(keys_U, takes_part_U, first)
            counts_U[texts] += 1  # a text is in one bucket of a band
            shared.write(np.stack([texts, buckets]).astype(dtype).tobytes())
            sizes.append(counts)
            first += len(counts)
        offsets_U1 = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts_U)])
        places_U, buckets_E = offsets_U1[:-1].copy(), np.empty(offsets_U1[-1], dtype)
        shared.seek(0)
        for counts in sizes:
            pairs = np.frombuffer(shared.read(2 * int(counts.sum()) * buckets_E.itemsize), dtype).reshape(2, -1)
            buckets_E[places_U[pairs[0]]] = pairs[1]
            places_U[pairs[0]] += 1
    return offsets_U1, buckets_E, np.concatenate(sizes)


def _none() -> Documents:
    nothing = np.zeros(0, np.int64)
    return Documents(nothing, nothing, nothing, nothing, nothing, np.zeros(1, np.int64), nothing, nothing)


def _read_part(reads: Reads, params: DedupParams, number: int, unit: str, keys: IO[bytes]) -> _Part:
    """The part's documents; the keys of their bands, band after band, are written to `keys`."""
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
    keys.write(np.ascontiguousarray(band_keys(values_DP, params.bands, params.rows).T).tobytes())
    return _Part(documents.select(["id", "text_sha", "created"]), np.stack(numbers).astype(np.int64))


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
