"""dedup/verdicts, dedup/pairs and dedup/cuts: who stays, decided once for the whole corpus.

In: normalize/text, filter's verdicts and the sketches of every part. Out: for every part, row-aligned
DEDUP_VERDICTS; PAIRS; and CUTS: paragraphs and lines that stand elsewhere too, where the source asks for it (chats and
code are never cut). The text of a part is read only where a document has
candidates, and only the shingle sets of those documents are held: 8 bytes a shingle, besides what
tasks.dedup.documents needs.

Cost on one core: 11,000 documents of 24 MB, half of them with candidates, in 0.15 s; with their sketches the
whole runs at 70 MB/s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.artifacts.verdicts import CUTS, DEDUP_VERDICTS, DROP, GONE, KEEP, PAIRS
from tasks.dedup.documents import Documents, rank_documents
from tasks.dedup.greedy import STAYS, Choice, Sets, choose
from tasks.dedup.levels import REASONS, Found, counts_of, find_duplicates
from tasks.step import Counts, Made, Reads
from tasks.text.shingles import shingle_sets, shingle_texts

if TYPE_CHECKING:
    from tasks.dedup import DedupParams, Kind

SCHEMA = DEDUP_VERDICTS
SCHEMAS = {"verdicts": DEDUP_VERDICTS, "pairs": PAIRS, "cuts": CUTS}
ROWS_AT_ONCE = 4096
EXACT, NEAR = "exact", "near"
NEVER_CUT = ("chat", "code")


class _Decided(NamedTuple):
    """The documents, what was decided, and where each part's documents are."""

    units: list[str]
    documents: Documents
    choice: Choice
    by_part: list[np.ndarray]


def decide(reads: Reads, params: DedupParams) -> Iterator[tuple[str, Made]]:
    """("verdicts/<part>" | "pairs/<part>" | "cuts/<part>", its files) of every part, part after part."""
    units = reads.units("normalize/text")
    documents = rank_documents(reads, params)
    sets = _candidate_sets(reads, params, units, documents)
    thresholds_KK = _thresholds(params.threshold)
    choice = choose(documents, sets, thresholds_KK, params.bucket_survivors_max, params.pair_similarity_min)
    found = find_duplicates(reads, units, documents, choice.survivors_N == STAYS)
    decided = _Decided(units, documents, choice, _split_by_part(documents.parts_N, len(units)))
    for number, unit in enumerate(units):
        sketches = reads.table("dedup/sketches", ["characters", "unit"], unit=unit)
        yield f"verdicts/{unit}", _verdicts(decided, number, sketches)
        yield f"pairs/{unit}", _pairs(decided, number)
        yield f"cuts/{unit}", _cuts(reads, unit, params.cut, found[number])


def _cuts(reads: Reads, unit: str, asked: Mapping[str, tuple[str, ...]], found: Found) -> Made:
    """Counts: what was found, cut or not, and cuts. A span of another that is cut too is one place for tokenize."""
    spans = reads.table("dedup/spans", unit=unit)
    counts = counts_of(spans, found)
    wanted = asked.get(unit.split("-")[0], ())
    chosen = np.isin(found.reasons, [place for place, reason in enumerate(REASONS) if f"{reason}s" in wanted])
    places, reasons = found.places[chosen], found.reasons[chosen]
    if not len(places):
        return Made({".parquet": CUTS.empty_table()}, {**counts, "cuts": 0})
    kinds = reads.table("normalize/text", ["kind"], unit=unit).column("kind")
    whole = pc.is_in(kinds, value_set=pa.array(NEVER_CUT)).to_numpy()[spans.column("row").to_numpy()[places]]
    table = spans.select(["row", "start", "stop"]).take(pa.array(places[~whole]))
    names = pa.array(REASONS, pa.string()).take(pa.array(reasons[~whole]))
    table = table.append_column(CUTS.field("reason"), names)
    table = table.sort_by([(name, "ascending") for name in CUTS.names])
    return Made({".parquet": table}, {**counts, "cuts": table.num_rows})


def _thresholds(threshold: Mapping[Kind, float]) -> np.ndarray:
    """float64 [kinds, kinds], kinds sorted: between two kinds the higher threshold holds."""
    of_kind = np.array([threshold[kind] for kind in sorted(threshold)], np.float64)
    return np.maximum.outer(of_kind, of_kind)


def _split_by_part(parts: np.ndarray, count: int) -> list[np.ndarray]:
    """For each of `count` parts the indices at which `parts` names it, ascending."""
    order = np.argsort(parts, kind="stable")
    return np.split(order, np.searchsorted(parts[order], np.arange(1, count)))[:count]


def _candidate_sets(reads: Reads, params: DedupParams, units: list[str], documents: Documents) -> Sets:
    """The shingle sets of the texts that share a bucket with another text."""
    texts_C = np.flatnonzero(np.diff(documents.offsets_U1))
    starts_U = np.zeros(len(documents.leaders_U), np.int64)
    stops_U, hashes, held = starts_U.copy(), [np.zeros(0, np.uint64)], 0
    leaders_C = documents.leaders_U[texts_C]
    for number, places in enumerate(_split_by_part(documents.parts_N[leaders_C], len(units))):
        if not len(places):
            continue
        texts = reads.table("normalize/text", ["text"], unit=units[number]).column("text")
        for start in range(0, len(places), ROWS_AT_ONCE):
            some = places[start : start + ROWS_AT_ONCE]
            chosen = texts.take(documents.rows_N[leaders_C[some]])
            hashes_M, offsets_D1 = shingle_sets(
                shingle_texts(chosen, params.shingle_words, params.shingle_characters)[0]
            )
            starts_U[texts_C[some]], stops_U[texts_C[some]] = held + offsets_D1[:-1], held + offsets_D1[1:]
            hashes.append(hashes_M)
            held += len(hashes_M)
    return Sets(np.concatenate(hashes), starts_U, stops_U)


def _verdicts(decided: _Decided, number: int, sketches: pa.Table) -> Made:
    documents, choice = decided.documents, decided.choice
    mine = decided.by_part[number]
    removed = choice.survivors_N[mine] != STAYS
    exact = documents.texts_N[choice.survivors_N[mine]] == documents.texts_N[mine]
    rules = np.where(removed, np.where(exact, EXACT, NEAR), "")
    rows = documents.rows_N[mine]
    verdicts = np.full(sketches.num_rows, GONE, object)
    verdicts[rows] = np.where(removed, DROP, KEEP)
    columns = {"verdict": pa.array(verdicts, pa.string())}
    columns |= _removals(decided, mine[removed], rules[removed], sketches.num_rows)
    counts = _counts(rules, sketches.take(rows))
    counts["bucket_offers_skipped"] = int(choice.skipped_N[mine].sum())
    counts["pairs_compared"] = int(choice.compared_N[mine].sum())
    return Made({".parquet": pa.table(columns, schema=SCHEMA)}, counts)


def _removals(decided: _Decided, lost: np.ndarray, rules: np.ndarray, row_count: int) -> dict[str, pa.Array]:
    """The columns that speak of removed documents `lost`, null in every other row."""
    documents, survivors = decided.documents, decided.choice.survivors_N[lost]
    of_row = np.full(row_count, -1, np.int64)
    of_row[documents.rows_N[lost]] = np.arange(len(lost))
    places = pa.array(of_row, mask=of_row < 0)
    columns = {
        "rule": pa.array(rules, pa.string()),
        "survivor_part": _names(decided, survivors),
        "survivor_row": pa.array(documents.rows_N[survivors]),
        "similarity": pa.array(decided.choice.similarities_N[lost]),
    }
    return {name: values.take(places) for name, values in columns.items()}


def _names(decided: _Decided, documents: np.ndarray) -> pa.Array:
    """The part of each document, by name."""
    return pa.array(decided.units, pa.string()).take(pa.array(decided.documents.parts_N[documents]))


def _counts(rules: np.ndarray, sketches: pa.Table) -> Counts:
    """Exact counts of the part's documents; `rules` is empty where a document stays."""
    characters = sketches.column("characters").to_numpy()
    units = np.array(sketches.column("unit").to_pylist(), str)
    stays, counts = rules == "", {}
    for measure, chosen in (("in", stays | ~stays), ("kept", stays), ("dropped", ~stays)):
        counts[f"documents_{measure}"] = int(chosen.sum())
        counts[f"characters_{measure}"] = int(characters[chosen].sum())
        for unit in np.unique(units):
            counts[f"documents_{measure}|unit={unit}"] = int((chosen & (units == unit)).sum())
    for rule in (EXACT, NEAR):
        counts[f"dropped|rule={rule}"] = int((rules == rule).sum())
        counts[f"characters_dropped|rule={rule}"] = int(characters[rules == rule].sum())
    return counts


def _pairs(decided: _Decided, number: int) -> Made:
    documents, choice = decided.documents, decided.choice
    mine = decided.by_part[number]
    removed, neared = mine[choice.survivors_N[mine] != STAYS], mine[choice.nearest_N[mine] != STAYS]
    document = np.concatenate([removed, neared])
    other = np.concatenate([choice.survivors_N[removed], choice.nearest_N[neared]])
    similarities = [choice.similarities_N[removed], choice.near_similarities_N[neared]]
    table = pa.table(
        {
            "row": documents.rows_N[document],
            "other_part": _names(decided, other),
            "other_row": documents.rows_N[other],
            "similarity": np.concatenate(similarities),
            "removes": np.arange(len(document)) < len(removed),
        },
        schema=PAIRS,
    )
    order = [("row", "ascending"), ("other_part", "ascending"), ("other_row", "ascending")]
    counts = {"pairs": table.num_rows, "pairs_removing": len(removed)}
    return Made({".parquet": table.sort_by(order)}, counts)
