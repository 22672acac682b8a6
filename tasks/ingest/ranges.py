"""The records of a range of a file of lines, found many at a time: what tasks.ingest.records says of lines, as arrays.

In: a file, and a range of its bytes. Out: a row for each record that begins in the range. A line belongs to the range
in which its first byte lies, so ranges that touch hold every line once, whoever reads them. A block of lines is held at
a time; a line that is longer than a block is digested as it is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tasks.ingest.records import BLANKS, BLANKS_MAX, BOM, Line, named
from tasks.ingest.scans import ROW, Array

BLOCK = 4 << 20
FEED, RETURN = 10, 13


class Range:
    """The lines that begin in [start, stop) of a file. lines: how many there were so far, blank ones too."""

    def __init__(self, file: Path, source: str, limit: int, start: int, stop: int) -> None:
        self._file, self._source, self._limit = file, source, limit
        self._start, self._stop, self.lines = start, stop, 0

    def rows(self) -> Iterator[Array]:
        """ROW [n] a block; `number` counts lines from the first of the range."""
        with self._file.open("rb", buffering=0) as data:
            at = self._first(data.fileno())
            self._stop = max(self._stop, at + 1) if self._start == 0 else self._stop  # a mark is of the first line
            while at < self._stop and (block := os.pread(data.fileno(), BLOCK, at)):
                last = block.find(b"\n", max(0, self._stop - 1 - at))
                last = last if last >= 0 else block.rfind(b"\n")
                if last >= 0:
                    yield self._whole_lines(block[: last + 1], at)
                    at += last + 1
                elif len(block) < BLOCK:
                    yield self._whole_lines(block + b"\n", at)
                    return
                else:
                    rows, at = self._long_line(data.fileno(), at)
                    yield rows

    def _first(self, data: int) -> int:
        """The first byte of the first line; that of none where it lies behind the range."""
        if self._start == 0:
            return len(BOM) if os.pread(data, len(BOM), 0) == BOM else 0
        at = self._start - 1
        while at < self._stop and (block := os.pread(data, BLOCK, at)):
            if (feed := block.find(b"\n")) >= 0:
                return at + feed + 1
            at += len(block)
        return self._stop

    def _whole_lines(self, block: bytes, at: int) -> Array:
        """The records of a block that begins with a line and ends with a line feed."""
        letters = np.frombuffer(block, np.uint8)
        feeds = np.flatnonzero(letters == FEED)
        starts = np.concatenate([[0], feeds[:-1] + 1])
        ends = feeds - ((letters[feeds - 1] == RETURN) & (feeds > starts))
        kept = (ends > starts) & (letters[starts] > BLANKS_MAX)
        for line in np.flatnonzero((ends > starts) & ~kept).tolist():
            kept[line] = bool(block[starts[line] : ends[line]].strip(BLANKS))
        numbers = np.flatnonzero(kept)
        rows = np.empty(len(numbers), ROW)
        rows["offset"], rows["size"] = starts[kept] + at, (ends - starts)[kept]
        rows["number"] = numbers + self.lines
        digests = named(self._source, letters, starts[kept], ends[kept])
        rows["digest"] = np.frombuffer(digests, np.uint8).reshape(-1, 32)
        self.lines += len(feeds)
        return rows

    def _long_line(self, data: int, at: int) -> tuple[Array, int]:
        """The record of a line that is longer than a block, if it is one, and the byte after the line."""
        line, begin = Line(self._source, self._limit), at
        while block := os.pread(data, BLOCK, at):
            feed = block.find(b"\n")
            line.add(block if feed < 0 else block[:feed])
            at += len(block) if feed < 0 else feed + 1
            if feed >= 0:
                break
        record: Any = line.record(self.lines, begin, line.size - line.returned)
        rows = np.empty(0 if line.blank else 1, ROW)
        if len(rows):
            rows[0] = record.offset, record.size, record.number, np.frombuffer(record.digest, np.uint8)
        self.lines += 1
        return rows, at
