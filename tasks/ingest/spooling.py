"""Bytes that are read more than once: the unpacked copy of a larger packed file, and the limit for one read whole.

In: a stream. Out: a file in the run's scratch folder, there whole or not at all. It knows no records.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from tasks.errors import SourceError


def bounded(stream: Iterator[bytes], most: int, named: str) -> Iterator[bytes]:
    """`stream`, which must not hold above `most` bytes: a small file that unpacks to gigabytes is not held
    whole.
    """
    held = 0
    for block in stream:
        held += len(block)
        if held > most:
            raise too_large(named, most)
        yield block


def too_large(named: str, most: int) -> SourceError:
    """The error for a small file that unpacks to more than a part may hold."""
    return SourceError(
        f"{named} unpacks to more than {most} bytes, too many for one part",
        "set small_file_bytes to its size or below, so that it is cut between its records",
    )


def spooled(stream: Iterator[bytes], form: str, sha256: str, spool: Path) -> Path:
    """The bytes of `stream` as a file in `spool`, which the first that asks makes.

    A copy is there whole or not at all; who comes while it is made waits for it.
    """
    plain = spool / f"{sha256}.{form}"
    spool.mkdir(parents=True, exist_ok=True)
    with (spool / f"{sha256}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not plain.exists():
            _write(stream, plain)
    return plain


def _write(stream: Iterator[bytes], plain: Path) -> None:
    """It is on the disk before it has its name: no worker digests it again."""
    partial = plain.with_name(f"{plain.name}.{os.getpid()}")
    try:
        with partial.open("wb") as file:
            for block in stream:
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
        partial.rename(plain)
    finally:
        partial.unlink(missing_ok=True)
