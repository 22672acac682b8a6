"""Which rows an expectation does not hold for: the forms that are counted part by part, as arrays.

In go an expectation and the columns of one part, out come the rows that are broken. Each form does to arrays what Great
Expectations 1.24.1 does to a frame; a test holds both against each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.suites import NULL_LIMIT, Expected
from tasks.tally_columns import Array, Part, full, is_text

DISTINCT = "expect_column_unique_value_count_to_be_between"
Broken = Array | None | bool
"""bool [rows], whatever it is where a value is missing; None where none is broken; False where the column is of a kind
that is not counted."""
_EVERYWHERE = frozenset(("column", "column_A", "column_B", "mostly", "row_condition", "condition_parser"))
_BOUNDS = ("min_value", "max_value", "strict_min", "strict_max")


class Form(NamedTuple):
    """limits: the kwargs that it may have. broken: the rows. pair: rows are excused where both columns lack a value;
    else where any does."""

    limits: tuple[str, ...]
    broken: Callable[[Expected, Part], Broken]
    pair: bool = False


def is_counted(item: Expected) -> bool:
    """Whether the expectation is of a form whose rows are counted here."""
    form = COUNTED.get(item.type)
    if form is None or not set(item.kwargs) <= _EVERYWHERE | set(form.limits):
        return False
    limits: list[Any] = [item.kwargs.get("min_value"), item.kwargs.get("max_value")]
    numbers = [limit for limit in limits if _is_number(limit)]
    if form.limits == _BOUNDS and (not numbers or numbers != sorted(numbers)):
        return False
    known = item.kwargs.get("value_set", [""])
    return isinstance(known, list) and bool(known) and isinstance(item.kwargs.get("regex", ""), str)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _no_limit(item: Expected, part: Part) -> Broken:
    return None


def _countable(item: Expected, part: Part) -> Broken:
    column = part.column(item.columns[0])
    return None if is_text(column.type) or part.numbers(item.columns[0]) is not None else False


def _null(item: Expected, part: Part) -> Broken:
    return part.missing(item.columns[0])


def _outside(item: Expected, part: Part) -> Broken:
    name = item.columns[0]
    numbers = part.numbers(name)
    if numbers is None:
        return False
    extent = part.range(name)
    if extent is None or all(_within(value, item.kwargs) for value in extent):
        return None
    return np.asarray(~_within(numbers, item.kwargs))


def _within(value: Any, limits: Mapping[str, Any]) -> Any:
    """Whether a number, or each of many, lies within the limits."""
    low, high = limits.get("min_value"), limits.get("max_value")
    above: Any = True if low is None else value > low if limits.get("strict_min") else value >= low
    below: Any = True if high is None else value < high if limits.get("strict_max") else value <= high
    return above & below


def _foreign(item: Expected, part: Part) -> Broken:
    name, known = item.columns[0], item.kwargs["value_set"]
    if all(isinstance(value, str) for value in known) and is_text(part.column(name).type):
        column = part.column(name)
        return np.asarray(~pc.is_in(column, pa.array(known, column.type)).to_numpy())
    numbers = part.numbers(name)
    if numbers is None or not all(map(_is_number, known)):
        return False
    return np.asarray(~np.isin(numbers, known))


def _unlike(item: Expected, part: Part) -> Broken:
    """By pandas itself, whose regular expressions Great Expectations takes."""
    column = part.column(item.columns[0])
    if not is_text(column.type):
        return False
    try:
        found = ~column.to_pandas().astype(str).str.contains(item.kwargs["regex"]).to_numpy(np.bool_)
    except (re.error, ValueError):
        return False
    return np.asarray(found) if found.any() else None


def _pair(item: Expected, part: Part) -> tuple[Array, Array, Array] | None:
    """(numbers of A, of B, whether either is missing)."""
    one, other = (part.numbers(name) for name in item.columns)
    if one is None or other is None:
        return None
    gone = [full(part.missing(name), part) for name in item.columns]
    return one, other, gone[0] | gone[1]


def _not_greater(item: Expected, part: Part) -> Broken:
    found = _pair(item, part)
    if found is None:
        return False
    one, other, gone = found
    return np.asarray((one < other if item.kwargs.get("or_equal") else one <= other) | gone)


def _unequal(item: Expected, part: Part) -> Broken:
    found = _pair(item, part)
    return False if found is None else np.asarray((found[0] != found[1]) | found[2])


COUNTED = {
    "expect_table_row_count_to_be_between": Form(("min_value", "max_value"), _no_limit),
    NULL_LIMIT: Form((), _null),
    "expect_column_values_to_be_between": Form(_BOUNDS, _outside),
    "expect_column_values_to_be_in_set": Form(("value_set",), _foreign),
    "expect_column_values_to_match_regex": Form(("regex",), _unlike),
    "expect_column_pair_values_a_to_be_greater_than_b": Form(("or_equal",), _not_greater, pair=True),
    "expect_column_pair_values_to_be_equal": Form((), _unequal, pair=True),
    DISTINCT: Form(_BOUNDS, _countable),
}
