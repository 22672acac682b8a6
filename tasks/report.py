"""reports/<step>.json: the counts of an artifact, as DVC metrics and for the funnel.

{
  "totals": {"documents_in": 100, ...},                    over the whole artifact
  "by": {"rule": {"too_short": {"dropped": 3}}, ...},      by the dimensions that the counts name
  "sources": {"prose": {"documents_in": 40, ...}, ...}     by source
}
Functions of the manifest alone: no clock, no host.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from tasks.artifacts.canonical import pretty
from tasks.artifacts.manifest import Manifest
from tasks.counting import Key, Units, counted_once, source_of
from tasks.project import Project


def totals(manifest: Manifest) -> dict[str, int]:
    """measure, or "measure|dimension=member", -> its sum over the units of the folder that counts it."""
    summed: Counter[str] = Counter()
    for (measure, dimension), units in _counted(manifest).items():
        for members in units.values():
            for member, number in members.items():
                summed[f"{measure}|{dimension}={member}" if dimension else measure] += number
    return dict(sorted(summed.items()))


def summary(manifest: Manifest) -> dict[str, Any]:
    """The report as plain data; see the module's docstring."""
    counts = totals(manifest)
    report: dict[str, Any] = {"totals": {name: n for name, n in counts.items() if "|" not in name}, "by": {}}
    for name, number in counts.items():
        measure, _, rest = name.partition("|")
        if rest:
            dimension, _, member = rest.partition("=")
            report["by"].setdefault(dimension, {}).setdefault(member, {})[measure] = number
    report["sources"] = _by_source(manifest)
    return report


def write_report(project: Project, manifest: Manifest) -> None:
    """Write the report where it differs from what stands; a run that died after publishing left an old one."""
    path, text = project.report(manifest.step), pretty(summary(manifest))
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def _by_source(manifest: Manifest) -> dict[str, dict[str, int]]:
    summed: dict[str, Counter[str]] = {}
    for (measure, dimension), units in _counted(manifest).items():
        for unit, members in units.items():
            source = source_of(unit)
            if source and not dimension:
                summed.setdefault(source, Counter())[measure] += members[""]
    return {source: dict(sorted(numbers.items())) for source, numbers in sorted(summed.items())}


def _counted(manifest: Manifest) -> dict[Key, Units]:
    folders = manifest.folders.values()
    return counted_once({unit: entry.counts for unit, entry in units.items()} for units in folders)
