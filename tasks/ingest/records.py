"""Cutting a stream of bytes into records and naming each by its digest; folding digests to that of a part.

In: blocks of bytes. Out: raw records with their place. It knows neither files nor JSON. A record above
`limit` bytes is digested and measured, but only its head is held.

A record of lines is a line: bytes between "\\n" and "\\n", a "\\r" before it left out, and never a cut
anywhere else (U+2028, U+0085 and a lone "\\r" are text). Lines of nothing but blanks are no records, though
they count in the numbers. A paragraph is lines that are not blank, one after another, and has the number of its first
line. A record of text, HTML or PDF is the whole stream. A byte order mark at the beginning of a file belongs to no
record.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from tasks.text.sha256 import digests

BOM = b"\xef\xbb\xbf"
HEAD = 800
WHOLE = frozenset({"text", "html", "pdf"})
"""Formats of which a file is one record."""
BLANKS = b" \t\r"
BLANKS_MAX = 32
"""The highest of their bytes."""


class Record(NamedTuple):
    """A raw record.

    number: which line of its file, from 0. offset, size: bytes after decompression, without the line's end.
    raw: its bytes; of one above the limit, None, and `head` holds its first bytes.
    digest: 32 bytes, SHA-256 of the source's name, a zero byte and the record.
    """

    number: int
    offset: int
    size: int
    raw: bytes | None
    head: bytes
    digest: bytes

    @property
    def id(self) -> str:
        return self.digest.hex()[:32]

    def piece_id(self, piece: int) -> str:
        """The id of a piece of a record that was cut: it names the record and the piece's number."""
        return hashlib.sha256(self.digest + f"\0{piece}".encode()).hexdigest()[:32]


def seed(source: str) -> Any:
    """The SHA-256 with which the digest of each record of `source` begins."""
    return hashlib.sha256(source.encode() + b"\0")


def named(source: str, data: Any, starts_R: Any, ends_R: Any) -> bytes:
    """The digests of many records of `source`, 32 bytes each: of the bytes of `data` from each start to its end."""
    return digests(data, starts_R, ends_R, source.encode() + b"\0")


def fold(units: Iterable[bytes]) -> str:
    """64 hex: SHA-256 over the digests of a part's units, one after another."""
    whole = hashlib.sha256()
    for digest in units:
        whole.update(digest)
    return whole.hexdigest()


def file_unit(form: str, sha256: str) -> bytes:
    """The digest, as bytes, of a file that is one unit; its format says how it is read, so it counts."""
    return f"{form}\n{sha256}\n".encode()


def records(
    blocks: Iterable[bytes], form: str, source: str, limit: int, start: int = 0, number: int = 0
) -> Iterator[Record]:
    """The records of a stream that begins at byte `start` of its file with line `number`.

    form: one of WHOLE, "paragraphs", or any format of lines. limit: bytes of a record that are held at most.
    """
    skipped, stream = _without_mark(blocks) if start == 0 and form != "pdf" else (0, iter(blocks))
    if form in WHOLE:
        yield _whole(stream, source, limit, start + skipped)
    elif form == "paragraphs":
        yield from _paragraphs(stream, source, limit, start + skipped, number)
    else:
        yield from _lines(stream, source, limit, start + skipped, number)


def _without_mark(blocks: Iterable[bytes]) -> tuple[int, Iterator[bytes]]:
    """Bytes of the mark (3 or 0), and the stream after it; blocks may be of any size."""
    stream = iter(blocks)
    begin = b""
    for block in stream:
        begin += block
        if len(begin) >= len(BOM):
            break
    skipped = len(BOM) if begin.startswith(BOM) else 0
    return skipped, _chained(begin[skipped:], stream)


def _chained(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _whole(stream: Iterator[bytes], source: str, limit: int, offset: int) -> Record:
    line = Line(source, limit)
    for block in stream:
        line.add(block)
    return line.record(0, offset, line.size)


def _lines(stream: Iterator[bytes], source: str, limit: int, offset: int, number: int) -> Iterator[Record]:
    line, begun = Line(source, limit), seed(source)
    for block in stream:
        first, *full = block.split(b"\n")
        line.add(first)
        if not full:
            continue
        if not line.blank:
            yield line.record(number, offset, line.size - line.returned)
        offset, number = offset + line.size + 1, number + 1
        line.clear()
        line.add(full.pop())
        for piece in full:
            raw = piece[:-1] if piece.endswith(b"\r") else piece
            if raw and (raw[0] > BLANKS_MAX or raw.strip(BLANKS)):
                digest = begun.copy()
                digest.update(raw)
                held, head = (raw, b"") if len(raw) <= limit else (None, raw[: min(HEAD, limit)])
                yield Record(number, offset, len(raw), held, head, digest.digest())
            offset, number = offset + len(piece) + 1, number + 1
    if not line.blank:
        yield line.record(number, offset, line.size - line.returned)


def _paragraphs(stream: Iterator[bytes], source: str, limit: int, offset: int, number: int) -> Iterator[Record]:
    """Lines that are not blank, gathered. A line of blanks above `limit` bytes counts as text, to bound memory."""
    gathered, line_size, first, at = Line(source, limit), 0, number, offset
    blank: bytes | None = b""
    for block in stream:
        pieces = block.split(b"\n")
        for place, piece in enumerate(pieces):
            line_size += len(piece)
            if blank is not None and not piece.strip(BLANKS) and len(blank) + len(piece) <= limit:
                blank += piece
            else:
                if gathered.size == 0:
                    first, at = number, offset
                gathered.add((b"\n" if gathered.size and blank is not None else b"") + (blank or b"") + piece)
                blank = None
            if place == len(pieces) - 1:
                break
            if blank is not None and gathered.size:
                yield gathered.record(first, at, gathered.size - gathered.returned)
                gathered.clear()
            offset, number, line_size, blank = offset + line_size + 1, number + 1, 0, b""
    if gathered.size:
        yield gathered.record(first, at, gathered.size - gathered.returned)


class Line:
    """A record as it grows, at most `limit` bytes of it held."""

    def __init__(self, source: str, limit: int) -> None:
        self._seed, self._limit = seed(source), limit
        self.clear()

    def clear(self) -> None:
        self.size, self._held, self._long = 0, b"", None

    @property
    def returned(self) -> int:
        """1 where the line ends with a carriage return."""
        return int(self._held.endswith(b"\r"))

    @property
    def blank(self) -> bool:
        return self._blank if self._long else not self._held.strip(BLANKS)

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        self._held = self._held + piece if self._held else piece
        if self._long is None and len(self._held) > self._limit + 1:
            self._head, self._long, self._blank = (
                self._held[: min(HEAD, self._limit)],
                self._seed.copy(),
                True,
            )
        if self._long is not None:
            self._blank = self._blank and not self._held.strip(BLANKS)
            self._long.update(self._held[:-1])
            self._held = self._held[-1:]

    def record(self, number: int, offset: int, size: int) -> Record:
        """The record, cut to `size`; only its last byte, a carriage return, may be left out."""
        tail = self._held[: len(self._held) - (self.size - size)]
        digest = (self._long or self._seed).copy()
        digest.update(tail)
        if self._long is None and size <= self._limit:
            return Record(number, offset, size, tail, b"", digest.digest())
        head = self._head if self._long else tail[: min(HEAD, self._limit)]
        return Record(number, offset, size, None, head, digest.digest())
