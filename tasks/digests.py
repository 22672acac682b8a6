"""Digests of files outside the project's data, remembered by stamp so that an unchanged file is not read
again.

.gristmill/stamps/sources.json: path -> [size, mtime_ns, ctime_ns, inode, sha256]. It is a fact about this
machine and may be deleted at any time. A file that changed in the last two seconds is not remembered, since a
second change could leave the same stamp.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from tasks.artifacts.canonical import canonical, file_digest
from tasks.errors import SourceError

FRESH_NS = 2_000_000_000

Files = dict[str, dict[str, Any]]


@dataclass
class Digests:
    """known: what is remembered; seen: what was asked for since."""

    file: Path
    known: dict[str, list[Any]]
    seen: dict[str, list[Any]] = field(default_factory=dict)

    @classmethod
    def recall(cls, file: Path) -> Digests:
        try:
            known = orjson.loads(file.read_bytes())
        except (OSError, ValueError):
            known = {}
        return cls(file, known if isinstance(known, dict) else {})

    def remember(self, everything: bool = True) -> None:
        """everything: all files were asked for, so that the others may be forgotten."""
        wanted = self.seen if everything else self.known | self.seen
        if wanted != self.known or not self.file.is_file():
            _replace(self.file, canonical(wanted))

    def of_files(self, root: Path, paths: list[str], named: str) -> Files:
        base = str(root.parent if root.is_file() else root).rstrip("/") + "/"
        asked = time.time_ns()
        try:
            return {path: self._of(base + path, path, named, asked) for path in paths}
        except PermissionError as error:
            raise SourceError(f"{named} cannot be read: {error.filename}", "give the right to read it") from error
        except FileNotFoundError as error:
            raise SourceError(f"{named} changes while it is read: {error.filename}", "wait for its writer") from error

    def stamp_with(self, file: Path, sha256: str) -> list[int] | None:
        """The stamp of `file` while its digest is `sha256`, None where that is another by now."""
        stamp = stamp_of(file)
        if self.known.get(str(file)) == [*stamp, sha256]:
            return stamp
        return stamp if file_digest(file) == sha256 and stamp_of(file) == stamp else None

    def _of(self, file: str, path: str, named: str, asked: int) -> dict[str, Any]:
        """asked: the time in ns before its stamp was taken."""
        stamp = stamp_of(file)
        known = self.known.get(file)
        there = known is not None and known[:4] == stamp
        sha = known[4] if known and there else file_digest(Path(file))
        if not there and stamp_of(file) != stamp:
            raise SourceError(f"{named} changes while it is read: {path}", "wait for its writer")
        if asked - max(stamp[1], stamp[2]) > FRESH_NS:
            self.seen[file] = [*stamp, sha]
        return {"sha256": sha, "bytes": stamp[0]}


def stamp_of(file: Path | str) -> list[int]:
    """Size in bytes, mtime and ctime in ns, inode: what changes when a file does."""
    facts = os.stat(file)  # noqa: PTH116 - a Path for each of many files costs more than the question
    return [facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino]


def _replace(path: Path, content: bytes) -> None:
    if path.is_file() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_bytes(content)
    partial.replace(path)
