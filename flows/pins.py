"""Laying a pin: shards and mixture copied into pins/<fingerprint>/, verified, read-only, whole or not at all.

In: a release's record and a source of its files (data/, or DVC). Out: pins/<fingerprint>/ with pin.json:
{"format": 1, "fingerprint": 64 hex, "name": release or null, "files": {"shard/…": {"sha256": 64 hex, "bytes":
n}}}. A file is cloned by reflink where the file system can, else copied; never hard-linked, so that no later
build or DVC reaches into a pin. Verification reads each copy once (1.5 GB a CPU second).
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tasks.artifacts.canonical import file_digest, pretty
from tasks.errors import IntegrityError, SpaceError

FICLONE = 0x40049409
Files = dict[str, dict[str, Any]]
# Puts the file of that path (as in pin.json) where the second argument says.
Source = Callable[[str, Path], None]


def lay_pin(root: Path, fingerprint: str, name: str | None, files: Files, source: Source) -> Path:
    """pins/<fingerprint>/ with `files` taken from `source`; what lies there is verified, not copied.

    Raises IntegrityError where a file is not the one its digest names, SpaceError where the disk is full.
    """
    pin = root / "pins" / fingerprint
    if pin.is_dir() and not list(differences(pin, files)):
        return pin
    staged = pin.with_name(f".{fingerprint}.{os.getpid()}")
    shutil.rmtree(staged, ignore_errors=True)
    try:
        _fill(staged, files, source)
        record = {"format": 1, "fingerprint": fingerprint, "name": name, "files": files}
        (staged / "pin.json").write_text(pretty(record), encoding="utf-8")
        (staged / "pin.json").chmod(0o444)
        _replace(staged, pin)
    except OSError as error:
        raise SpaceError(f"cannot lay {pin}: {error.strerror}", "free some space or mend the rights") from error
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return pin


def differences(pin: Path, files: Files) -> list[str]:
    """One line for each file of the pin that is not what `files` names: file, expected and found digest."""
    lines = []
    for path, facts in sorted(files.items()):
        found = file_digest(pin / path) if (pin / path).is_file() else "no file"
        if found != facts["sha256"]:
            lines.append(f"{path}: expected {facts['sha256']}, found {found}")
    return lines


def clone(source: Path, target: Path) -> None:
    """`target` as an independent copy of `source`, sharing blocks where the file system can."""
    with source.open("rb") as old, target.open("wb") as new:
        try:
            fcntl.ioctl(new, FICLONE, old.fileno())
        except OSError:
            shutil.copyfileobj(old, new, 1 << 20)


def _fill(staged: Path, files: Files, source: Source) -> None:
    for path, facts in sorted(files.items()):
        target = staged / path
        target.parent.mkdir(parents=True, exist_ok=True)
        source(path, target)
        found = file_digest(target)
        if found != facts["sha256"]:
            raise IntegrityError(
                f"{path}: expected {facts['sha256']}, found {found}",
                "build again, or fetch it from another remote",
            )
        target.chmod(0o444)


def _replace(staged: Path, pin: Path) -> None:
    if pin.is_dir():
        spoiled = pin.with_name(f".{pin.name}.spoiled")
        shutil.rmtree(spoiled, ignore_errors=True)
        pin.rename(spoiled)
        shutil.rmtree(spoiled, ignore_errors=True)
    staged.rename(pin)
