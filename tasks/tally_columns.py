"""The columns of one part as the counts of a suite need them: numbers, what is missing, which rows fulfil a condition.

In goes a table, out come numpy arrays, each made once for all expectations. tasks.tally_forms counts by them.
What is missing and what a condition means is as pandas has it, since Great Expectations asks pandas.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Array = np.ndarray
_COMPARISON = re.compile(r"""\s*(\w+)\s*(==|!=|<=?|>=?)\s*(?:"([^"\\]*)"|(-?[0-9]{1,15}))\s*""", re.ASCII)
_COMPARE = {
    "==": pc.equal, "!=": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal,
}  # fmt: skip


class BadCondition(ValueError):
    """A condition that pandas cannot carry out, in its words."""


class Part:
    """Columns of one part, looked at once for all expectations."""

    def __init__(self, table: pa.Table) -> None:
        self.table, self.rows, self.names = table, table.num_rows, frozenset(table.column_names)
        self._columns: dict[str, pa.ChunkedArray | None] = {}
        self._missing: dict[str, Array | None] = {}
        self._numbers: dict[str, Array | None] = {}
        self._ranges: dict[str, tuple[Any, Any] | None] = {}
        self._where: dict[str, Array | None] = {}

    def column(self, name: str) -> pa.ChunkedArray:
        """The column; of no values and numbers where the part lacks it or has none in it."""
        if name not in self._columns:
            known = self.table[name] if name in self.names else pa.chunked_array([pa.nulls(self.rows)])
            self._columns[name] = known.cast(pa.float64()) if pa.types.is_null(known.type) else known
        return self._columns[name]

    def missing(self, name: str) -> Array | None:
        """bool [rows], null or NaN as pandas has it; None where nothing is."""
        if name not in self._missing:
            column = self.column(name)
            found = None
            if column.null_count:
                found = pc.is_null(column, nan_is_null=True).to_numpy()
            elif pa.types.is_floating(column.type):
                found = np.isnan(column.to_numpy())
            self._missing[name] = found if found is not None and found.any() else None
        return self._missing[name]

    def numbers(self, name: str) -> Array | None:
        """The column's numbers [rows], anything where one is missing; None of a column that has none."""
        if name not in self._numbers:
            column = self.column(name)
            is_number = pa.types.is_integer(column.type) or column.type in (pa.float32(), pa.float64())
            filled = column.fill_null(0) if is_number and column.null_count else column
            self._numbers[name] = filled.to_numpy() if is_number else None
        return self._numbers[name]

    def range(self, name: str) -> tuple[Any, Any] | None:
        """(least, largest) of the numbers that are there; None where there is none."""
        if name not in self._ranges:
            numbers, missing = self.numbers(name), self.missing(name)
            there = numbers if numbers is None or missing is None else numbers[~missing]
            self._ranges[name] = None if there is None or not len(there) else (there.min(), there.max())
        return self._ranges[name]

    def where(self, condition: str | None) -> Array | None:
        """bool [rows]: those that fulfil the condition; None for all. Raises BadCondition."""
        if condition is None:
            return None
        if condition not in self._where:
            found = self._compared(condition)
            self._where[condition] = self._queried(condition) if found is None else found
        return self._where[condition]

    def _compared(self, condition: str) -> Array | None:
        """One comparison of a column with a word or a number of its kind; None where the condition is no such thing."""
        match = _COMPARISON.fullmatch(condition)
        if match is None or match[1] not in self.names:
            return None
        name, sign, word, number = match.groups()
        column = self.column(name)
        if word is None and self.numbers(name) is None:
            return None
        if word is not None and (not is_text(column.type) or sign not in ("==", "!=")):
            return None
        value = pa.scalar(word, column.type) if word is not None else pa.scalar(int(number))
        found = _COMPARE[sign](column, value).fill_null(sign == "!=").to_numpy()
        return np.asarray(found)

    def _queried(self, condition: str) -> Array:
        words = set(re.findall(r"\w+", condition))
        names = [name for name in self.table.column_names if name in words]
        frame = pa.table({name: self.column(name) for name in names}).to_pandas().reindex(range(self.rows))
        found = np.zeros(self.rows, np.bool_)
        try:
            found[frame.query(condition).index] = True
        except Exception as error:
            raise BadCondition(str(error)) from error
        return found


def full(missing: Array | None, part: Part) -> Array:
    """bool [rows] of what may be None for nowhere."""
    return np.zeros(part.rows, np.bool_) if missing is None else missing


def is_text(kind: pa.DataType) -> bool:
    """Whether it is a kind of strings."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
