"""Suites as data: expectations/<step>.json, checked before anything is tested.

In goes the file, out comes a Suite: which expectations of Great Expectations hold for the two tables
`profile` and `rows`, which ratios and members the profile owes. Nothing is tested here and great_expectations
is not imported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tasks.artifacts.canonical import digest
from tasks.errors import ParamsError

TABLES = ("profile", "rows")
VISIBLE = "_visible"
"""Suffix of a column made for a suite: `id_visible` is the number of visible characters of `id`."""

NULL_LIMIT = "expect_column_values_to_not_be_null"
CONDITION = re.compile(r"[\w\s\"'=!<>.-]+", re.ASCII)
"""What a row_condition may be written with: pandas would carry out a call or an @name."""


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Meta(_Data):
    """why: the reason of the limit. empty_when_zero: a measure; of total 0, no row need be tested."""

    why: str = Field(min_length=1)
    empty_when_zero: str | None = None


class Expected(_Data):
    """One expectation, in the words of Great Expectations: its type, its kwargs and its severity."""

    type: str = Field(pattern="^expect_[a-z_0-9]+$")
    kwargs: dict[str, Any]
    severity: Literal["critical", "warning"]
    meta: Meta

    @property
    def columns(self) -> list[str]:
        """The columns it looks at, those of its condition left out."""
        named = [self.kwargs[key] for key in ("column", "column_A", "column_B") if key in self.kwargs]
        return named + list(self.kwargs.get("column_list", []))

    @property
    def condition(self) -> str | None:
        """The rows it is about, as a pandas query; None for all."""
        return self.kwargs.get("row_condition")

    @property
    def limits(self) -> dict[str, Any]:
        """Its kwargs without columns and condition."""
        others = ("column", "column_A", "column_B", "column_list", "row_condition", "condition_parser")
        return {key: value for key, value in self.kwargs.items() if key not in others}


class Ratio(_Data):
    """A column of the profile: the sum of the measures `of`, divided by the sum of those `by`; null of 0."""

    of: list[str] = Field(min_length=1)
    by: list[str] = Field(min_length=1)


class Suite(_Data):
    """ratios: column -> how it is divided.

    members: "measure|dimension" -> the members that must stand in the profile even where nothing was counted:
    a
        list of names, or the field of the step's params whose items have names (filter's rules).
    """

    ratios: dict[str, Ratio] = {}
    members: dict[str, str | list[str]] = {}
    profile: list[Expected] = Field(min_length=1)
    rows: list[Expected] = Field(min_length=1)

    def of(self, table: str) -> list[Expected]:
        return self.profile if table == "profile" else self.rows

    def visible(self, table: str) -> list[str]:
        """The columns of `table` whose visible characters an expectation asks for, sorted."""
        named = {column for expected in self.of(table) for column in expected.columns}
        return sorted(column.removesuffix(VISIBLE) for column in named if column.endswith(VISIBLE))


def load(path: Path) -> Suite:
    """The suite in `path`. Raises ParamsError where it is absent, no JSON, or not of the form above."""
    try:
        suite = Suite.model_validate(_plain(path))
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()]
        raise ParamsError(f"{name_of(path)}: {'; '.join(faults)}", "correct it") from None
    faults = list(_faults(suite))
    if faults:
        raise ParamsError(f"{name_of(path)}: {'; '.join(faults)}", "correct it")
    return suite


def digest_of(path: Path) -> str:
    """64 hex over what the suite says, not how it is laid out. Raises ParamsError as load does."""
    return digest(_plain(path))


def name_of(path: Path) -> str:
    """How messages name a suite: expectations/filter.json."""
    return f"{path.parent.name}/{path.name}"


def _plain(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ParamsError(f"{path} is not there", "lay it again with: gristmill init, or from git") from None
    except (ValueError, RecursionError) as error:
        raise ParamsError(f"{name_of(path)} is not JSON: {error}", "correct that line") from error


def _faults(suite: Suite) -> Iterator[str]:
    for table in TABLES:
        for number, expected in enumerate(suite.of(table)):
            yield from (f"{table}.{number}: {fault}" for fault in _condition_faults(expected))
    for key in suite.members:
        if "|" not in key:
            yield f'members.{key}: is named "measure|dimension", as "dropped|rule"'


def _condition_faults(expected: Expected) -> Iterator[str]:
    """Great Expectations' own parser reads the first comparison of an `and` and drops the others (1.24.1)."""
    condition = expected.condition
    if condition is None:
        return
    if expected.kwargs.get("condition_parser") != "pandas":
        yield f'row_condition {condition!r} needs "condition_parser": "pandas"'
    if not isinstance(condition, str) or not CONDITION.fullmatch(condition):
        yield f"row_condition {condition!r} may hold names, quoted words, numbers, comparisons, and, or, not"
