"""SHA-256 of large files, mapped a window at a time: what verifying a pin costs is hashing, not copying.

In: a path. Out: the digest of its bytes. Reading copies every byte out of the page cache first, which takes a fifth of
the time that hashing takes; mapping takes half of that.
"""

from __future__ import annotations

import hashlib
import mmap
import os
from pathlib import Path

from tasks.artifacts import canonical

WINDOW = 32 << 20
POPULATE_READ = 22
"""Linux 5.14's MADV_POPULATE_READ: maps all pages at once, and says as an error what would be SIGBUS later on."""


def file_digest(path: Path) -> str:
    """64 hex: SHA-256 of a file's bytes. Raises OSError where it cannot be read, as where a disk fails: a page is only
    looked at once the system has said that it is there."""
    try:
        return _mapped(path)
    except (OSError, ValueError):
        # No such advice on this system, a page that cannot be had, a file that shrank: reading says which.
        return canonical.file_digest(path)


def _mapped(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        for at in range(0, size, WINDOW):
            with mmap.mmap(file.fileno(), min(WINDOW, size - at), access=mmap.ACCESS_READ, offset=at) as window:
                window.madvise(POPULATE_READ)
                digest.update(window)
    return digest.hexdigest()
