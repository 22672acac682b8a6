"""What stands in a project and whether it holds: the answers of `gristmill status` and `gristmill verify`.

In: a project. Out: plain rows for tables and JSON. It builds and changes nothing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from flows.receipt import raw_bytes
from tasks.artifacts.manifest import Manifest
from tasks.build import Build
from tasks.errors import IntegrityError
from tasks.pipeline import STEPS
from tasks.project import Project
from tasks.publish import read_stamp, stamp_holds
from tasks.sources import scan
from tasks.status import is_judged, status
from training.pin import open_pin


def stands(step: str, project: Project) -> bool:
    """Whether `step` has nothing to do: its recipe is the wanted one, its files hold, its limits judged it.

    A full digest is not asked for: after a checkout the stamps differ, and perform looks closer. Raises
    GristmillError where the params, an input or a source is wanting.
    """
    build = Build.begin(STEPS[step], project)
    manifest = build.standing
    if manifest is None or manifest.recipe_key != build.recipe_key:
        return False
    return stamp_holds(read_stamp(build.stamp), build.home, manifest) and is_judged(build)


def statuses(project: Project, with_bytes: bool = False) -> list[dict[str, Any]]:
    """One row a step: {"step", "up_to_date", "why", "make", "carry", "bytes", "of_raw"}.

    make and carry: folder -> units, at least and at most. of_raw: bytes to bytes of raw text, None unless
    asked for.
    """
    project.recipe()
    raw = raw_bytes(scan(project)) if with_bytes else 0
    rows = [dict(vars(found)) for found in status(STEPS.values(), project)]
    for row in rows:
        row["of_raw"] = row["bytes"] / raw if raw else None
    return rows


def verified_artifacts(project: Project) -> list[dict[str, Any]]:
    """Hold every file of every artifact against its digest; rows {"step", "fingerprint", "files", "bytes"}.

    Raises IntegrityError naming the first file that differs, both digests and the mend.
    """
    rows = []
    for step in STEPS:
        manifest = Manifest.read(project.artifact(step))
        if manifest is None:
            continue
        for mismatch in manifest.verify(project.artifact(step)):
            raise IntegrityError(f"{project.tree}/{step}/{mismatch}", f"make it anew: gristmill build --force {step}")
        rows.append(
            {
                "step": step,
                "fingerprint": manifest.fingerprint,
                "files": len(manifest.files),
                "bytes": manifest.bytes,
            }
        )
    return rows


def verified_pin(root: Path, pin: str) -> dict[str, Any]:
    """Hold every file of a pin against its release; raises training.pin.PinError as a training run does."""
    held = open_pin(pin, root, full=True)
    files = json.loads((held.folder / "pin.json").read_text(encoding="utf-8"))["files"]
    return {
        "name": held.name or held.fingerprint[:12],
        "fingerprint": held.fingerprint,
        "files": len(files),
        "bytes": sum(facts["bytes"] for facts in files.values()),
    }
