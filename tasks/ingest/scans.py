"""The scan of a file on disk: a row for each record, and the records that rows lead to.

A scan is ROW [n], then END bytes: the number of lines, int64, and the SHA-256 of all before, so that half of one is
never taken for a whole. In: the file that was scanned, or its unpacked copy. Out: Records with the digests that the
scan has: whoever reads them so has to know that the file is still what was scanned.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tasks.errors import SourceError
from tasks.ingest.records import HEAD, Record

ROW = np.dtype([("offset", "<i8"), ("size", "<i8"), ("number", "<i8"), ("digest", "u1", (32,))])
_AS_BYTES = np.dtype([("offset", "<i8"), ("size", "<i8"), ("number", "<i8"), ("digest", "S32")])
GROUPS = "groups"
"""What a Parquet file's records are read as where its row groups are the units (tasks.ingest.groups)."""
END = 40
BLOCK = 4 << 20

Array = np.ndarray[Any, Any]


def rows_of(file: Path) -> Array:
    """The rows of a scan, mapped, ROW [n]."""
    count = (file.stat().st_size - END) // ROW.itemsize
    return np.memmap(file, ROW, mode="r", shape=(count,)) if count else np.empty(0, ROW)


def lines_of(file: Path) -> int:
    """How many lines there are in what was scanned, blank ones included."""
    with file.open("rb") as held:
        held.seek(-END, os.SEEK_END)
        return int.from_bytes(held.read(8), "little")


def is_whole(file: Path) -> bool:
    """Whether a scan is there and ends with its own digest."""
    try:
        with file.open("rb") as held:
            left, whole = os.fstat(held.fileno()).st_size - 32, hashlib.sha256()
            while left > 0 and (block := held.read(min(BLOCK, left))):
                whole.update(block)
                left -= len(block)
            return held.read() == whole.digest()
    except FileNotFoundError:
        return False


def as_rows(records: list[Record]) -> Array:
    """ROW [n] of records."""
    plain = [(record.offset, record.size, record.number, record.digest) for record in records]
    return np.array(plain, _AS_BYTES).view(ROW)


def write_scan(file: Path, chunks: Iterable[Array], lines: Callable[[], int]) -> None:
    """Write rows as they come; `lines` is asked when all are there."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial, whole = file.with_name(f".{file.name}.{os.getpid()}"), hashlib.sha256()
    try:
        with partial.open("wb") as out:
            for chunk in chunks:
                block = chunk.tobytes()
                whole.update(block)
                out.write(block)
            end = lines().to_bytes(8, "little")
            whole.update(end)
            out.write(end + whole.digest())
        partial.rename(file)
    finally:
        partial.unlink(missing_ok=True)


class Stretch(NamedTuple):
    """Consecutive records of a file and the bytes that hold them: numbers, offsets into those and sizes, int64 [R]. A
    record above the limit stands alone, and `held` is its head.
    """

    numbers: Array
    offsets: Array
    sizes: Array
    digests: bytes
    held: bytes
    begin: int
    long: bool

    def record(self, row: int) -> Record:
        """One of them, with its place in the file."""
        number, offset, size = int(self.numbers[row]), int(self.offsets[row]), int(self.sizes[row])
        digest, raw = self.digests[32 * row : 32 * row + 32], self.held[offset : offset + size]
        if self.long:
            return Record(number, offset + self.begin, size, None, self.held, digest)
        return Record(number, offset + self.begin, size, raw, b"", digest)


def stretches(file: Path, rows: Array, limit: int) -> Iterator[Stretch]:
    """The records of `file` that ROW [n] lead to, about BLOCK bytes at a time; of those above `limit` only the head.

    Raises SourceError where the file is shorter than its scan says.
    """
    ends = rows["offset"] + rows["size"]
    start = 0
    with file.open("rb", buffering=0) as data:
        while start < len(rows):
            begin, long = int(rows["offset"][start]), bool(rows["size"][start] > limit)
            stop = start + 1
            if not long:
                stop = max(stop, int(np.searchsorted(ends, begin + BLOCK, "right")))
                above = np.flatnonzero(rows["size"][start:stop] > limit)
                stop = start + int(above[0]) if len(above) else stop
            held = os.pread(data.fileno(), min(HEAD, limit) if long else int(ends[stop - 1]) - begin, begin)
            if not long and len(held) < ends[stop - 1] - begin:
                raise SourceError(
                    f"{file.name} ends before byte {ends[stop - 1]}, where it had a record", "build again"
                )
            taken = rows[start:stop]
            places = taken["number"], taken["offset"] - begin, taken["size"]
            yield Stretch(*places, taken["digest"].tobytes(), held, begin, long)
            start = stop
