"""The two tables of a step under test, counted: profile and rows, and what of them is no matter of counting.

In go a step, its artifact and its suite; out come a Subject of each table, with what every expectation counted, and the
rows that Great Expectations must look at itself. The rows of one part are held at a time, and of as many more as
threads read ahead. Nothing is judged here.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

import pyarrow as pa

from tasks.errors import ParamsError
from tasks.findings import Subject
from tasks.profile import profile_table, sample_rows, with_visible
from tasks.step import Artifact, Step
from tasks.suites import VISIBLE, Expected, Suite
from tasks.tallies import Tally, add_rows, new_tallies
from tasks.tally_columns import BadCondition


@dataclass(frozen=True)
class Table:
    """A table under test, and what of it Great Expectations counts in itself.

    frame: the columns that it looks at; places: the number of each of these rows among all.
    """

    subject: Subject
    frame: pa.Table
    places: Sequence[int]


def profile_of(step: Step, artifact: Artifact, suite: Suite, name: str) -> Table:
    """The profile. name: how messages name the suite. Raises ParamsError for a condition that pandas does not know."""
    table = profile_table(step, artifact, suite)
    totals = {name: table[name][0].as_py() for name in table.column_names[2:]}
    members = [f"{row['dimension']} {row['member']}" for row in table.select(["dimension", "member"]).to_pylist()]
    table, tallies = with_visible(table, suite.visible("profile")), new_tallies(suite.profile)
    _count(tallies, suite, "profile", table, 0, name)
    columns, rows = table.column_names, table.num_rows
    subject = Subject("profile", columns, rows, members.__getitem__, suite, totals, tallies)
    return Table(subject, table, range(rows))


def rows_of(
    step: Step, artifact: Artifact, suite: Suite, totals: Mapping[str, int], name: str, hands: int = 1
) -> Table:
    """Every row, part by part; and where an expectation is of no form that is counted, a sample of what it looks at.

    totals: measure -> its total. hands: threads that may read parts at once. name, and what is raised: as profile_of.
    """
    tallies, columns = new_tallies(suite.rows), dict[str, None]()
    units = artifact.units(step.rows_of)
    starts, count = list[int](), 0
    for rows in _in_turn(lambda unit: with_visible(step.rows(artifact, unit), suite.visible("rows")), units, hands):
        _count(tallies, suite, "rows", rows, count, name)
        columns |= dict.fromkeys(rows.column_names)
        starts.append(count)
        count += rows.num_rows

    def label(place: int) -> str:
        number = bisect_right(starts, place) - 1
        return f"{units[number]} row {place - starts[number]}"

    subject = Subject("rows", list(columns), count, label, suite, totals, tallies)
    wanted = _looked_at([subject.expected[number] for number in uncounted(subject)], columns)
    if not wanted:
        return Table(subject, pa.table({}), [])
    sample = sample_rows(step, artifact, wanted)
    begins = dict(zip(units, starts, strict=True))
    places = [begins[unit] + number for unit, number in zip(sample.units, sample.numbers.tolist(), strict=True)]
    scope = f" (a sample of {len(places)} of {count} rows)" if len(places) < count else ""
    return Table(replace(subject, scope=scope), with_visible(sample.rows, suite.visible("rows")), places)


def _in_turn(read: Callable[[str], pa.Table], units: Sequence[str], hands: int) -> Iterator[pa.Table]:
    """The rows of each part in their order, as many parts ahead as there are hands: reading is half of the judging."""
    if hands <= 1:
        yield from map(read, units)
        return
    with ThreadPoolExecutor(hands) as threads:
        waiting = deque[Future[pa.Table]]()
        for unit in units:
            waiting.append(threads.submit(read, unit))
            if len(waiting) > hands:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _count(tallies: Sequence[Tally], suite: Suite, table: str, rows: pa.Table, first: int, name: str) -> None:
    try:
        add_rows(tallies, suite.of(table), rows, first)
    except BadCondition as error:
        raise ParamsError(f"{name}: a row_condition of {table}: {error}", "correct it") from error


def uncounted(subject: Subject) -> list[int]:
    """The numbers of the expectations that are not counted and could be tested."""
    numbers = range(len(subject.expected)) if subject.rows else range(0)
    return [n for n in numbers if not subject.tallies[n].counted and not subject.absent(subject.expected[n])]


def _looked_at(expected: Sequence[Expected], columns: Iterable[str]) -> set[str]:
    """The columns that expectations look at, those of their conditions too; all of `columns` where one names none."""
    if not all(item.columns for item in expected):
        return set(columns)
    words = {word for item in expected for word in re.findall(r"\w+", item.condition or "")}
    named = {column for item in expected for column in item.columns} | words
    return named | {column.removesuffix(VISIBLE) for column in named}
