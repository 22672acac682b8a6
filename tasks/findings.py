"""What the results of an expectation mean: broken, held, or nothing was tested.

In go what a suite counted of a table (tasks.tallies) and what Great Expectations said; out come findings, one
sentence each. How many rows an expectation looked at is asked once more, because Great Expectations passes what it
never looked at: no rows, a column of nothing but nulls, a condition that no row fulfils (measured, 1.24.1). It is not
imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.suites import NULL_LIMIT, VISIBLE, Expected, Suite
from tasks.tallies import Tally

EXAMPLES = {"profile": 20, "rows": 3}
"""How many offenders a sentence shows: of the profile enough to name every rule, of the rows a few."""


@dataclass(frozen=True)
class Finding:
    """critical: whether it stops the step."""

    critical: bool
    sentence: str


@dataclass(frozen=True)
class Subject:
    """One table under test.

    name: profile or rows. columns: those it has. rows: how many. label: row number -> what that row is called.
    totals: measure -> its total. tallies: what each expectation of the suite counted. scope: says that a sample was
    tested, for those that were not counted.
    """

    name: str
    columns: Sequence[str]
    rows: int
    label: Callable[[int], str]
    suite: Suite
    totals: Mapping[str, int]
    tallies: Sequence[Tally]
    scope: str = ""

    @property
    def expected(self) -> list[Expected]:
        return self.suite.of(self.name)

    def absent(self, expected: Expected) -> list[str]:
        """The columns that `expected` names and the table has not."""
        return [column for column in expected.columns if column not in self.columns]


def judge(number: int, result: Any, subject: Subject) -> Iterator[Finding]:
    """What there is to say of one expectation, by its number in the suite. result: Great Expectations' answer, None if
    it gave none."""
    expected, tally = subject.expected[number], subject.tallies[number]
    absent = subject.absent(expected)
    if absent:
        has = ", ".join(sorted(subject.columns))
        yield Finding(True, f"{title(expected)} tested nothing: no column {absent[0]} (there are: {has})")
        return
    fault = _fault(result)
    if fault:
        yield Finding(True, f"{title(expected)} could not be tested: {fault}")
    elif not _looked(tally, result):
        yield from _empty(expected, tally, subject)
    elif not result.success:
        seen = _observed(result.result, subject)
        critical = expected.severity == "critical"
        yield Finding(critical, f"{title(expected)} is broken: {seen}; {expected.meta.why.rstrip('.')}")
    yield from _idle(expected, tally, subject)


def title(expected: Expected) -> str:
    """The expectation with its column, condition and limits."""
    limits = ", ".join(f"{key} {value}" for key, value in sorted(expected.limits.items()))
    of = f" of {', '.join(expected.columns)}" if expected.columns else ""
    where = f" where {expected.condition}" if expected.condition else ""
    return f"{expected.type}{of}{where}{f' ({limits})' if limits else ''}"


def _fault(result: Any) -> str | None:
    """Why Great Expectations gave no answer; None where it did."""
    if result is None:
        return "Great Expectations gave no result for it"
    info = result.exception_info or {}
    raised = [info] if "raised_exception" in info else list(info.values())
    return "; ".join(sorted({str(item["exception_message"]) for item in raised if item["raised_exception"]})) or None


def _looked(tally: Tally, result: Any) -> bool:
    """Whether at least one value was tested, by our count and by that of Great Expectations."""
    percent = (result.result or {}).get("unexpected_percent", 0.0)
    return tally.tested > 0 and percent is not None


def _empty(expected: Expected, tally: Tally, subject: Subject) -> Iterator[Finding]:
    measure = expected.meta.empty_when_zero
    if measure is not None and subject.totals.get(measure) == 0:
        return
    reason = f"none of {subject.rows} rows fulfils its condition"
    if tally.rows:
        reason = f"all {tally.rows} values are null"
    yield Finding(True, f"{title(expected)} tested nothing: {reason}")


def _idle(expected: Expected, tally: Tally, subject: Subject) -> Iterator[Finding]:
    """Limits that limit less than they seem to: mostly 0, and nulls that a value expectation skips."""
    if expected.kwargs.get("mostly") == 0:
        yield Finding(False, f"{title(expected)} can never be broken, since mostly is 0")
    if expected.type == NULL_LIMIT or not expected.type.startswith("expect_column_values_"):
        return
    if 0 < tally.nulls < tally.rows and not _limited(expected, subject):
        skipped = f"skipped {tally.nulls} nulls of {tally.rows} values"
        yield Finding(False, f"{title(expected)} {skipped}; no {NULL_LIMIT} limits them")


def _limited(expected: Expected, subject: Subject) -> bool:
    """Whether the suite limits the nulls of the column; those of id_visible are those of id."""
    names = {name for column in expected.columns for name in (column, column.removesuffix(VISIBLE))}
    return any(item.type == NULL_LIMIT and names & set(item.columns) for item in subject.expected)


def _observed(seen: Mapping[str, Any], subject: Subject) -> str:
    """What was seen: how many of how many, and the first offenders; or the one value of an aggregate."""
    if "element_count" not in seen:
        return f"observed {_plain(seen.get('observed_value'))}"
    count, tested = seen["unexpected_count"], seen["element_count"] - seen.get("missing_count", 0)
    places, values = seen.get("partial_unexpected_index_list") or [], seen.get("partial_unexpected_list", [])
    most = EXAMPLES[subject.name]
    shown = [f"{subject.label(n)}: {_plain(value)}" for n, value in zip(places[:most], values, strict=False)]
    more = f" and {count - len(shown)} more" if count > len(shown) else ""
    return f"{count} of {tested} tested ({', '.join(shown)}{more})"


def _plain(value: Any) -> str:
    """A value for people: null for NaN, six digits of a float, the first 80 characters of a text."""
    if value is None or value != value:
        return "null"
    if isinstance(value, float):
        return f"{value:.6g}"
    return repr(value[:80]) if isinstance(value, str) else str(value)
