"""What of a standing artifact can be carried over: units whose files still are what the manifest names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tasks.artifacts.canonical import file_digest
from tasks.artifacts.manifest import Entry, Manifest
from tasks.publish import read_stamp, stamp_file

Items = list[tuple[str, str, Entry]]
"""(folder, unit, entry): one for a unit made by itself, one for each part of a spread folder."""


def sound_entries(home: Path, standing: Manifest | None, stamp: Path) -> dict[str, Items]:
    """key -> items of the artifact in `home` whose files hold, by stamp or else by full digest."""
    found: dict[str, Items] = {}
    broken: set[str] = set()
    noted = read_stamp(stamp).get("files", {})
    for name, units in standing.folders.items() if standing else ():
        for unit, entry in units.items():
            found.setdefault(entry.key, []).append((name, unit, entry))
            if not all(_holds(home, path, facts, noted) for path, facts in entry.files.items()):
                broken.add(entry.key)
    return {key: items for key, items in found.items() if key not in broken}


def _holds(home: Path, path: str, facts: dict[str, Any], noted: dict[str, list[int]]) -> bool:
    if not (home / path).is_file():
        return False
    return stamp_file(home / path) == noted.get(path) or file_digest(home / path) == facts["sha256"]
