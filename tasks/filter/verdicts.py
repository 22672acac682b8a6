"""data/filter/verdicts: keep, or the first rule broken with its value and limit.

In: the signals of a part, and the kind of its documents. Out: a table with the schema FILTER_VERDICTS,
row-aligned. It reads no text: new limits cost milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tasks.artifacts.verdicts import DROP, FILTER_VERDICTS, KEEP
from tasks.step import Counts, Made, Reads
from tasks.text.rules import Breaches, Rule, judge

if TYPE_CHECKING:
    from tasks.filter import FilterParams

SCHEMA = FILTER_VERDICTS


def make(reads: Reads, params: FilterParams) -> Made:
    """Judge one part by params.rules."""
    signals = reads.table("filter/signals")
    kinds = reads.table("normalize/text", ["kind"])["kind"]
    if len(kinds) != signals.num_rows:
        raise ValueError(f"part {reads.name} has {signals.num_rows} rows of signals and {len(kinds)} of text")
    broken = judge(params.rules, signals, kinds)
    return Made({".parquet": _table(params.rules, broken)}, _counts(params.rules, broken, signals))


def _table(rules: Sequence[Rule], broken: Breaches) -> pa.Table:
    kept_D = broken.rule_D < 0
    names_D = np.array([*(rule.name for rule in rules), None], object)[broken.rule_D]
    columns = {
        "verdict": pa.array(np.where(kept_D, KEEP, DROP), pa.string()),
        "rule": pa.array(names_D, pa.string()),
        "value": pa.array(broken.value_D, mask=kept_D),
        "limit": pa.array(broken.limit_D, mask=kept_D),
    }
    return pa.table(columns, schema=FILTER_VERDICTS)


def _counts(rules: Sequence[Rule], broken: Breaches, signals: pa.Table) -> Counts:
    """Documents and characters, in whole, by rule (0 where a rule never fired) and by language."""
    characters_D, kept_D = signals["characters"].to_numpy(), broken.rule_D < 0
    counts = _totals("in", np.ones_like(kept_D), characters_D)
    counts |= _totals("kept", kept_D, characters_D) | _totals("dropped", ~kept_D, characters_D)
    for place, rule in enumerate(rules):
        fired_D = broken.rule_D == place
        counts[f"dropped|rule={rule.name}"] = int(fired_D.sum())
        counts[f"characters_dropped|rule={rule.name}"] = int(characters_D[fired_D].sum())
    return counts | _languages(signals["language"].to_numpy(), kept_D)


def _totals(which: str, chosen_D: np.ndarray, characters_D: np.ndarray) -> Counts:
    characters = int(characters_D[chosen_D].sum())
    return {f"documents_{which}": int(chosen_D.sum()), f"characters_{which}": characters}


def _languages(languages_D: np.ndarray, kept_D: np.ndarray) -> Counts:
    counts: Counts = {}
    for language in sorted(set(languages_D)):
        counts[f"documents|language={language}"] = int((languages_D == language).sum())
        counts[f"kept|language={language}"] = int((kept_D & (languages_D == language)).sum())
    return counts
