"""Reading one part: its units' bytes, record by record, into rows of documents, places and rejects.

In: the part's specification and, from the plan, where its units lie. Out: three tables. It does not decide
what a part is (tasks.ingest.planning). What it reads must have the digest that was planned: a file that
changed in between raises SourceError, so no part ever holds other bytes than its key says.

A part is read once for its documents. Its places and rejects, which are small, are then kept in the run's scratch
folder, where the next two folders find them, whichever process makes them; where they are not, the part is read again.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
import pyarrow as pa

from tasks.artifacts.canonical import canonical
from tasks.digests import stamp_of
from tasks.errors import SourceError
from tasks.homes import Home
from tasks.ingest.columns import parquet_batches
from tasks.ingest.containers import Opened, guarded, opened
from tasks.ingest.gathering import WHOLE, Limits, Reading
from tasks.ingest.how import how_of
from tasks.ingest.records import file_unit, fold, records
from tasks.ingest.scans import GROUPS, rows_of, stretches
from tasks.ingest.spooling import bounded, spooled, too_large
from tasks.ingest.texts import FORM, Texts
from tasks.step import Reads

if TYPE_CHECKING:
    from tasks.ingest import IngestParams

PARQUET = b"PAR1"


class Span(NamedTuple):
    """Bytes of one file. file: path in its source; form: the format that its name claims. start, stop: bytes after
    decompression, stop WHOLE for the whole file; number: the line that the first record is. scan: of a part of a file,
    where its records were found: the scan's path, first and last row, and the stamp of the file at that time (none of a
    remote file, whose copy has the digest).
    """

    file: str
    form: str
    sha256: str
    start: int
    stop: int
    number: int
    scan: tuple[str, int, int, list[int]] = ("", 0, 0, [])


def limits_of(params: IngestParams) -> Limits:
    return Limits(params.record_bytes_max, {str(kind): most for kind, most in params.piece_characters_max.items()})


def read_documents(reads: Reads, limits: Limits) -> tuple[pa.Table, dict[str, int]]:
    """A part's documents and its counts. Raises SourceError for what is damaged or changed."""
    reading = _read(reads, limits)
    return reading.documents.table(), reading.counted


def read_around(reads: Reads, limits: Limits) -> tuple[pa.Table, pa.Table]:
    """The part's places and rejects."""
    plan = _plan(reads)
    try:
        return _recalled(_around(plan, reads, limits))
    except (OSError, pa.ArrowInvalid):
        return _tables_around(_read(reads, limits))


def _tables_around(reading: Reading) -> tuple[pa.Table, pa.Table]:
    return reading.places.table(), reading.rejects.table()


def _plan(reads: Reads) -> dict[str, Any]:
    plan: dict[str, Any] = orjson.loads(reads.path("spans").read_bytes())
    return plan


def _around(plan: dict[str, Any], reads: Reads, limits: Limits) -> Path:
    """Where places and rejects of a part are kept while ingest runs."""
    return Path(plan["around"]) / _name(reads, limits)


def _remember(file: Path, around: tuple[pa.Table, pa.Table]) -> None:
    """One stream of Arrow behind the other, renamed into place when whole."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with pa.OSFile(str(partial), "wb") as out:
            for table in around:
                with pa.ipc.new_stream(out, table.schema) as stream:
                    stream.write_table(table)
        partial.rename(file)
    finally:
        partial.unlink(missing_ok=True)


def _recalled(file: Path) -> tuple[pa.Table, pa.Table]:
    with pa.OSFile(str(file)) as held:
        return pa.ipc.open_stream(held).read_all(), pa.ipc.open_stream(held).read_all()


def _name(reads: Reads, limits: Limits) -> str:
    whole = hashlib.sha256(reads.path("spans").read_bytes())
    whole.update(canonical([reads.spec.get(name) for name in ("source", "kind", "form", "digest", "how")]))
    whole.update(canonical([limits.record, dict(limits.pieces)]))
    return whole.hexdigest()


def _read(reads: Reads, limits: Limits) -> Reading:
    spec, plan, how = reads.spec, _plan(reads), how_of(reads.spec)
    reading, units, texts = Reading(spec["source"], spec["kind"], how, limits), list[bytes](), Texts()
    plan["form"], home = spec["form"], Home(**plan["home"])
    for span in (Span(*item) for item in plan["spans"]):
        alike = span.stop == WHOLE and span.form == FORM
        if texts.full or not alike:
            texts = _add_texts(reading, texts, plan, units)
        with home.file(span.file, span.sha256) as at_hand:
            if alike:
                texts.add(span.file, _bytes_of(at_hand))
            else:
                _add_span(reading, span, plan, units, at_hand)
    _add_texts(reading, texts, plan, units)
    if fold(units) != spec["digest"]:
        first = plan["spans"][0][0]
        raise SourceError(f"source {spec['source']} changed while it was read, at or after {first}", "build again")
    _remember(_around(plan, reads, limits), _tables_around(reading))
    return reading


def _bytes_of(path: Path) -> bytes:
    with path.open("rb", buffering=0) as file:
        return file.readall()


def _add_texts(reading: Reading, texts: Texts, plan: dict[str, Any], units: list[bytes]) -> Texts:
    """Read the files that wait, their units' digests put to `units`; returns what the next ones are put to."""

    def look(row: int) -> None:
        span, most = Span(texts.names[row], FORM, "", 0, WHOLE, 0), plan["whole_bytes_max"]
        _add_whole(reading, span, texts.files[row], f"{reading.source}: {span.file}", most)

    if texts.files:
        units += reading.add_texts(texts, plan["whole_bytes_max"], look)
    return Texts()


def _add_span(reading: Reading, span: Span, plan: dict[str, Any], units: list[bytes], path: Path) -> None:
    """Read a span of the file at `path`; the digests of its units are put to `units` once it is read."""
    named = f"{reading.source}: {span.file}"
    if span.stop == WHOLE:
        data = _bytes_of(path)
        units.append(file_unit(span.form, hashlib.sha256(data).hexdigest()))
        _add_whole(reading, span, data, named, plan["whole_bytes_max"])
        return
    _add_part(reading, span, plan, path, units)
    if span.scan[3] and stamp_of(path) != span.scan[3]:
        raise SourceError(f"{named} changed while it was read", "build again")


def _add_whole(reading: Reading, span: Span, data: bytes, named: str, most: int) -> None:
    """A file that is one unit."""
    it = opened(pa.BufferReader(data), span.form, named, reading.how.encoding, reading.limits.record)
    if data.startswith(PARQUET):
        _add_batches(reading, span, it, pa.BufferReader(data), None, named, most)
        return
    stream = bounded(it.stream, most, named)
    for record in records(stream, it.records, reading.source, reading.limits.record):
        reading.add(span.file, it, record)


def _add_part(reading: Reading, span: Span, plan: dict[str, Any], path: Path, units: list[bytes]) -> None:
    """What a scan found of a larger file: row groups, or records."""
    named, (scan, first, last, _) = f"{reading.source}: {span.file}", span.scan
    rows = rows_of(Path(scan))[first:last]
    with pa.OSFile(str(path)) as file:
        it = opened(file, span.form, named, reading.how.encoding, reading.limits.record)
        if plan["form"] == GROUPS:
            _add_batches(reading, span, it, file, range(first, last), named, None)
        else:
            plain = path if it.plain else spooled(it.stream, it.form, span.sha256, Path(plan["spool"]))
            for stretch in stretches(plain, rows, reading.limits.record):
                reading.add_rows(span.file, it, stretch)
    units.append(rows["digest"].tobytes())


def _add_batches(
    reading: Reading, span: Span, it: Opened, file: pa.NativeFile, groups: range | None, named: str, most: int | None
) -> None:
    """Row groups of a Parquet file, all where `groups` is None, of at most `most` bytes as lines."""
    number, held = span.number, 0
    for batch in guarded(parquet_batches(file, groups), named):
        held += reading.add_batch(span.file, it, batch, number)
        number += batch.num_rows
        if most is not None and held > most:
            raise too_large(named, most)
