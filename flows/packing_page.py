"""The table of `gristmill what-if pack.…`: strategies side by side."""

from __future__ import annotations

from collections.abc import Sequence

from audit.what_if_pack import Line, what_if
from flows import show
from tasks.project import Project

COLUMNS = ("strategy", "sequences", "padding", "tokens", "repeated", "dropped", "documents cut")


def packing(project: Project, changes: Sequence[str], as_json: bool) -> None:
    """Show what each strategy asked for makes of the tokens that stand, as a table or as JSON."""
    lines = what_if(project, changes)
    if as_json:
        return show.as_json(lines)
    show.table("what pack makes of the tokens that stand", COLUMNS, [_row(line) for line in lines], right=COLUMNS[1:])
    return show.line("nothing was built")


def _row(line: Line) -> tuple[str, ...]:
    if line.why_not:
        return (line.strategy, "none", "", "", "", line.why_not, "")
    lost = ", ".join(f"{reason} {count:,}" for reason, count in (line.dropped or {}).items())
    counts = (f"{line.tokens:,}", f"{line.repeated:,}", lost or "0", f"{line.documents_cut:,}")
    return (line.strategy, f"{line.sequences:,}", f"{line.padding:.2%}", *counts)
