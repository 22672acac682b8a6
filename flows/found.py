"""Which sources lie under a folder, and of which kind each seems to be.

In: a folder or file of texts. Out: a Found for each source. It reads one record of each source that consists
of records, and nothing else of the files but names and sizes; a wrong guess is mended in params.yaml.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from tasks.errors import SourceError
from tasks.ingest.containers import blocks
from tasks.sources import FORMATS, format_of
from tasks.walking import walk

OURS = frozenset(["data", "evaluation", "expectations", "pins", "releases", "reports", "runs", "small", "tokenizers"])
"""Folders of a corpus that hold no sources; `gristmill init . --from .` passes over them."""


ABOUT = frozenset(["changelog", "contributing", "copying", "licence", "license", "notice", "readme"])
"""Files that tell of the folder they lie in; beside folders with texts they are no source."""


@dataclass(frozen=True)
class Found:
    """A source. kind: web, book, code or chat; path: as params.yaml will name it; bytes: of its files."""

    name: str
    kind: str
    path: str
    files: int
    bytes: int


def find_sources(source: Path, root: Path) -> list[Found]:
    """The sources under `source`, sorted by path: each direct subfolder or file that holds known formats.

    Where texts lie loose in `source` and no subfolder has any, the whole of it is one source. root: the
    corpus; paths within its parent folder are written relative to it, so that both can be moved together, and
    it is itself no source. Raises SourceError where there is nothing to read.
    """
    if not source.exists():
        raise SourceError(f"{source} does not exist", "give --from the folder that holds your texts")
    found: list[Found] = []
    for path in _places(source, root):
        names = _known(path)
        if names:
            sizes = [_at(path, name).stat().st_size for name in names]
            name = _unused(path, {item.name for item in found})
            found.append(Found(name, guess_kind(path, names), _written(path, root), len(names), sum(sizes)))
    if not found:
        known = ", ".join([*FORMATS, "and program code"])
        raise SourceError(f"{source} holds no file of a known format", f"known are {known}; see docs/data.md")
    return found


def guess_kind(path: Path, names: list[str]) -> str:
    """code, book, chat or web, by which of programs, texts and records has the most bytes.

    names: the files of the source at `path`, relative to it. Records that have messages are chats.
    """
    weights: Counter[str] = Counter()
    for name in names:
        weights[_class(name)] += _at(path, name).stat().st_size + 1
    (heaviest, _), *_ = sorted(weights.items(), key=lambda item: (-item[1], item[0]))
    if heaviest != "records":
        return heaviest
    first = next(name for name in names if _class(name) == "records")
    return "chat" if _has_messages(_at(path, first), format_of(first, "web") or "jsonl") else "web"


def _places(source: Path, root: Path) -> list[Path]:
    if source.is_file():
        return [source]
    try:
        children = [child for child in sorted(source.iterdir()) if _may_hold(child, root)]
    except OSError as error:
        raise SourceError(f"{source} cannot be read: {error.strerror}", "correct its permissions") from error
    if any(_known(child) for child in children if child.is_dir()):
        return [child for child in children if child.is_dir() or child.stem.lower() not in ABOUT]
    loose = [child for child in children if child.is_file() and format_of(child.name, "code")]
    return [source] if any(_class(child.name) != "records" for child in loose) else loose


def _may_hold(path: Path, root: Path) -> bool:
    if path.name.startswith(".") or path.resolve() == root.resolve():
        return False
    return not (path.parent.resolve() == root.resolve() and path.name in OURS)


def _known(path: Path) -> list[str]:
    return [name for name in walk(path, path.name) if format_of(name, "code")]


def _at(path: Path, name: str) -> Path:
    return path if path.is_file() else path / name


def _class(name: str) -> str:
    form = format_of(name, "web")
    if form is None:
        return "code"
    return "book" if form == "text" else "records"


def _has_messages(path: Path, form: str) -> bool:
    with pa.OSFile(str(path)) as file:
        for line in _lines(blocks(file, form, path.name)):
            try:
                record = json.loads(line)
            except ValueError:
                continue
            return isinstance(record, list) or (isinstance(record, dict) and record.get("messages") is not None)
    return False


def _lines(stream: Iterator[bytes]) -> Iterator[bytes]:
    """The lines of the first block; a guess needs no more."""
    yield from next(stream, b"").split(b"\n")


def _unused(path: Path, taken: set[str]) -> str:
    """The file's or folder's name as a source's: letters, digits and _, with a number where it is taken."""
    stem = path.resolve().name if path.is_dir() else path.name.split(".")[0]
    name = re.sub(r"[^a-z0-9]+", "_", stem.lower()).strip("_") or "source"
    number = 2
    unused = name
    while unused in taken:
        unused, number = f"{name}_{number}", number + 1
    return unused


def _written(path: Path, root: Path) -> str:
    place, home = path.resolve(), root.resolve()
    if place.is_relative_to(home):
        return place.relative_to(home).as_posix()
    if place.is_relative_to(home.parent):
        return (Path("..") / place.relative_to(home.parent)).as_posix()
    return place.as_posix()
