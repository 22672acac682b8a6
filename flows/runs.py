"""Training runs as they lie in runs/<run>/: named by data and params, found again when complete.

In: a verified pin and the section train of params.yaml. Out: a run's name and record. It imports neither
torch nor Prefect, so that finding a run costs nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.artifacts.canonical import digest
from tasks.project import Project
from training.pin import Pin


@dataclass(frozen=True)
class Plan:
    """A run to be.

    Its name, the section train with what was asked for on the command line, and its folder.
    """

    name: str
    section: dict[str, Any]
    folder: Path

    @property
    def record(self) -> dict[str, Any]:
        """runs/<run>/run.json; {} where there is none."""
        path = self.folder / "run.json"
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}

    @property
    def complete(self) -> bool:
        """Whether the run reached its last step."""
        return bool(self.record) and self.record["position"] == self.section["steps"] * self.section["batch_size"]

    @property
    def begun(self) -> bool:
        """Whether there is a checkpoint to go on from."""
        return (self.folder / "checkpoint.pt").is_file() and not self.complete


def plan_run(project: Project, pin: Pin, steps: int | None, again: bool) -> Plan:
    """The run of `pin` with the params as they are. again: a name that no run has yet."""
    section = project.section("train") | ({"steps": steps} if steps else {})
    name = f"{pin.name or pin.fingerprint[:12]}-{digest([pin.fingerprint, section])[:8]}"
    plan = _plan(project, name, section)
    number = 2
    while again and plan.record:
        plan = _plan(project, f"{name}-{number}", section)
        number += 1
    return plan


def _plan(project: Project, name: str, section: dict[str, Any]) -> Plan:
    return Plan(name, section, project.root / "runs" / name)
