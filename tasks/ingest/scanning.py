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
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, islice
from pathlib import Path

import pyarrow as pa

from tasks.artifacts.canonical import digest
from tasks.code import function_digest
from tasks.digests import Digests
from tasks.errors import SourceError
from tasks.ingest.containers import file_blocks, opened
from tasks.ingest.how import How
from tasks.ingest.records import WHOLE, records
from tasks.ingest.scans import Array, as_rows, is_whole, lines_of, rows_of, write_scan
from tasks.ingest.spooling import spooled

CHUNK = 65_536
RANGE_BYTES = 64 << 20


@dataclass(frozen=True)
class Scan:
    """records: what the file's records are read as. rows: where they lie, ROW [n]. file: where that is kept.

    stamp: size, mtime, ctime (ns) and inode of the source while it had the digest that it was scanned for.
    """

    records: str
    rows: Array
    file: Path
    stamp: list[int]


@dataclass
class Scanner:
    """home: where scans are kept; spool: unpacked copies; limit: bytes of a record held at most."""

    home: Path
    spool: Path
    limit: int
    digests: Digests
    executor: Executor
    used: set[str] = field(default_factory=set)

    def scan(self, root: Path, path: str, claim: str, sha256: str, how: How, source: str) -> Scan:
        """Where the records of a file lie. claim: the format by its name.

        Raises SourceError where the file is damaged or is no longer what `sha256` names.
        """
        with pa.OSFile(str(root / path)) as file:
            it = opened(file, claim, f"{source}: {path}", how.encoding, self.limit)
            name = digest([sha256, claim, how.plain, source, self.limit, self._code])
            found = self.home / name
            if not is_whole(found):
                plain = root / path if it.plain else spooled(it.stream, it.form, sha256, self.spool)
                self._scan(found, plain, it.records, source)
        self.used.add(name)
        stamp = self.digests.stamp_with(root / path, sha256)
        if stamp is None:
            raise SourceError(f"source {source} changed while it was read: {path}", "build again")
        return Scan(it.records, rows_of(found), found, stamp)

    def _scan(self, found: Path, plain: Path, form: str, source: str) -> None:
        """Scan what is not scanned yet, range by range, and put the ranges together."""
        size, ranges = plain.stat().st_size, found.with_name(found.name + ".ranges")
        ranges.mkdir(parents=True, exist_ok=True)
        step = max(1, size) if form in WHOLE or form == "paragraphs" else RANGE_BYTES
        files = [ranges / f"{start:015}" for start in range(0, max(1, size), step)]
        todo = [(int(file.name), file) for file in files if not is_whole(file)]
        for done in [self.executor.submit(scan_range, plain, form, source, self.limit, step, *it) for it in todo]:
            done.result()
        _join(files, found)
        shutil.rmtree(ranges)

    @cached_property
    def _code(self) -> list[str]:
        return [function_digest(f"tasks.ingest.{name}") for name in ("containers:opened", "records:records")]

    def forget_others(self) -> None:
        """Delete the scans that no source asked for."""
        for file in self.home.glob("*"):
            if file.name not in self.used:
                shutil.rmtree(file) if file.is_dir() else file.unlink(missing_ok=True)


def scan_range(plain: Path, form: str, source: str, limit: int, step: int, start: int, found: Path) -> None:
    """Scan the records of `plain` that begin in [start, start + step), in a worker; numbers count from the first."""
    lines = Lines(plain, start, start + step)
    first = lines.first
    rows = records(lines, form, source, limit, first) if first is not None else iter(())
    chunks = iter(lambda: list(islice(rows, CHUNK)), [])
    write_scan(found, map(as_rows, chunks), lambda: lines.count)


class Lines:
    """The lines of a file that begin in [start, stop), in blocks. first: byte of the first, None where there is none;
    count: line feeds in the blocks given out so far.
    """

    def __init__(self, file: Path, start: int, stop: int) -> None:
        self._file, self._size = file, file.stat().st_size
        self._stop, self.count = min(stop, self._size), 0
        self.first = 0 if start == 0 else self._after_feed(start - 1)
        if self.first is not None and self.first >= max(1, self._stop):
            self.first = None

    def __iter__(self) -> Iterator[bytes]:
        assert self.first is not None  # noqa: S101 - asked for only where there is a line
        last = self._stop - 1
        end = self._size if last < 0 else self._after_feed(last) or self._size
        for block in file_blocks(self._file, self.first, end):
            self.count += block.count(b"\n")
            yield block

    def _after_feed(self, start: int) -> int | None:
        """The byte after the first line feed at or after `start`."""
        for block in file_blocks(self._file, start, self._size):
            if (at := block.find(b"\n")) >= 0:
                return start + at + 1
            start += len(block)
        return None


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
