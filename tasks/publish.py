"""Publishing: a staged folder takes the place of the standing artifact whole, or not at all; and stamps of what stands.

The exchange is one renameat2(RENAME_EXCHANGE). Where the file system refuses it (or nothing stands yet) it is one or
two plain renames under a journal, which `recover` finishes at the next start. A stamp notes size, mtime_ns and inode of
every file of an artifact: as long as they hold, the files are those whose digests the manifest names.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

from tasks.artifacts.manifest import FILE, Manifest

AT_FDCWD = -100
RENAME_EXCHANGE = 2
REFUSED = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.ENOTSUP)


def publish(staged: Path, standing: Path) -> None:
    """Put `staged` where `standing` is; what stood there lies at `staged` afterwards, for the caller to remove."""
    _sync(staged)
    standing.parent.mkdir(parents=True, exist_ok=True)
    if not standing.exists():
        staged.rename(standing)
    elif not _exchange(staged, standing):
        _two_renames(staged, standing)
    _sync(standing.parent)


def recover(standing: Path, staging: Path) -> None:
    """Finish an exchange by two renames that was cut off: the journal says what was to stand."""
    journal = staging / "journal.json"
    if not journal.is_file():
        return
    plan = json.loads(journal.read_text(encoding="utf-8"))
    staged, aside = staging / plan["staged"], staging / plan["aside"]
    if aside.exists() and not standing.exists():
        (staged if staged.exists() else aside).rename(standing)
    journal.unlink()


def _exchange(staged: Path, standing: Path) -> bool:
    """False where the file system knows no exchange; raises OSError for anything else."""
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return False
    if renameat2(AT_FDCWD, os.fsencode(staged), AT_FDCWD, os.fsencode(standing), RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in REFUSED:
        return False
    raise OSError(number, os.strerror(number), str(standing))


def _two_renames(staged: Path, standing: Path) -> None:
    staging = staged.parent
    aside = staging / "aside"
    shutil.rmtree(aside, ignore_errors=True)
    journal = staging / "journal.json"
    journal.write_text(json.dumps({"staged": staged.name, "aside": aside.name}), encoding="utf-8")
    _sync(staging)
    standing.rename(aside)
    staged.rename(standing)
    aside.rename(staged)
    journal.unlink()


def _sync(folder: Path) -> None:
    """Make the names in `folder` durable before they are exchanged."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def stamp_file(path: Path) -> list[int]:
    """[size, mtime_ns, inode]: unequal after any edit that is not made to deceive."""
    facts = path.stat()
    return [facts.st_size, facts.st_mtime_ns, facts.st_ino]


def write_stamp(stamp: Path, standing: Path, manifest: Manifest, judged: str) -> None:
    """Note that `standing` holds what `manifest` names and was found good by the judges of digest `judged`."""
    files = {path: stamp_file(standing / path) for path in (*manifest.files, FILE)}
    plain = {"fingerprint": manifest.fingerprint, "judged": judged, "files": files}
    stamp.parent.mkdir(parents=True, exist_ok=True)
    partial = stamp.with_suffix(".partial")
    partial.write_text(json.dumps(plain), encoding="utf-8")
    partial.replace(stamp)


def read_stamp(stamp: Path) -> dict[str, Any]:
    """What write_stamp noted; {} where there is nothing readable."""
    try:
        plain = json.loads(stamp.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return plain if isinstance(plain, dict) else {}


def stamp_holds(noted: dict[str, Any], standing: Path, manifest: Manifest) -> bool:
    """Whether every file stands as it was stamped and no other lies beside them."""
    if noted.get("fingerprint") != manifest.fingerprint:
        return False
    files = noted.get("files", {})
    found = {path.relative_to(standing).as_posix() for path in standing.rglob("*") if path.is_file()}
    return found == set(files) and all(stamp_file(standing / path) == stamp for path, stamp in files.items())
