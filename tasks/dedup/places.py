"""The parts whose documents dedup compares: those of this corpus, and before them those of earlier releases.

In: what may be read, and what the plan says of releases. Out: places in order, and their tables. It compares nothing.
A release's parts are read under the names "<release>/<folder>/<part>" as files from outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.artifacts.tables import MADE
from tasks.artifacts.verdicts import DROP, KEEP
from tasks.dedup.sketches import made_by, sketch
from tasks.errors import InvariantError
from tasks.step import Reads

if TYPE_CHECKING:
    from tasks.dedup import DedupParams

READ_OF_RELEASES = ("normalize/text", "dedup/sketches", "dedup/verdicts")


class Place(NamedTuple):
    """One part. release: "" for this corpus; level: its number among the releases, after them for this corpus.

    sketched: whether its stored sketches are as this corpus' own.
    """

    release: str
    unit: str
    level: int
    sketched: bool

    @property
    def name(self) -> str:
        """As other_part and survivor_part say it: "<part>", or "<release>/<part>"."""
        return f"{self.release}/{self.unit}" if self.release else self.unit

    def table(self, reads: Reads, folder: str, columns: Sequence[str] | None = None) -> pa.Table:
        """The part's table of `folder`."""
        if self.release:
            return reads.table(outside_name(self.release, folder, self.unit), columns)
        return reads.table(folder, columns, unit=self.unit)

    def stands(self, reads: Reads) -> np.ndarray:
        """int32, ascending: rows that take part, of a release those that it kept, else those that filter did."""
        folder = "dedup/verdicts" if self.release else "filter/verdicts"
        verdicts = self.table(reads, folder, ["verdict"]).column("verdict")
        stands = pc.equal(verdicts, KEEP) if self.release else pc.not_equal(verdicts, DROP)
        return np.flatnonzero(stands.to_numpy()).astype(np.int32)


def outside_name(release: str, folder: str, unit: str) -> str:
    """The name of a release's file among those from outside."""
    return f"{release}/{folder}/{unit}"


def places_of(reads: Reads) -> list[Place]:
    """The parts of the releases, release by release, then those of this corpus."""
    against = reads.spec.get("against", []) if hasattr(reads, "spec") else []
    found = [
        Place(one["release"], unit, level, one["sketched"])
        for level, one in enumerate(against)
        for unit in one["units"]
    ]
    return found + [Place("", unit, len(against), True) for unit in reads.units("normalize/text")]


def sketches_of(reads: Reads, place: Place, params: DedupParams, columns: Sequence[str]) -> pa.Table:
    """The part's sketches: as stored, or of a release that was sketched otherwise made again from its texts.

    Raises InvariantError where stored ones say that they were made by anything else than these parameters.
    """
    if place.sketched:
        table, wanted = place.table(reads, "dedup/sketches", columns), made_by(params)
        said = (table.schema.metadata or {}).get(MADE, b"nothing that it says").decode()
        if said != wanted:
            raise InvariantError(
                f"dedup/sketches of {place.name} were made by {said}, not by {wanted}",
                "build them anew: python -m tasks dedup --force",
            )
        return table
    made: pa.Table = sketch(cast(Reads, _Texts(reads, place)), params).files[".parquet"]
    return made.select(list(columns))


class _Texts:
    """A release's part as the function of dedup/sketches reads it."""

    def __init__(self, reads: Reads, place: Place) -> None:
        self.reads, self.place = reads, place

    def table(self, folder: str, columns: Sequence[str] | None = None) -> pa.Table:
        return self.place.table(self.reads, folder, columns)
