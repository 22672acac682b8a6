"""Which sources lie under a folder, and of which kind each seems to be.

In: a folder or file of texts. Out: a Found for each source. It reads the first records of files that consist of records
(flows.sampled), and nothing else of the files but names and sizes; a wrong guess is mended in params.yaml.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from flows.sampled import Sample, sample
from tasks.errors import SourceError
from tasks.ingest.shapes import KNOWN
from tasks.sources import FORMATS, format_of
from tasks.walking import walk

OURS = frozenset(["data", "evaluation", "expectations", "pins", "releases", "reports", "runs", "small", "tokenizers"])
"""Folders of a corpus that hold no sources; `gristmill init . --from .` passes over them."""


ABOUT = frozenset(["changelog", "contributing", "copying", "licence", "license", "notice", "readme"])
"""Files that tell of the folder they lie in; beside folders with texts they are no source."""


@dataclass(frozen=True)
class Found:
    """A source. kind: web, book, code, paper or chat; path: as params.yaml will name it; bytes: of its files.

    shape: what its records were recognised as, for people; fields: a mapping that says the same, where one can.
    unknown: where no record has a shape that is known, the fields that were seen, or what is wrong with the file; such
    a source cannot be read yet.
    """

    name: str
    kind: str
    path: str
    files: int
    bytes: int
    shape: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    unknown: str = ""


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
            found.append(_found(path, names, root, {item.name for item in found}))
    refuse_unknown(str(source), found)
    return found


def refuse_unknown(source: str, found: Sequence[Found]) -> None:
    """Raise SourceError where there is nothing to read in `source`, or nothing whose shape is known."""
    if not found:
        known = ", ".join([*FORMATS, "and program code"])
        raise SourceError(f"{source} holds no file of a known format", f"known are {known}; see docs/data.md")
    if all(item.unknown for item in found):
        raise SourceError(
            f"no record in {source} has a shape that is known: {found[0].unknown}",
            f"known are {KNOWN} and those of docs/data.md; rename a field, or lay a corpus without --from and name "
            "this source in its params.yaml with fields: {text: NAME}; fetch again what is damaged",
        )


def _found(path: Path, names: list[str], root: Path, taken: set[str]) -> Found:
    sizes = {name: _at(path, name).stat().st_size for name in names}
    seen = sample({name: _at(path, name) for name in names})
    stem = path.resolve().name if path.is_dir() else path.name.split(".")[0]
    return found_of(stem, _written(path, root), sizes, seen, taken)


def found_of(stem: str, where: str, sizes: Mapping[str, int], seen: Sample, taken: set[str]) -> Found:
    """What is to be said of a source.

    stem: its folder's or file's name; where: its path for params.yaml; sizes: file -> bytes; seen: what its records
    look like; taken: names of other sources.
    """
    shape, fields_ = seen.said, seen.mapping if set(sizes) == set(seen.files) else {}
    kind = guess_kind(sizes, seen)
    sizes = {name: size for name, size in sizes.items() if format_of(name, kind)}
    unknown = seen.strange if set(sizes) == {*seen.unknown, *seen.damaged} else ""
    return Found(_unused(stem, taken), kind, where, len(sizes), sum(sizes.values()), shape, fields_, unknown)


def guess_kind(sizes: Mapping[str, int], seen: Sample) -> str:
    """code, book, paper, chat or web, by which of programs, texts, PDF, pages and records has the most bytes.

    sizes: file of the source -> bytes. Records of which most are chats, in any of their shapes, are chats.
    """
    weights: Counter[str] = Counter()
    for name, size in sizes.items():
        weights[_class(name)] += size + 1
    (heaviest, _), *_ = sorted(weights.items(), key=lambda item: (-item[1], item[0]))
    if heaviest != "records":
        return heaviest
    return "chat" if seen.chats(sizes) else "web"


def _places(source: Path, root: Path) -> list[Path]:
    if source.is_file():
        return [source]
    try:
        children = [child for child in sorted(source.iterdir()) if _may_hold(child, root)]
    except OSError as error:
        raise SourceError(f"{source} cannot be read: {error.strerror}", "correct its permissions") from error
    if any(_known(child) for child in children if child.is_dir()):
        return [child for child in children if child.is_dir() or stem_of(child.name) not in ABOUT]
    loose = [child for child in children if child.is_file() and _known(child)]
    return [source] if any(is_loose_text(child.name) for child in loose) else loose


def is_loose_text(name: str) -> bool:
    """Whether a file is one document among others, and not records that make a source by themselves."""
    return _class(name) != "records"


def stem_of(name: str) -> str:
    """The name as ABOUT has it."""
    return Path(name).stem.lower()


def in_known_formats(name: str) -> bool:
    return bool(format_of(name, "web") or format_of(name, "code"))


def _may_hold(path: Path, root: Path) -> bool:
    if path.name.startswith(".") or path.resolve() == root.resolve():
        return False
    return not (path.parent.resolve() == root.resolve() and path.name in OURS)


def _known(path: Path) -> list[str]:
    return [name for name in walk(path, path.name) if in_known_formats(name)]


def _at(path: Path, name: str) -> Path:
    return path if path.is_file() else path / name


def _class(name: str) -> str:
    base = (format_of(name, "web") or "").partition(".")[0]
    return {"": "code", "text": "book", "pdf": "paper", "html": "web", "warc": "web", "arc": "web"}.get(base, "records")


def _unused(stem: str, taken: set[str]) -> str:
    """The file's or folder's name as a source's: letters, digits and _, with a number where it is taken."""
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
