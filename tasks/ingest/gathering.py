"""Records and rows of a part, gathered as rows of documents, places and rejects.

In: records, one by one, in stretches as a scan found them, or as batches of Arrow. Out: tables. It opens no file. What
is quickly read (tasks.ingest.quick, tasks.ingest.rows) is, everything else goes the long way (tasks.ingest.fields).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from tasks.artifacts.documents import DOCUMENTS, PLACES, REJECTS
from tasks.ingest.columns import lines_of
from tasks.ingest.containers import OFFSETS, Opened
from tasks.ingest.fields import Fields, Reject, Skip, read_fields
from tasks.ingest.how import How
from tasks.ingest.quick import is_quick, quick_row
from tasks.ingest.records import Record, records
from tasks.ingest.rows import Rows, quick_rows
from tasks.ingest.scans import Stretch
from tasks.text.pieces import pieces

SAMPLE = 200
WHOLE = -1


class Limits(NamedTuple):
    """record: bytes of a record; pieces: kind -> characters of a row, kinds that are cut only."""

    record: int
    pieces: Mapping[str, int]


@dataclass
class Reading:
    """The rows of a part, and what was counted. laid: tables of documents before those in `documents`, whose last item
    is the shape.
    """

    source: str
    kind: str
    how: How
    limits: Limits
    laid: list[pa.Table] = field(default_factory=list)
    documents: list[tuple[Any, ...]] = field(default_factory=list)
    places: list[tuple[Any, ...]] = field(default_factory=list)
    rejects: list[tuple[Any, ...]] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)

    @property
    def _most(self) -> int | None:
        """Characters of a row."""
        return self.limits.pieces.get(self.kind)

    def add_rows(self, file: str, it: Opened, stretch: Stretch) -> None:
        """Records that a scan found: what is quickly read is, the others go the long way."""
        quick = not stretch.long and is_quick(it.records, self.kind, self.how)
        code, most, plain = self.kind == "code", self._most, it.form in OFFSETS
        ids, held, found = stretch.digests.hex(), stretch.held, 0
        for row, (number, offset, size) in enumerate(zip(stretch.numbers, stretch.offsets, stretch.sizes, strict=True)):
            fields = quick_row(held[offset : offset + size], code) if quick else None
            if fields is None or (most is not None and len(fields[0]) > most):
                self._look(file, it, stretch.record(row))
            else:
                self.documents.append((ids[64 * row : 64 * row + 32], self.source, self.kind, *fields))
                self.places.append((file, number, offset + stretch.begin if plain else WHOLE, size, 0))
                found += 1
        self.counted["records_in"] += found

    def add(self, file: str, it: Opened, record: Record) -> None:
        """A record, as a document or its pieces, as a reject, or skipped and counted."""
        if record.raw is not None and is_quick(it.records, self.kind, self.how):
            fields = quick_row(record.raw, self.kind == "code")
            if fields is not None and (self._most is None or len(fields[0]) <= self._most):
                self.counted["records_in"] += 1
                self.documents.append((record.id, self.source, self.kind, *fields))
                self.places.append(
                    (file, record.number, record.offset if it.form in OFFSETS else WHOLE, record.size, 0)
                )
                return
        self._look(file, it, record)

    def add_batch(self, file: str, it: Opened, batch: pa.RecordBatch, number: int) -> int:
        """Rows of Arrow, the first of which is row `number` of its file; returns their bytes as lines of JSON."""
        rows = None
        if is_quick(it.records, self.kind, self.how):
            rows = quick_rows(batch, self.source, self.kind == "code", self.limits.record, self._most)
        if rows is None:
            lines = lines_of(batch)
            for record in records([lines], it.records, self.source, self.limits.record, 1, number):
                self.add(file, it, record)
            return len(lines)
        self._lay(_table_of(rows, self.source, self.kind))
        self.counted["records_in"] += batch.num_rows
        self.counted[f"documents|shape={rows.shape}"] += batch.num_rows
        self.places += [(file, number + row, WHOLE, size, 0) for row, size in enumerate(rows.sizes)]
        return sum(rows.sizes)

    def table(self) -> pa.Table:
        """All documents."""
        self._lay()
        return pa.concat_tables(self.laid)

    def around(self) -> tuple[pa.Table, pa.Table]:
        """Places and rejects."""
        return _table(self.places, PLACES), _table(self.rejects, REJECTS)

    def _lay(self, *tables: pa.Table) -> None:
        """Make a table of what was gathered, and put `tables` after it."""
        self.counted.update(f"documents|shape={row[-1]}" for row in self.documents)
        if self.documents or not (self.laid or tables):
            self.laid.append(_table([row[:-1] for row in self.documents], DOCUMENTS))
        self.documents = []
        self.laid += tables

    def _look(self, file: str, it: Opened, record: Record) -> None:
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
        if self._most is None or fields.messages is not None or len(fields.text) <= self._most:
            self.documents.append((record.id, self.source, self.kind, *fields))
            self.places.append((*place, 0))
            return
        texts = pieces(fields.text, self._most)
        for number, text in enumerate(texts):
            self.documents.append((record.piece_id(number), self.source, self.kind, text, *fields[1:]))
            self.places.append((*place, number))
        self.counted["records_cut"] += 1
        self.counted["pieces"] += len(texts)


def _table(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else ((),) * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _table_of(rows: Rows, source: str, kind: str) -> pa.Table:
    """Documents of rows of Arrow."""
    count = len(rows.digests)
    columns = {
        "id": [digest.hex()[:32] for digest in rows.digests],
        "source": [source] * count,
        "kind": [kind] * count,
        "text": rows.text,
        "messages": [None] * count,
        "offsets": [None] * count,
        "url": rows.urls,
        "created": rows.created,
        "metadata": rows.metadata,
    }
    return pa.table(columns, schema=DOCUMENTS)
