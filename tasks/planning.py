"""What a folder's planner may ask while its step is built (tasks.step.Plan)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.artifacts.manifest import Entry
from tasks.step import StepParams

if TYPE_CHECKING:
    from tasks.build import Build


@dataclass(frozen=True)
class Planning:
    build: Build

    @property
    def params(self) -> StepParams:
        return self.build.params

    @property
    def root(self) -> Path:
        return self.build.project.root

    @property
    def limit(self) -> int | None:
        return self.build.project.limit

    @property
    def fraction(self) -> float | None:
        return self.build.project.fraction

    def section(self, name: str) -> Mapping[str, Any]:
        return self.build.project.section(name)

    def entries(self, folder: str) -> Mapping[str, Entry]:
        return self.build.entries(folder)

    def sources(self) -> Mapping[str, Any]:
        return self.build.outside

    def scratch(self) -> Path:
        scratch = self.build.staging / "scratch"
        scratch.mkdir(parents=True, exist_ok=True)
        return scratch
