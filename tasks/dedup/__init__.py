"""The step dedup: exact and near duplicates, each removed one naming a survivor that is kept.

In: normalize/text and filter/verdicts. Out: sketches/ and spans/ (part by part), then verdicts/, pairs/ and
cuts/, decided once for the whole corpus. This module wires and checks; the work is in the modules beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import model_validator

from tasks.artifacts.verdicts import DROP, GONE, KEEP
from tasks.dedup.planning import the_whole_against
from tasks.step import Artifact, Folder, Step, StepParams, judges, names, shapes
from tasks.text.recall import candidate_probability

Kind = Literal["web", "book", "code", "paper", "chat"]
Spanned = Literal["duplicate_paragraphs", "duplicate_lines", "repeated_paragraphs", "repeated_lines"]
KINDS: tuple[Kind, ...] = ("book", "chat", "code", "paper", "web")
LEAST_RECALL = 0.5
OTHERS = "*"
MEND = "build it anew: python -m tasks dedup --force"


class DedupParams(StepParams):
    """Section dedup of params.yaml. Similarities and shares are 0 to 1."""

    shingle_words: int = shapes(ge=1, le=100)
    shingle_characters: int = shapes(ge=1, le=100)
    permutations: Literal[128] = shapes()
    seed: int = shapes(ge=0, lt=1 << 32)
    bands: int = shapes(ge=1)
    rows: int = shapes(ge=1)
    threshold: dict[Kind, float] = shapes()
    source_priority: tuple[str, ...] = shapes()
    bucket_survivors_max: int = shapes(ge=1)
    against: tuple[str, ...] = names()
    pair_similarity_min: float = shapes(gt=0, le=1)
    span_characters_min: int = shapes(ge=1)
    cut: dict[str, tuple[Spanned, ...]] = shapes()
    removed_share_max: dict[str, float] = judges()
    largest_cluster_max: int = judges(ge=1)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        _check_thresholds(self.threshold, self.pair_similarity_min)
        if self.bands * self.rows > self.permutations:
            raise ValueError(
                f"bands {self.bands} * rows {self.rows} is {self.bands * self.rows}, more than permutations "
                f"{self.permutations}; lower one of them"
            )
        lowest = min(self.threshold.values())
        found = candidate_probability(lowest, self.bands, self.rows)
        if found < LEAST_RECALL:
            raise ValueError(
                f"{self.bands} bands of {self.rows} rows find {found:.4f} of pairs at threshold {lowest}, "
                f"less than {LEAST_RECALL}; were bands and rows swapped? 21 of 6 find 0.998 at 0.8"
            )
        if OTHERS not in self.removed_share_max:
            raise ValueError(f'removed_share_max lacks "{OTHERS}", of sources not named; add "{OTHERS}": 0.9')
        return self


def _check_thresholds(threshold: dict[Kind, float], pair_similarity_min: float) -> None:
    absent = sorted(set(KINDS) - set(threshold))
    if absent:
        raise ValueError(f"threshold lacks {', '.join(absent)}; give each kind one")
    for kind in KINDS:
        if not pair_similarity_min <= threshold[kind] <= 1:
            raise ValueError(
                f"threshold of {kind} is {threshold[kind]}; it lies between pair_similarity_min "
                f"{pair_similarity_min} and 1"
            )


def check(artifact: Artifact) -> Iterator[str]:
    """A sentence for each broken promise: aligned rows, survivors, conservation, and the two judges."""
    units = artifact.units("dedup/verdicts")
    verdicts = {unit: artifact.table("dedup/verdicts", unit=unit) for unit in units}
    yield from _check_rows(artifact, verdicts)
    yield from _check_survivors(artifact, verdicts)
    yield from _check_counts(artifact)
    yield from _check_clusters(artifact, verdicts)
    yield from _check_shares(artifact)


def _check_rows(artifact: Artifact, verdicts: dict[str, pa.Table]) -> Iterator[str]:
    for unit, table in verdicts.items():
        filtered = artifact.table("filter/verdicts", ["verdict"], unit=unit).column("verdict")
        gone = pc.equal(table.column("verdict"), GONE)
        if len(filtered) != table.num_rows:
            yield f"dedup/verdicts/{unit} has {table.num_rows} rows, filter {len(filtered)}; {MEND}"
        elif not pc.all(pc.equal(pc.equal(filtered, DROP), gone), min_count=0).as_py():
            yield f"dedup/verdicts/{unit} says gone of other rows than filter dropped; {MEND}"


def _check_survivors(artifact: Artifact, verdicts: dict[str, pa.Table]) -> Iterator[str]:
    kept = {unit: pc.equal(table.column("verdict"), KEEP).to_numpy() for unit, table in verdicts.items()}
    limits = {unit: _limits(artifact, unit) for unit in verdicts}
    for unit, table in verdicts.items():
        rows = np.flatnonzero(pc.equal(table.column("verdict"), DROP).to_numpy())
        removed = table.take(rows)
        parts = np.array(removed.column("survivor_part").to_pylist(), object)
        others, similarities = (removed.column(name).to_numpy() for name in ("survivor_row", "similarity"))
        for part in dict.fromkeys(parts.tolist()):
            mine = parts == part
            yield from _check_pairs(unit, part, rows[mine], others[mine], similarities[mine], kept, limits)


def _check_pairs(
    unit: str,
    part: str,
    rows: np.ndarray,
    others: np.ndarray,
    similarities: np.ndarray,
    kept: dict[str, np.ndarray],
    limits: dict[str, np.ndarray],
) -> Iterator[str]:
    """Rows of `unit` removed for rows `others` of `part`: the first that is broken, and how many are."""
    stands = np.zeros(len(rows), np.bool_)
    if "/" in part:  # a document of an earlier release, which nothing here removes
        kept, limits = kept | {part: np.ones(1, np.bool_)}, limits | {part: np.zeros(1)}
        others = np.zeros_like(others)
    if part in kept:
        known = (others >= 0) & (others < len(kept[part]))
        stands[known] = kept[part][others[known].astype(np.int64)]
    for at in np.flatnonzero(~stands)[:1]:
        lost = f"{(~stands).sum()} rows of {unit} name a survivor in {part} that is not kept"
        yield f"{lost}, row {rows[at]} names {others[at]}; {MEND}"
    rows, others, similarities = rows[stands], others[stands].astype(np.int64), similarities[stands]
    if not len(rows):
        return
    least = np.maximum(limits[unit][rows], limits[part][others])
    low = np.flatnonzero(~(similarities >= least))
    for at in low[:1]:
        yield (
            f"{len(low)} rows of {unit} were removed below the threshold, row {rows[at]} "
            f"at {similarities[at]} below {least[at]}; {MEND}"
        )


def _limits(artifact: Artifact, unit: str) -> np.ndarray:
    """float64 [rows]: the threshold of each row's kind."""
    kinds = artifact.table("normalize/text", ["kind"], unit=unit).column("kind").combine_chunks()
    kinds = kinds.dictionary_encode()
    of_kind = np.array([artifact.params.threshold[kind] for kind in kinds.dictionary.to_pylist()], np.float64)
    return np.asarray(of_kind[kinds.indices.to_numpy()], np.float64)


def _check_counts(artifact: Artifact) -> Iterator[str]:
    for unit, counts in artifact.counts("dedup/verdicts").items():
        for what in ("documents", "characters"):
            came, kept, dropped = (counts[f"{what}_{measure}"] for measure in ("in", "kept", "dropped"))
            if came != kept + dropped:
                yield f"{unit}: {came} {what} in, {kept} kept and {dropped} dropped; {MEND}"


def _check_clusters(artifact: Artifact, verdicts: dict[str, pa.Table]) -> Iterator[str]:
    sizes: Counter[tuple[str, int]] = Counter()
    for table in verdicts.values():
        removed = table.filter(pc.equal(table.column("verdict"), DROP))
        groups = removed.group_by(["survivor_part", "survivor_row"]).aggregate([([], "count_all")])
        for group in groups.to_pylist():
            sizes[group["survivor_part"], group["survivor_row"]] += group["count_all"]
    limit = artifact.params.largest_cluster_max
    for (part, row), size in sorted(sizes.items()):
        if size + 1 > limit:
            yield (
                f"row {row} of {part} stands for {size + 1} documents, itself included, more than "
                f"largest_cluster_max {limit}; look at dedup/pairs, then raise the limit or the threshold"
            )


def _check_shares(artifact: Artifact) -> Iterator[str]:
    totals: Counter[tuple[str, str]] = Counter()
    for unit, counts in artifact.counts("dedup/verdicts").items():
        source = unit.split("-")[0]
        for measure, dimension, number in _per_unit(counts):
            totals[f"{source}{dimension}", measure] += number
    for name in sorted({name for name, _ in totals}):
        limits = artifact.params.removed_share_max
        limit = limits.get(name.split()[0], limits[OTHERS])
        came, dropped = totals[name, "documents_in"], totals[name, "documents_dropped"]
        if came and dropped / came > limit:
            yield (
                f"{dropped} of {came} documents of {name} were removed, {dropped / came:.1%}, more than "
                f"removed_share_max {limit:.1%}; look at dedup/pairs, then raise the limit or the threshold"
            )


def _per_unit(counts: dict[str, int]) -> Iterator[tuple[str, str, int]]:
    """(measure, "" or the unit of shingles, number): a script may be wiped out within a healthy source."""
    for key, number in counts.items():
        measure, _, unit = key.partition("|unit=")
        if measure in ("documents_in", "documents_dropped"):
            yield measure, f" shingled by {unit}" if unit else "", number


def rows(artifact: Artifact, unit: str) -> pa.Table:
    """Part `unit` as the suite sees it: part, row, source, verdicts, and what the sketches say of size."""
    sketches = artifact.table("dedup/sketches", ["characters", "words", "unit", "shingles"], unit=unit)
    table = artifact.table("dedup/verdicts", unit=unit)
    for name in sketches.column_names:
        table = table.append_column(name, sketches.column(name))
    size = table.num_rows
    place = {"part": pa.repeat(unit, size), "row": pa.array(np.arange(size))}
    place["source"] = pa.repeat(unit.split("-")[0], size)
    for name in reversed(place):
        table = table.add_column(0, name, place[name])
    return table


_SHINGLES = ("shingle_words", "shingle_characters")

STEP = Step(
    name="dedup",
    params=DedupParams,
    folders=(
        Folder(
            "sketches",
            "tasks.dedup.sketches:sketch",
            reads=("normalize/text",),
            shapes=(*_SHINGLES, "permutations", "seed"),
            versions=("unicodedata",),
        ),
        Folder(
            "spans",
            "tasks.dedup.spans:find",
            reads=("normalize/text",),
            shapes=("span_characters_min",),
        ),
        Folder(
            "verdicts",
            "tasks.dedup.verdicts:decide",
            reads=("normalize/text", "filter/verdicts", "dedup/sketches", "dedup/spans"),
            shapes=(
                *_SHINGLES,
                "permutations",
                "seed",
                "bands",
                "rows",
                "threshold",
                "source_priority",
                "bucket_survivors_max",
                "pair_similarity_min",
                "cut",
            ),
            versions=("unicodedata",),
            plan=the_whole_against,
            spread=True,
            also=("pairs", "cuts"),
        ),
    ),
    inputs=("normalize", "filter"),
    outside=("against",),
    rows=rows,
    rows_of="dedup/verdicts",
    invariants=check,
)
