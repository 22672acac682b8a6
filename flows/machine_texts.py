"""The texts that every machine with this program has: a corpus without network.

In: Python's standard library, the distributions installed beside us and the repository's samples. Out: files
in a folder, one subfolder a source: stdlib (code; where it is small, libraries too), docs (book), packages (web),
prose, web, code and chats (the samples). The same bytes for the same Python and the same distributions: nothing here
asks a clock, and everything is sorted. Nothing is imported or run to be read; docstrings are taken from source text.

docs/topics/<topic>.txt      a topic of Python's help
docs/modules/<module>.txt    a module's docstrings, each under the dotted name of what it documents
packages/descriptions.jsonl  {"text", "url", "package", "version"}: the README of a distribution
packages/licences.jsonl      the same and "file": a licence, notice or list of authors; many are nearly equal
"""

from __future__ import annotations

import ast
import json
import re
import shutil
import sysconfig
import warnings
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from flows.found import Found, find_sources

STDLIB_BYTES = 16_000_000
WORTH_FILLING = 1_000_000
LICENCE_BYTES = 200_000
APART = frozenset(["site-packages", "dist-packages", "pydoc_data", "__pycache__"])
TESTS = frozenset(["test", "tests", "idle_test"])
LEGAL = re.compile(r"(licen[cs]e|copying|notice|authors)", re.IGNORECASE)
PROSE = frozenset(["", ".md", ".rst", ".txt", ".apache", ".apache2", ".bsd", ".mit", ".psf"])
SAMPLES = ("chats", "code", "prose", "web")

Say = Callable[[str], None]


def lay_machine_texts(sources: Path, samples: Path, root: Path, say: Say) -> list[Found]:
    """Write all sources into the folder `sources` and say what lies there, sorted by path.

    samples: the repository's folder of that name. root: the corpus. say: is told what is being done.
    """
    say("copying Python's standard library")
    texts = dict(standard_library())
    _write(sources / "stdlib", texts.items())
    _write(sources / "libraries", libraries(STDLIB_BYTES - sum(len(text.encode()) for text in texts.values())))
    say("gathering documentation")
    _write(sources / "docs", documentation(texts))
    say("gathering what installed packages say of themselves")
    _write(sources / "packages", packages())
    for name in SAMPLES:
        shutil.copytree(samples / name, sources / name, dirs_exist_ok=True, copy_function=shutil.copyfile)
    return find_sources(sources, root)


def standard_library(most: int = STDLIB_BYTES) -> Iterator[tuple[str, str]]:
    """(path, text) of the standard library's programs, its tests last, up to `most` bytes.

    What is not UTF-8 is left out.
    """
    home = Path(sysconfig.get_paths()["stdlib"])
    paths = [path for path in home.rglob("*.py") if not APART & set(path.relative_to(home).parts)]
    room = most
    for path in sorted(paths, key=lambda path: (_is_test(path, home), path.relative_to(home).as_posix())):
        size = path.stat().st_size
        text = _utf8(path) if size <= room else None
        if text:
            room -= size
            yield path.relative_to(home).as_posix(), text


def libraries(most: int) -> Iterator[tuple[str, str]]:
    """(path, text) of programs of the installed distributions, up to `most` bytes, where the standard library falls
    that far short: some systems' Python comes without its tests, a third of its bytes.
    """
    if most < WORTH_FILLING:
        return
    for item in _installed():
        for file in sorted(item.files or (), key=str):
            path = Path(str(item.locate_file(file)))
            if path.suffix == ".py" and ".." not in file.parts and path.is_file() and path.stat().st_size <= most:
                text = _utf8(path)
                most -= path.stat().st_size if text else 0
                if text:
                    yield file.as_posix(), text


def documentation(programs: dict[str, str]) -> Iterator[tuple[str, str]]:
    """(path, text) of the topics of Python's help, and of the docstrings of those of `programs` that test
    nothing.
    """
    for topic, text in sorted(_topics().items()):
        yield f"topics/{topic}.txt", text.strip() + "\n"
    for path, program in sorted(programs.items()):
        if not TESTS & set(Path(path).parts):
            module = re.sub(r"(/__init__)?\.py$", "", path).replace("/", ".")
            text = "\n\n".join(_docstrings(module, program))
            if text:
                yield f"modules/{module}.txt", text + "\n"


def packages() -> Iterator[tuple[str, str]]:
    """(path, text) of two files of JSON lines: descriptions and licences of installed distributions."""
    installed = _installed()
    yield "descriptions.jsonl", _jsonl(_description(item) for item in installed)
    yield "licences.jsonl", _jsonl(record for item in installed for record in _licences(item))


def _installed() -> list[metadata.Distribution]:
    found = {_identity(item): item for item in metadata.distributions() if item.metadata["Name"] != "gristmill"}
    return [found[key] for key in sorted(found)]


def _write(folder: Path, texts: Iterable[tuple[str, str]]) -> None:
    for name, text in texts:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")


def _is_test(path: Path, home: Path) -> bool:
    return bool(TESTS & set(path.relative_to(home).parts))


def _utf8(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _topics() -> dict[str, str]:
    from pydoc_data.topics import topics  # 0.5 MB that nothing else needs

    return dict(topics)


def _docstrings(module: str, program: str) -> Iterator[str]:
    """Each docstring under its dotted name, in the order of the file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # old programs hold escapes that newer Pythons warn of
        try:
            tree = ast.parse(program)
        except (SyntaxError, ValueError):
            return
    yield from _documented(module, tree)


def _documented(name: str, node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    text = ast.get_docstring(node)
    if text:
        yield f"{name}\n\n{text}"
    for child in node.body:
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _documented(f"{name}.{child.name}", child)


def _identity(item: metadata.Distribution) -> tuple[str, str]:
    return item.metadata["Name"].lower(), item.version


def _description(item: metadata.Distribution) -> dict[str, Any]:
    text = item.metadata.json.get("description") or ""
    return {"text": text, **_origin(item)}


def _licences(item: metadata.Distribution) -> Iterator[dict[str, Any]]:
    for file in sorted(item.files or [], key=str):
        if LEGAL.match(file.name) and Path(file.name).suffix.lower() in PROSE:
            path = Path(str(file.locate()))
            text = _utf8(path) if path.is_file() and path.stat().st_size <= LICENCE_BYTES else None
            yield {"text": text or "", "file": str(file), **_origin(item)}


def _origin(item: metadata.Distribution) -> dict[str, Any]:
    facts = item.metadata.json
    pages = [page.partition(",")[2].strip() for page in facts.get("project_url", [])]
    home = facts.get("home_page") or next(iter(pages), None)
    return {"url": home, "package": item.metadata["Name"], "version": item.version}


def _jsonl(records: Iterable[dict[str, Any]]) -> str:
    """A line for each record that has text; lone surrogates, which old metadata hold, are replaced."""
    lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in records if record["text"].strip()]
    return "".join(lines).encode("utf-8", "replace").decode("utf-8")
