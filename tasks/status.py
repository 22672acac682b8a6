"""What is up to date, what would run, and why: reads manifests, params and sources, and makes nothing.

Only ingest can be planned to the part before it is built; of a later step it is known what must be made *at least*: the
parts that are new by name, or every part where the folder's own code or parameters changed.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tasks.artifacts.canonical import canonical
from tasks.artifacts.manifest import Manifest
from tasks.build import Build
from tasks.carry import sound_entries
from tasks.errors import GristmillError
from tasks.parts import setting
from tasks.planning import Planning
from tasks.project import Project
from tasks.publish import read_stamp, stamp_holds
from tasks.step import Folder, Step, each_part


@dataclass(frozen=True)
class Status:
    """why: one sentence a cause. make, carry: folder -> units, at least and at most. bytes: of what stands."""

    step: str
    up_to_date: bool
    why: list[str]
    make: dict[str, int]
    carry: dict[str, int]
    bytes: int


def status(steps: Iterable[Step], project: Project) -> list[Status]:
    """The status of every step, in order. A step whose input would run anew is not up to date either."""
    found: list[Status] = []
    parts: set[str] | None = None
    for step in steps:
        stale = [s.step for s in found if not s.up_to_date and s.step in step.inputs]
        try:
            build = Build.begin(step, project)
        except GristmillError as error:
            why = [f"waits for {name}" for name in stale] or [str(error)]
            found.append(Status(step.name, False, why, {}, {}, 0))
            continue
        parts = _planned(build) if step.outside == ("sources",) else parts
        found.append(_of(build, stale, parts))
    return found


def _of(build: Build, stale: list[str], parts: set[str] | None) -> Status:
    size = build.standing.bytes if build.standing else 0
    why = [*_reasons(build), *(f"{name} would run" for name in stale)]
    if not why:
        return Status(build.step.name, True, [], {}, {}, size)
    make, carry = {}, {}
    for folder in build.step.folders:
        make[folder.name], carry[folder.name] = _forecast(build, folder, parts)
    return Status(build.step.name, False, why, make, carry, size)


def _reasons(build: Build) -> list[str]:
    manifest = build.standing
    if manifest is None:
        return ["no artifact stands"]
    reasons = list(_differences(manifest.recipe, build.recipe))
    if not stamp_holds(read_stamp(build.stamp), build.home, manifest):
        reasons += [str(mismatch) for mismatch in list(manifest.verify(build.home))[:3]]
    return reasons


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Which component of a recipe changed: code, parameter, version, input or source."""
    for folder, wanted in new["folders"].items():
        had = old["folders"].get(folder, {})
        for kind in ("code", "plan"):
            if had.get(kind) != wanted[kind]:
                yield f"{kind} of {folder} changed"
        for kind in ("params", "versions"):
            changed = {name for name, value in wanted[kind].items() if had.get(kind, {}).get(name) != value}
            yield from (f"{name} of {folder} changed" for name in sorted(changed))
    for name in new["inputs"]:
        if old["inputs"].get(name) != new["inputs"][name]:
            yield f"{name} changed"
    for name in new["outside"]:
        if old["outside"].get(name) != new["outside"][name]:
            yield f"{name} changed outside"


def _planned(build: Build) -> set[str] | None:
    """Names of the parts that ingest would write now; None where its plan fails (the build will say why)."""
    try:
        first = build.step.folders[0]
        return {unit.name for unit in first.plan(Planning(build), first)}
    except GristmillError:
        return None
    finally:
        shutil.rmtree(build.staging / "scratch", ignore_errors=True)


def _forecast(build: Build, folder: Folder, parts: set[str] | None) -> tuple[int, int]:
    """(units to make at least, units to carry over at most)."""
    standing = build.standing.folders.get(folder.name, {}) if build.standing else {}
    if build.step.outside == ("sources",):
        return _forecast_ingest(build, folder)
    if folder.plan is not each_part or parts is None:
        return 1, max(0, len(standing) - 1)
    known = {unit for unit, entry in standing.items() if _same(build, folder, entry.setting)}
    return len(parts - known), len(parts & known)


def _same(build: Build, folder: Folder, old: str) -> bool:
    """Whether a unit was made by the folder's present code and parameters; unknown where a spec enters: yes."""
    manifest: Manifest | None = build.standing
    had = manifest.recipe["folders"].get(folder.name, {}) if manifest else {}
    had = {kind: had.get(kind) for kind in ("code", "params", "versions")}
    return had == json.loads(canonical(build.ingredients[folder.name])) or old == setting(
        build.ingredients[folder.name], {}
    )


def _forecast_ingest(build: Build, folder: Folder) -> tuple[int, int]:
    try:
        known = sound_entries(build.home, build.standing, build.stamp)
        jobs = [build.job(folder, unit) for unit in folder.plan(Planning(build), folder)]
    except GristmillError:
        return 1, 0
    make = sum(job.key not in known for job in jobs)
    return make, len(jobs) - make
