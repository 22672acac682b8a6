"""Where the files of a source lie, and a file of it at hand: on disk as it is, from afar as a copy with a known digest.

In: a source's path in params.yaml. Out: the path of a local file for as long as it is asked for. A copy is handed over
only when its SHA-256 is the one that was asked for, so this module shapes no byte and stands in no key.

Copies lie in a folder of .gristmill, named by digest. They are kept up to `room` bytes, the oldest go first; a copy in
use stays, so that a file larger than the room is still read. Who wants a file that another process fetches waits.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from tasks.errors import ParamsError, SourceError
from tasks.remote import Remote, is_url

CACHE = Path(".gristmill") / "copies"
ROOM = 20_000_000_000
"""Bytes of copies that are kept where params.yaml says nothing else."""


@dataclass(frozen=True)
class Home:
    """A source's place. root: its folder, or a URL; storage, cache and room concern URLs alone."""

    root: str
    named: str
    storage: Mapping[str, Any] = field(default_factory=dict)
    cache: str = ""
    room: int = ROOM

    @property
    def local(self) -> bool:
        """Whether the files lie on this machine."""
        return not is_url(self.root)

    @property
    def plain(self) -> dict[str, Any]:
        """As JSON, from which Home(**plain) is the same."""
        return asdict(self)

    def file(self, path: str, sha256: str) -> AbstractContextManager[Path]:
        """The file at `path`. A remote one has the digest; a local one may have changed, which its reader sees.

        Raises SourceError where it cannot be had or is another one by now.
        """
        if self.local:
            return nullcontext(Path(self.root, path))
        return self.copies.held(sha256, lambda: self._fetched(path, sha256))

    @property
    def copies(self) -> Copies:
        return Copies(Path(self.cache), self.room)

    def _fetched(self, path: str, sha256: str) -> Iterator[bytes]:
        """The file's blocks; raises where their digest is another one."""
        remote, whole = Remote(self.root, self.storage, self.named), hashlib.sha256()
        for block in remote.blocks(path, -1):
            whole.update(block)
            yield block
        if whole.hexdigest() != sha256:
            raise SourceError(f"{self.named} changed since it was listed: {path}", "build again")


def home_of(root: Path, item: Mapping[str, Any], named: str, room: int) -> Home:
    """The home of a source of params.yaml; root: of the project; room: bytes of copies that are kept."""
    if is_url(item["path"]):
        return Home(item["path"], named, item.get("storage") or {}, str(root / CACHE), room)
    path = (root / item["path"]).resolve()
    return Home(str(path.parent if path.is_file() else path), named)


def room_of(run: Mapping[str, Any] | None) -> int:
    """Bytes of copies, by the section run of params.yaml."""
    wanted = (run or {}).get("remote_bytes_max", ROOM)
    if not isinstance(wanted, int) or isinstance(wanted, bool) or wanted < 0:
        raise ParamsError(
            f"params.yaml: run.remote_bytes_max is {wanted!r}, no whole number from 0", "it is a number of bytes"
        )
    return wanted


@dataclass(frozen=True)
class Copies:
    """Files named by their digest. `<digest>.partial` is being fetched, under the lock of `<digest>.lock`."""

    folder: Path
    room: int

    @contextmanager
    def held(self, sha256: str, fetch: Any) -> Iterator[Path]:
        """The copy, fetched where it is not there; it stays until the end of the block."""
        copy = self.folder / sha256
        while (held := _locked(copy, fcntl.LOCK_SH, "rb")) is None:
            self._fetch(sha256, fetch)
        with held:
            yield copy

    def left(self) -> int:
        """Bytes of room that nothing takes."""
        return self.room - sum(size for _, size, _ in self._standing())

    def sweep(self) -> None:
        """Remove what killed runs left half fetched."""
        for lock in self.folder.glob("*.lock"):
            if held := _locked(lock, fcntl.LOCK_EX | fcntl.LOCK_NB, "rb"):
                with held:
                    lock.with_suffix(".partial").unlink(missing_ok=True)
                    lock.unlink(missing_ok=True)
        for partial in self.folder.glob("*.fetched-*"):
            if not Path("/proc", partial.name.rpartition("-")[2]).exists():
                partial.unlink(missing_ok=True)

    def take(self, partial: Path, sha256: str) -> None:
        """Make a file that was fetched a copy."""
        partial.rename(self.folder / sha256)

    def _fetch(self, sha256: str, fetch: Any) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        copy, lock = self.folder / sha256, self.folder / f"{sha256}.lock"
        while (held := _locked(lock, fcntl.LOCK_EX, "w")) is None:
            continue
        partial = self.folder / f"{sha256}.partial"
        with held:
            try:
                if not copy.exists():
                    _write(partial, fetch())
                    self.make_room(partial.stat().st_size)
                    partial.rename(copy)
            finally:
                partial.unlink(missing_ok=True)
                lock.unlink(missing_ok=True)

    def make_room(self, wanted: int) -> None:
        """Let the oldest copies go until `wanted` bytes more fit, those in use not."""
        left = self.left()
        for _, size, path in sorted(self._standing()):
            if left >= wanted:
                return
            if held := _locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB, "rb"):
                with held:
                    path.unlink()
                left += size

    def _standing(self) -> list[tuple[int, int, Path]]:
        found = []
        for path in self.folder.glob("?" * 64):
            with suppress(FileNotFoundError):
                facts = path.stat()
                found.append((facts.st_mtime_ns, facts.st_size, path))
        return found


def _write(partial: Path, blocks: Iterator[bytes]) -> None:
    with partial.open("wb") as out:
        for block in blocks:
            out.write(block)
        os.fsync(out.fileno())


def _locked(path: Path, how: int, mode: str) -> IO[Any] | None:
    """The file, open and locked; None where it is not there, is another one by now, or is held by others (LOCK_NB)."""
    try:
        file = path.open(mode)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, how)
        if path.exists() and os.fstat(file.fileno()).st_ino == path.stat().st_ino:
            return file
    except (BlockingIOError, FileNotFoundError):
        pass
    file.close()
    return None
