"""A pin: shards and mixture of one data version, read-only under pins/<fingerprint>/, verified before use.

In: a release name, a tag or the beginning of a fingerprint. Out: a Pin whose every byte is the one that was
released. It lays and fetches nothing (`gristmill fetch` does) and never looks into data/.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from tasks.artifacts.schedule import Schedule, ScheduleError, folder_content
from tasks.artifacts.shards import ShardError, ShardReader
from training.digests import file_digest

SUFFIXES = (".bin", ".idx", ".starts.npy", ".stops.npy")
WHERE_NEEDED = (".loss", ".classes.npy")
SHORTEST_PREFIX = 6
MIXTURE = "mix/mixture.json"

Files = dict[str, dict[str, Any]]


class PinError(Exception):
    """A pin that is absent, ambiguous or damaged. mend: the command or the step that puts it right."""

    code = 6

    def __init__(self, message: str, mend: str) -> None:
        self.message, self.mend = message, mend
        super().__init__(f"{message}; {mend}")


@dataclass(frozen=True)
class Pin:
    """A verified data version. name: of its release, or None; schedule: the content of its mixture.json."""

    folder: Path
    fingerprint: str
    name: str | None
    schedule: Schedule

    def shards(self, source: str, split: str) -> list[Path]:
        """The shards of one source and split in reading order, as paths without suffix; or none."""
        held = self.schedule.sources.get(source, {}).get(split)
        folder = self.folder / "shard" / source / split
        return [folder / shard.name for shard in held.shards] if held else []


def open_pin(name: str, root: Path = Path(), *, full: bool = False) -> Pin:
    """Resolve `name` below the project `root`, verify every file, and give back the pin.

    A file is digested once (1.5 GB a CPU second, in parallel threads) and stamped with size, mtime and
    inode under .gristmill/stamps/pins/; later openings compare stamps alone, unless `full`. Raises PinError
    with the file, both digests and the mend.
    """
    fingerprint, release = _resolve(name, root)
    folder = root / "pins" / fingerprint
    if not (folder / "pin.json").is_file():
        raise PinError(f"pin {name} ({fingerprint[:12]}) is not on this machine", f"run: gristmill fetch {name}")
    laid = _json(folder / "pin.json")
    if laid.get("fingerprint") != fingerprint:
        raise PinError(f"{folder / 'pin.json'} names {laid.get('fingerprint')}, its folder {fingerprint}", _again(name))
    files = _files(release or laid, folder)
    digested = _verify(folder, files, root / ".gristmill" / "stamps" / "pins" / f"{fingerprint}.json", name, full)
    try:
        schedule = Schedule.read(folder / MIXTURE)
    except (ScheduleError, OSError) as problem:
        raise PinError(str(problem), _again(name)) from problem
    _check_shards(schedule, files, name)
    pin = Pin(folder, fingerprint, (release or laid).get("name"), schedule)
    if digested:
        _check_bounds(pin, name)
    return pin


def _resolve(name: str, root: Path) -> tuple[str, dict[str, Any] | None]:
    """(fingerprint, the release's content or None); a name goes before a tag, a tag before a fingerprint."""
    releases = [_json(path) for path in sorted((root / "releases").glob("*.json"))]
    for key in ("name", "tag"):
        for release in releases:
            if release.get(key) == name:
                return _whole(release), release
    pins = {path.parent.name: _json(path) for path in sorted((root / "pins").glob("*/pin.json"))}
    known = {**pins, **{_whole(release): release for release in releases}}
    begins = len(name) >= SHORTEST_PREFIX and set(name) <= set("0123456789abcdef")
    found = [fingerprint for fingerprint in sorted(known) if begins and fingerprint.startswith(name)]
    found = found or [fingerprint for fingerprint, laid in pins.items() if laid.get("name") == name]
    if len(found) > 1:
        raise PinError(f"{name} begins {len(found)} fingerprints: {', '.join(found)}", "write more of it")
    if not found:
        names = sorted({str(one["name"]) for one in (*releases, *pins.values()) if one.get("name")})
        mend = f"there are: {', '.join(names)}" if names else "there is none here; make one: gristmill release NAME"
        raise PinError(f"no release, tag or pin is named {name}", mend)
    return found[0], next((release for release in releases if _whole(release) == found[0]), None)


def _whole(release: dict[str, Any]) -> str:
    """The fingerprint of a release; it becomes a folder's name, so it must be 64 hex."""
    fingerprint = str(release.get("fingerprint"))
    if not re.fullmatch("[0-9a-f]{64}", fingerprint):
        raise PinError(
            f"release {release.get('name')} has fingerprint {fingerprint!r}, not 64 hex",
            "restore it from git",
        )
    return fingerprint


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
        if not isinstance(content, dict):
            raise ValueError(f"it holds a {type(content).__name__}, not an object")
    except ValueError as problem:
        raise PinError(f"{path} cannot be read: {problem}", "restore it from git, or fetch the pin again") from problem
    return content


def _files(source: dict[str, Any], folder: Path) -> Files:
    """The files that a release or pin.json names; none of them may lie outside the pin."""
    files = source.get("files")
    if not isinstance(files, dict) or MIXTURE not in files:
        raise PinError(f"the release or pin.json of {folder} names no {MIXTURE}", "release it again")
    for name in files:
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise PinError(f"the release or pin.json of {folder} names {name!r}, outside the pin", "release it again")
    return files


def _verify(folder: Path, files: Files, stamps: Path, name: str, full: bool) -> bool:
    """Hold every file against its digest; raises PinError for the first, in order of name, that differs. Gives back
    whether any was digested now."""
    known = {} if full or not stamps.is_file() else _json(stamps)
    with ThreadPoolExecutor(max_workers=min(16, os.cpu_count() or 1)) as pool:
        now = dict(zip(files, pool.map(lambda path: _stamp(folder, path, files[path], known), files), strict=True))
    wrong = [path for path in sorted(files) if now[path][0] != files[path]["sha256"]]
    if wrong:
        more = f" (and {len(wrong) - 1} more files)" if len(wrong) > 1 else ""
        raise PinError(
            f"{folder / wrong[0]} is not the file that was released: "
            f"expected SHA-256 {files[wrong[0]]['sha256']}, found {now[wrong[0]][0]}{more}",
            _again(name),
        )
    if now != known:
        # A project that cannot be written to is digested at every start.
        with contextlib.suppress(OSError):
            stamps.parent.mkdir(parents=True, exist_ok=True)
            partial = stamps.with_suffix(f".{os.getpid()}")
            partial.write_text(json.dumps(now))
            partial.replace(stamps)
    return full or now != known


def _stamp(folder: Path, path: str, expected: dict[str, Any], known: dict[str, Any]) -> list[Any]:
    """[found, size in bytes, mtime in ns, inode]; found is a SHA-256, or says what there is instead."""
    try:
        facts = (folder / path).stat()
    except OSError:
        return ["no file", 0, 0, 0]
    seen = [facts.st_size, facts.st_mtime_ns, facts.st_ino]
    if facts.st_size != expected["bytes"]:
        return [f"{facts.st_size} bytes instead of {expected['bytes']}", *seen]
    if known.get(path) == [expected["sha256"], *seen]:
        return [expected["sha256"], *seen]
    return [file_digest(folder / path), *seen]


def _check_shards(schedule: Schedule, files: Files, name: str) -> None:
    """Every shard that the mixture orders is among the files, with the content the mixture was laid for."""
    for source, splits in schedule.sources.items():
        for split, held in splits.items():
            wanted = [f"{shard.name}{suffix}" for shard in held.shards for suffix in SUFFIXES]
            further = [f"{shard.name}{suffix}" for shard in held.shards for suffix in WHERE_NEEDED]
            wanted += [file for file in further if f"shard/{source}/{split}/{file}" in files]
            listed = {file: files.get(f"shard/{source}/{split}/{file}", {}).get("sha256", "none") for file in wanted}
            if folder_content(listed) != held.content:
                raise PinError(
                    f"the shards of {source}/{split} have content {folder_content(listed)}, "
                    f"the mixture orders {held.content}",
                    _again(name),
                )


def _check_bounds(pin: Pin, name: str) -> None:
    """Every sequence lies within its stream and every document where its size says: what opening a shard later takes
    for granted, as it would cost 16 bytes a sequence each time."""
    for source, splits in pin.schedule.sources.items():
        for split in splits:
            for path in pin.shards(source, split):
                try:
                    ShardReader(path.parent, path.name).verify()
                except ShardError as problem:
                    raise PinError(str(problem), _again(name)) from problem


def _again(name: str) -> str:
    return f"remove the folder and run: gristmill fetch {name}"
