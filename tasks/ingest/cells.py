"""Rows of CSV and TSV files as lines of canonical JSON, an object of the first row's names.

In: a stream of UTF-8. Out: blocks of lines. A row with another number of cells than the first one becomes a line that
is a JSON text saying so, and is rejected with it (reason csv). A quote that never closes is damage: it would swallow
the rest of the file.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator

from tasks.ingest.columns import json_text

ROWS = 256
QUOTES = {"csv": ",", "tsv": "\t"}


def cell_lines(stream: Iterator[bytes], base: str, limit: int) -> Iterator[bytes]:
    """The rows; base: csv or tsv; limit: bytes of a line or cell. Raises ValueError where it is no such file."""
    csv.field_size_limit(limit)
    rows = csv.reader(_lines(stream, limit), delimiter=QUOTES[base], strict=True)
    try:
        names = next(rows, None)
        if names is not None:
            yield from _blocks(rows, names, base)
    except csv.Error as error:
        raise ValueError(f"line {rows.line_num}: {error}") from error


def _blocks(rows: Iterator[list[str]], names: list[str], base: str) -> Iterator[bytes]:
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise ValueError(f"its first row names column {doubled[0]!r} twice")
    held = []
    for row in rows:
        held.append(_line(row, names, base))
        if len(held) == ROWS:
            yield b"".join(held)
            held.clear()
    yield b"".join(held)


def _line(row: list[str], names: list[str], base: str) -> bytes:
    if not row:
        return b"\n"
    if len(row) != len(names):
        return json_text(f"a row of {len(row)} cells, the first row of the {base} file names {len(names)}")
    return json_text(dict(zip(names, row, strict=True)))


def _lines(stream: Iterator[bytes], limit: int) -> Iterator[str]:
    """Lines with their ends; cut at line feeds alone."""
    held, first = b"", True
    for block in stream:
        block = block.removeprefix(b"\xef\xbb\xbf") if first else block
        first = first and not block
        *whole, held = (held + block).split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "surrogateescape") + "\n"
        if len(held) > limit:
            raise ValueError(f"it has a line of more than {limit} bytes (record_bytes_max)")
    if held:
        yield held.decode("utf-8", "surrogateescape")
