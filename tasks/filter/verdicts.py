"""data/filter/verdicts: keep, cut, or drop with the first rule broken, its value and limit.

In: the signals of a part, and the kind of its documents. Out: a table with the schema FILTER_VERDICTS,
row-aligned. It reads no text: new limits cost milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tasks.artifacts.verdicts import CUT, DROP, FILTER_VERDICTS, KEEP
from tasks.filter.judging import documents_of
from tasks.step import Counts, Made, Reads
from tasks.text.rules import Breaches, Documents, Rule, judge

if TYPE_CHECKING:
    from tasks.filter import FilterParams

SCHEMA = FILTER_VERDICTS


def make(reads: Reads, params: FilterParams) -> Made:
    """Judge one part by params.rules, languages from params.language_letters_min letters on.

    Counts: documents_in = documents_kept + documents_dropped; documents_cut of the kept ones lose lines, and
    characters_kept counts them whole. dropped|rule and fired|rule (documents that it drops or cuts) are 0 where a rule
    broke nothing.
    """
    documents = documents_of(reads, params.rules)
    broken = judge(params.rules, documents, params.language_letters_min)
    return Made({".parquet": _table(params.rules, broken)}, _counts(params.rules, broken, documents))


def _table(rules: Sequence[Rule], broken: Breaches) -> pa.Table:
    kept_D = broken.rule_D < 0
    names_D = np.array([*(rule.name for rule in rules), None], object)[broken.rule_D]
    columns = {
        "verdict": pa.array(np.where(kept_D, KEEP, np.where(broken.dropped_D, DROP, CUT)), pa.string()),
        "rule": pa.array(names_D, pa.string()),
        "value": pa.array(broken.value_D, mask=kept_D),
        "limit": pa.array(broken.limit_D, mask=kept_D),
    }
    return pa.table(columns, schema=FILTER_VERDICTS)


def _counts(rules: Sequence[Rule], broken: Breaches, documents: Documents) -> Counts:
    """Documents and characters, in whole, by rule (0 where a rule never fired) and by language."""
    characters_D = documents.signals["characters"].to_numpy()
    counts = _totals("in", np.ones_like(broken.dropped_D), characters_D)
    counts |= _totals("kept", ~broken.dropped_D, characters_D) | _totals("dropped", broken.dropped_D, characters_D)
    counts["documents_cut"] = int(((broken.rule_D >= 0) & ~broken.dropped_D).sum())
    for place, rule in enumerate(rules):
        dropped_D = (broken.rule_D == place) & broken.dropped_D
        counts[f"dropped|rule={rule.name}"] = int(dropped_D.sum())
        counts[f"characters_dropped|rule={rule.name}"] = int(characters_D[dropped_D].sum())
        counts[f"fired|rule={rule.name}"] = int(broken.cuts.get(place, dropped_D).sum())
    return counts | _languages(documents, ~broken.dropped_D)


def _totals(which: str, chosen_D: np.ndarray, characters_D: np.ndarray) -> Counts:
    characters = int(characters_D[chosen_D].sum())
    return {f"documents_{which}": int(chosen_D.sum()), f"characters_{which}": characters}


def _languages(documents: Documents, kept_D: np.ndarray) -> Counts:
    names, number_D = documents.languages
    all_L, kept_L = (np.bincount(numbers, minlength=len(names)) for numbers in (number_D, number_D[kept_D]))
    counts: Counts = {}
    for name, found, kept in sorted(zip(names, all_L.tolist(), kept_L.tolist(), strict=True)):
        counts[f"documents|language={name}"], counts[f"kept|language={name}"] = found, kept
    return counts
