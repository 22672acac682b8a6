"""Where the records of a larger file lie: one pass over its bytes, range by range, remembered by the file's digest.

In: a file and its digest. Out: an array with a row for each record. It parses nothing.

A file of lines is cut into ranges of RANGE_BYTES by seeking: a line belongs to the range in which its first byte lies.
Ranges are scanned side by side, each is remembered by itself, so a run that died goes on where it stopped; put
together they are the scan of the file, kept in .gristmill/scans/ by the file's digest, its format, its source's name
and the code that cuts records. A packed file is scanned through its unpacked copy in the run's scratch folder, where
the workers find it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tasks.artifacts.canonical import digest
from tasks.code import function_digest
from tasks.digests import Digests
from tasks.errors import SourceError
from tasks.homes import Home
from tasks.ingest.containers import Opened, file_blocks, opened
from tasks.ingest.groups import has_groups, scan_groups
from tasks.ingest.how import How
from tasks.ingest.ranges import Range
from tasks.ingest.records import WHOLE, records
from tasks.ingest.scans import GROUPS, Array, as_rows, is_whole, lines_of, rows_of, write_scan
from tasks.ingest.spooling import spooled
from tasks.workers import finish_all

CHUNK = 65_536
RANGE_BYTES = 64 << 20


@dataclass(frozen=True)
class Scan:
    """records: what the file's records are read as. rows: where they lie, ROW [n]. file: where that is kept.

    stamp: size, mtime, ctime (ns) and inode of the source while it had the digest that it was scanned for; [] of a
    remote one, whose copy has that digest.
    """

    records: str
    rows: Array
    file: Path
    stamp: list[int]

    @property
    def count(self) -> int:
        """How many records there are, rows of Parquet where row groups are the units."""
        return lines_of(self.file) if self.records == GROUPS else len(self.rows)

    def first(self, most: int) -> Array:
        """Rows that hold the first `most` records, whole row groups where those are the units."""
        if self.records != GROUPS:
            return self.rows[:most]
        return self.rows[: int(np.searchsorted(self.rows["number"], most))]


@dataclass(frozen=True)
class Asked:
    """A file to be scanned. claim: the format by its name; sha256: its digest; group: bytes of a row group at most."""

    home: Home
    path: str
    claim: str
    sha256: str
    how: How
    source: str
    limit: int
    group: int

    def at_hand(self) -> AbstractContextManager[Path]:
        """The file on this machine, a copy of it where it is remote."""
        return self.home.file(self.path, self.sha256)

    def opened(self, file: pa.NativeFile) -> Opened:
        return opened(file, self.claim, f"{self.source}: {self.path}", self.how.encoding, self.limit)


class Begun(NamedTuple):
    """A scan under way: what it finds is in `found`, or in `ranges`, which make it."""

    records: str
    found: Path
    ranges: list[Path]
    work: list[Future[None]]


@dataclass
class Scanner:
    """home: where scans are kept; spool: unpacked copies."""

    home: Path
    spool: Path
    digests: Digests
    executor: Executor
    used: set[str] = field(default_factory=set)

    def scans(self, asked: list[Asked]) -> dict[str, Scan]:
        """Path -> where the records of that file lie; many files, and ranges of one, side by side.

        Raises SourceError where a file is damaged or is no longer what its digest names.
        """
        begun = {it.path: self._begin(it) for it in asked}
        finish_all([work for scan in begun.values() for work in scan.work])
        return {it.path: self._end(it, begun[it.path]) for it in asked}

    def _begin(self, asked: Asked) -> Begun:
        with asked.at_hand() as path, pa.OSFile(str(path)) as file:
            size, it = file.size(), asked.opened(file)
            groups = it.form == "parquet" and has_groups(file, asked.group)
        records = GROUPS if groups else it.records
        named = [asked.sha256, asked.claim, asked.how.plain, asked.source, asked.limit, groups, self._code]
        found = self.home / digest(named)
        twin = found.name in self.used
        self.used.add(found.name)
        if twin or is_whole(found):
            return Begun(records, found, [], [])
        if groups:
            return Begun(records, found, [], [self.executor.submit(scan_parquet, asked, found)])
        if not it.plain or not _in_ranges(records):
            return Begun(records, found, [], [self.executor.submit(scan_stream, asked, self.spool, found)])
        home = found.with_name(found.name + ".ranges")
        home.mkdir(parents=True, exist_ok=True)
        ranges = [home / f"{start:015}" for start in range(0, max(1, size), RANGE_BYTES)]
        todo = [file for file in ranges if not is_whole(file)]
        return Begun(
            records, found, ranges, [self.executor.submit(scan_range, asked, file, RANGE_BYTES) for file in todo]
        )

    def _end(self, asked: Asked, begun: Begun) -> Scan:
        if begun.ranges:
            _join(begun.ranges, begun.found)
            shutil.rmtree(begun.ranges[0].parent)
        stamp = self.digests.stamp_with(Path(asked.home.root) / asked.path, asked.sha256) if asked.home.local else []
        if stamp is None:
            begun.found.unlink()
            raise SourceError(f"source {asked.source} changed while it was read: {asked.path}", "build again")
        return Scan(begun.records, rows_of(begun.found), begun.found, stamp)

    @cached_property
    def _code(self) -> list[str]:
        names = ("containers:opened", "ranges:Range", "groups:scan_groups")
        return [function_digest(f"tasks.ingest.{name}") for name in names]

    def forget_others(self) -> None:
        """Delete the scans that no source asked for."""
        for file in self.home.glob("*"):
            if file.name not in self.used:
                shutil.rmtree(file) if file.is_dir() else file.unlink(missing_ok=True)


def scan_range(asked: Asked, found: Path, size: int) -> None:
    """Scan the lines that begin in the `size` bytes of a plain file that `found` is named by; a worker's work."""
    start = int(found.name)
    with asked.at_hand() as path:
        lines = Range(path, asked.source, asked.limit, start, start + size)
        write_scan(found, lines.rows(), lambda: lines.lines)


def scan_parquet(asked: Asked, found: Path) -> None:
    """Scan a Parquet file by its row groups; a worker's work."""
    with asked.at_hand() as path:
        scan_groups(path, asked.source, found)


def scan_stream(asked: Asked, spool: Path, found: Path) -> None:
    """Scan a file that is to be read from front to end, through its unpacked copy; a worker's work."""
    with asked.at_hand() as path:
        with pa.OSFile(str(path)) as file:
            it = asked.opened(file)
            plain = path if it.plain else spooled(it.stream, it.form, asked.sha256, spool)
        size = plain.stat().st_size
        if _in_ranges(it.records):
            lines = Range(plain, asked.source, asked.limit, 0, size)
            write_scan(found, lines.rows(), lambda: lines.lines)
            return
        rows = records(file_blocks(plain, 0, size), it.records, asked.source, asked.limit)
        chunks = iter(lambda: list(islice(rows, CHUNK)), [])
        write_scan(found, map(as_rows, chunks), lambda: 0)


def _in_ranges(form: str) -> bool:
    return form not in WHOLE and form != "paragraphs"


def _join(files: list[Path], found: Path) -> None:
    """The ranges' rows in one file, lines numbered through."""
    before = [0, *accumulate(lines_of(file) for file in files)]

    def numbered() -> Iterator[Array]:
        for file, lines in zip(files, before, strict=False):
            rows = rows_of(file)
            for start in range(0, len(rows), CHUNK):
                chunk = rows[start : start + CHUNK].copy()
                chunk["number"] += lines
                yield chunk

    write_scan(found, numbered(), lambda: before[-1])
