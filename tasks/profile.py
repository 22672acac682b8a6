"""The two tables that a suite sees: `profile`, exact counts over everything, and of `rows` a sample, for what is not
counted part by part (tasks.tallies).

In go a step and its artifact (counts by unit, and the step's rows()), out come Arrow tables. Nothing is
judged here.

profile, one row per (dimension, member):
    dimension  total, source, part, and every dimension that the counts name: rule, language, split, reason
    member     "all" of total, else the source's, part's or rule's name
    <measure>  int64, a column each (documents_in, tokens); null where it is not counted by that dimension
    <ratio>    float64, the suite's quotients of measures; null where the divisor is 0 or not counted
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tasks.counting import Units, counted_once, source_of
from tasks.step import Artifact, Step
from tasks.suites import VISIBLE, Ratio, Suite
from tasks.text.byte_counts import visible_ascii

MOST_ROWS = 250_000
"""Rows that Great Expectations looks at itself, in the columns that it must: 0.5 s of CPU for as many (measured)."""

WIDE = ("total", "source", "part")
Cell = tuple[str, str]
Grid = dict[Cell, dict[str, int]]
INVISIBLE = frozenset(("Cc", "Cf", "Cn", "Cs", "Zl", "Zp", "Zs"))
FILLERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and symbols that show nothing: the Hangul fillers and the blank of Braille."""


@dataclass(frozen=True)
class Sample:
    """rows [n]: the step's rows; units and numbers [n]: where each one stands; total: how many there were."""

    rows: pa.Table
    units: list[str]
    numbers: np.ndarray
    total: int


def profile_table(step: Step, artifact: Artifact, suite: Suite) -> pa.Table:
    """The profile of `artifact`, rows sorted by dimension (total first) and member.

    A measure that several folders count is taken from one of them (tasks.counting).
    A measure counted by member only (tokens|split=train) is summed over its first dimension.
    """
    grid: Grid = {("total", "all"): {}}
    counted = counted_once(_folders(step, artifact))
    for (measure, dimension), units in sorted(counted.items()):
        first = min(other for name, other in counted if name == measure)
        _add(grid, measure, dimension, units, wide=dimension == first)
    for key, names in sorted(suite.members.items()):
        measure, _, dimension = key.partition("|")
        for cell in [("total", "all"), *((dimension, name) for name in _names(names, artifact.params))]:
            grid.setdefault(cell, {}).setdefault(measure, 0)
    _fill(grid)
    return _table(grid, suite.ratios)


def unknown_signals(params: Any, columns: Sequence[str]) -> Iterator[str]:
    """A sentence for each rule of `params` whose signal is none of the columns of rows."""
    for rule in getattr(params, "rules", ()):
        signal = getattr(rule, "signal", None)
        if signal is not None and signal not in columns:
            known = ", ".join(sorted(columns))
            yield f"rule {rule.name} judges the signal {signal}, which nobody computes (there are: {known})"


def sample_rows(step: Step, artifact: Artifact, columns: Collection[str], most: int = MOST_ROWS) -> Sample:
    """All rows of `artifact`, or the `most` with the smallest hash of (unit, row number), in the corpus's
    order; of their columns those named.

    The sample depends on names and numbers alone, so it is the same for any order of work, and a row that was
    in it stays in it unless the corpus grows. At most 2 x `most` rows and one unit's are held at a time.
    """
    names = artifact.units(step.rows_of)
    held: list[pa.Table] = []
    total = 0
    for place, name in enumerate(names):
        rows = step.rows(artifact, name)
        total += rows.num_rows
        rows = rows.select([column for column in rows.column_names if column in columns])
        held.append(_placed(rows, place, name))
        if sum(table.num_rows for table in held) > 2 * most:
            held = [_smallest(held, most)]
    if not held:
        return Sample(pa.table({}), [], np.empty(0, np.int64), 0)
    chosen = _smallest(held, most)
    units = [names[place] for place in chosen["@unit"].to_pylist()]
    return Sample(chosen.drop_columns(["@unit", "@row", "@hash"]), units, chosen["@row"].to_numpy(), total)


def with_visible(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """`table` and, for each text column named, <name>_visible: its visible characters, null of null."""
    for name in columns:
        if name in table.column_names and name + VISIBLE not in table.column_names:
            table = table.append_column(name + VISIBLE, _visible(table[name]))
    return table


def _visible(column: pa.ChunkedArray) -> pa.Array:
    """`visible` of each value; of ASCII by a count of its bytes, as there may be a million of them."""
    texts = column.cast(pa.large_string())
    counts, wide = visible_ascii(texts)
    for row in np.flatnonzero(wide).tolist():
        counts[row] = visible(texts[row].as_py())
    return pa.array(counts, pa.int64(), mask=texts.is_null().to_numpy())


def visible(text: str) -> int:
    """Characters of `text` that show something: neither white, control, format, nor a filler (Unicode 14)."""
    if text.isascii() and text.isalnum():
        return len(text)
    return sum(unicodedata.category(letter) not in INVISIBLE and letter not in FILLERS for letter in text)


def _folders(step: Step, artifact: Artifact) -> Iterator[Mapping[str, Mapping[str, int]]]:
    names = (name for folder in step.folders for name in (folder.name, *folder.also))
    return (artifact.counts(f"{step.name}/{name}") for name in names)


def _add(grid: Grid, measure: str, dimension: str, units: Units, wide: bool) -> None:
    """Add the counts of every unit to their members, and where `wide` to total, source and part."""
    for unit, members in units.items():
        for member, count in members.items():
            cells = {(dimension, member)} if dimension else set()
            if wide:
                cells |= {("total", "all"), ("part", unit)}
                source = None if dimension == "source" else source_of(unit)
                cells |= {("source", source)} if source else set()
            for cell in cells:
                row = grid.setdefault(cell, {})
                row[measure] = row.get(measure, 0) + count


def _names(names: str | Sequence[str], params: Any) -> list[str]:
    """A suite's members: the list itself, or the names in a field of the params."""
    if not isinstance(names, str):
        return list(names)
    return [item if isinstance(item, str) else item.name for item in getattr(params, names, ())]


def _fill(grid: Grid) -> None:
    """Nothing counted is 0 wherever the measure is counted by that dimension at all, null elsewhere."""
    counted: dict[str, set[str]] = {}
    for (dimension, _), row in grid.items():
        counted.setdefault(dimension, set()).update(row)
    for (dimension, _), row in grid.items():
        for measure in counted[dimension]:
            row.setdefault(measure, 0)


def _table(grid: Grid, ratios: Mapping[str, Ratio]) -> pa.Table:
    cells = sorted(grid, key=lambda cell: (WIDE.index(cell[0]) if cell[0] in WIDE else len(WIDE), cell))
    columns = {
        "dimension": pa.array([cell[0] for cell in cells], pa.string()),
        "member": pa.array([cell[1] for cell in cells], pa.string()),
    }
    for measure in sorted({measure for row in grid.values() for measure in row}):
        columns[measure] = pa.array([grid[cell].get(measure) for cell in cells], pa.int64())
    for name, ratio in sorted(ratios.items()):
        if set(ratio.of + ratio.by) <= set(columns):
            columns[name] = pa.array([_quotient(grid[cell], ratio) for cell in cells], pa.float64())
    return pa.table(columns)


def _quotient(row: Mapping[str, int], ratio: Ratio) -> float | None:
    if not set(ratio.of + ratio.by) <= set(row):
        return None
    divisor = sum(row[measure] for measure in ratio.by)
    return sum(row[measure] for measure in ratio.of) / divisor if divisor else None


def _placed(rows: pa.Table, place: int, unit: str) -> pa.Table:
    """`rows` with the unit's place, each row's number and the hash of both."""
    numbers = np.arange(rows.num_rows, dtype=np.uint64)
    rows = rows.append_column("@unit", pa.array(np.full(rows.num_rows, place, np.int64)))
    rows = rows.append_column("@row", pa.array(numbers.astype(np.int64)))
    return rows.append_column("@hash", pa.array(_hashes(unit, numbers)))


def _hashes(unit: str, numbers: np.ndarray) -> np.ndarray:
    """splitmix64 (Steele, Lea, Flood 2014) of row numbers, seeded by the SHA-256 of the unit's name, [n]."""
    seed = np.uint64(int.from_bytes(hashlib.sha256(unit.encode()).digest()[:8], "little"))
    with np.errstate(over="ignore"):
        mixed = seed + (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def _smallest(held: Sequence[pa.Table], most: int) -> pa.Table:
    """The `most` rows of the smallest hashes, in their order."""
    table = pa.concat_tables(held, promote_options="permissive")
    if table.num_rows <= most:
        return table
    order = np.argsort(table["@hash"].to_numpy(), kind="stable")[:most]
    return table.take(pa.array(np.sort(order)))
