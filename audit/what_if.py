"""What another limit would do: which documents of which source and language would change sides, with nothing built.

In: a project whose filter stands, and limits as "filter.<rule>.max=0.3". Out: counts and ten examples. It judges the
stored signals twice, by the rules of params.yaml and by the changed ones, and writes nothing; texts are read for the
examples alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pydantic import ValidationError

from tasks.artifacts.manifest import Manifest
from tasks.artifacts.tables import read_table
from tasks.artifacts.verdicts import CUT, DROP, KEEP
from tasks.errors import GristmillError, ParamsError
from tasks.filter import STEP, FilterParams
from tasks.filter.judging import documents_of
from tasks.project import Project
from tasks.text.rules import Breaches, Documents, Rule, judge

EXAMPLES, SHOWN_CHARACTERS = 10, 160
SIDES = np.array([KEEP, CUT, DROP])
LIMITS = ("min", "max")
Sides = tuple[str, str, str, str]
"""Source, language, verdict before and after."""


@dataclass(frozen=True)
class Move:
    """Documents of a source and language that would go from one verdict to another."""

    source: str
    language: str
    before: str
    after: str
    documents: int
    characters: int


@dataclass(frozen=True)
class Example:
    """One of them: rule and value are those that decide it where it is not kept."""

    part: str
    row: int
    language: str
    before: str
    after: str
    rule: str
    value: float
    limit: float
    text: str


@dataclass(frozen=True)
class Answer:
    """changed: the limits as they would stand. documents: all that were judged. moves, most documents first."""

    changed: list[str]
    documents: int
    moves: list[Move]
    examples: list[Example]


@dataclass(frozen=True)
class Stored:
    """The tables of one part as they stand."""

    project: Project
    name: str

    def table(self, folder: str, columns: Sequence[str] | None = None) -> pa.Table:
        step, _, name = folder.partition("/")
        return read_table(self.project.artifact(step) / name / f"{self.name}.parquet", columns)


def what_if(project: Project, spelled: Sequence[str]) -> Answer:
    """Hold what was measured against changed limits.

    spelled: "filter.<rule>.min=3", "filter.<rule>.max=none", or "filter.<set>.max_<signal>=0.3". Limits of a rule's
    exceptions (`where`) stay. Raises ParamsError for what names no rule, GristmillError where filter does not stand.
    """
    params = project.params(STEP)
    assert isinstance(params, FilterParams)  # noqa: S101
    rules = params.rules
    for item in spelled:
        rules = _with(rules, item)
    units = _units(project)
    moved: Counter[Sides] = Counter()
    sizes: Counter[Sides] = Counter()
    documents = 0
    candidates: list[Example] = []
    for unit in units:
        judged = documents_of(Stored(project, unit), (*params.rules, *rules))  # type: ignore[arg-type]
        before, after = (judge(item, judged, params.language_letters_min) for item in (params.rules, rules))
        documents += judged.rows
        for sides, characters in _moves(judged, before, after):
            moved[sides] += 1
            sizes[sides] += characters
        candidates += _examples(unit, judged, (params.rules, before), (rules, after))
    moves = [Move(*sides, found, sizes[sides]) for sides, found in moved.items()]
    moves.sort(key=lambda move: (-move.documents, move.source, move.language, move.before))
    return Answer(
        _changed(params.rules, rules), documents, moves, [_read(project, item) for item in _spread(candidates)]
    )


def _units(project: Project) -> list[str]:
    manifest = Manifest.read(project.artifact(STEP.name))
    if manifest is None:
        raise GristmillError("filter does not stand, so nothing was measured", "gristmill build --until filter")
    return list(manifest.folders["signals"])


def _with(rules: tuple[Rule, ...], spelled: str) -> tuple[Rule, ...]:
    """The rules with one limit changed."""
    where, equals, written = spelled.partition("=")
    path = where.strip().removeprefix("filter.")
    name, _, field = path.rpartition(".")
    chosen = [rule for rule in rules if rule.name == name and field in LIMITS]
    if not chosen and field.partition("_")[0] in LIMITS:
        field, _, signal = field.partition("_")
        chosen = [
            rule
            for rule in rules
            if rule.signal == signal
            and getattr(rule, field) is not None
            and name in (rule.name, rule.name.partition(".")[0])
        ]
    if not equals or len(chosen) != 1:
        known = ", ".join(f"filter.{rule.name}" for rule in rules)
        raise ParamsError(
            f"{spelled!r} names no limit of one rule", f"write as filter.<rule>.max=0.3; there are {known}"
        )
    limit = _limit(spelled, written.strip())
    changed = chosen[0].model_copy(update={field: limit})
    try:
        rule = changed if limit is None else Rule.model_validate(changed.model_dump())
    except ValidationError as error:
        raise ParamsError(f"{spelled}: {error.errors()[0]['msg']}", "give another limit") from None
    return tuple(rule if item is chosen[0] else item for item in rules)


def _limit(spelled: str, written: str) -> float | None:
    if written.lower() in ("none", "null"):
        return None
    try:
        return float(written)
    except ValueError:
        raise ParamsError(f"{spelled!r}: {written!r} is no number", "write a number, or none") from None


def _sides(broken: Breaches) -> np.ndarray:
    """Place in SIDES of each document, [D]."""
    return np.where(broken.dropped_D, 2, np.where(broken.rule_D >= 0, 1, 0))


def _moves(documents: Documents, before: Breaches, after: Breaches) -> Iterator[tuple[Sides, int]]:
    """Sides and characters of every document that changes sides."""
    was_D, is_D = _sides(before), _sides(after)
    names, number_D = documents.languages
    characters_D = documents.signals["characters"].to_numpy()
    for row in np.flatnonzero(was_D != is_D).tolist():
        sides = documents.source, names[number_D[row]], str(SIDES[was_D[row]]), str(SIDES[is_D[row]])
        yield sides, int(characters_D[row])


Judged = tuple[tuple[Rule, ...], Breaches]


def _examples(unit: str, documents: Documents, before: Judged, after: Judged) -> Iterator[Example]:
    """Every document that changes sides, yet without its text."""
    was_D, is_D = _sides(before[1]), _sides(after[1])
    names, number_D = documents.languages
    for row in np.flatnonzero(was_D != is_D).tolist():
        rules, broken = after if is_D[row] else before
        place = broken.rule_D[row]
        value, limit = float(broken.value_D[row]), float(broken.limit_D[row])
        sides = str(SIDES[was_D[row]]), str(SIDES[is_D[row]])
        yield Example(unit, row, names[number_D[row]], *sides, rules[place].name, value, limit, "")


def _spread(candidates: list[Example]) -> list[Example]:
    """Ten of them, evenly over the corpus."""
    count = min(EXAMPLES, len(candidates))
    return [candidates[place * len(candidates) // count] for place in range(count)]


def _read(project: Project, example: Example) -> Example:
    text = Stored(project, example.part).table("normalize/text", ["text"])["text"][example.row].as_py()
    return Example(**{**vars(example), "text": text[:SHOWN_CHARACTERS]})


def _changed(before: Sequence[Rule], after: Sequence[Rule]) -> list[str]:
    return [
        f"filter.{new.name}.{field}: {getattr(old, field)} -> {getattr(new, field)}"
        for old, new in zip(before, after, strict=True)
        for field in LIMITS
        if getattr(old, field) != getattr(new, field)
    ]
