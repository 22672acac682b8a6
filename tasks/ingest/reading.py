"""Reading one part: its units' bytes, record by record, into rows of documents, places and rejects.

In: the part's specification and, from the plan, where its units lie. Out: three tables. It does not decide
what a part is (tasks.ingest.planning). What it reads must have the digest that was planned: a file that
changed in between raises SourceError, so no part ever holds other bytes than its key says.

A part is read once for its documents. Its places and rejects, which are small, are then remembered in the
process, so that the next two folders do not read it again; a process that does not remember them reads the
part again.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from tasks.artifacts.canonical import canonical
from tasks.artifacts.documents import DOCUMENTS, PLACES, REJECTS
from tasks.errors import SourceError
from tasks.homes import Home
from tasks.ingest.containers import OFFSETS, Opened, file_blocks, opened
from tasks.ingest.fields import Fields, Reject, Skip, read_fields
from tasks.ingest.how import How, how_of
from tasks.ingest.records import Record, file_unit, fold, records
from tasks.step import Reads
from tasks.text.pieces import pieces

if TYPE_CHECKING:
    from tasks.ingest import IngestParams

REMEMBERED_BYTES = 64 << 20
SAMPLE = 200
WHOLE = -1


class Span(NamedTuple):
    """Bytes of one file. file: path in its source; form: the format that its name claims. start, stop: bytes after
    decompression, stop WHOLE for the whole file; number: the line that the first record is.
    """

    file: str
    form: str
    sha256: str
    start: int
    stop: int
    number: int


@dataclass
class Reading:
    """The rows of a part, and what was counted."""

    source: str
    kind: str
    how: How
    limits: Limits
    documents: list[tuple[Any, ...]] = field(default_factory=list)
    places: list[tuple[Any, ...]] = field(default_factory=list)
    rejects: list[tuple[Any, ...]] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)

    def add(self, file: str, it: Opened, record: Record) -> None:
        """A record, as a document or its pieces, as a reject, or skipped and counted."""
        self.counted["records_in"] += 1
        place = (file, record.number, record.offset if it.form in OFFSETS else WHOLE, record.size)
        try:
            if record.raw is None:
                raise Reject("too_large", f"{record.size} bytes, record_bytes_max is {self.limits.record}")
            self._add(place, record, read_fields(record.raw, it.records, self.kind, self.how))
        except Skip as skip:
            self.counted["skipped"] += 1
            self.counted[f"skipped|reason={skip.reason}"] += 1
        except Reject as reject:
            head = (record.raw or record.head)[: 4 * SAMPLE].decode("utf-8", "replace")[:SAMPLE]
            self.rejects.append((*place, reject.reason, reject.detail, head))

    def _add(self, place: tuple[Any, ...], record: Record, fields: Fields) -> None:
        most = self.limits.pieces.get(self.kind)
        if most is None or fields.messages is not None or len(fields.text) <= most:
            self.documents.append((record.id, self.source, self.kind, *fields[:-1]))
            self.places.append((*place, 0))
            self.counted[f"documents|shape={fields.shape}"] += 1
            return
        texts = pieces(fields.text, most)
        for number, text in enumerate(texts):
            self.documents.append((record.piece_id(number), self.source, self.kind, text, *fields[1:-1]))
            self.places.append((*place, number))
        self.counted["records_cut"] += 1
        self.counted["pieces"] += len(texts)
        self.counted[f"documents|shape={fields.shape}"] += len(texts)


def _table(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else ((),) * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


_AROUND: dict[tuple[str, str], tuple[pa.Table, pa.Table]] = {}


class Limits(NamedTuple):
    """record: bytes of a record; pieces: kind -> characters of a row, kinds that are cut only."""

    record: int
    pieces: Mapping[str, int]


def limits_of(params: IngestParams) -> Limits:
    return Limits(params.record_bytes_max, {str(kind): most for kind, most in params.piece_characters_max.items()})


def read_documents(reads: Reads, limits: Limits) -> tuple[pa.Table, dict[str, int]]:
    """A part's documents and its counts. Raises SourceError for what is damaged or changed."""
    reading = _read(reads, limits)
    return _table(reading.documents, DOCUMENTS), reading.counted


def read_around(reads: Reads, limits: Limits) -> tuple[pa.Table, pa.Table]:
    """The part's places and rejects."""
    known = _AROUND.get(_name(reads, limits))
    if known is None:
        _read(reads, limits)
        known = _AROUND[_name(reads, limits)]
    return known


def _remember(name: tuple[str, str], around: tuple[pa.Table, pa.Table]) -> None:
    """Remember the newest parts, up to REMEMBERED_BYTES and the newest in any case."""
    _AROUND[name] = around
    held = sum(table.nbytes for tables in _AROUND.values() for table in tables)
    while held > REMEMBERED_BYTES and len(_AROUND) > 1:
        held -= sum(table.nbytes for table in _AROUND.pop(next(iter(_AROUND))))


def _name(reads: Reads, limits: Limits) -> tuple[str, str]:
    whole = hashlib.sha256(reads.path("spans").read_bytes())
    whole.update(canonical([reads.spec.get(name) for name in ("source", "kind", "form", "digest", "how")]))
    return whole.hexdigest(), canonical([limits.record, dict(limits.pieces)]).decode()


def _read(reads: Reads, limits: Limits) -> Reading:
    spec, plan, how = reads.spec, json.loads(reads.path("spans").read_bytes()), how_of(reads.spec)
    reading, units = Reading(spec["source"], spec["kind"], how, limits), list[bytes]()
    for span in (Span(*item) for item in plan["spans"]):
        with Home(**plan["home"]).file(span.file, span.sha256) as at_hand:
            _add_span(reading, span, plan, units, at_hand)
    if fold(units) != spec["digest"]:
        first = plan["spans"][0][0]
        raise SourceError(f"source {spec['source']} changed while it was read, at or after {first}", "build again")
    _remember(_name(reads, limits), (_table(reading.places, PLACES), _table(reading.rejects, REJECTS)))
    return reading


def _add_span(reading: Reading, span: Span, plan: dict[str, Any], units: list[bytes], path: Path) -> None:
    """Read a span of the file at `path`; the digests of its units are put to `units` once it is read."""
    named = f"{reading.source}: {span.file}"
    if span.stop == WHOLE:
        data = path.read_bytes()
        units.append(file_unit(span.form, hashlib.sha256(data).hexdigest()))
        it = opened(pa.BufferReader(data), span.form, named, reading.how.encoding, reading.limits.record)
        stream = _bounded(it.stream, plan["whole_bytes_max"], named)
        for record in records(stream, it.records, reading.source, reading.limits.record):
            reading.add(span.file, it, record)
        return
    with pa.OSFile(str(path)) as file:
        it = opened(file, span.form, named, reading.how.encoding, reading.limits.record)
        plain = path if it.plain else spooled(it.stream, it.form, span.sha256, Path(plan["spool"]))
    stream = file_blocks(plain, span.start, span.stop)
    for record in records(stream, it.records, reading.source, reading.limits.record, span.start, span.number):
        units.append(record.digest)
        reading.add(span.file, it, record)


def _bounded(stream: Iterator[bytes], most: int, named: str) -> Iterator[bytes]:
    """`stream`, which must not hold above `most` bytes: a small file that unpacks to gigabytes is not held
    whole.
    """
    held = 0
    for block in stream:
        held += len(block)
        if held > most:
            raise SourceError(
                f"{named} unpacks to more than {most} bytes, too many for one part",
                "set small_file_bytes to its size or below, so that it is cut between its records",
            )
        yield block


def spooled(stream: Iterator[bytes], form: str, sha256: str, spool: Path) -> Path:
    """The bytes of `stream` as a file in `spool`, which the first that asks makes.

    A copy is there whole or not at all; who comes while it is made waits for it.
    """
    plain = spool / f"{sha256}.{form}"
    spool.mkdir(parents=True, exist_ok=True)
    with (spool / f"{sha256}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not plain.exists():
            _write(stream, plain)
    return plain


def _write(stream: Iterator[bytes], plain: Path) -> None:
    partial = plain.with_name(f"{plain.name}.{os.getpid()}")
    try:
        with partial.open("wb") as file:
            for block in stream:
                file.write(block)
        partial.rename(plain)
    finally:
        partial.unlink(missing_ok=True)
