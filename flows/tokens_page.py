"""The page on the tokenizer: what `gristmill tokenizer report` shows.

In: data/tokenize/report.json, and ingest/places for where documents come from. Out: plain data and tables. It counts
nothing anew.
"""

from __future__ import annotations

import json
from typing import Any

from rich.markup import escape

from flows import show
from tasks.artifacts.tables import read_table
from tasks.errors import GristmillError
from tasks.project import Project

SHOWN = 15
"""Ids at either end that are shown; --json has all."""


def tokens_report(project: Project) -> dict[str, Any]:
    """report.json, and of each of its worst documents the file and record. Raises GristmillError where none stands."""
    path = project.artifact("tokenize") / "report.json"
    if not path.is_file():
        raise GristmillError(f"{path} is not there", "build it first: gristmill build --until tokenize")
    report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    for one in report["worst"]:
        places = project.artifact("ingest") / "places" / f"{one['part']}.parquet"
        found = read_table(places, ["file", "record"]).slice(one["row"], 1).to_pylist() if places.is_file() else []
        one |= found[0] if found else {}
    return report


def show_report(report: dict[str, Any]) -> None:
    """The tables: sources and languages, ids at either end, documents that are spelled worst."""
    total, held = report["totals"], report["vocabulary"]
    rows = [_row("all", "", total)]
    for source, languages in report["sources_by_language"].items():
        rows.append(_row(source, "", report["sources"][source]))
        rows += [_row(source, language, counts) for language, counts in languages.items()]
    columns = ("source", "language", "documents", "tokens", "bytes a token", "unknown", "without loss")
    show.table("Tokens", columns, rows, right=columns[2:])
    show.line(f"{held['used']:,} of {held['size']:,} ids are used")
    for title in ("most_frequent", "least_frequent"):
        ids = [(one["id"], repr(one["piece"]), one["count"]) for one in report[title][:SHOWN]]
        show.table(title.replace("_", " "), ("id", "piece", "count"), ids, right=("id", "count"))
    for one in report["worst"][:SHOWN]:
        place = f"{one['part']} row {one['row']}: {one.get('file', '?')}, record {one.get('record', '?')}"
        show.line(escape(f"{one['bytes_per_token']:.2f} bytes a token  {one['id']}  {place}"))


def _row(source: str, language: str, counts: dict[str, Any]) -> tuple[Any, ...]:
    each, unknown = counts["bytes_per_token"] or 0, counts["unknown_share"] or 0
    told = (counts["documents"], counts["tokens"], f"{each:.2f}", f"{unknown:.2%}", counts["unlearnt"])
    return (source, language, *told)
