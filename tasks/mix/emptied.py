"""Why a source that is weighed has nothing to train on: which step left none of it.

In: the manifests that stand of the steps before. Out: a few words for an error. Nothing here shapes a byte.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tasks.artifacts.manifest import Entry, Manifest
from tasks.counting import source_of

KEPT = (
    ("ingest", "documents", "documents_out"),
    ("normalize", "text", "documents_out"),
    ("filter", "verdicts", "documents_kept"),
    ("dedup", "verdicts", "documents_kept"),
    ("decontaminate", "verdicts", "documents_kept"),
    ("tokenize", "tokens", "documents_kept"),
)
"""Step, its folder of parts, and what counts the documents that it left."""


def emptied_by(source: str, standing: Callable[[str], Manifest | None]) -> str:
    """What became of the documents of a source of ingest. standing: the manifest of a step, None where none stands."""
    before = None
    for step, folder, measure in KEPT:
        manifest = standing(step)
        own = _of(source, manifest.folders.get(folder, {}) if manifest else {})
        if not own:
            return "no part of that name was read" if step == "ingest" else f"{step} knows no part of it"
        left = sum(entry.counts.get(measure, 0) for entry in own)
        if not left:
            return f"{step} left none of its {before} documents" if before else f"{step} read no document of it"
        before = left
    return f"pack laid none of its {before} documents into the train split"


def _of(source: str, units: Mapping[str, Entry]) -> list[Entry]:
    """The entries of a source's parts."""
    return [entry for unit, entry in units.items() if source_of(unit) == source]
