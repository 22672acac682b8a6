"""Records and rows of a part, gathered as rows of documents, places and rejects.

In: records, one by one, in stretches as a scan found them, or as batches of Arrow. Out: tables. It opens no file. What
is quickly read (tasks.ingest.lines, tasks.ingest.rows, tasks.ingest.quick) is, everything else goes the long way
(tasks.ingest.fields).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tasks.artifacts.documents import DOCUMENTS, PLACES, REJECTS
from tasks.ingest.columns import lines_of
from tasks.ingest.containers import OFFSETS, Opened
from tasks.ingest.fields import Fields, Reject, Skip, read_fields
from tasks.ingest.how import How
from tasks.ingest.known import Known
from tasks.ingest.lines import quick_lines
from tasks.ingest.quick import is_quick, quick_row
from tasks.ingest.records import Record, records
from tasks.ingest.rows import quick_rows
from tasks.ingest.scans import Stretch
from tasks.ingest.texts import Texts
from tasks.text.pieces import pieces

SAMPLE = 200
WHOLE = -1

Array = np.ndarray[Any, Any]


class Limits(NamedTuple):
    """record: bytes of a record; pieces: kind -> characters of a row, kinds that are cut only."""

    record: int
    pieces: Mapping[str, int]


@dataclass
class Gathered:
    """Rows of one schema in their order, one by one or as tables. laid: tables before those in `rows`."""

    schema: pa.Schema
    laid: list[pa.Table] = field(default_factory=list)
    rows: list[tuple[Any, ...]] = field(default_factory=list)

    def lay(self, *tables: pa.Table) -> None:
        """Put tables after what there is; their columns are those of the schema."""
        if self.rows:
            columns = zip(*self.rows, strict=True)
            arrays = [pa.array(column, field.type) for column, field in zip(columns, self.schema, strict=True)]
            self.laid.append(pa.Table.from_arrays(arrays, schema=self.schema))
        self.rows = []
        self.laid += [table.cast(self.schema) for table in tables]

    def table(self) -> pa.Table:
        """All of them."""
        self.lay()
        return pa.concat_tables([*self.laid, self.schema.empty_table()])


@dataclass
class Reading:
    """The rows of a part, and what was counted."""

    source: str
    kind: str
    how: How
    limits: Limits
    documents: Gathered = field(default_factory=lambda: Gathered(DOCUMENTS))
    places: Gathered = field(default_factory=lambda: Gathered(PLACES))
    rejects: Gathered = field(default_factory=lambda: Gathered(REJECTS))
    counted: Counter[str] = field(default_factory=Counter)

    @property
    def _most(self) -> int | None:
        """Characters of a row."""
        return self.limits.pieces.get(self.kind)

    def add_rows(self, file: str, it: Opened, stretch: Stretch) -> None:
        """Records that a scan found: what is quickly read is, the others go the long way."""

        def look(row: int) -> None:
            self._look(file, it, stretch.record(row))

        if stretch.long or not is_quick(it.records, self.kind, self.how):
            for row in range(len(stretch.sizes)):
                look(row)
            return
        plain = it.form in OFFSETS
        offsets = stretch.offsets + stretch.begin if plain else np.full(len(stretch.sizes), WHOLE, np.int64)
        known = quick_lines(stretch, self.source, self.kind, self._most)
        self._add_known([file], known, stretch.numbers, offsets, look)

    def add_texts(self, texts: Texts, most: int, look: Callable[[int], object]) -> list[bytes]:
        """Small files of text, a record each; returns their units. most: bytes of a file that is read so; `look` adds
        one of the others.
        """
        known, units = texts.read(self.source, self.kind, min(most, self.limits.record), self._most)
        nothing = np.zeros(len(units), np.int64)
        self._add_known(texts.names, known, nothing, nothing, look)
        return units

    def add(self, file: str, it: Opened, record: Record) -> None:
        """A record, as a document or its pieces, as a reject, or skipped and counted."""
        if record.raw is not None and is_quick(it.records, self.kind, self.how):
            fields = quick_row(record.raw, self.kind == "code")
            if fields is not None and (self._most is None or len(fields[0]) <= self._most):
                self.documents.rows.append((record.id, self.source, self.kind, *fields[:-1]))
                self.places.rows.append(
                    (file, record.number, record.offset if it.form in OFFSETS else WHOLE, record.size, 0)
                )
                self._count({fields[-1]: 1})
                return
        self._look(file, it, record)

    def add_batch(self, file: str, it: Opened, batch: pa.RecordBatch, number: int) -> int:
        """Rows of Arrow, the first of which is row `number` of its file; returns their bytes as lines of JSON."""
        known, count = None, batch.num_rows
        if is_quick(it.records, self.kind, self.how):
            known = quick_rows(batch, self.source, self.kind, self.limits.record, self._most)
        if known is None:
            return self._add_lines(file, it, batch, number)
        offsets, numbers = np.full(count, WHOLE, np.int64), np.arange(number, number + count)
        self._add_known(
            [file], known, numbers, offsets, lambda row: self._add_lines(file, it, batch.slice(row, 1), number + row)
        )
        return int(known.sizes.sum())

    def _add_known(
        self, names: list[str], known: Known, numbers: Array, offsets: Array, look: Callable[[int], object]
    ) -> None:
        """Records as they stand, but those that are not known: `look` adds them, by their row. names: of the file of
        all, or of each.
        """
        rows, begin = len(known.known), 0
        files = (
            pa.array(names, pa.string()) if len(names) == rows else pa.repeat(pa.scalar(names[0], pa.string()), rows)
        )
        pieces = pa.repeat(pa.scalar(0, pa.int64()), rows)
        columns = [files, pa.array(numbers), pa.array(offsets), pa.array(known.sizes), pieces]
        places = pa.table(columns, names=PLACES.names)
        for row in [*np.flatnonzero(~known.known).tolist(), rows]:
            if row > begin:
                self.documents.lay(known.documents.slice(begin, row - begin))
                self.places.lay(places.slice(begin, row - begin))
                self._count(known.counts(begin, row))
            if row < rows:
                look(row)
            begin = row + 1

    def _add_lines(self, file: str, it: Opened, batch: pa.RecordBatch, number: int) -> int:
        """Rows of Arrow by way of JSON; returns the bytes of that."""
        lines = lines_of(batch)
        for record in records([lines], it.records, self.source, self.limits.record, 1, number):
            self.add(file, it, record)
        return len(lines)

    def _count(self, shapes: Mapping[str, int]) -> None:
        """Count documents that are a record each, by their shape."""
        self.counted.update({f"documents|shape={shape}": count for shape, count in shapes.items()})
        self.counted["records_in"] += sum(shapes.values())

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
            self.rejects.rows.append((*place, reject.reason, reject.detail, head))

    def _add(self, place: tuple[Any, ...], record: Record, fields: Fields) -> None:
        whole = self._most is None or fields.messages is not None or len(fields.text) <= self._most
        texts = [fields.text] if whole else pieces(fields.text, self._most or 0)
        for number, text in enumerate(texts):
            name = record.id if whole else record.piece_id(number)
            self.documents.rows.append((name, self.source, self.kind, text, *fields[1:-1]))
            self.places.rows.append((*place, number))
        self.counted[f"documents|shape={fields.shape}"] += len(texts)
        if not whole:
            self.counted["records_cut"] += 1
            self.counted["pieces"] += len(texts)
