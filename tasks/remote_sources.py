"""The files of a source behind a URL: their names by a listing, their digests by stamps or by reading them once.

In: a source of params.yaml. Out: as of a local source, path -> SHA-256 and bytes, so that a corpus has one identity
wherever it lies. It knows no formats.

Digests are remembered by URL, size and tag in .gristmill/stamps/remote.json: an unchanged file is not fetched again.
What is fetched to be digested is kept as a copy while there is room, so that ingest need not fetch it a second time. A
file without a tag (no entity tag, digest or time) is digested at each build.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tasks.artifacts.canonical import canonical
from tasks.errors import ParamsError, SourceError
from tasks.homes import CACHE, Copies, room_of
from tasks.remote import Remote
from tasks.tags import Facts, settled

FETCHERS = 16
"""Files that are read at once: many small objects wait for answers, not for bytes."""

SAVED_BYTES = 1 << 30
"""Bytes fetched after which the digests so far are saved, so that a listing that is killed goes on."""


@dataclass
class RemoteDigests:
    """file: where stamps are kept. known: URL -> [size, tag, sha256]; seen: what was asked for since; left: bytes of
    room for copies.
    """

    file: Path
    copies: Copies
    known: dict[str, list[Any]]
    seen: dict[str, list[Any]] = field(default_factory=dict)
    fetched: int = 0
    left: int | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def recall(cls, root: Path, state: Path, run: Mapping[str, Any] | None) -> RemoteDigests:
        """What is remembered in the project at `root`; run: that section of params.yaml."""
        file = state / "stamps" / "remote.json"
        try:
            known = json.loads(file.read_bytes())
        except (OSError, ValueError):
            known = {}
        return cls(file, Copies(root / CACHE, room_of(run)), known if isinstance(known, dict) else {})

    def remember(self, everything: bool) -> None:
        """everything: all sources were asked for, so that the others may be forgotten."""
        wanted = self.seen if everything else self.known | self.seen
        if wanted == self.known:
            return
        self.file.parent.mkdir(parents=True, exist_ok=True)
        partial = self.file.with_name(f".{self.file.name}.{os.getpid()}")
        partial.write_bytes(canonical(wanted))
        partial.replace(self.file)

    def of_files(self, remote: Remote, listing: Mapping[str, Facts]) -> dict[str, dict[str, Any]]:
        """path -> {"sha256", "bytes"} of the files listed. Raises SourceError where one cannot be read or changes."""
        try:
            with ThreadPoolExecutor(FETCHERS) as pool:
                pending = {path: pool.submit(self._of, remote, path, facts) for path, facts in listing.items()}
                try:
                    return {path: future.result() for path, future in pending.items()}
                except BaseException:
                    pool.shutdown(wait=True, cancel_futures=True)
                    raise
        except BaseException:
            self.remember(everything=False)
            raise

    def _of(self, remote: Remote, path: str, facts: Facts) -> dict[str, Any]:
        name = "/".join([*remote.parts, path])
        known = self.known.get(name)
        if known and facts.tag and known[:2] == [facts.size, facts.tag]:
            size, sha256 = known[0], known[2]
        else:
            size, sha256 = self._digested(remote, path, facts)
        with self.lock:
            if settled(facts.tag):
                self.seen[name] = [facts.size, facts.tag, sha256]
        return {"sha256": sha256, "bytes": size}

    def _digested(self, remote: Remote, path: str, facts: Facts) -> tuple[int, str]:
        """A file's size and digest by reading it; raises SourceError where it changes meanwhile."""
        keeping = self._reserve(facts.size)
        partial = (
            self.copies.folder
            / f"{hashlib.sha256(repr((remote.parts, path)).encode()).hexdigest()}.fetched-{os.getpid()}"
        )
        try:
            size, sha256 = _read(remote, path, facts, partial if keeping else None)
            after = remote.facts(path)
            if (facts.size >= 0 and size != facts.size) or after != facts:
                raise SourceError(f"{remote.named} changes while it is read: {path}", "wait for its writer")
            if keeping:
                self.copies.take(partial, sha256)
            return size, sha256
        finally:
            partial.unlink(missing_ok=True)
            self._note(size=facts.size)

    def _reserve(self, size: int) -> bool:
        """Whether a file of that size is kept as a copy: while there is room, no other copy goes for it."""
        with self.lock:
            if self.left is None:
                self.copies.folder.mkdir(parents=True, exist_ok=True)
                self.copies.sweep()
                self.left = self.copies.left()
            if not 0 <= size <= self.left:
                return False
            self.left -= size
            return True

    def _note(self, size: int) -> None:
        with self.lock:
            self.fetched += max(0, size)
            if self.fetched >= SAVED_BYTES:
                self.fetched = 0
                self.remember(everything=False)


def _read(remote: Remote, path: str, facts: Facts, partial: Path | None) -> tuple[int, str]:
    """A file's size and digest; its bytes go to `partial` where one is named."""
    whole, size = hashlib.sha256(), 0
    with open(os.devnull if partial is None else partial, "wb") as out:  # noqa: PTH123
        for block in remote.blocks(path, facts.size):
            whole.update(block)
            size += len(block)
            out.write(block)
        if partial is not None:
            os.fsync(out.fileno())
    return size, whole.hexdigest()


def remote_of(item: Mapping[str, Any], named: str) -> Remote:
    """The place of a source of params.yaml whose path is a URL; raises ParamsError where it is none that may stand."""
    storage = item.get("storage") or {}
    if not isinstance(storage, dict):
        raise ParamsError(f"params.yaml: storage of {named} is no mapping", "write {endpoint_url: http://...}")
    remote = Remote(str(item["path"]), storage, named)
    remote.refuse()
    return remote
