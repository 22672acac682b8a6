"""What stands in a project and whether it holds: the answers of `gristmill status` and `gristmill verify`.

In: a project. Out: plain rows for tables and JSON. It builds and changes nothing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from flows.receipt import raw_bytes
from tasks.artifacts.manifest import Manifest
from tasks.errors import IntegrityError
from tasks.perform import status
from tasks.pipeline import STEPS
from tasks.project import Project
from tasks.sources import scan
from training.pin import open_pin


def statuses(project: Project, with_bytes: bool) -> list[dict[str, Any]]:
    """One row a step: {"step", "up_to_date", "why", "make", "carry", "bytes", "of_raw"}.

    Of_raw without bytes is None.
    """
    raw = raw_bytes(scan(project)) if with_bytes else 0
    rows = [vars(status(step, project)) for step in STEPS.values()]
    return [row | {"of_raw": row["bytes"] / raw if raw else None} for row in rows]


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
            raise IntegrityError(
                f"{project.tree}/{step}/{mismatch}", f"make it anew: gristmill build --force {step}"
            )
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
