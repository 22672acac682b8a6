"""Rules over signals: which documents break one, by how much, and what is done with them.

In: rules as params.yaml holds them, and what was measured of documents. Out: for every document the first rule that
drops it, and those for which lines are cut. It measures nothing and reads no text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Literal, NamedTuple, Self

import numpy as np
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

LANGUAGE, LANGUAGE_SCORE, LETTERS = "language", "language_score", "letters"
CUTTABLE = {
    "javascript_lines",
    "policy_lines",
    "unterminated_lines",
    "brief_lines",
    "duplicate_line_share",
    "duplicate_line_character_share",
}
"""Signals that say of single lines whether they belong to it."""
CUT_KINDS = ("web", "book", "paper")
"""A hole leaves no conversation and no program: chats and code are never cut."""

Kind = Literal["web", "book", "code", "paper", "chat"]
Names = tuple[str, ...]


class Scope(BaseModel):
    """Which documents are meant: those of these kinds, languages and sources; None stands for all."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    kinds: tuple[Kind, ...] | None = Field(None, min_length=1)
    languages: Names | None = Field(None, min_length=1)
    sources: Names | None = Field(None, min_length=1)


class Otherwise(Scope):
    """Other limits for some documents. skip: the rule does not judge them; else a limit given replaces the rule's."""

    min: float | None = None
    max: float | None = None
    skip: bool = False


class Rule(Scope):
    """One rule; a document breaks it where its signal is below `min` or above `max` (a limit itself passes).

    A value that is absent (a field of metadata, a user's own signal) breaks no rule.
    where: exceptions; the first that means a document decides.
    action: drop the document, or cut the lines that belong to the signal (web, book and paper; others are not judged).
    The signal `language` is different: its rule has no min and max, and `languages` are those that pass; a
    breach then has the value 0 and the limit 1 (is it one of the languages: 0 no, 1 yes).
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)?$")
    signal: str
    min: float | None = None
    max: float | None = None
    where: tuple[Otherwise, ...] = ()
    action: Literal["drop", "cut"] = "drop"

    @field_validator("kinds", "languages")
    @classmethod
    def _in_order(cls, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """They stand for sets: in whatever order they are written, the rule is the same."""
        return names and tuple(sorted(set(names)))

    @model_validator(mode="after")
    def _limited(self) -> Self:
        if self.signal == LANGUAGE:
            if self.min is not None or self.max is not None or self.languages is None or self.where:
                raise ValueError(f"rule {self.name}: the signal language takes languages, neither min, max nor where")
            return self
        limits = [(self.min, self.max), *((item.min, item.max) for item in self.where)]
        if all(limit is None for pair in limits for limit in pair):
            raise ValueError(f"rule {self.name} has neither min nor max, so nothing can break it; give one")
        for own_min, own_max in limits:
            low, high = _or(own_min, self.min), _or(own_max, self.max)
            if low is not None and high is not None and low > high:
                raise ValueError(f"rule {self.name}: min {low} is above max {high}, so nothing passes")
        return self

    @model_validator(mode="after")
    def _can_cut(self) -> Self:
        if self.action == "cut" and self.signal not in CUTTABLE:
            lines = ", ".join(sorted(CUTTABLE))
            raise ValueError(f"rule {self.name}: {self.signal} says nothing of single lines, cut takes {lines}")
        if self.action == "cut" and set(self.kinds or ()) - set(CUT_KINDS):
            raise ValueError(f"rule {self.name}: chats and code are dropped, never cut; name other kinds")
        return self


def check_rules(rules: Sequence[Rule], signals: Sequence[str]) -> None:
    """Raises ValueError where two rules share a name or one judges a signal that nobody measures."""
    names = [rule.name for rule in rules]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"more than one rule is named {', '.join(twice)}; give each a name of its own")
    for rule in rules:
        if rule.signal not in signals:
            raise ValueError(f"rule {rule.name}: no such signal as {rule.signal}; there are {', '.join(signals)}")


class Documents:
    """What rules see of D documents of one source.

    signals: a column a signal [D], `language` and `letters` among them; kinds [D]: web, book, code, paper or chat.
    """

    def __init__(self, signals: pa.Table, kinds: pa.Array | pa.ChunkedArray, source: str) -> None:
        self.signals, self.source, self._kinds = signals, source, kinds
        self.rows = signals.num_rows

    def number(self, signal: str) -> np.ndarray:
        """A signal as float64 [D], NaN where it is absent."""
        return np.asarray(self.signals[signal].to_numpy(), np.float64)

    def meant(self, scope: Scope, languages: bool = True) -> np.ndarray:
        """Whether each document is meant, bool [D]; languages: whether the scope's languages narrow it."""
        meant_D = np.full(self.rows, scope.sources is None or self.source in scope.sources)
        if scope.kinds is not None:
            meant_D &= self.kinds.among(scope.kinds)
        if languages and scope.languages is not None:
            meant_D &= self.languages.among(scope.languages)
        return meant_D

    @cached_property
    def kinds(self) -> Members:
        return Members.of(self._kinds)

    @cached_property
    def languages(self) -> Members:
        return Members.of(self.signals[LANGUAGE])


class Members(NamedTuple):
    """A column of names as numbers: so a rule costs a look-up a row, not a comparison of strings."""

    names: list[str]
    number_D: np.ndarray

    @classmethod
    def of(cls, column: pa.Array | pa.ChunkedArray) -> Members:
        chunks = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
        encoded = chunks.combine_chunks().dictionary_encode() if len(column) else None
        if encoded is None:
            return cls([], np.zeros(0, np.int32))
        return cls(encoded.dictionary.to_pylist(), encoded.indices.to_numpy())

    def among(self, names: Sequence[str]) -> np.ndarray:
        """Whether each value is one of `names`, bool [D]."""
        chosen_N = np.array([name in names for name in self.names], np.bool_)
        return np.asarray(chosen_N[self.number_D])


class Breaches(NamedTuple):
    """What D documents break."""

    rule_D: np.ndarray
    """int64: place of the first rule broken that drops, else of the first that cuts; -1 where none is broken."""
    value_D: np.ndarray
    """float64: the signal's value, NaN where none is broken."""
    limit_D: np.ndarray
    """float64: the limit that it broke, NaN where none is broken."""
    dropped_D: np.ndarray
    """bool: whether that rule drops."""
    cuts: Mapping[int, np.ndarray]
    """Place of each rule that cuts -> bool [D]: whether it cuts lines of the document, which is not dropped."""


def judge(rules: Sequence[Rule], documents: Documents, language_letters_min: int) -> Breaches:
    """Hold D documents against the rules, in their order.

    language_letters_min: documents with fewer letters are too short to tell their language, and rules on it or on its
    score do not judge them.
    """
    rows = documents.rows
    cuts: dict[int, np.ndarray] = {}
    broken = Breaches(np.full(rows, -1), np.full(rows, np.nan), np.full(rows, np.nan), np.zeros(rows, np.bool_), cuts)
    for action in ("drop", "cut"):
        for place, rule in enumerate(rules):
            if rule.action == action:
                value_D, limit_D = _breach(rule, documents, language_letters_min)
                breaks_D = ~np.isnan(limit_D) & ~broken.dropped_D
                if action == "cut":
                    cuts[place] = breaks_D
                _note(broken, place, breaks_D & (broken.rule_D < 0), value_D, limit_D)
        if action == "drop":
            broken.dropped_D[:] = broken.rule_D >= 0
    return broken


def _note(broken: Breaches, place: int, new_D: np.ndarray, value_D: np.ndarray, limit_D: np.ndarray) -> None:
    broken.rule_D[new_D] = place
    broken.value_D[new_D], broken.limit_D[new_D] = value_D[new_D], limit_D[new_D]


def _breach(rule: Rule, documents: Documents, language_letters_min: int) -> tuple[np.ndarray, np.ndarray]:
    """(value, the limit that it breaks or NaN), float64 [D] each."""
    is_language = rule.signal == LANGUAGE
    meant_D = documents.meant(rule, languages=not is_language)
    if rule.action == "cut":
        meant_D &= documents.kinds.among(CUT_KINDS)
    if rule.signal in (LANGUAGE, LANGUAGE_SCORE):
        meant_D &= documents.number(LETTERS) >= language_letters_min
    if is_language:
        value_D = documents.languages.among(rule.languages or ()).astype(np.float64)
        limit_D = np.where(value_D < 1, 1.0, np.nan)
    else:
        value_D = documents.number(rule.signal)
        limit_D = _limit_broken(rule, documents, value_D)
    return value_D, np.where(meant_D, limit_D, np.nan)


def _limit_broken(rule: Rule, documents: Documents, value_D: np.ndarray) -> np.ndarray:
    if not rule.where:
        return _beyond(value_D, rule.min, rule.max)
    limit_D, open_D = np.full(len(value_D), np.nan), np.ones(len(value_D), np.bool_)
    for item in rule.where:
        own_D = open_D & documents.meant(item)
        open_D &= ~own_D
        if not item.skip:
            limit_D[own_D] = _beyond(value_D[own_D], _or(item.min, rule.min), _or(item.max, rule.max))
    limit_D[open_D] = _beyond(value_D[open_D], rule.min, rule.max)
    return limit_D


def _beyond(value_D: np.ndarray, low: float | None, high: float | None) -> np.ndarray:
    limit_D = np.full(len(value_D), np.nan)
    tests: list[tuple[float | None, Callable[..., np.ndarray]]] = [(low, np.less), (high, np.greater)]
    for limit, beyond in tests:
        if limit is not None:
            limit_D[beyond(value_D, limit)] = limit
    return limit_D


def _or(own: float | None, other: float | None) -> float | None:
    return other if own is None else own
