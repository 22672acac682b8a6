"""What a folder's planner may ask while its step is built (tasks.step.Plan)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.artifacts.manifest import Entry, Manifest
from tasks.project import Project
from tasks.step import StepParams
from tasks.workers import Inline


@dataclass(frozen=True)
class Planning:
    """params: of the step; known: "step/folder" -> its entries; outside: what lies at the sources; temporary: a folder
    for this run; workers: where a planner may have work done.
    """

    project: Project
    params: StepParams
    known: Callable[[str], Mapping[str, Entry]]
    outside: Mapping[str, Any]
    temporary: Path
    workers: Callable[[], Executor] = Inline

    @property
    def root(self) -> Path:
        return self.project.root

    @property
    def limit(self) -> int | None:
        return self.project.limit

    @property
    def fraction(self) -> float | None:
        return self.project.fraction

    def section(self, name: str) -> Mapping[str, Any]:
        return self.project.section(name)

    def entries(self, folder: str) -> Mapping[str, Entry]:
        return self.known(folder)

    def sources(self) -> Mapping[str, Any]:
        return self.outside

    def standing(self, step: str) -> Manifest | None:
        return Manifest.read(self.project.artifact(step))

    def scratch(self) -> Path:
        self.temporary.mkdir(parents=True, exist_ok=True)
        return self.temporary

    def executor(self) -> Executor:
        return self.workers()
