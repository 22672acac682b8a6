"""The funnel: what came to each step, what it kept, and what it dropped for which reason.

In: the manifests of the artifacts that stand. Out: one row a step, from exact counts. It reads no data.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from tasks.artifacts.manifest import Manifest
from tasks.project import Project

# step -> (folder that counts, unit of the row, measure that came, measures kept)
ROWS = {
    "ingest": ("documents", "documents", None, "documents_out"),
    "normalize": ("text", "documents", "documents_in", "documents_out"),
    "filter": ("verdicts", "documents", "documents_in", "documents_kept"),
    "dedup": ("verdicts", "documents", "documents_in", "documents_kept"),
    "decontaminate": ("verdicts", "documents", "documents_in", "documents_kept"),
    "tokenize": ("tokens", "documents", None, "documents_kept"),
    "pack": ("sequences", "tokens", "tokens_in", "tokens_packed"),
}


@dataclass(frozen=True)
class Row:
    """One step of the funnel. came = kept + dropped, in `unit`s; reasons: reason -> dropped."""

    step: str
    unit: str
    came: int
    kept: int
    dropped: int
    reasons: dict[str, int] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        return asdict(self)


def totals(manifest: Manifest, folder: str) -> Counter[str]:
    """The counts of one folder, summed over its units."""
    summed: Counter[str] = Counter()
    for entry in manifest.folders.get(folder, {}).values():
        summed.update(entry.counts)
    return summed


def funnel(project: Project) -> list[Row]:
    """One row for each step that stands, in the order of the pipeline, up to the first that does not."""
    rows: list[Row] = []
    for step in ROWS:
        manifest = Manifest.read(project.artifact(step))
        if manifest is None:
            break
        rows.append(_row(step, manifest, rows[-1].kept if rows else 0))
    return rows


def _row(step: str, manifest: Manifest, before: int) -> Row:
    """Tokenize counts every row of the corpus, those dropped before it as step:rule.

    Here it begins with the kept.
    """
    folder, unit, came_by, kept_by = ROWS[step]
    counts = totals(manifest, folder)
    kept = counts[kept_by]
    if step == "ingest":
        rejects = totals(manifest, "rejects")
        rejected = rejects["rejected"]
        return Row(step, unit, kept + rejected, kept, rejected, _reasons(rejects, "rejected|reason="))
    if came_by is None:
        own = {reason: n for reason, n in _reasons(counts, "dropped|rule=").items() if ":" not in reason}
        return Row(step, unit, before, kept, before - kept, own)
    reasons = _reasons(counts, "dropped|rule=") | _reasons(counts, "tokens_dropped|reason=")
    return Row(step, unit, counts[came_by], kept, counts[came_by] - kept, reasons)


def _reasons(counts: Counter[str], start: str) -> dict[str, int]:
    found = {key.removeprefix(start): n for key, n in counts.items() if key.startswith(start) and n}
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def shares(project: Project) -> dict[str, float]:
    """The mixture as it stands: source -> its share of the last stage's weights.

    {} where mix does not stand.
    """
    from flows.releases import mixture_of

    mixture = mixture_of(project)
    if not mixture:
        return {}
    weights = mixture["stages"][-1]["weights"]
    whole = sum(weights.values())
    return {source: weight / whole for source, weight in sorted(weights.items())}
