"""normalize: clean text, the same rows. Reads ingest; writes text/.

This module only wires: the parameters, what must hold, and the folder.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import model_validator

from tasks.normalize.planning import plan_text
from tasks.step import Artifact, Folder, Step, StepParams, shapes
from tasks.text.byte_counts import character_counts

Kind = Literal["web", "book", "code", "paper", "chat"]
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
SAMPLE = 20
"""Rows of a part, and at most about twice as many parts, whose text is looked at again."""


class How(StepParams):
    """How the texts of a kind are cleaned (tasks.text.whitespace)."""

    form: Literal["NFC", "NFKC", "none"]
    whitespace: Literal["collapse", "inside", "keep"]


class NormalizeParams(StepParams):
    """The section `normalize` of params.yaml."""

    kinds: dict[Kind, How] = shapes()
    combining_marks_max: int = shapes(ge=1, le=1000)

    @model_validator(mode="after")
    def _names_every_kind(self) -> NormalizeParams:
        absent = [kind for kind in get_args(Kind) if kind not in self.kinds]
        if absent:
            raise ValueError(f"kinds says nothing of {absent[0]}; give its form and whitespace")
        return self


def invariants(artifact: Artifact) -> Iterator[str]:
    """Same rows and ids in the same order; on a sample text_sha is right and no control character is left."""
    units = artifact.units("normalize/text")
    for unit in units:
        ids = artifact.table("ingest/documents", ["id"], unit)["id"]
        found = artifact.table("normalize/text", ["id"], unit)["id"]
        if not found.equals(ids):
            yield f"part {unit}: its {len(found)} ids are not the {len(ids)} of ingest in their order"
    for unit in units[:: max(1, len(units) // SAMPLE)]:
        table = artifact.table("normalize/text", ["text", "text_sha"], unit)
        step = max(1, table.num_rows // SAMPLE)
        for row in range(0, table.num_rows, step):
            yield from _unclean(unit, row, table["text"][row].as_py(), table["text_sha"][row].as_py())


def _unclean(unit: str, row: int, text: str, text_sha: str) -> Iterator[str]:
    found = hashlib.sha256(text.encode()).hexdigest()
    if found != text_sha:
        yield f"part {unit}, row {row}: text_sha is {text_sha}, its text has {found}"
    if control := CONTROLS.search(text):
        yield f"part {unit}, row {row}: U+{ord(control.group()):04X} at character {control.start()} is left"


def rows(artifact: Artifact, unit: str) -> pa.Table:
    """The documents of a part without text: part, row, id, text_sha, source, kind, characters, bytes."""
    table = artifact.table("normalize/text", ["id", "text_sha", "source", "kind", "text"], unit)
    return pa.table(
        {
            "part": pa.array([unit] * table.num_rows, pa.string()),
            "row": pa.array(range(table.num_rows), pa.int64()),
            **{name: table[name] for name in ("id", "text_sha", "source", "kind")},
            "characters": character_counts(table["text"]),
            "bytes": pc.binary_length(table["text"]).cast(pa.int64()),
        }
    )


STEP = Step(
    name="normalize",
    params=NormalizeParams,
    folders=(
        Folder(
            "text",
            "tasks.normalize.text:make",
            reads=("ingest/documents",),
            shapes=("kinds", "combining_marks_max"),
            members={"kinds": "kind"},
            versions=("pyarrow", "unicodedata"),
            plan=plan_text,
        ),
    ),
    inputs=("ingest",),
    rows=rows,
    rows_of="normalize/text",
    invariants=invariants,
)
