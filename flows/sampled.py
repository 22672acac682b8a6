"""What the records of a source look like: their shapes, and the fields of those that have none.

In: the files of a source. Out: a Sample of the first records of the first files. It reads as ingest does, so that what
it says holds there; pages, PDF and web archives are told by their format alone.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import pyarrow as pa

from tasks.errors import SourceError
from tasks.ingest.containers import opened
from tasks.ingest.fields import Reject, Skip, read_fields
from tasks.ingest.records import records
from tasks.sources import format_of

FILES, RECORDS = 50, 100
"""Of a source, and of a file, are looked at."""

RECORD_BYTES = 8 << 20
SHOWN = 160
"""Characters of a file's field names that are said."""

CHATS = frozenset(
    ("messages", "conversations", "preference", "prompt", "instances", "instruction", "pair", "list", "history")
)
MAPPED = {"text": "text", "content": "text", "messages": "messages"}
"""Shape -> the key of a source's `fields` that says the same, where its field has the shape's name."""


@dataclass
class Sample:
    """files: path -> shape -> records of it. unknown: path -> the fields seen where no record has a shape.

    damaged: path -> what is wrong with a file that cannot be read to its first records' end.
    """

    files: dict[str, Counter[str]] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)
    damaged: dict[str, str] = field(default_factory=dict)
    whole: bool = True

    @property
    def shapes(self) -> Counter[str]:
        """Shape -> records of it, over all files."""
        return sum(self.files.values(), Counter())

    @property
    def mapping(self) -> Mapping[str, str]:
        """`fields` that say what was recognised: only where every file was looked at and all are alike."""
        shapes = self.shapes
        (only, *others) = shapes or ("",)
        alike = self.whole and not others and not self.unknown and not self.damaged and only in MAPPED
        return {MAPPED[only]: only} if alike else {}

    def chats(self, sizes: Mapping[str, int]) -> bool:
        """Whether most of it, by the size of files, is chats."""
        votes: Counter[bool] = Counter()
        for path, shapes in self.files.items():
            if shapes:
                votes[shapes.most_common(1)[0][0] in CHATS] += sizes[path] + 1
        return votes[True] > votes[False]

    @property
    def said(self) -> str:
        """As people read it: "messages 500, text 3; not recognised: x.jsonl (fields turns)", and what is damaged."""
        known = ", ".join(f"{shape} {count:,}" for shape, count in sorted(self.shapes.items()))
        odd = ", ".join(f"{path} (fields {fields})" for path, fields in sorted(self.unknown.items())[:3])
        harmed = list(self.damaged.values())[:3]
        return "; ".join(part for part in (known, f"not recognised: {odd}" if odd else "", *harmed) if part)

    @property
    def strange(self) -> str:
        """Of the first file that no record was recognised in: its fields, or what is wrong with it."""
        fields = (f"the fields seen in {path} are {names}" for path, names in self.unknown.items())
        return next(iter([*fields, *self.damaged.values()]), "")


def sample(files: Mapping[str, Path]) -> Sample:
    """The shapes in files of records, path in the source -> file.

    A damaged file is told of and passed over: ingest, which may lose nothing, will refuse it by name.
    """
    held = {path: file for path, file in sorted(files.items()) if is_of_records(path)}
    found = Sample(whole=len(held) <= FILES)
    for path, file in islice(held.items(), FILES):
        try:
            shapes, seen = _shapes(path, file)
        except SourceError as error:
            found.damaged[path] = error.message
            continue
        if shapes or not seen:
            found.files[path] = shapes
        else:
            found.unknown[path] = _cut(", ".join(sorted(seen)))
    return found


def _cut(names: str) -> str:
    return names if len(names) <= SHOWN else f"{names[:SHOWN]}..."


def is_of_records(path: str) -> bool:
    """Whether a file consists of records whose shape can be told."""
    return (format_of(path, "web") or "").partition(".")[0] in ("jsonl", "json", "csv", "tsv", "parquet", "arrow")


def _shapes(path: str, file: Path) -> tuple[Counter[str], set[str]]:
    shapes: Counter[str] = Counter()
    seen: set[str] = set()
    for raw, form in _first(path, file):
        try:
            shapes[read_fields(raw, form, "web").shape] += 1
        except Reject as reject:
            if reject.reason in ("no_text", "type"):
                seen |= _names(raw)
        except Skip:
            continue
    return shapes, seen


def _first(path: str, file: Path) -> Iterator[tuple[bytes, str]]:
    with pa.OSFile(str(file)) as stream:
        it = opened(stream, format_of(path, "web") or "jsonl", path, limit=RECORD_BYTES)
        if it.records not in ("jsonl", "csv"):
            return
        for record in islice(records(it.stream, it.records, "sample", RECORD_BYTES), RECORDS):
            if record.raw is not None:
                yield record.raw, it.records


def _names(raw: bytes) -> set[str]:
    try:
        record = json.loads(raw)
    except ValueError:
        return set()
    return {str(name) for name in record} if isinstance(record, dict) else {type(record).__name__}
