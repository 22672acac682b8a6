"""Which rows of a part every judge kept, and what is cut from them.

In: the verdicts and cuts of filter, dedup and decontaminate, through anything that reads tables. Out: per row
a reason or none, and the byte spans to take out. It reads no text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.artifacts.verdicts import CUT, DROP, GONE, KEEP
from tasks.errors import InvariantError
from tasks.text.excision import Cut

JUDGES = ("filter", "dedup", "decontaminate")
CUTTERS = ("filter", "dedup", "decontaminate")
PUT = "put"
VERDICTS = tuple(f"{step}/verdicts" for step in JUDGES)
CUTS = tuple(f"{step}/cuts" for step in CUTTERS)


class Tables(Protocol):
    """Reads and Artifact, as far as this module needs them."""

    def table(self, folder: str, columns: Sequence[str] | None = None, unit: str | None = None) -> pa.Table:
        """A unit's table."""


def reasons(tables: Tables, unit: str) -> list[str | None]:
    """Why each row was dropped, "<step>:<rule>", by the first step that dropped it; None for a row that
    lives.

    Raises InvariantError where the steps' rows do not match, or a row is gone that no earlier step dropped.
    """
    found: list[str | None] | None = None
    for step in JUDGES:
        table = tables.table(f"{step}/verdicts", ["verdict", "rule"], unit)
        found = [None] * table.num_rows if found is None else found
        if table.num_rows != len(found):
            raise InvariantError(
                f"{step}/verdicts of {unit} has {table.num_rows} rows, filter/verdicts has {len(found)}",
                f"build {step} again with --force",
            )
        lives = pc.is_in(table["verdict"], pa.array([KEEP, CUT]))
        others = np.flatnonzero(~lives.to_numpy(zero_copy_only=False))
        judged = (table[name].take(pa.array(others)).to_pylist() for name in ("verdict", "rule"))
        for row, verdict, rule in zip(others.tolist(), *judged, strict=True):
            found[row] = _reason(step, unit, row, found[row], verdict, rule)
    return found or []


def spans(tables: Tables, unit: str) -> dict[int, list[Cut]]:
    """row -> byte spans of its normalized text that a step takes out, as they stand there; only filter's say what is
    put in their place."""
    found: dict[int, list[Cut]] = {}
    for folder in CUTS:
        columns = ["row", "start", "stop", *([PUT] if folder == "filter/cuts" else [])]
        table = tables.table(folder, columns, unit)
        for row, *cut in zip(*(column.to_pylist() for column in table.columns), strict=True):
            found.setdefault(row, []).append(Cut(*cut))
    return found


def _reason(step: str, unit: str, row: int, before: str | None, verdict: str, rule: str | None) -> str:
    """Why a row is dropped that the step does not keep."""
    if before is not None:
        return before
    if verdict == DROP:
        return f"{step}:{rule}"
    fault = "but no earlier step dropped it" if verdict == GONE else "which is no verdict"
    raise InvariantError(
        f"{step}/verdicts of {unit}: row {row} is {verdict}, {fault}", f"build {step} again with --force"
    )
