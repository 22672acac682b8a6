"""Rules over signals: which documents break one, and by how much.

In: rules as params.yaml holds them, and a table of signals. Out: for every row the first rule broken, the
value and the limit. It measures nothing and reads no text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

LANGUAGE = "language"
NUMBERS = (
    "characters",
    "bytes",
    "words",
    "lines",
    "mean_word_length",
    "symbol_share",
    "duplicate_3gram_share",
    "language_score",
)
"""The signals that min and max can limit."""


class Rule(BaseModel):
    """One rule; a document breaks it where its signal is below `min` or above `max` (a limit itself passes).

    kinds, languages: the rule concerns only documents of those; without them it concerns all.
    The signal `language` is different: its rule has no min and max, and `languages` are those that pass; a
    breach then has the value 0 and the limit 1 (is it one of the languages: 0 no, 1 yes).
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    signal: str
    min: float | None = None
    max: float | None = None
    kinds: tuple[Literal["web", "book", "code", "paper", "chat"], ...] | None = Field(None, min_length=1)
    languages: tuple[str, ...] | None = Field(None, min_length=1)

    @field_validator("signal")
    @classmethod
    def _known(cls, signal: str) -> str:
        if signal not in (*NUMBERS, LANGUAGE):
            raise ValueError(f"no such signal; there are {', '.join((*NUMBERS, LANGUAGE))}")
        return signal

    @field_validator("kinds", "languages")
    @classmethod
    def _in_order(cls, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """They stand for sets: in whatever order they are written, the rule is the same."""
        return names and tuple(sorted(set(names)))

    @model_validator(mode="after")
    def _limited(self) -> Self:
        limits = [limit for limit in (self.min, self.max) if limit is not None]
        if self.signal == LANGUAGE and (limits or self.languages is None):
            raise ValueError(f"rule {self.name}: the signal language takes languages, neither min nor max")
        if self.signal != LANGUAGE and not limits:
            raise ValueError(f"rule {self.name} has neither min nor max, so nothing can break it; give one")
        if len(limits) == 2 and limits[0] > limits[1]:
            raise ValueError(f"rule {self.name}: min {limits[0]} is above max {limits[1]}, so nothing passes")
        return self


def check_names(rules: Sequence[Rule]) -> None:
    """Raises ValueError where two rules share a name."""
    names = [rule.name for rule in rules]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"more than one rule is named {', '.join(twice)}; give each a name of its own")


class Breaches(NamedTuple):
    """The first rule that each of D documents breaks."""

    rule_D: np.ndarray
    """int64: its place in the rules, -1 where none is broken."""
    value_D: np.ndarray
    """float64: the signal's value, NaN where none is broken."""
    limit_D: np.ndarray
    """float64: the limit that it broke, NaN where none is broken."""


def judge(rules: Sequence[Rule], signals: pa.Table, kinds: pa.Array | pa.ChunkedArray) -> Breaches:
    """Hold D rows of signals against the rules, in their order; kinds [D]: web, book, code, paper or chat."""
    rows = signals.num_rows
    broken = Breaches(np.full(rows, -1), np.full(rows, np.nan), np.full(rows, np.nan))
    for place, rule in enumerate(rules):
        value_D, limit_D = _limits(rule, signals)
        new_D = (broken.rule_D < 0) & ~np.isnan(limit_D) & _concerned(rule, signals, kinds)
        broken.rule_D[new_D], broken.value_D[new_D] = place, value_D[new_D]
        broken.limit_D[new_D] = limit_D[new_D]
    return broken


def _limits(rule: Rule, signals: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """(value, the limit that it breaks or NaN), float64 [D] each, whomever the rule concerns."""
    if rule.signal == LANGUAGE:
        value_D = _is_in(signals[LANGUAGE], rule.languages).astype(np.float64)
        return value_D, np.where(value_D < 1, 1.0, np.nan)
    value_D = np.asarray(signals[rule.signal].to_numpy(), np.float64)
    limit_D = np.full(len(value_D), np.nan)
    if rule.min is not None:
        limit_D[value_D < rule.min] = rule.min
    if rule.max is not None:
        limit_D[value_D > rule.max] = rule.max
    return value_D, limit_D


def _concerned(rule: Rule, signals: pa.Table, kinds: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Whether the rule concerns each row, bool [D]."""
    concerned_D = _is_in(kinds, rule.kinds)
    if rule.signal != LANGUAGE:
        concerned_D &= _is_in(signals[LANGUAGE], rule.languages)
    return concerned_D


def _is_in(column: pa.Array | pa.ChunkedArray, members: Sequence[str] | None) -> np.ndarray:
    """Whether each value is one of `members`; None stands for all values."""
    if members is None:
        return np.ones(len(column), np.bool_)
    found = pc.is_in(column, value_set=pa.array(members, column.type))
    return np.array(found.to_numpy(zero_copy_only=False), np.bool_)
