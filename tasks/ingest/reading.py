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
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from tasks.artifacts.documents import DOCUMENTS, PLACES, REJECTS
from tasks.errors import SourceError
from tasks.ingest.containers import blocks, file_blocks
from tasks.ingest.fields import Reject, read_fields
from tasks.ingest.records import Record, file_unit, fold, records
from tasks.step import Reads

REMEMBERED_BYTES = 64 << 20
SAMPLE = 200
WHOLE = -1


class Span(NamedTuple):
    """Bytes of one file. file: path in its source. start, stop: bytes after decompression, stop WHOLE for the
    whole
    file; number: the line that the first record is."""

    file: str
    form: str
    sha256: str
    start: int
    stop: int
    number: int


@dataclass
class Reading:
    """The rows of a part as columns, and how many records were read."""

    documents: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in DOCUMENTS.names})
    places: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in PLACES.names})
    rejects: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in REJECTS.names})
    records: int = 0


_AROUND: dict[tuple[str, int], tuple[pa.Table, pa.Table]] = {}


def read_documents(reads: Reads, record_bytes_max: int) -> tuple[pa.Table, int]:
    """A part's documents and its number of records. Raises SourceError for what is damaged or changed."""
    reading = _read(reads, record_bytes_max)
    documents = pa.table(reading.documents, DOCUMENTS)
    return documents, reading.records


def read_around(reads: Reads, record_bytes_max: int) -> tuple[pa.Table, pa.Table]:
    """The part's places and rejects."""
    known = _AROUND.get(_name(reads, record_bytes_max))
    if known is None:
        _read(reads, record_bytes_max)
        known = _AROUND[_name(reads, record_bytes_max)]
    return known


def _remember(name: tuple[str, int], around: tuple[pa.Table, pa.Table]) -> None:
    """Remember the newest parts, up to REMEMBERED_BYTES and the newest in any case."""
    _AROUND[name] = around
    held = sum(table.nbytes for tables in _AROUND.values() for table in tables)
    while held > REMEMBERED_BYTES and len(_AROUND) > 1:
        held -= sum(table.nbytes for table in _AROUND.pop(next(iter(_AROUND))))


def _name(reads: Reads, limit: int) -> tuple[str, int]:
    whole = hashlib.sha256(reads.path("spans").read_bytes())
    for name in ("source", "kind", "digest"):
        whole.update(f"\0{reads.spec[name]}".encode())
    return whole.hexdigest(), limit


def _read(reads: Reads, limit: int) -> Reading:
    spec, plan = reads.spec, json.loads(reads.path("spans").read_bytes())
    reading, units = Reading(), list[bytes]()
    for span in (Span(*item) for item in plan["spans"]):
        for record in _records(span, plan, spec["source"], limit, units):
            _add(reading, span, record, spec, limit)
    if fold(units) != spec["digest"]:
        first = plan["spans"][0][0]
        raise SourceError(f"source {spec['source']} changed while it was read, at or after {first}", "build again")
    _remember(_name(reads, limit), (pa.table(reading.places, PLACES), pa.table(reading.rejects, REJECTS)))
    return reading


def _records(span: Span, plan: dict[str, Any], source: str, limit: int, units: list[bytes]) -> Iterator[Record]:
    """The records of a span; the digests of its units are put to `units` once it is read."""
    path, named = Path(plan["root"]) / span.file, f"{source}: {span.file}"
    if span.stop == WHOLE:
        data = path.read_bytes()
        units.append(file_unit(span.form, hashlib.sha256(data).hexdigest()))
        stream = _bounded(blocks(pa.BufferReader(data), span.form, named), plan["whole_bytes_max"], named)
        yield from records(stream, span.form, source, limit)
        return
    plain = spooled(path, span.form, span.sha256, Path(plan["spool"]), named)
    stream = file_blocks(plain, span.start, span.stop)
    for record in records(stream, span.form, source, limit, span.start, span.number):
        units.append(record.digest)
        yield record


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


def spooled(path: Path, form: str, sha256: str, spool: Path, named: str) -> Path:
    """The plain bytes of a file: itself, or its decompressed copy in `spool`, which the first that asks
    makes.

    A copy is there whole or not at all; who comes while it is made waits for it.
    """
    if form in ("text", "jsonl"):
        return path
    plain = spool / f"{sha256}.{form}"
    spool.mkdir(parents=True, exist_ok=True)
    with (spool / f"{sha256}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not plain.exists():
            _decompress(path, form, plain, named)
    return plain


def _decompress(path: Path, form: str, plain: Path, named: str) -> None:
    partial = plain.with_name(f"{plain.name}.{os.getpid()}")
    try:
        with partial.open("wb") as file:
            for block in blocks(pa.OSFile(str(path)), form, named):
                file.write(block)
        partial.rename(plain)
    finally:
        partial.unlink(missing_ok=True)


def _add(reading: Reading, span: Span, record: Record, spec: Any, limit: int) -> None:
    reading.records += 1
    place = {
        "file": span.file,
        "record": record.number,
        "offset": WHOLE if span.form == "parquet" else record.offset,
        "bytes": record.size,
    }
    try:
        if record.raw is None:
            raise Reject("too_large", f"{record.size} bytes, record_bytes_max is {limit}")
        fields = read_fields(record.raw, span.form, spec["kind"])
    except Reject as reject:
        head = (record.raw or record.head)[: 4 * SAMPLE].decode("utf-8", "replace")[:SAMPLE]
        _row(reading.rejects, {**place, "reason": reject.reason, "detail": reject.detail, "sample": head})
        return
    _row(
        reading.documents,
        {"id": record.id, "source": spec["source"], "kind": spec["kind"], **fields._asdict()},
    )
    _row(reading.places, place)


def _row(columns: dict[str, list[Any]], row: dict[str, Any]) -> None:
    for name, values in columns.items():
        values.append(row[name])
