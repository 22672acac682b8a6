"""What people see: progress while a build runs, tables after it. Rich draws; numbers come from elsewhere.

In: plain data of the flows. Out: text on standard output (results) and standard error (progress, warnings).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from flows.watch import Watch, watched_by

OUTCOMES = {
    "cached": "[dim]cached[/]",
    "up_to_date": "[dim]up to date[/]",
    "judged": "[cyan]judged again[/]",
    "built": "[green]built[/]",
}


def result_console() -> Console:
    """Standard output, for what a command was asked for."""
    return Console(highlight=False, soft_wrap=False)


def side_console() -> Console:
    """Standard error, for progress and warnings."""
    return Console(stderr=True, highlight=False)


def as_json(value: Any) -> None:
    """`value` as JSON on standard output; a path becomes its text."""
    print(json.dumps(value, indent=2, default=_plain, ensure_ascii=False))


def _plain(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)


class Bars(Watch):
    """A bar a step, with the folder that is being made; on no terminal, one line a step at its end."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.tasks: dict[str, TaskID] = {}

    def began(self, step: str) -> None:
        if step not in self.tasks:
            self.tasks[step] = self.progress.add_task(step, total=None, note="")

    def moved(self, step: str, done: int, total: int, folder: str) -> None:
        self.began(step)
        self.progress.update(self.tasks[step], completed=done, total=total, note=folder)

    def ended(self, step: str, outcome: str, counts: dict[str, int]) -> None:
        self.began(step)
        note = OUTCOMES.get(outcome, outcome)
        self.progress.update(self.tasks[step], completed=1, total=1, note=note)
        self.progress.stop_task(self.tasks[step])
        if not self.progress.console.is_terminal:
            self.progress.console.print(f"{step}: {note}")

    def said(self, text: str) -> None:
        self.progress.console.print(escape(text), style="yellow", soft_wrap=True)


class Lines(Watch):
    """Warnings alone, on standard error: for --json."""

    def said(self, text: str) -> None:
        side_console().print(escape(text), soft_wrap=True)


@contextmanager
def shown(quiet: bool = False) -> Iterator[Watch]:
    """Show on standard error what flows inside tell; quiet: warnings alone."""
    if quiet:
        with watched_by(lines := Lines()):
            yield lines
        return
    console = side_console()
    columns = (TextColumn("{task.description:>14}"), BarColumn(24), MofNCompleteColumn(), TimeElapsedColumn())
    drawn = Progress(*columns, TextColumn("{task.fields[note]}"), console=console, disable=not console.is_terminal)
    with drawn, watched_by(bars := Bars(drawn)):
        yield bars


@contextmanager
def waiting(text: str, quiet: bool = False) -> Iterator[None]:
    """A spinner for what has no measure of its progress."""
    console = side_console()
    if quiet or not console.is_terminal:
        yield
        return
    with console.status(text):
        yield


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], right: Sequence[str] = ()) -> None:
    """A table on standard output; columns named in `right` hold numbers."""
    drawn = Table(title=title, title_justify="left", header_style="bold")
    for column in columns:
        drawn.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        drawn.add_row(*(escape(_text(cell)) for cell in row))
    result_console().print(drawn)


def _text(cell: Any) -> str:
    return f"{cell:,}" if isinstance(cell, int) and not isinstance(cell, bool) else str(cell)


def line(text: str) -> None:
    """One line on standard output, with Rich's markup."""
    result_console().print(text, soft_wrap=True)


def funnel(rows: Sequence[dict[str, Any]]) -> None:
    """The funnel: a line a step, reasons in order of size."""
    shown_rows = [
        (row["step"], row["unit"], row["came"], row["kept"], row["dropped"], _reasons(row["reasons"])) for row in rows
    ]
    numbers = ("came", "kept", "dropped")
    table("Funnel", ("step", "unit", *numbers, "reasons"), shown_rows, right=numbers)


def _reasons(reasons: dict[str, int]) -> str:
    return ", ".join(f"{reason} {number:,}" for reason, number in reasons.items())


def statuses(rows: Sequence[dict[str, Any]], with_bytes: bool) -> None:
    """A line a step: up to date, or what would run and why."""
    columns = ["step", "state", "why"]
    lines = [[row["step"], _state(row), "; ".join(row["why"])] for row in rows]
    if with_bytes:
        columns[2:2] = ["bytes", "of raw"]
        for text, row in zip(lines, rows, strict=True):
            text[2:2] = [size(row["bytes"]), f"{row['of_raw']:.2f}" if row["of_raw"] is not None else "-"]
    table("Status", columns, lines, right=("bytes", "of raw"))


def _state(row: dict[str, Any]) -> str:
    if row["up_to_date"]:
        return "up to date"
    made = ", ".join(f"{folder} {number}" for folder, number in row["make"].items() if number)
    carried = sum(row["carry"].values())
    return f"make {made}; carry over {carried}" if made else "would run"


def run(record: dict[str, Any], new: bool) -> None:
    """A training run: its losses, its speed and the data it was pinned to."""
    line(f"{'trained' if new else 'found complete'}: runs/{record['run']}/run.json")
    line("loss " + losses(record["loss"]) + f"; {record.get('tokens_per_second', 0):,.0f} tokens/s")
    line(f"data {record['fingerprint'][:12]} ({record['release']}), git {str(record['git'])[:12]}")


def losses(points: Sequence[Sequence[float]], shown_points: int = 6) -> str:
    """A few of [[step, loss], ...], evenly spread, first and last among them."""
    last = len(points) - 1
    chosen = sorted({round(last * place / (shown_points - 1)) for place in range(shown_points)}) if points else []
    return " → ".join(f"{points[index][1]:.3f} (step {points[index][0]})" for index in chosen)


def size(number: float) -> str:
    """Bytes for people: 1.2 MB is 1,200,000 bytes."""
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"


def seconds(number: float) -> str:
    """A time for people."""
    if number < 120:
        return f"{number:.1f} s"
    return f"{number / 60:.0f} min" if number < 7200 else f"{number / 3600:.1f} h"
