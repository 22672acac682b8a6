"""Where the records of a larger file lie: one pass over its bytes, remembered by the file's digest.

In: a file and its digest. Out: an array with a row for each record. It parses nothing.

A scan is kept in .gristmill/scans/, named by the file's digest, its format, its source's name and the code
that cuts records, so that a file is scanned once in its life. A scan of its own holds 56 bytes a record and
is mapped, not read. A compressed file is scanned through its decompressed copy in the run's scratch folder,
where the workers find it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tasks.artifacts.canonical import digest
from tasks.code import function_digest
from tasks.homes import Home
from tasks.ingest.containers import file_blocks, opened
from tasks.ingest.how import How
from tasks.ingest.reading import spooled
from tasks.ingest.records import Record, records

ROW = np.dtype([("offset", "<i8"), ("size", "<i8"), ("number", "<i8"), ("digest", "u1", (32,))])
CHUNK = 65_536

Array = np.ndarray[Any, Any]


@dataclass
class Scanner:
    """home: where scans are kept; spool: decompressed copies; limit: bytes of a record held at most."""

    home: Path
    spool: Path
    limit: int
    used: set[str] = field(default_factory=set)

    def scan(self, home: Home, path: str, claim: str, sha256: str, how: How, source: str) -> tuple[str, Array]:
        """What the records of a file are read as, and where they lie, ROW [n].

        claim: the format by its name. Raises SourceError where the file is damaged.
        """
        with home.file(path, sha256) as at_hand, pa.OSFile(str(at_hand)) as file:
            it = opened(file, claim, f"{source}: {path}", how.encoding, self.limit)
            name = digest([sha256, claim, how.plain, source, self.limit, self._code])
            found = self.home / name
            if not found.exists():
                plain = at_hand if it.plain else spooled(it.stream, it.form, sha256, self.spool)
                stream = file_blocks(plain, 0, plain.stat().st_size)
                _write(found, records(stream, it.records, source, self.limit))
        self.used.add(name)
        return it.records, np.memmap(found, ROW, mode="r") if found.stat().st_size else np.empty(0, ROW)

    @cached_property
    def _code(self) -> list[str]:
        return [function_digest(f"tasks.ingest.{name}") for name in ("containers:opened", "records:records")]

    def forget_others(self) -> None:
        """Delete the scans that no source asked for."""
        for file in self.home.glob("*"):
            if file.name not in self.used:
                file.unlink(missing_ok=True)


def _write(file: Path, found: Iterator[Record]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with partial.open("wb") as out:
            while chunk := [(r.offset, r.size, r.number, tuple(r.digest)) for r in islice(found, CHUNK)]:
                out.write(np.array(chunk, ROW).tobytes())
        partial.rename(file)
    finally:
        partial.unlink(missing_ok=True)
