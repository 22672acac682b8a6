"""dedup/verdicts, dedup/pairs and dedup/cuts: who stays, decided once for the whole corpus.

In: normalize/text, filter's verdicts and the sketches of every part. Out: for every part, row-aligned
DEDUP_VERDICTS; PAIRS; and CUTS: paragraphs and lines that stand elsewhere too, where the source asks for it (chats and
code are never cut). The text of a part is read only where a document has candidates.

Out of core: what grows with the corpus lies in mapped files (tasks.dedup.scratch), so memory is one block of records
and at most 64 bytes a document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.artifacts.verdicts import CUTS, DEDUP_VERDICTS, DROP, GONE, KEEP, PAIRS
from tasks.dedup.documents import Documents, rank_documents
from tasks.dedup.greedy import STAYS, Choice, choose
from tasks.dedup.levels import REASONS, Found, counts_of, find_duplicates
from tasks.dedup.matching import match_documents
from tasks.dedup.scratch import Scratch, scratch_of
from tasks.dedup.shinglesets import candidate_sets
from tasks.step import Counts, Made, Reads

if TYPE_CHECKING:
    from tasks.dedup import DedupParams

SCHEMA = DEDUP_VERDICTS
SCHEMAS = {"verdicts": DEDUP_VERDICTS, "pairs": PAIRS, "cuts": CUTS}
RULES = ("exact", "near")
SAID = (KEEP, DROP, GONE)
"""Verdicts by number: of a document that was compared, whether it was removed."""
NEVER_CUT = ("chat", "code")


def decide(reads: Reads, params: DedupParams) -> Iterator[tuple[str, Made]]:
    """("verdicts/<part>" | "pairs/<part>" | "cuts/<part>", its files) of every part, part after part."""
    with scratch_of(reads) as scratch:
        documents, choice = _choice(reads, params, scratch)
        found = find_duplicates(reads, documents, choice.survivors_R, scratch)
        for at, place in enumerate(documents.places):
            if place.release:
                continue
            sketches = reads.table("dedup/sketches", ["characters", "unit"], unit=place.unit)
            yield f"verdicts/{place.unit}", _verdicts(documents, choice, at, sketches)
            yield f"pairs/{place.unit}", _pairs(documents, choice, at)
            yield f"cuts/{place.unit}", _cuts(reads, place.unit, params.cut, found(at))
            scratch.relax()


def _choice(reads: Reads, params: DedupParams, scratch: Scratch) -> tuple[Documents, Choice]:
    documents = rank_documents(reads, params, scratch)
    buckets = match_documents(reads, documents, params.bands, params.bucket_survivors_max, scratch)
    sets = candidate_sets(reads, params, documents, buckets.candidates_R, scratch)
    between = thresholds_between(params.threshold)
    return documents, choose(documents, buckets, sets, between, params.pair_similarity_min, scratch)


def _cuts(reads: Reads, unit: str, asked: Mapping[str, tuple[str, ...]], found: Found) -> Made:
    """Counts: what was found, cut or not, and cuts. A span of another that is cut too is one place for tokenize."""
    counts = counts_of(reads.table("dedup/spans", ["characters"], unit=unit), found)
    wanted = asked.get(unit.split("-")[0], ())
    chosen = np.isin(found.reasons, [place for place, reason in enumerate(REASONS) if f"{reason}s" in wanted])
    places, reasons = found.places[chosen], found.reasons[chosen]
    if not len(places):
        return Made({".parquet": CUTS.empty_table()}, {**counts, "cuts": 0})
    spans = reads.table("dedup/spans", ["row", "start", "stop"], unit=unit)
    kinds = reads.table("normalize/text", ["kind"], unit=unit).column("kind")
    whole = pc.is_in(kinds, value_set=pa.array(NEVER_CUT)).to_numpy()[spans.column("row").to_numpy()[places]]
    table = spans.take(pa.array(places[~whole]))
    names = pa.array(REASONS, pa.string()).take(pa.array(reasons[~whole]))
    table = table.append_column(CUTS.field("reason"), names)
    table = table.sort_by([(name, "ascending") for name in CUTS.names])
    return Made({".parquet": table}, {**counts, "cuts": table.num_rows})


def thresholds_between(threshold: Mapping[Any, float]) -> np.ndarray:
    """float64 [kinds, kinds], kinds sorted: between two kinds the higher threshold holds."""
    of_kind = np.array([threshold[kind] for kind in sorted(threshold)], np.float64)
    return np.maximum.outer(of_kind, of_kind)


def _verdicts(documents: Documents, choice: Choice, at: int, sketches: pa.Table) -> Made:
    numbers = documents.numbers(at)
    ranks, rows = documents.ranks_N[numbers], documents.rows_N[numbers]
    survivors = choice.survivors_R[ranks]
    removed = survivors != STAYS
    lost, others = ranks[removed], documents.order_R[survivors[removed]]
    near = documents.texts_R[survivors[removed]] != documents.texts_R[lost]
    said, places = np.full(sketches.num_rows, SAID.index(GONE), np.int8), np.full(sketches.num_rows, -1, np.int64)
    said[rows], places[rows[removed]] = removed, np.arange(len(lost))
    removals = {
        "rule": pa.array(RULES, pa.string()).take(pa.array(near.astype(np.int8))),
        "survivor_part": documents.names(others),
        "survivor_row": pa.array(documents.rows_N[others]),
        "similarity": pa.array(choice.similarities_R[lost]),
    }
    taken = pa.array(places, mask=places < 0)
    columns = {"verdict": pa.array(SAID, pa.string()).take(pa.array(said))}
    columns |= {name: values.take(taken) for name, values in removals.items()}
    decided = removed.astype(np.int8)
    decided[removed] += near
    counts = _counts(decided, sketches.take(rows))
    counts["bucket_offers_skipped"] = int(choice.skipped_R[ranks].sum())
    counts["pairs_compared"] = int(choice.compared_R[ranks].sum(dtype=np.int64))
    return Made({".parquet": pa.table(columns).cast(SCHEMA)}, counts)


def _counts(decided: np.ndarray, sketches: pa.Table) -> Counts:
    """Exact counts of the part's documents; `decided` is 0 where one stays, else the rule's number, from 1 on."""
    characters = sketches.column("characters").to_numpy()
    units = sketches.column("unit").combine_chunks().dictionary_encode()
    of_unit = {unit: units.indices.to_numpy() == number for number, unit in enumerate(units.dictionary.to_pylist())}
    stays, counts = decided == 0, dict[str, int]()
    for measure, chosen in (("in", stays | ~stays), ("kept", stays), ("dropped", ~stays)):
        counts[f"documents_{measure}"] = int(chosen.sum())
        counts[f"characters_{measure}"] = int(characters[chosen].sum())
        for unit, mine in of_unit.items():
            counts[f"documents_{measure}|unit={unit}"] = int((chosen & mine).sum())
    for number, rule in enumerate(RULES, 1):
        counts[f"dropped|rule={rule}"] = int((decided == number).sum())
        counts[f"characters_dropped|rule={rule}"] = int(characters[decided == number].sum())
    return counts


def _pairs(documents: Documents, choice: Choice, at: int) -> Made:
    ranks, rows = documents.ranks_N[documents.numbers(at)], documents.rows_N[documents.numbers(at)]
    survivors, nearest = choice.survivors_R[ranks], choice.nearest_R[ranks]
    removed, neared = survivors != STAYS, nearest != STAYS
    others = documents.order_R[np.concatenate([survivors[removed], nearest[neared]])]
    similarities = [choice.similarities_R[ranks[removed]], choice.near_similarities_R[ranks[neared]]]
    table = pa.table(
        {
            "row": np.concatenate([rows[removed], rows[neared]]),
            "other_part": documents.names(others),
            "other_row": documents.rows_N[others],
            "similarity": np.concatenate(similarities),
            "removes": np.arange(len(others)) < removed.sum(),
        }
    ).cast(PAIRS)
    order = [("row", "ascending"), ("other_part", "ascending"), ("other_row", "ascending")]
    counts = {"pairs": table.num_rows, "pairs_removing": int(removed.sum())}
    return Made({".parquet": table.sort_by(order)}, counts)
