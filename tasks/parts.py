"""One unit of work: its key, what its function may read, and how its files come to be.

A unit is made in a worker process that gets a Job (plain data and paths), calls the folder's function and writes the
files into a folder of their own, named by the key and renamed into place when whole. The main process then links
them to where they belong. So a made unit is there whole or not at all, and a later run finds it by its key.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tasks.artifacts.canonical import digest, file_digest
from tasks.artifacts.manifest import Entry
from tasks.artifacts.tables import read_table, write_payload
from tasks.code import function_digest
from tasks.memory import hide_what_stands
from tasks.step import Folder, Made, Payload, StepParams

ENTRY = "entry.json"


def ingredients(folder: Folder, params: StepParams) -> dict[str, Any]:
    """What shapes every unit of a folder, by name: digests of its code and the writer's, parameters, versions."""
    return {
        "code": function_digest(folder.function),
        "writer": function_digest("tasks.artifacts.tables:write_payload"),
        "params": params.model_dump(include=set(folder.shapes)),
        "versions": {name: _version(name) for name in folder.versions},
    }


def setting(ingredients: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    """64 hex over all that shapes a unit but the contents it reads: the folder's ingredients and the unit's spec."""
    return digest({**ingredients, "spec": spec})


def narrowed(fields: Mapping[str, Any], members: Mapping[str, str], spec: Mapping[str, Any]) -> dict[str, Any]:
    """`fields` of the params, of each mapping only the member that the unit's specification names (Folder.members)."""
    chosen = {name: spec[word] for name, word in members.items() if word in spec}
    return {name: {chosen[name]: value[chosen[name]]} if name in chosen else value for name, value in fields.items()}


def unit_key(setting: str, reads: Iterable[tuple[str, str, str]]) -> str:
    """64 hex over a setting and (folder, unit, content digest) of everything read."""
    return digest([setting, [list(read) for read in reads]])


def planner_digest(folder: Folder) -> str:
    """64 hex over the code that cuts a folder into units. It stands in the recipe, so that another plan is carried
    out, and in no unit's key: a unit's specification and what it reads say all of it.
    """
    return function_digest(f"{folder.plan.__module__}:{folder.plan.__name__}")


@cache
def _version(name: str) -> str:
    """Of a distribution, or of the Unicode tables of this Python."""
    return unicodedata.unidata_version if name == "unicodedata" else metadata.version(name)


class Shown:
    """The fields of a step's params that a folder declares in `shapes`, and no other."""

    def __init__(self, folder: str, fields: dict[str, Any]) -> None:
        self.__dict__.update(fields)
        self.__dict__["_folder"] = folder

    def __getattr__(self, name: str) -> Any:
        folder = self.__dict__.get("_folder")
        raise AttributeError(f"folder {folder} reads parameter {name}, which its Folder.shapes does not list")

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"parameter {name} is frozen")


@dataclass(frozen=True)
class FileReads:
    """Reads over files on disk. files: folder -> unit -> suffix -> path; outside: name -> path; temporary: of scratch;
    hands: who does the work of `each`, where not this process.
    """

    name: str
    spec: Mapping[str, Any]
    files: Mapping[str, Mapping[str, Mapping[str, str]]]
    outside: Mapping[str, str]
    before: FileReads | None = None
    temporary: str | None = None
    hands: Executor | None = None

    def table(self, folder: str, columns: Sequence[str] | None = None, unit: str | None = None) -> pa.Table:
        return read_table(self.path(folder, ".parquet", unit), columns)

    def array(self, folder: str, suffix: str, dtype: str, unit: str | None = None) -> np.ndarray[Any, Any]:
        path = self.path(folder, suffix, unit)
        if not path.stat().st_size:
            return np.empty(0, dtype)
        return np.asarray(np.memmap(path, dtype, mode="r"))

    def path(self, folder: str, suffix: str = "", unit: str | None = None) -> Path:
        if folder in self.outside:
            return Path(self.outside[folder])
        return Path(self.files[folder][unit or self.name][suffix])

    def units(self, folder: str) -> list[str]:
        return list(self.files.get(folder, {}))

    def previous(self) -> FileReads | None:
        return self.before

    def scratch(self) -> Path | None:
        if self.temporary is None:
            return None
        Path(self.temporary).mkdir(parents=True, exist_ok=True)
        return Path(self.temporary)

    def each(self, function: Callable[[Any, Any], Any], items: Iterable[tuple[str | None, Any]]) -> Iterator[Any]:
        if self.hands is None:
            return (function(self._of(unit), item) for unit, item in items)
        futures = [self.hands.submit(function, self._of(unit), item) for unit, item in items]
        return (future.result() for future in futures)

    def _of(self, unit: str | None) -> FileReads:
        """What a worker is shown: the files of one unit."""
        files = {
            folder: {unit: units[unit]} for folder, units in self.files.items() if unit is not None and unit in units
        }
        return replace(self, files=files, before=None, hands=None)


@dataclass(frozen=True)
class Job:
    """All that a worker needs to make one unit. made: the folder whose child <key>/ will hold its files."""

    folder: str
    function: str
    spread: bool
    unit: str
    key: str
    setting: str
    params: Shown
    reads: FileReads
    made: Path

    @property
    def home(self) -> Path:
        return self.made / self.key


def make(job: Job, hands: Executor | None = None) -> str:
    """Make the unit of `job` and leave its files and entry.json in job.home; returns the key. hands: for Reads.each."""
    partial = job.made / f".{job.key}.{os.getpid()}"
    scratch = partial.with_name(f"{partial.name}.scratch")
    reads = replace(job.reads, temporary=str(scratch), hands=hands)
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        items = [_write(job, partial, name, made) for name, made in _call(replace(job, reads=reads))]
        (partial / ENTRY).write_text(json.dumps(items), encoding="utf-8")
        _put_in_place(partial, job.home)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return job.key


def _put_in_place(partial: Path, home: Path) -> None:
    """A dying run's worker may put the same unit there at the same moment: equal keys hold equal bytes."""
    shutil.rmtree(home, ignore_errors=True)
    try:
        partial.rename(home)
    except OSError:
        if not (home / ENTRY).is_file():
            raise
        shutil.rmtree(partial, ignore_errors=True)


def made_items(home: Path, *, verify: bool = False) -> list[tuple[str, str, Entry]] | None:
    """(folder, unit, entry) of what lies in a made folder, its files named as in `home`; None where not whole.

    verify: digest every file again; for leftovers of a run that died.
    """
    try:
        items = json.loads((home / ENTRY).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    made = [(item["folder"], item["unit"], Entry(**item["entry"])) for item in items]
    if verify and not all(_sound(home, entry) for _, _, entry in made):
        return None
    return made


def _call(job: Job) -> Iterator[tuple[str, Made]]:
    """("folder/unit", Made) of the folder's function: one for a unit, one for each part where it is spread."""
    function = _function(job.function)
    if job.spread:
        yield from function(job.reads, job.params)
    else:
        yield f"{job.folder}/{job.unit}", function(job.reads, job.params)


@cache
def _function(name: str) -> Callable[..., Any]:
    """What "module:name" is; the first call imports it."""
    module, _, own = name.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), own)
    hide_what_stands()
    return function


def _write(job: Job, home: Path, name: str, made: Made) -> dict[str, Any]:
    folder, _, unit = name.partition("/")
    stem = f"{folder}-{len(list(home.iterdir()))}"
    schema = _schema(job.function, folder)
    files = {f"{stem}{suffix}": _put(home / f"{stem}{suffix}", made.files[suffix], schema) for suffix in made.files}
    table = made.files.get(".parquet")
    rows = table.num_rows if isinstance(table, pa.Table) else 0
    entry = Entry(job.key, job.setting, files, rows, dict(sorted(made.counts.items())), ("", 0))
    return {"folder": folder, "unit": unit, "entry": asdict(entry)}


def _schema(function: str, folder: str) -> pa.Schema | None:
    """The schema that a function's module declares: SCHEMAS by folder, else SCHEMA."""
    module = importlib.import_module(function.partition(":")[0])
    schemas: Mapping[str, pa.Schema] = getattr(module, "SCHEMAS", {})
    return schemas.get(folder, getattr(module, "SCHEMA", None))


def _put(path: Path, payload: Payload, schema: pa.Schema | None) -> dict[str, Any]:
    write_payload(path, payload, schema)
    return {"sha256": file_digest(path), "bytes": path.stat().st_size}


def _sound(home: Path, entry: Entry) -> bool:
    return all(
        (home / name).is_file() and file_digest(home / name) == facts["sha256"] for name, facts in entry.files.items()
    )
