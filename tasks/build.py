"""One build of one step: what it reads, the recipe it follows, and the staging of its folders unit by unit."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tasks.artifacts.canonical import digest, file_digest
from tasks.artifacts.manifest import Entry, Manifest
from tasks.errors import GristmillError
from tasks.parts import FileReads, Job, Shown, made_items, setting, unit_key
from tasks.project import Project
from tasks.publish import read_stamp, stamp_file
from tasks.sources import scan
from tasks.step import Folder, Step, StepParams, Unit
from tasks.workers import make_all, pool

Items = list[tuple[str, str, Entry]]


@dataclass
class Build:
    """folders: what has been staged so far; outside: the sections of the sources that the step reads."""

    step: Step
    project: Project
    params: StepParams
    manifests: dict[str, Manifest]
    outside: dict[str, Any]
    folders: dict[str, dict[str, Entry]] = field(default_factory=dict)
    known: dict[str, Job] = field(default_factory=dict)

    @classmethod
    def begin(cls, step: Step, project: Project) -> Build:
        """Read params, inputs and sources; raises GristmillError where one is wanting."""
        build = cls(step, project, project.params(step), _manifests(step, project), {})
        build.outside = build.outside_now()
        return build

    def outside_now(self) -> dict[str, Any]:
        found = scan(self.project) if self.step.outside else {}
        return {name: found[name] for name in self.step.outside}

    @property
    def home(self) -> Path:
        return self.project.artifact(self.step.name)

    @property
    def staging(self) -> Path:
        return self.project.staging(self.step.name)

    @property
    def tree(self) -> Path:
        """The artifact as it grows."""
        return self.staging / "tree"

    @property
    def stamp(self) -> Path:
        return self.project.stamps / f"{self.step.name}.json"

    @property
    def inputs(self) -> dict[str, str]:
        return {name: manifest.fingerprint for name, manifest in self.manifests.items()}

    @cached_property
    def standing(self) -> Manifest | None:
        return Manifest.read(self.home)

    @cached_property
    def recipe(self) -> str:
        """64 hex over every parameter that shapes, code, versions, inputs and what lies outside."""
        settings = {folder.name: setting(folder, self.params, {}) for folder in self.step.folders}
        small = [self.project.limit, self.project.fraction] if "sources" in self.step.outside else []
        return digest(
            {
                "step": self.step.name,
                "folders": settings,
                "inputs": self.inputs,
                "outside": self.outside,
                "small": small,
            }
        )

    def stage(
        self, workers: int, cluster: str | None, force: bool, progress: Callable[[int, int, str], None] | None
    ) -> tuple[dict[str, int], dict[str, int]]:
        """Bring every folder into `tree`; returns units made and units carried over, by folder."""
        shutil.rmtree(self.staging if force else self.tree, ignore_errors=True)
        self.tree.mkdir(parents=True)
        carried = {} if force else sound_entries(self)
        made_counts: dict[str, int] = {}
        carried_counts: dict[str, int] = {}
        for folder in self.step.folders:
            units = folder.plan(Planning(self), folder)
            jobs = self._lay_known(folder, units, carried)
            made_counts[folder.name], carried_counts[folder.name] = len(jobs), len(units) - len(jobs)
            total, ended = len(jobs), [0]

            def done(job: Job, folder: Folder = folder, total: int = total, ended: list[int] = ended) -> None:
                ended[0] += 1
                if progress:
                    progress(ended[0], total, folder.name)

            make_all(jobs, pool(workers, cluster), done)
            self._lay_made(folder, units)
        shutil.rmtree(self.staging / "scratch", ignore_errors=True)
        return made_counts, carried_counts

    def job(self, folder: Folder, unit: Unit) -> Job:
        """The work on one unit, with its key."""
        own = setting(folder, self.params, unit.spec)
        reads = [(read, name, self.entries(read)[name].content) for read, name in unit.reads]
        fields = {name: getattr(self.params, name) for name in folder.shapes}
        files = FileReads(unit.name, unit.spec, self._files(unit), unit.files, self._before(folder, unit, own))
        made = self.staging / "made" / folder.name
        shown = Shown(folder.name, fields)
        return Job(
            folder.name, folder.function, folder.spread, unit.name, unit_key(own, reads), own, shown, files, made
        )

    def entries(self, folder: str) -> Mapping[str, Entry]:
        """unit -> Entry of "step/folder": of an input, or of this step as far as it is staged."""
        step, _, name = folder.partition("/")
        known = self.folders if step == self.step.name else self.manifests[step].folders
        return known[name]

    def place_of(self, step: str) -> Path:
        return self.tree if step == self.step.name else self.project.artifact(step)

    def _files(self, unit: Unit) -> dict[str, dict[str, dict[str, str]]]:
        files: dict[str, dict[str, dict[str, str]]] = {}
        for read, name in unit.reads:
            home = self.place_of(read.partition("/")[0])
            suffixes = self.entries(read)[name].suffixes()
            files.setdefault(read, {})[name] = {suffix: str(home / path) for suffix, path in suffixes.items()}
        return files

    def _before(self, folder: Folder, unit: Unit, own: str) -> FileReads | None:
        """The same unit as it stands, where it was made by equal code and parameters from other contents."""
        entry = self.standing.folders.get(folder.name, {}).get(unit.name) if self.standing else None
        if entry is None or entry.setting != own or folder.spread:
            return None
        if not all((self.home / path).is_file() for path in entry.files):
            return None
        paths = {suffix: str(self.home / path) for suffix, path in entry.suffixes().items()}
        return FileReads(unit.name, unit.spec, {f"{self.step.name}/{folder.name}": {unit.name: paths}}, {})

    def _lay_known(self, folder: Folder, units: list[Unit], carried: dict[str, Items]) -> list[Job]:
        """Link what stands or was left by a dead run; returns the jobs for the rest."""
        jobs, self.known = [], {}
        for unit in units:
            job = self.job(folder, unit)
            self.known[unit.name] = job
            if job.key in carried:
                self._lay(folder, unit, carried[job.key] if folder.spread else carried[job.key][:1], self.home)
            elif items := made_items(job.home, verify=True):
                self._lay(folder, unit, items, job.home)
            else:
                jobs.append(job)
        return jobs

    def _lay_made(self, folder: Folder, units: list[Unit]) -> None:
        for unit in units:
            if unit.name not in self.folders.get(folder.name, {}) or folder.spread:
                job = self.known[unit.name]
                if items := made_items(job.home):
                    self._lay(folder, unit, items, job.home)
        for name in (folder.name, *folder.also):
            laid = self.folders.setdefault(name, {})
            self.folders[name] = {unit: laid[unit] for unit in self._order(folder, units, laid)}

    def _lay(self, folder: Folder, unit: Unit, items: Items, home: Path) -> None:
        """Link a unit's files from `home` to their places in the tree and note its entries."""
        origins = self.entries(folder.reads[0]) if folder.spread else {}
        for name, part, entry in items:
            own = part if folder.spread else unit.name
            stem = folder.place.format(folder=name, unit=own)
            files = {}
            for suffix, path in entry.suffixes().items():
                (self.tree / (stem + suffix)).parent.mkdir(parents=True, exist_ok=True)
                _link(home / path, self.tree / (stem + suffix))
                files[stem + suffix] = entry.files[path]
            origin = origins[own].origin if folder.spread else unit.origin
            self.folders.setdefault(name, {})[own] = replace(entry, files=files, origin=origin)

    def _order(self, folder: Folder, units: list[Unit], laid: dict[str, Entry]) -> list[str]:
        wanted = list(self.entries(folder.reads[0])) if folder.spread else [unit.name for unit in units]
        return [name for name in wanted if name in laid]


@dataclass(frozen=True)
class Planning:
    """What a folder's planner may ask (tasks.step.Plan)."""

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


def sound_entries(build: Build) -> dict[str, Items]:
    """key -> items of the standing artifact whose files still hold, by stamp or else by full digest."""
    found: dict[str, Items] = {}
    broken: set[str] = set()
    noted = read_stamp(build.stamp).get("files", {})
    for name, units in build.standing.folders.items() if build.standing else ():
        for unit, entry in units.items():
            found.setdefault(entry.key, []).append((name, unit, entry))
            if not all(_holds(build.home, path, facts, noted) for path, facts in entry.files.items()):
                broken.add(entry.key)
    return {key: items for key, items in found.items() if key not in broken}


def _holds(home: Path, path: str, facts: dict[str, Any], noted: dict[str, list[int]]) -> bool:
    if not (home / path).is_file():
        return False
    return stamp_file(home / path) == noted.get(path) or file_digest(home / path) == facts["sha256"]


def _manifests(step: Step, project: Project) -> dict[str, Manifest]:
    manifests = {name: Manifest.read(project.artifact(name)) for name in step.inputs}
    absent = [name for name, manifest in manifests.items() if manifest is None]
    if absent:
        raise GristmillError(
            f"{step.name} reads {project.artifact(absent[0])}, which does not stand",
            f"build it first: gristmill build --until {absent[0]}",
        )
    return {name: manifest for name, manifest in manifests.items() if manifest is not None}


def _link(source: Path, target: Path) -> None:
    """A hard link: both names lie in data/, which only whole artifacts and their staging share."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
