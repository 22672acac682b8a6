"""Opening a file of a source: from its bytes on disk to the stream of bytes that holds its records.

In: an open file and the format that its name claims. Out: what it is, by its content where the name lies, and blocks of
bytes: of a text, a page or a PDF as they stand, else lines of JSON, one a record. What is damaged (truncated, bad
checksum, bytes after the end) raises SourceError with the file's name and is never passed on as a short file. It cuts
no records and parses none.

Formats, as tasks.sources names them by suffix, each plain or packed (text.gz):
    text, html, pdf           one record, the whole file
    lines, paragraphs         records of text (a source's option `records`)
    jsonl, json, csv, tsv     records of JSON; an array, and objects over several lines, whatever the name
    parquet, arrow            rows (not packed: they are read from their end)
    warc, arc                 records of web archives
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from tasks.errors import SourceError
from tasks.ingest.cells import QUOTES, cell_lines
from tasks.ingest.columns import arrow_lines, parquet_lines
from tasks.ingest.streams import BLOCK, CODECS, HEAD, as_file, as_utf8, codec_of, mark_of, peeked, read, unpacked
from tasks.ingest.values import one_a_line, shape_of
from tasks.ingest.webarchives import archive_lines
from tasks.text.encodings import codec_of as codec_meant

MAGIC = ((b"PAR1", "parquet"), (b"ARROW1", "arrow"), (b"%PDF-", "pdf"), (b"WARC/", "warc"), (b"filedesc://", "arc"))
ROWS = frozenset({"parquet", "arrow"})
OFFSETS = frozenset({"text", "html", "pdf", "lines", "paragraphs", "jsonl"})
"""Formats whose records stand in the unpacked file byte by byte, so that a place can say where."""

CLASSES = {"parquet": "jsonl", "arrow": "jsonl", "json": "jsonl", "tsv": "csv", "arc": "warc"}
"""Format -> the format that its records are read as; itself where it is not here."""

DAMAGE = (pa.ArrowException, OSError, ValueError, OverflowError)
LAYERS = 3
Item = TypeVar("Item")
RECORDS_MAX = 32 << 20
_PAGE = re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?<(?:!doctype\s+html|html)[\s>]", re.IGNORECASE)
_TEXT_BYTES = re.compile(rb"[\0-\x08\x0e-\x1a\x1c-\x1f]")


@dataclass(frozen=True)
class Opened:
    """A file as it is read. form: its format, unpacked. plain: `stream` is the file itself, byte by byte."""

    form: str
    plain: bool
    stream: Iterator[bytes]

    @property
    def records(self) -> str:
        """What its records are read as: text, html, pdf, lines, paragraphs, jsonl, csv or warc."""
        return CLASSES.get(self.form, self.form)


def opened(
    file: pa.NativeFile, claim: str, named: str, encoding: str | None = None, limit: int = RECORDS_MAX
) -> Opened:
    """What `file` is and what it holds. claim: the format by its name; encoding: one declared for its source.

    limit: bytes of a record. Raises SourceError naming `named` where the file is damaged.
    """
    base, _, codec = claim.partition(".")
    try:
        found = _opened(file, base, codec, encoding, limit)
    except DAMAGE as error:
        raise damaged(named, error) from error
    return Opened(found.form, found.plain, guarded(found.stream, named))


def blocks(file: pa.NativeFile, claim: str, named: str) -> Iterator[bytes]:
    """The bytes that hold the records of `file`, in blocks of about a MiB."""
    yield from opened(file, claim, named).stream


def file_blocks(path: Path, start: int, stop: int) -> Iterator[bytes]:
    """The bytes [start, stop) of a plain file."""
    with path.open("rb") as file:
        file.seek(start)
        left = stop - start
        while left > 0 and (block := file.read(min(BLOCK, left))):
            left -= len(block)
            yield block


def damaged(named: str, error: Exception) -> SourceError:
    """The error for a file that cannot be read through."""
    reason = str(error).split("\n")[0][:300]
    return SourceError(f"{named} is damaged: {reason}", "fetch it again, or name it in its source's leave_out")


def guarded(stream: Iterator[Item], named: str) -> Iterator[Item]:
    """`stream`, its damage raised as a SourceError that names the file."""
    try:
        yield from stream
    except DAMAGE as error:
        raise damaged(named, error) from error


def _opened(file: pa.NativeFile, base: str, codec: str, encoding: str | None, limit: int) -> Opened:
    head, stream = peeked(read(file))
    packed = 0
    while (found := codec_of(head)) and packed < LAYERS:
        if packed == 0:
            file.seek(0)
        inner = file if packed == 0 else pa.PythonFile(as_file(stream), mode="r")
        head, stream = peeked(unpacked(inner, found))
        packed += 1
    if codec in CODECS and not packed:
        _not_packed(head, codec)
    form = next((known for magic, known in MAGIC if head.startswith(magic)), base)
    if form in ROWS:
        return Opened(form, False, _rows(file, form, head, packed))
    if form in ("jsonl", "json", *QUOTES) and _PAGE.match(head):
        raise ValueError("it is a page of HTML, as servers send in place of a file that they do not have")
    return _of_bytes(Opened(form, not packed, stream), head, encoding, limit)


def _of_bytes(it: Opened, head: bytes, encoding: str | None, limit: int) -> Opened:
    """A format that is read from front to end, as records."""
    form, plain, stream = it.form, it.plain, it.stream
    if form in ("warc", "arc"):
        return Opened(form, False, archive_lines(stream, limit))
    if form in ("lines", "paragraphs", "jsonl", "json", *QUOTES) and (codec := _codec(head, encoding)):
        plain = False
        head, stream = peeked(as_utf8(stream, codec))
    if form in QUOTES:
        return Opened(form, False, cell_lines(stream, form, limit))
    if form in ("jsonl", "json"):
        shape = shape_of(head, len(head) < HEAD, form == "json")
        split = shape != "lines"
        return Opened("json" if split else "jsonl", plain and not split, one_a_line(stream, shape) if split else stream)
    return Opened(form, plain, stream)


def _codec(head: bytes, encoding: str | None) -> str | None:
    """The encoding that a stream of records is in, by its mark or as declared; None for UTF-8."""
    if (marked := mark_of(head)) or encoding is None:
        return marked
    codec = codec_meant(encoding)
    return None if codec in (None, "utf-8") or _is_utf8(head, str(codec)) else codec


def _is_utf8(head: bytes, codec: str) -> bool:
    """Whether a stream is UTF-8 whatever was declared; ASCII alone says nothing, but that it is not UTF-16."""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return "\0" not in text and (not text.isascii() or codec.startswith(("utf-16", "utf-32")))


def _not_packed(head: bytes, codec: str) -> None:
    """A file named as packed that is not: plain text under a wrong name is read, anything else is damage."""
    if not head:
        raise ValueError(f"0 bytes are no {codec} stream")
    if _TEXT_BYTES.search(head[:4096]) and not head.startswith(tuple(magic for magic, _ in MAGIC)):
        raise ValueError(f"it does not begin as a {codec} stream does")


def _rows(file: pa.NativeFile, form: str, head: bytes, packed: int) -> Iterator[bytes]:
    if packed:
        raise ValueError(f"it is a {form} file inside of a packed one; unpack it")
    file.seek(0)
    yield from parquet_lines(file) if form == "parquet" else arrow_lines(file, head)
