"""What a step is: its folders, its parameters and the checks it owes.

A step reads artifacts and writes one. Its artifact consists of *folders*, each made by one function in a module
of its own; a folder is made unit by unit (a unit is mostly a part), and every unit has a key of its own, so that a
change costs what it touches. This module holds declarations only; tasks.perform carries them out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from tasks.artifacts.manifest import Entry, Manifest

Payload: TypeAlias = pa.Table | np.ndarray[Any, Any] | bytes
Counts = dict[str, int]


def shapes(default: Any = ..., **limits: Any) -> Any:
    """A parameter that shapes bytes; the folders that list it in `shapes` are made anew when it changes."""
    return Field(default, json_schema_extra={"role": "shapes"}, **limits)


def names(default: Any = ..., **limits: Any) -> Any:
    """A parameter that names inputs from outside; their content enters keys by digest, the name or path does not."""
    return Field(default, json_schema_extra={"role": "names"}, **limits)


def judges(default: Any = ..., **limits: Any) -> Any:
    """A limit that stops a step; it is in no key, a change of it judges the standing artifact again."""
    return Field(default, json_schema_extra={"role": "judges"}, **limits)


def runs(default: Any = ..., **limits: Any) -> Any:
    """A parameter that only says how the work is done (workers, memory); it is in no key."""
    return Field(default, json_schema_extra={"role": "runs"}, **limits)


class StepParams(BaseModel):
    """A section of params.yaml. Frozen; an unknown key or a wrong type is an error naming it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


@dataclass(frozen=True)
class Made:
    """What a folder's function gives back for one unit.

    files: suffix -> payload; ".parquet" takes a Table, ".bin" and ".npy" an ndarray, any other suffix bytes.
    counts: exact counts of this unit, "measure" or "measure|dimension=member" -> int, as
        {"documents_in": 100, "dropped|rule=too_short": 3}. They are summed over units for reports and profiles.
    """

    files: Mapping[str, Payload]
    counts: Counts = field(default_factory=dict)


class Reads(Protocol):
    """What a unit's function reads: the files of its own unit, by "step/folder", opened only when asked for."""

    @property
    def name(self) -> str:
        """The unit's name."""

    @property
    def spec(self) -> Mapping[str, Any]:
        """What the plan gave beyond files."""

    def table(self, folder: str, columns: Sequence[str] | None = None, unit: str | None = None) -> pa.Table:
        """The Parquet file of `folder` for this unit (or another unit that was planned as read)."""

    def array(self, folder: str, suffix: str, dtype: str, unit: str | None = None) -> np.ndarray[Any, Any]:
        """A flat binary file of `folder`, memory-mapped read-only, [items]."""

    def path(self, folder: str, suffix: str = "", unit: str | None = None) -> Path:
        """Where a file of `folder` lies; for an input file from outside, folder is its name in the plan."""

    def units(self, folder: str) -> list[str]:
        """The units of `folder` that may be read, in manifest order."""

    def previous(self) -> Reads | None:
        """The same unit of the standing artifact when made with equal parameters and code, for row-wise reuse."""

    def scratch(self) -> Path | None:
        """A folder for temporary files beside what is made, emptied when it is made; None for the system's own."""

    def each(self, function: Callable[[Reads, Any], Any], items: Iterable[tuple[str | None, Any]]) -> Iterator[Any]:
        """function(reads, item) for each (unit or None, item), in order: work of a unit that reads the whole, dealt to
        the build's workers. `function` is a module's own; its reads show that unit alone. Items and results are small
        plain data; what is large goes through files in `scratch`, which all workers see.
        """


@dataclass(frozen=True)
class Unit:
    """One piece of work: a part, a group, or the whole.

    name: file name without folder and suffix.
    reads: ("step/folder", unit) pairs whose content digests enter the key.
    spec: plain JSON that the function needs beyond files; it enters the key as canonical JSON.
    files: name -> path of files from outside (evaluation sets, a tokenizer), not in the key: spec holds their digest.
    origin: sort key in the manifest, (text, number).
    """

    name: str
    reads: tuple[tuple[str, str], ...] = ()
    spec: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    origin: tuple[str, int] = ("", 0)


class Plan(Protocol):
    """What a planner may ask: entries of input folders and of this step's earlier folders, and the sources."""

    @property
    def params(self) -> Any:
        """The step's checked section of params.yaml."""

    @property
    def root(self) -> Path:
        """The project's folder."""

    @property
    def limit(self) -> int | None:
        """Documents of each source that a small run takes; None for all."""

    @property
    def fraction(self) -> float | None:
        """Share of each source that a small run takes; None for all."""

    def section(self, name: str) -> Mapping[str, Any]:
        """Any section of params.yaml as plain data; what is taken from it must stand in a unit's spec."""

    def entries(self, folder: str) -> Mapping[str, Entry]:
        """unit name -> Entry (key, files with digests, rows, counts, origin), in manifest order."""

    def sources(self) -> Mapping[str, Any]:
        """What lies at the sources now: the content of data/sources.json."""

    def standing(self, step: str) -> Manifest | None:
        """The manifest of any step's artifact, None where none stands; for what is said of it, for no unit."""

    def scratch(self) -> Path:
        """A folder in staging for this run's temporary files."""

    def executor(self) -> Executor:
        """The workers of this build, for a plan that is work itself."""


def each_part(plan: Plan, folder: Folder) -> list[Unit]:
    """One unit for each part of the first folder read: the aligned plan of every part-wise folder."""
    first = plan.entries(folder.reads[0])
    return [
        Unit(name, tuple((read, name) for read in folder.reads), origin=entry.origin) for name, entry in first.items()
    ]


def the_whole(plan: Plan, folder: Folder) -> list[Unit]:
    """A single unit named like the folder that reads every unit of every folder read."""
    reads = tuple((read, name) for read in folder.reads for name in plan.entries(read))
    return [Unit(folder.name, reads)]


@dataclass(frozen=True)
class Folder:
    """One folder of an artifact.

    name: the folder under data/<step>/, as "signals".
    function: "module:function", as "tasks.filter.signals:measure". Called in a worker as function(reads, params)
        -> Made, where params shows only the fields in `shapes`. With spread=True it is called as
        function(reads, params) -> Iterator[(unit name, Made)] in one go for the whole corpus and gives one file
        set per part (dedup's verdicts).
    reads: input folders as "step/folder"; this step's own earlier folders likewise.
    shapes: names of the fields of the step's params that shape these bytes.
    members: name of a field in `shapes` that is a mapping -> word of a unit's specification that names one of its
        members: that one alone is in the unit's key, and shown to the function. A unit without the word has all.
    versions: distributions whose version shapes these bytes, as ("sentencepiece",); "unicodedata" for Python's
        tables of characters.
    plan: how the folder is cut into units.
    place: where a unit's files lie inside the artifact.
    also: with spread=True, further folders written by the same function; its items are then named "folder/unit".
    """

    name: str
    function: str
    reads: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()
    members: Mapping[str, str] = field(default_factory=dict)
    versions: tuple[str, ...] = ()
    plan: Callable[[Plan, Folder], list[Unit]] = each_part
    place: str = "{folder}/{unit}"
    spread: bool = False
    also: tuple[str, ...] = ()


class Artifact(Protocol):
    """A step's artifact, staged but not yet published, as invariants and profiles see it."""

    @property
    def params(self) -> Any:
        """The step's checked section of params.yaml."""

    def units(self, folder: str) -> list[str]:
        """Unit names of `folder` ("step/folder") in manifest order."""

    def table(self, folder: str, columns: Sequence[str] | None = None, unit: str | None = None) -> pa.Table:
        """A unit's table."""

    def counts(self, folder: str) -> Mapping[str, Counts]:
        """unit name -> counts of `folder`."""

    def path(self, folder: str, suffix: str, unit: str) -> Path:
        """Where a unit's file lies."""


@dataclass(frozen=True)
class Step:
    """One of the nine steps. name = module = DVC stage = params section = data/<name> = suite = report.

    invariants: called on the staged artifact; yields one sentence per breach (value, limit, mend). A breach fails
        the step before anything appears.
    rows: unit -> the table that the suite's `rows` expectations see, for one part (no text in it).
    rows_of: the folder whose units `rows` is asked for, as "filter/verdicts".
    outside: sections of data/sources.json that the step reads: "sources", "sets", "tokenizers", "signals".
    """

    name: str
    params: type[StepParams]
    folders: tuple[Folder, ...]
    inputs: tuple[str, ...]
    rows: Callable[[Artifact, str], pa.Table]
    rows_of: str
    invariants: Callable[[Artifact], Iterator[str]]
    outside: tuple[str, ...] = ()
