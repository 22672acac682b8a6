"""What is up to date, what would run, and why: reads manifests, params and sources, and makes nothing.

Only ingest can be planned to the part before it is built; of a later step it is known what must be made *at least*: the
parts that are new by name, or every part where the folder's own code or parameters changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tasks.build import Build
from tasks.carry import sound_entries
from tasks.errors import GristmillError
from tasks.judge import judge_digest
from tasks.project import Project
from tasks.publish import read_stamp, stamp_holds
from tasks.step import Folder, Step, each_part

FROM_SOURCES = ("sources",)


@dataclass(frozen=True)
class Status:
    """why: one sentence a cause. make, carry: folder -> units, at least and at most. bytes, content, fingerprint: of
    what stands, None where nothing does.
    """

    step: str
    up_to_date: bool
    why: list[str]
    make: dict[str, int]
    carry: dict[str, int]
    bytes: int = 0
    content: str | None = None
    fingerprint: str | None = None


@dataclass(frozen=True)
class Parts:
    """Names of parts: wanted by the sources as they are now (None where they cannot be planned), and standing."""

    wanted: frozenset[str] | None = None
    standing: frozenset[str] = frozenset()


def status(steps: Iterable[Step], project: Project) -> list[Status]:
    """The status of every step, in order. A step whose input would run anew is not up to date either."""
    found: list[Status] = []
    parts = Parts()
    steps = tuple(steps)
    still = _still(steps)
    for step in steps:
        stale = [s.step for s in found if not s.up_to_date and s.step in step.inputs]
        try:
            build = Build.begin(step, project)
        except GristmillError as error:
            why = [f"waits for {name}" for name in stale] or [str(error)]
            found.append(Status(step.name, False, why, {}, {}))
            continue
        parts = _parts(build) if step.outside == FROM_SOURCES else parts
        found.append(_of(build, stale, parts, still))
    return found


def is_judged(build: Build) -> bool:
    """Whether the standing artifact was found good by the limits and the suite as they are now."""
    wanted = judge_digest(build.step, build.params, build.project)
    return bool(read_stamp(build.stamp).get("judged") == wanted)


def _still(steps: Iterable[Step]) -> frozenset[str]:
    """Folders into which no part flows, as a tokenizer's: another file at the sources makes none of them anew."""
    still: set[str] = set()
    for step in steps:
        if step.outside != FROM_SOURCES:
            names = {f"{step.name}/{folder.name}": folder.reads for folder in step.folders}
            still.update(name for name, reads in names.items() if still.issuperset(reads))
    return frozenset(still)


def _of(build: Build, stale: list[str], parts: Parts, still: frozenset[str]) -> Status:
    why = [*_reasons(build), *(f"{name} would run" for name in stale)]
    make, carry = {}, {}
    if why:
        for folder in build.step.folders:
            make[folder.name], carry[folder.name] = _forecast(build, folder, parts, still)
    elif not is_judged(build):
        why = ["its limits changed: what stands would be judged again"]
    stands = build.standing
    facts = (stands.bytes, stands.content, stands.fingerprint) if stands else ()
    return Status(build.step.name, not why, why, make, carry, *facts)


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
        for kind in ("code", "plan", "writer"):
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


def _parts(build: Build) -> Parts:
    first = build.step.folders[0]
    standing = build.standing.folders.get(first.name, {}) if build.standing else {}
    try:
        wanted = frozenset(unit.name for unit in first.plan(build.planning(), first))
    except GristmillError:
        return Parts(None, frozenset(standing))
    finally:
        build.clear_scratch()
    return Parts(wanted, frozenset(standing))


def _forecast(build: Build, folder: Folder, parts: Parts, still: frozenset[str]) -> tuple[int, int]:
    """(units to make at least, units to carry over at most)."""
    if build.step.outside == FROM_SOURCES:
        return _forecast_ingest(build, folder)
    units = build.standing.folders.get(folder.name, {}) if build.standing else {}
    aligned = parts.wanted is not None and parts.standing.issuperset(units)
    if not units and _same(build, folder):  # a folder that nobody asked for, as filter's own signals
        return 0, 0
    if not units or not _same(build, folder):
        return (len(parts.wanted or "") if aligned and folder.plan is each_part else max(1, len(units))), 0
    if aligned and parts.wanted is not None:
        return len(parts.wanted - units.keys()), len(parts.wanted & units.keys())
    flows = f"{build.step.name}/{folder.name}" not in still
    new = int(flows and parts.wanted is not None and not parts.wanted <= parts.standing)
    return new, len(units) - new


def _same(build: Build, folder: Folder) -> bool:
    """Whether the folder's code, parameters and versions are those of the artifact that stands."""
    had = build.standing.recipe["folders"].get(folder.name) if build.standing else None
    return bool(had == build.recipe["folders"][folder.name])


def _forecast_ingest(build: Build, folder: Folder) -> tuple[int, int]:
    try:
        known = sound_entries(build.home, build.standing, build.stamp)
        jobs = [build.job(folder, unit) for unit in folder.plan(build.planning(), folder)]
    except GristmillError:
        return 1, 0
    make = sum(job.key not in known for job in jobs)
    return make, len(jobs) - make
