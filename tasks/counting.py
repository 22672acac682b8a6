"""Counts of an artifact, each taken once: several folders of a step may count one measure (documents_in).

A measure is taken from one folder only: from those that count it by part before one that counts the whole, and of
those from the last in the step's order, the nearest to what the step gives on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

Key = tuple[str, str]
Units = dict[str, dict[str, int]]
"""unit -> member -> count; the member of a measure without a dimension is ""."""


def counted_once(folders: Iterable[Mapping[str, Mapping[str, int]]]) -> dict[Key, Units]:
    """(measure, dimension) -> the counts of the one folder they are taken from.

    folders: of each folder in the step's order, unit -> {"measure" or "measure|dimension=member": count}.
    """
    chosen: dict[Key, Units] = {}
    for units in folders:
        for key, counted in _apart(units).items():
            if _by_part(counted) >= _by_part(chosen.get(key, {})):
                chosen[key] = counted
    return chosen


def source_of(unit: str) -> str | None:
    """The source that begins the name of a part, group or shard; None of the whole."""
    source, *others = re.split("[-/]", unit)
    return source if others else None


def _apart(units: Mapping[str, Mapping[str, int]]) -> dict[Key, Units]:
    counted: dict[Key, Units] = {}
    for unit, counts in units.items():
        for name, count in counts.items():
            measure, _, cell = name.partition("|")
            dimension, _, member = cell.partition("=")
            counted.setdefault((measure, dimension), {}).setdefault(unit, {})[member] = count
    return counted


def _by_part(units: Units) -> bool:
    return any(source_of(unit) for unit in units)
