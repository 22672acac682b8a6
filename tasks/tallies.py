"""What the expectations of a suite count in a table of any length: part by part, each row, in memory for one part.

In go expectations and the rows of one part after another, out comes a Tally for each: the figures that Great
Expectations would count in a frame of all rows, and from which it judges (tasks.validate). Nothing is judged here and
great_expectations is not imported; a test holds the figures against those that it counts itself.

The forms that are counted are those of tasks.tally_forms, on columns of numbers and of text. Of any other, rows and
nulls alone are counted, and `counted` is false.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.suites import NULL_LIMIT, Expected
from tasks.tally_columns import Array, Part
from tasks.tally_forms import COUNTED, DISTINCT, is_counted

EXAMPLES_MOST = 20
"""Offenders that are remembered of each expectation, the first ones."""

DISTINCT_MOST = 250_000
"""Different values that are told apart in a column; one with more is not counted."""


@dataclass
class Tally:
    """What one expectation counted.

    rows: of its condition. nulls: those of them without a value in some column named; absent: in every one.
    tested: those that it looked at. broken: those that it does not hold for. places, values: row number and value of
    the first of these, at most EXAMPLES_MOST. counted: whether `broken` and `distinct`, the different values, mean
    anything.
    """

    counted: bool
    rows: int = 0
    nulls: int = 0
    absent: int = 0
    tested: int = 0
    broken: int = 0
    places: list[int] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    distinct: set[Any] = field(default_factory=set)


def new_tallies(expected: Iterable[Expected]) -> list[Tally]:
    """An empty tally for each expectation."""
    return [Tally(is_counted(item)) for item in expected]


def add_rows(tallies: Iterable[Tally], expected: Iterable[Expected], rows: pa.Table, first: int) -> None:
    """Count `rows`, of which the first is row number `first` of all. A column that they lack is null in each.

    Raises BadCondition (tasks.tally_columns) for a condition that pandas cannot carry out.
    """
    part = Part(rows)
    for tally, item in zip(tallies, expected, strict=True):
        _add(tally, item, part, first)


def _add(tally: Tally, item: Expected, part: Part, first: int) -> None:
    where = part.where(item.condition)
    gone = [part.missing(column) for column in item.columns]
    known = [one for one in gone if one is not None]
    any_gone = np.logical_or.reduce(known) if known else None
    all_gone = np.logical_and.reduce(known) if known and len(known) == len(gone) else None
    rows, nulls = part.rows if where is None else int(where.sum()), _how_many(any_gone, where)
    tally.rows += rows
    tally.nulls += nulls
    tally.tested += rows if item.type == NULL_LIMIT else rows - nulls
    tally.absent += _how_many(all_gone, where)
    if tally.counted:
        _add_broken(tally, item, part, first, where, any_gone, all_gone)


def _add_broken(
    tally: Tally, item: Expected, part: Part, first: int, where: Array | None, any_gone: Array | None,
    all_gone: Array | None,
) -> None:  # fmt: skip
    excused = None if item.type == NULL_LIMIT else all_gone if COUNTED[item.type].pair else any_gone
    if excused is not None and excused.all():
        return
    found = COUNTED[item.type].broken(item, part)
    if found is False:
        tally.counted = False
    elif item.type == DISTINCT:
        _tell_apart(tally, item, part, where)
    elif isinstance(found, np.ndarray):
        broken = found if excused is None else found & ~excused
        _remember(tally, item, part, broken if where is None else broken & where, first)


def _how_many(rows: Array | None, where: Array | None) -> int:
    if rows is None:
        return 0
    return int(rows.sum() if where is None else (rows & where).sum())


def _remember(tally: Tally, item: Expected, part: Part, broken: Array, first: int) -> None:
    places = np.flatnonzero(broken)
    tally.broken += len(places)
    for place in places[: EXAMPLES_MOST - len(tally.places)].tolist():
        seen = [_plain(part.column(name)[place]) for name in item.columns]
        tally.places.append(first + place)
        tally.values.append(seen[0] if len(seen) == 1 else tuple(seen))


def _plain(value: pa.Scalar) -> Any:
    """As pandas has it: a null is NaN."""
    found = value.as_py()
    return math.nan if found is None or found != found else found


def _tell_apart(tally: Tally, item: Expected, part: Part, where: Array | None) -> None:
    column = part.column(item.columns[0])
    chosen = column if where is None else column.filter(pa.array(where))
    tally.distinct.update(value for value in pc.unique(chosen.drop_null()).to_pylist() if value == value)
    if len(tally.distinct) > DISTINCT_MOST:
        tally.counted, tally.distinct = False, set()
