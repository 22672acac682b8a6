"""One build of one step: what it reads, the recipe it follows, and the staging of its folders unit by unit."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tasks.artifacts.canonical import canonical, digest
from tasks.artifacts.manifest import Entry, Manifest
from tasks.carry import Items, sound_entries
from tasks.errors import GristmillError
from tasks.parts import FileReads, Job, Shown, ingredients, made_items, narrowed, planner_digest, setting, unit_key
from tasks.planning import Planning
from tasks.project import Project
from tasks.sources import scan
from tasks.step import Folder, Step, StepParams, Unit
from tasks.workers import Inline, make_all, pool

Progress = Callable[[int, int, str], None]


@dataclass
class Build:
    """folders: what has been staged so far; outside: the sections of the sources that the step reads; sound: keys of
    the standing artifact whose files hold; executor: where units are made.
    """

    step: Step
    project: Project
    params: StepParams
    manifests: dict[str, Manifest]
    outside: dict[str, Any]
    folders: dict[str, dict[str, Entry]] = field(default_factory=dict)
    sound: set[str] = field(default_factory=set)
    executor: Callable[[], Executor] = Inline

    @classmethod
    def begin(cls, step: Step, project: Project) -> Build:
        """Read params, inputs and sources; raises GristmillError where one is wanting."""
        build = cls(step, project, project.params(step), _manifests(step, project), {})
        build.outside = build.outside_now()
        return build

    def outside_now(self) -> dict[str, Any]:
        found = scan(self.project, self.step.outside) if self.step.outside else {}
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

    @cached_property
    def standing(self) -> Manifest | None:
        return Manifest.read(self.home)

    @cached_property
    def ingredients(self) -> dict[str, dict[str, Any]]:
        """folder -> what shapes all of its units."""
        return {folder.name: ingredients(folder, self.params) for folder in self.step.folders}

    @cached_property
    def recipe(self) -> dict[str, Any]:
        """All that shapes the artifact, by name, as plain JSON (see tasks.artifacts.manifest)."""
        planners = {folder.name: planner_digest(folder) for folder in self.step.folders}
        recipe = {
            "step": self.step.name,
            "folders": {name: own | {"plan": planners[name]} for name, own in self.ingredients.items()},
            "inputs": {name: manifest.fingerprint for name, manifest in self.manifests.items()},
            "outside": {name: digest(found) for name, found in self.outside.items()},
            "small": [self.project.limit, self.project.fraction],
        }
        plain: dict[str, Any] = json.loads(canonical(recipe))
        return plain

    @property
    def recipe_key(self) -> str:
        return digest(self.recipe)

    def stage(
        self, workers: int, cluster: str | None, force: bool, progress: Progress | None
    ) -> tuple[dict[str, int], dict[str, int]]:
        """Bring every folder into `tree`; returns units made and units carried over, by folder."""
        shutil.rmtree(self.staging if force else self.tree, ignore_errors=True)
        self.tree.mkdir(parents=True)
        self.executor = lambda: pool(workers, cluster)
        known = {} if force else sound_entries(self.home, self.standing, self.stamp)
        self.sound = set(known)
        made, carried = {}, {}
        for folder in self.step.folders:
            units = {unit.name: unit for unit in folder.plan(self.planning(), folder)}
            todo = self._lay_known(folder, units, known)
            self._make(folder, units, todo, progress)
            made[folder.name], carried[folder.name] = len(todo), len(units) - len(todo)
            self._put_in_order(folder, units)
        self.clear_scratch()
        return made, carried

    def planning(self) -> Planning:
        """What this step's planners may ask."""
        scratch = self.staging / "scratch"
        return Planning(self.project, self.params, self.entries, self.outside, scratch, self.executor)

    def clear_scratch(self) -> None:
        """Remove this run's temporary files, and the staging folder where it holds nothing else."""
        shutil.rmtree(self.staging / "scratch", ignore_errors=True)
        for folder in (self.staging, self.staging.parent):
            with contextlib.suppress(OSError):
                folder.rmdir()

    def job(self, folder: Folder, unit: Unit) -> Job:
        """The work on one unit, with its key."""
        whole = self.ingredients[folder.name]
        own = setting(whole | {"params": narrowed(whole["params"], folder.members, unit.spec)}, unit.spec)
        key = unit_key(own, [(read, name, self.entries(read)[name].content) for read, name in unit.reads])
        fields = {name: getattr(self.params, name) for name in folder.shapes}
        shown = Shown(folder.name, narrowed(fields, folder.members, unit.spec))
        files = FileReads(unit.name, unit.spec, self._files(unit), unit.files, self._before(folder, unit, own))
        made = self.staging / "made" / folder.name
        return Job(folder.name, folder.function, folder.spread, unit.name, key, own, shown, files, made)

    def entries(self, folder: str) -> Mapping[str, Entry]:
        """unit -> Entry of "step/folder": of an input, or of this step as far as it is staged."""
        step, _, name = folder.partition("/")
        return self.folders[name] if step == self.step.name else self.manifests[step].folders[name]

    def _files(self, unit: Unit) -> dict[str, dict[str, dict[str, str]]]:
        files: dict[str, dict[str, dict[str, str]]] = {}
        for read, name in unit.reads:
            step = read.partition("/")[0]
            home = self.tree if step == self.step.name else self.project.artifact(step)
            suffixes = self.entries(read)[name].suffixes()
            files.setdefault(read, {})[name] = {suffix: str(home / path) for suffix, path in suffixes.items()}
        return files

    def _before(self, folder: Folder, unit: Unit, own: str) -> FileReads | None:
        """The same unit as it stands, where it was made by equal code and parameters from other contents."""
        entry = self.standing.folders.get(folder.name, {}).get(unit.name) if self.standing else None
        if entry is None or entry.setting != own or folder.spread or entry.key not in self.sound:
            return None
        paths = {suffix: str(self.home / path) for suffix, path in entry.suffixes().items()}
        return FileReads(unit.name, unit.spec, {f"{self.step.name}/{folder.name}": {unit.name: paths}}, {})

    def _lay_known(self, folder: Folder, units: Mapping[str, Unit], known: Mapping[str, Items]) -> list[Job]:
        """Link what stands or was left by a dead run; returns the jobs for the rest."""
        todo = []
        for unit in units.values():
            job = self.job(folder, unit)
            if job.key in known:
                self._lay(folder, unit, known[job.key], self.home)
            elif items := made_items(job.home, verify=True):
                self._lay(folder, unit, items, job.home)
            else:
                todo.append(job)
        return todo

    def _make(
        self,
        folder: Folder,
        units: Mapping[str, Unit],
        todo: list[Job],
        progress: Progress | None,
    ) -> None:
        """The largest first, so that no worker is left alone with it at the end."""
        ended = 0

        def done(job: Job) -> None:
            nonlocal ended
            ended += 1
            self._lay(folder, units[job.unit], made_items(job.home) or [], job.home)
            if progress:
                progress(ended, len(todo), folder.name)

        def size(job: Job) -> int:
            return sum(self.entries(read)[name].bytes for read, name in units[job.unit].reads)

        make_all(sorted(todo, key=size, reverse=True), self.executor(), done)

    def _lay(self, folder: Folder, unit: Unit, items: Items, home: Path) -> None:
        """Link a unit's files from `home` to their places in the tree and note its entries."""
        origins = self.entries(folder.reads[0]) if folder.spread else {}
        for name, part, entry in items if folder.spread else items[:1]:
            own = part if folder.spread else unit.name
            origin = origins[own].origin if folder.spread else unit.origin
            files = _link_all(entry, home, self.tree, folder.place.format(folder=name, unit=own))
            self.folders.setdefault(name, {})[own] = replace(entry, files=files, origin=origin)

    def _put_in_order(self, folder: Folder, units: Mapping[str, Unit]) -> None:
        """Entries in the order of the plan, whatever the order in which they ended."""
        wanted = self.entries(folder.reads[0]) if folder.spread else units
        for name in (folder.name, *folder.also):
            laid = self.folders.get(name, {})
            self.folders[name] = {unit: laid[unit] for unit in wanted if unit in laid}


def _manifests(step: Step, project: Project) -> dict[str, Manifest]:
    found = {name: Manifest.read(project.artifact(name)) for name in step.inputs}
    absent = [name for name, manifest in found.items() if manifest is None]
    if absent:
        raise GristmillError(
            f"{step.name} reads {project.artifact(absent[0])}, which does not stand",
            f"build it first: gristmill build --until {absent[0]}",
        )
    return {name: manifest for name, manifest in found.items() if manifest is not None}


def _link_all(entry: Entry, home: Path, tree: Path, stem: str) -> dict[str, dict[str, Any]]:
    """Link an entry's files to `stem` + suffix below `tree`; returns its files under their new names."""
    files = {}
    for suffix, path in entry.suffixes().items():
        target = tree / (stem + suffix)
        target.parent.mkdir(parents=True, exist_ok=True)
        _link(home / path, target)
        files[stem + suffix] = entry.files[path]
    return files


def _link(source: Path, target: Path) -> None:
    """A hard link: both names lie in data/, which only whole artifacts and their staging share."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
