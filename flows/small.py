"""A small run: the first documents of each source through the nine steps, and what the whole would take.

In: a project and a limit or a fraction. Out: a tree of its own, small/<name>/, with its artifacts and
reports, and a projection of time and disk. Neither Prefect nor DVC sees it, and data/ stays as it was.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from flows.funnel import totals
from flows.receipt import raw_bytes
from flows.scope import steps_until
from flows.watch import watch
from tasks.__main__ import workers_of
from tasks.artifacts.manifest import Manifest
from tasks.errors import SourceError
from tasks.locks import build_lock
from tasks.perform import perform
from tasks.pipeline import STEPS
from tasks.project import Project
from tasks.sourcing import write_sources


def small_project(root: Path, limit: int | None, fraction: float | None) -> Project:
    """The project at `root` as a small run sees it.

    Limit documents of each source, or that fraction of each.
    """
    name = f"limit-{limit}" if limit is not None else f"fraction-{fraction}"
    return Project(root.resolve(), f"small/{name}", limit, fraction)


def build_small(project: Project, until: str | None, workers: int | None) -> dict[str, Any]:
    """Build the small run; {"tree", "fingerprint", "steps": [{"step", "seconds", "bytes", …}], "projected"}.

    Steps that stand already count with the bytes they hold and no time; then the projection of time is None.
    """
    with build_lock(project.state, wait=True, waiting=lambda holder: watch().said(f"waiting for {holder}")):
        write_sources(project)
        steps = [_built(step, project, workers or workers_of(project)) for step in steps_until(until)]
    fingerprint = steps[-1]["fingerprint"] if steps[-1]["step"] == "mix" else None
    return {
        "tree": project.tree,
        "fingerprint": fingerprint,
        "steps": steps,
        "projected": projection(project, steps),
    }


def projection(project: Project, steps: list[dict[str, Any]]) -> dict[str, Any]:
    """Seconds and bytes of the whole, in proportion to raw bytes.

    A compressed source counts as it lies on disk.
    """
    raw = raw_bytes(json.loads((project.data / "sources.json").read_text(encoding="utf-8")))
    manifest = Manifest.read(project.artifact("ingest"))
    read = totals(manifest, "documents")["bytes_out"] if manifest else 0
    if not read:
        raise SourceError(f"{project.tree} holds no text", "take a larger limit, or see reports/ingest.json")
    times = raw / read
    timed = all(step["outcome"] == "built" for step in steps)
    return {
        "raw_bytes": raw,
        "read_bytes": read,
        "bytes": round(times * sum(step["bytes"] for step in steps)),
        "seconds": round(times * sum(step["seconds"] for step in steps), 1) if timed else None,
    }


def _built(step: str, project: Project, workers: int) -> dict[str, Any]:
    watch().began(step)
    report = perform(
        STEPS[step],
        project,
        workers=workers,
        progress=lambda done, total, folder: watch().moved(step, done, total, folder),
    )
    for warning in report.warnings:
        watch().said(f"{step}: {warning}")
    watch().ended(step, report.outcome, report.counts)
    manifest = Manifest.read(project.artifact(step))
    return {
        "step": step,
        "fingerprint": report.fingerprint,
        "outcome": report.outcome,
        "seconds": report.seconds,
        "bytes": manifest.bytes if manifest else 0,
    }
