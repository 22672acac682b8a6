"""An artifact and its inputs as invariants, profiles and tokenizer training see them (tasks.step.Artifact)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tasks.artifacts.manifest import Entry, Manifest
from tasks.artifacts.tables import read_table
from tasks.errors import GristmillError
from tasks.project import Project

if TYPE_CHECKING:
    from tasks.build import Build


@dataclass(frozen=True)
class Staged:
    """folders: "step/folder" -> unit -> Entry; homes: step -> the folder its files lie in."""

    params: Any
    folders: Mapping[str, Mapping[str, Entry]]
    homes: Mapping[str, Path]

    @classmethod
    def staged(cls, build: Build) -> Staged:
        """The artifact under construction, with its inputs."""
        return cls._of(build, build.folders, build.tree)

    @classmethod
    def standing(cls, build: Build, manifest: Manifest) -> Staged:
        """The artifact that stands, with its inputs."""
        return cls._of(build, manifest.folders, build.home)

    @classmethod
    def of_steps(cls, project: Project, steps: Sequence[str]) -> Staged:
        """The standing artifacts of several steps; raises GristmillError where one is absent."""
        folders: dict[str, Mapping[str, Entry]] = {}
        for step in steps:
            manifest = Manifest.read(project.artifact(step))
            if manifest is None:
                raise GristmillError(f"{project.artifact(step)} does not stand", f"gristmill build --until {step}")
            folders |= _named(step, manifest.folders)
        return cls(None, folders, {step: project.artifact(step) for step in steps})

    @classmethod
    def _of(cls, build: Build, own: Mapping[str, Mapping[str, Entry]], home: Path) -> Staged:
        folders = _named(build.step.name, own)
        for step, manifest in build.manifests.items():
            folders |= _named(step, manifest.folders)
        homes = {step: build.project.artifact(step) for step in build.manifests}
        return cls(build.params, folders, {**homes, build.step.name: home})

    def units(self, folder: str) -> list[str]:
        return list(self.folders[folder])

    def counts(self, folder: str) -> dict[str, dict[str, int]]:
        return {unit: entry.counts for unit, entry in self.folders[folder].items()}

    def rows(self, folder: str) -> dict[str, int]:
        return {unit: entry.rows for unit, entry in self.folders[folder].items()}

    def table(self, folder: str, columns: Sequence[str] | None = None, unit: str | None = None) -> pa.Table:
        names = [unit] if unit is not None else self.units(folder)
        return pa.concat_tables([read_table(self.path(folder, ".parquet", name), columns) for name in names])

    def path(self, folder: str, suffix: str, unit: str) -> Path:
        entry = self.folders[folder][unit]
        return self.homes[folder.partition("/")[0]] / entry.suffixes()[suffix]


def _named(step: str, folders: Mapping[str, Mapping[str, Entry]]) -> dict[str, Mapping[str, Entry]]:
    return {f"{step}/{name}": units for name, units in folders.items()}
