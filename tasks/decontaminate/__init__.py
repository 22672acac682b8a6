"""The step decontaminate: documents that hold items of evaluation sets.

In: normalize/text, dedup's sketches and verdicts, and the evaluation sets of params.yaml. Out: matches/,
verdicts/ and cuts/, part by part, and certificate.json. This module wires and checks; the work is in the
modules beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field, model_validator

from tasks.artifacts.verdicts import CUT, GONE, KEEP
from tasks.decontaminate.planning import BOILERPLATE, plan_certificate, plan_judged, plan_matches
from tasks.decontaminate.telling import telling_matches
from tasks.decontaminate.windows import Numbers
from tasks.step import Artifact, Folder, Step, StepParams, judges, names, shapes, the_whole

OTHERS = "*"
MEND = "build it anew: python -m tasks decontaminate --force"


class EvaluationSetParams(BaseModel):
    """One evaluation set: a JSON Lines, CSV, TSV or Parquet file, path relative to the project's root, and the fields
    that count.

    answers, passages: those of the fields that are such; the others are questions.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_]*$")
    path: str = Field(min_length=1)
    fields: tuple[str, ...] = Field(min_length=1)
    answers: tuple[str, ...] = ()
    passages: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _of_fields(self) -> Self:
        named = [*self.answers, *self.passages]
        wrong = sorted({field for field in named if field not in self.fields or named.count(field) > 1})
        if wrong:
            raise ValueError(
                f"set {self.name}: {', '.join(wrong)} must stand in fields, and in one of answers and passages"
            )
        return self


class DecontaminateParams(StepParams):
    """Section decontaminate of params.yaml."""

    sets: tuple[EvaluationSetParams, ...] = names()
    ngram_words: int = shapes(ge=2, le=64)
    short_words_min: int = shapes(ge=1, le=64)
    ngram_characters: int = shapes(ge=2, le=64)
    short_characters_min: int = shapes(ge=1, le=64)
    question_words_min: int = shapes(ge=1, le=64)
    answer_window_words: int = shapes(ge=1, le=1000)
    boilerplate_items_min: int = shapes(ge=2)
    boilerplate_documents_min: int = shapes(ge=2)
    leak_share_min: float = shapes(gt=0, le=1)
    policy: Literal["drop", "cut", "report"] = shapes()
    margin_characters: int = shapes(ge=0, le=10_000)
    self_test_items: int = shapes(ge=1, le=10_000)
    self_test_seed: int = shapes(ge=0)
    removed_share_max: dict[str, float] = judges()

    @model_validator(mode="after")
    def _fits(self) -> Self:
        twice = [name for name, count in Counter(one.name for one in self.sets).items() if count > 1]
        if twice:
            raise ValueError(f"sets names {', '.join(twice)} twice; give each set its own name")
        for unit in ("words", "characters"):
            short, long = getattr(self, f"short_{unit}_min"), getattr(self, f"ngram_{unit}")
            if short > long:
                raise ValueError(f"short_{unit}_min {short} is above ngram_{unit} {long}; lower it")
        if OTHERS not in self.removed_share_max:
            raise ValueError(f'removed_share_max lacks "{OTHERS}", of sources not named; add "{OTHERS}": 0.1')
        return self


def check(artifact: Artifact) -> Iterator[str]:
    """A sentence for each broken promise: aligned rows, conservation, cuts where cut, and the judge."""
    for unit, counts in artifact.counts("decontaminate/verdicts").items():
        verdicts = artifact.table("decontaminate/verdicts", ["verdict"], unit=unit).column("verdict")
        yield from _check_rows(
            unit, verdicts, artifact.table("dedup/verdicts", ["verdict"], unit=unit).column("verdict")
        )
        for what in ("documents", "characters"):
            came, kept, dropped = (counts[f"{what}_{measure}"] for measure in ("in", "kept", "dropped"))
            if came != kept + dropped:
                yield f"{unit}: {came} {what} in, {kept} kept and {dropped} dropped; {MEND}"
        if artifact.params.policy != "report":
            yield from _check_kept(artifact, unit, verdicts)
        cut_rows = set(artifact.table("decontaminate/cuts", ["row"], unit=unit).column("row").to_pylist())
        wanted = set(pc.indices_nonzero(pc.equal(verdicts, CUT)).to_pylist())
        if cut_rows != wanted:
            yield f"{unit}: {len(cut_rows)} rows have cuts, {len(wanted)} the verdict cut; {MEND}"
    yield from _check_shares(artifact)


def _check_rows(unit: str, verdicts: pa.ChunkedArray, before: pa.ChunkedArray) -> Iterator[str]:
    if len(verdicts) != len(before):
        yield f"decontaminate/verdicts/{unit} has {len(verdicts)} rows, dedup {len(before)}; {MEND}"
    elif not pc.all(pc.equal(pc.not_equal(before, KEEP), pc.equal(verdicts, GONE)), min_count=0).as_py():
        yield f"decontaminate/verdicts/{unit} says gone of other rows than dedup removed; {MEND}"


def _check_kept(artifact: Artifact, unit: str, verdicts: pa.ChunkedArray) -> Iterator[str]:
    """No document stays whole that holds an item."""
    held = telling_matches(artifact, unit).column("row")
    kept = held.filter(pc.equal(verdicts.take(held), KEEP))
    if len(kept):
        yield f"{unit}: {len(pc.unique(kept))} rows with matches are kept, first {pc.min(kept)}; {MEND}"


def _check_shares(artifact: Artifact) -> Iterator[str]:
    came: Counter[str] = Counter()
    touched: Counter[str] = Counter()
    for unit, counts in artifact.counts("decontaminate/verdicts").items():
        source = unit.split("-")[0]
        came[source] += counts["documents_in"]
        touched[source] += counts["documents_dropped"] + counts["documents_cut"]
    for source in sorted(came):
        limits = artifact.params.removed_share_max
        limit = limits.get(source, limits[OTHERS])
        if came[source] and touched[source] / came[source] > limit:
            yield (
                f"{touched[source]} of {came[source]} documents of {source} hold evaluation items, "
                f"{touched[source] / came[source]:.1%}, more than removed_share_max {limit:.1%}; look at the "
                f"certificate's items_most_matched: a common phrase or a leak? Then mend set or limit"
            )


def rows(artifact: Artifact, unit: str) -> pa.Table:
    """Part `unit` as the suite sees it: part, row, source and the verdicts."""
    table = artifact.table("decontaminate/verdicts", unit=unit)
    place = {
        "part": pa.repeat(unit, table.num_rows),
        "row": pa.array(np.arange(table.num_rows)),
        "source": pa.repeat(unit.split("-")[0], table.num_rows),
    }
    for name in reversed(place):
        table = table.add_column(0, name, place[name])
    return table


_INDEX = Numbers._fields

STEP = Step(
    name="decontaminate",
    params=DecontaminateParams,
    folders=(
        Folder(
            "matches",
            "tasks.decontaminate.matches:match",
            reads=("normalize/text",),
            shapes=_INDEX,
            versions=("unicodedata",),
            plan=plan_matches,
        ),
        Folder(
            "boilerplate",
            "tasks.decontaminate.boilerplate:count",
            reads=("decontaminate/matches", "dedup/verdicts"),
            shapes=("boilerplate_documents_min", "leak_share_min"),
            versions=("unicodedata",),
            plan=the_whole,
        ),
        Folder(
            "verdicts",
            "tasks.decontaminate.verdicts:decide",
            reads=(
                "normalize/text",
                "dedup/sketches",
                "dedup/verdicts",
                "decontaminate/matches",
                BOILERPLATE,
            ),
            shapes=("policy",),
            versions=("unicodedata",),
            plan=plan_judged,
        ),
        Folder(
            "cuts",
            "tasks.decontaminate.cuts:cut",
            reads=("normalize/text", "decontaminate/matches", "decontaminate/verdicts", BOILERPLATE),
            shapes=("margin_characters",),
            versions=("unicodedata",),
            plan=plan_judged,
        ),
        Folder(
            "certificate",
            "tasks.decontaminate.certificate:certify",
            reads=("decontaminate/matches", "decontaminate/verdicts", BOILERPLATE),
            shapes=(
                *_INDEX,
                "boilerplate_documents_min",
                "leak_share_min",
                "policy",
                "margin_characters",
                "self_test_items",
                "self_test_seed",
            ),
            versions=("unicodedata",),
            plan=plan_certificate,
            place="certificate",
        ),
    ),
    inputs=("normalize", "dedup"),
    rows=rows,
    rows_of="decontaminate/verdicts",
    invariants=check,
    outside=("sets",),
)
