"""How dedup/verdicts is planned: one unit that reads the whole corpus, and the earlier releases of `against`.

In: the entries of this corpus and what lies in against/ (tasks.against). Out: the unit. With no release it is
the_whole, so that its key says nothing of releases.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tasks.against import FOLDER
from tasks.artifacts.manifest import Entry, Manifest
from tasks.dedup.places import READ_OF_RELEASES, outside_name
from tasks.step import Folder, Plan, Unit, the_whole


def the_whole_against(plan: Plan, folder: Folder) -> list[Unit]:
    """A single unit that reads every unit of every folder read, and what it needs of each release."""
    (whole,) = the_whole(plan, folder)
    settings = {entry.setting for entry in plan.entries("dedup/sketches").values()}
    against, files = releases(plan.root, list(plan.sources()["against"]), settings)
    spec = {"against": against} if against else {}
    return [Unit(whole.name, whole.reads, spec, files)]


def releases(root: Path, names: list[str], settings: set[str]) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """(what the unit's specification says of each release, name -> path of their files).

    settings: of this corpus' sketches. A release whose sketches were made by other code or parameters is sketched
    again from its texts ("sketched" is false).
    """
    against: list[dict[str, Any]] = []
    files: dict[str, str] = {}
    for name in names:
        home = root / FOLDER / name
        known = {read: _entries(home, read) for read in READ_OF_RELEASES}
        for read, entries in known.items():
            of_step = home / read.partition("/")[0]
            paths = {unit: of_step / entry.suffixes()[".parquet"] for unit, entry in entries.items()}
            files |= {outside_name(name, read, unit): str(path) for unit, path in paths.items()}
        units = {unit: [known[read][unit].content for read in READ_OF_RELEASES] for unit in known["normalize/text"]}
        sketched = {entry.setting for entry in known["dedup/sketches"].values()} <= settings
        against.append({"release": name, "units": units, "sketched": sketched})
    return against, files


def _entries(home: Path, read: str) -> dict[str, Entry]:
    step, _, folder = read.partition("/")
    manifest = Manifest.read(home / step)
    assert manifest is not None, "scan_against read it"  # noqa: S101
    return manifest.folders[folder]
