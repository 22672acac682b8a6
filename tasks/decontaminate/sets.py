"""Evaluation sets as items: one text for each field of each record.

In: a JSON Lines, CSV, TSV or Parquet file (the first three plain or .gz), its digest and the fields that count. Out:
items, named "line:field" from line 1; of the other formats a line is a record, the head of columns not counted. It
knows nothing of n-grams and nothing of the corpus.

A field is a text, a list of texts (joined by line feeds; of answers each is an item) or a number; "a.b" is the
field b inside a, or inside each of the objects in the list a. A record without the field, or with null or an
empty text there, has no item; a set none of whose records has the field is an error, since a check against
nothing would find nothing.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from tasks.errors import IntegrityError, SourceError


class EvaluationSet(NamedTuple):
    """A set as the plan names it; hashable."""

    name: str
    path: str
    sha256: str
    fields: tuple[str, ...]
    format: str
    """jsonl, csv, tsv or parquet."""
    answers: tuple[str, ...] = ()
    passages: tuple[str, ...] = ()
    """those of the fields that are such; the others are questions."""

    def role(self, field: str) -> str:
        """question, answer or passage."""
        return "answer" if field in self.answers else "passage" if field in self.passages else "question"


FORMATS = {"csv": "csv", "tsv": "tsv", "parquet": "parquet"}
"""Suffix of a name, .gz aside -> format; any other is JSON Lines."""


def format_of(name: str) -> str:
    """The format of a file by its name."""
    return FORMATS.get(name.lower().removesuffix(".gz").rpartition(".")[2], "jsonl")


class Item(NamedTuple):
    """One field of one record; of a list of answers, one of them."""

    name: str
    """"line:field", or "line:field.k" for member k from 0 of a list of answers."""
    text: str
    role: str = "question"
    line: int = 0
    set: int = 0
    """number of its set."""


def read_items(of: EvaluationSet) -> list[Item]:
    """The items in file order, fields in the order of params.yaml.

    Raises SourceError where the file is no JSON Lines, is empty or lacks a field altogether, IntegrityError
    where it is not the file that the plan saw.
    """
    items: list[Item] = []
    seen: set[str] = set()
    known: set[str] = set()
    records = 0
    for line, record in _records(of):
        records += 1
        known |= set(_fields(record))
        for field in of.fields:
            found = _items(of, line, field, _field(record, field))
            seen |= {field} if found else set()
            items += found
    if not records:
        raise SourceError(
            f"evaluation set {of.name} holds no record", "put its records there, or take it out of the sets"
        )
    for field in of.fields:
        if field not in seen:
            raise SourceError(
                f"evaluation set {of.name} has no text in the field {field} of any of {records} records",
                f"name fields that it has: {', '.join(sorted(known)[:20])}",
            )
    return items


def _items(of: EvaluationSet, line: int, field: str, value: Any) -> list[Item]:
    """The items of one field: answers in a list are ways to say it, each an item; any other list is one text."""
    role = of.role(field)
    if role == "answer" and isinstance(value, list) and len(value) > 1:
        named = [(f"{line}:{field}.{k}", member) for k, member in enumerate(value)]
    else:
        named = [(f"{line}:{field}", value)]
    texts = [(name, _text(of, line, field, member)) for name, member in named]
    return [Item(name, text, role, line) for name, text in texts if text.strip()]


def _fields(record: dict[str, Any]) -> Iterator[str]:
    """Names of fields as params.yaml would have them."""
    for name, value in record.items():
        inner = value[0] if isinstance(value, list) and value else value
        if isinstance(inner, dict):
            yield from (f"{name}.{field}" for field in _fields(inner))
        else:
            yield str(name)


def _records(of: EvaluationSet) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line from 1, record)."""
    if of.format == "parquet":
        yield from enumerate(_parquet(of), 1)
    elif of.format in ("csv", "tsv"):
        yield from enumerate(_separated(of), 1)
    else:
        yield from _json_lines(of)


def _parquet(of: EvaluationSet) -> list[dict[str, Any]]:
    try:
        rows: list[dict[str, Any]] = pq.read_table(io.BytesIO(_content(of))).to_pylist()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise SourceError(f"evaluation set {of.name} is no Parquet file: {error}", "write it anew") from error
    return rows


def _separated(of: EvaluationSet) -> list[dict[str, Any]]:
    """Records of a CSV or TSV with its columns' names on the first line, quoted as RFC 4180 has it."""
    delimiter = "\t" if of.format == "tsv" else ","
    try:
        lines = io.StringIO(_content(of).decode("utf-8-sig"), newline="")
        records = list(csv.DictReader(lines, delimiter=delimiter, strict=True))
    except (ValueError, csv.Error) as error:
        raise SourceError(
            f"evaluation set {of.name} is no {of.format.upper()}: {error}", "write it in UTF-8, quoted as RFC 4180"
        ) from error
    for number, record in enumerate(records, 1):
        if None in record or None in record.values():
            raise SourceError(
                f"evaluation set {of.name}, record {number}, has not as many cells as there are columns",
                "quote cells that hold a separator or a line feed",
            )
    return records


def _json_lines(of: EvaluationSet) -> Iterator[tuple[int, dict[str, Any]]]:
    """Blank lines are passed over, and counted."""
    for line, raw in enumerate(_content(of).split(b"\n"), 1):
        if not raw.strip():
            continue
        try:
            record = json.loads(raw.decode("utf-8-sig" if line == 1 else "utf-8"))
        except (ValueError, RecursionError) as error:
            raise SourceError(
                f"evaluation set {of.name}, line {line}, is not JSON: {error}",
                "write one JSON object a line, in UTF-8",
            ) from error
        if not isinstance(record, dict):
            raise SourceError(
                f"evaluation set {of.name}, line {line}, is {type(record).__name__}, not an object",
                "write one JSON object a line",
            )
        yield line, record


def _content(of: EvaluationSet) -> bytes:
    try:
        raw = Path(of.path).read_bytes()
    except OSError as error:
        raise SourceError(f"evaluation set {of.name} cannot be read: {error.strerror}", "correct its path") from error
    found = hashlib.sha256(raw).hexdigest()
    if found != of.sha256:
        raise IntegrityError(
            f"evaluation set {of.name} has digest {found[:16]}, the plan saw {of.sha256[:16]}",
            "it changed during the build; build again",
        )
    if raw[:2] != b"\x1f\x8b":
        return raw
    try:
        return gzip.decompress(raw)
    except (EOFError, OSError, zlib.error) as error:
        raise SourceError(f"evaluation set {of.name} is a damaged gzip file: {error}", "fetch it again") from error


def _field(record: dict[str, Any], field: str) -> Any:
    if field in record:
        return record[field]
    outer, _, inner = field.partition(".")
    value = record.get(outer) if inner else None
    if isinstance(value, list):
        found = [_field(member, inner) for member in value if isinstance(member, dict)]
        return [member for member in found if member is not None] or None
    return _field(value, inner) if isinstance(value, dict) else None


def _text(of: EvaluationSet, line: int, field: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return "\n".join(_text(of, line, field, member) for member in value)
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()  # half a surrogate pair becomes a question mark
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    raise SourceError(
        f"evaluation set {of.name}, line {line}: {field} is {type(value).__name__}, not text",
        "name a field of text, a.b for the field b inside a",
    )
