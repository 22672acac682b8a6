"""Which documents stood in a batch: from positions of a run back to records of the raw files.

In: a pin, the data/ it was made of, and positions (one a sequence). Out: for each the sequence's place, and its
documents with id, file, record, url and the ids that stand there. It reads indexes, the packing map and the rows of
the documents asked for, never the corpus.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tasks.artifacts.manifest import Manifest
from tasks.artifacts.shards import ShardReader
from tasks.errors import IntegrityError, ParamsError
from tasks.project import Project
from tasks.staged import Staged
from training.order import Order
from training.pin import Pin

PIECES, DOCUMENTS, PLACES = "pack/pieces", "ingest/documents", "ingest/places"


@dataclass(frozen=True)
class Document:
    """A document, whole or in part. part, row: of ingest and of all later folders; file, record: of its source, from
    0; ids: from and to, counted in the document's own ids; of: how many it has, its end counted."""

    id: str
    file: str
    record: int
    url: str | None
    part: str
    row: int
    ids: tuple[int, int]
    of: int


@dataclass(frozen=True)
class Traced:
    """What one position read. shard: as in the pin, <source>/train/<name>; sequence: its number there; ids: from and
    to of the shard's stream; group: of pack."""

    position: int
    source: str
    epoch: int
    shard: str
    sequence: int
    ids: tuple[int, int]
    group: str
    documents: tuple[Document, ...]


def trace(project: Project, pin: Pin, positions: Sequence[int]) -> list[Traced]:
    """Trace positions of a run on `pin`. Raises ParamsError where data/ is not what the pin was made of,
    IntegrityError where pack and shard differ, ValueError for positions that no run has."""
    manifest = Manifest.read(project.artifact("mix"))
    if manifest is None or manifest.fingerprint != pin.fingerprint:
        stands = manifest.fingerprint[:12] if manifest else "nothing"
        raise ParamsError(
            f"data/ holds {stands}, the pin is {pin.fingerprint[:12]}",
            "check out the release and its data: git checkout NAME && dvc checkout",
        )
    return Tracer(project, pin).at(positions)


class Tracer:
    """Indexes that stay open between positions: shards by source, packing maps by group."""

    def __init__(self, project: Project, pin: Pin) -> None:
        self._order = Order(pin.schedule)
        self._data = Staged.of_steps(project, ["ingest", "pack"])
        self._shards = {
            name: [ShardReader(path.parent, path.name) for path in pin.shards(name, "train")]
            for name in self._order.sources
        }
        self._maps: dict[str, tuple[pa.Table, np.ndarray]] = {}

    def at(self, positions: Sequence[int]) -> list[Traced]:
        """See trace."""
        asked = np.asarray(positions, np.int64)
        places = self._order.at(asked)
        rows = zip(asked.tolist(), places.source.tolist(), places.epoch.tolist(), places.sequence.tolist(), strict=True)
        return [self._traced(position, self._order.sources[at], epoch, number) for position, at, epoch, number in rows]

    def _traced(self, position: int, source: str, epoch: int, sequence: int) -> Traced:
        ends = np.cumsum([len(shard) for shard in self._shards[source]])
        number = int(np.searchsorted(ends, sequence, side="right"))
        shard = self._shards[source][number]
        sequence -= int(ends[number]) - len(shard)
        start, stop = int(shard.starts[sequence]), int(shard.stops[sequence])
        group = self._group(source, number)
        place = f"{source}/train/{shard.name}"
        documents = self._documents(group, place, len(shard.tokens), start, stop)
        return Traced(position, source, epoch, place, sequence, (start, stop), group, documents)

    def _group(self, source: str, number: int) -> str:
        """Shards are numbered within source and split in the order of pack's groups."""
        groups = [unit for unit in self._data.units(PIECES) if unit.split("-")[:2] == [source, "train"]]
        if number >= len(groups):
            raise IntegrityError(f"pack has {len(groups)} groups of {source}, no shard {number}", "gristmill verify")
        return groups[number]

    def _documents(self, group: str, place: str, tokens: int, start: int, stop: int) -> tuple[Document, ...]:
        pieces, bounds = self._map(group)
        if int(bounds[-1]) != tokens:
            raise IntegrityError(f"{group} of pack has {bounds[-1]} ids, shard {place} {tokens}", "gristmill verify")
        first = int(np.searchsorted(bounds, start, side="right")) - 1
        last = int(np.searchsorted(bounds, stop, side="left"))
        return tuple(
            self._document(pieces.slice(at, 1).to_pylist()[0], max(start - int(bounds[at]), 0), stop - int(bounds[at]))
            for at in range(first, last)
        )

    def _document(self, piece: dict[str, Any], start: int, stop: int) -> Document:
        part, row, size = piece["part"], piece["row"], piece["stop"] - piece["start"]
        document = self._row(DOCUMENTS, ["id", "url"], part, row)
        found = self._row(PLACES, ["file", "record"], part, row)
        ids = (max(start - piece["bos"], 0), min(stop - piece["bos"], size))
        return Document(document["id"], found["file"], found["record"], document["url"], part, row, ids, size)

    def _row(self, folder: str, columns: list[str], part: str, row: int) -> dict[str, Any]:
        found: dict[str, Any] = self._data.table(folder, columns, part).slice(row, 1).to_pylist()[0]
        return found

    def _map(self, group: str) -> tuple[pa.Table, np.ndarray]:
        """The group's pieces, and the bounds of each in its stream, with its BOS, int64 [pieces + 1]."""
        if group not in self._maps:
            pieces = self._data.table(PIECES, None, group)
            sizes = pieces["stop"].to_numpy() - pieces["start"].to_numpy() + pieces["bos"].to_numpy()
            self._maps[group] = (pieces, np.concatenate([[0], np.cumsum(sizes)]))
        return self._maps[group]
