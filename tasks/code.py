"""The digest of a function's code: of its module and of every first-party module that it can reach by imports.

Comments, docstrings and blank space are blanked first, so that only what can change bytes changes the digest. Imports
are followed in the source text (also those inside functions), never by executing it. Not followed: blocks under
`if TYPE_CHECKING`; a package's __init__ unless it is imported by name, since it only wires; and the modules in
NOT_FOLLOWED, which shape no byte: two of declarations, and one that hands over files by their digest. A module that
reads a data file of ours names it in a constant DATA_FILES = ("name.json",), relative to itself.
"""

from __future__ import annotations

import ast
import hashlib
import io
import tokenize
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from tasks.artifacts.canonical import digest

FIRST_PARTY = "tasks"
NOT_FOLLOWED = frozenset({"tasks.step", "tasks.errors", "tasks.homes"})
HOUSE = Path(__file__).parent.parent


def function_digest(function: str) -> str:
    """64 hex for "module:function": digest of [module, blanked source] of every module in its import closure.

    Of a function in a module of declarations (NOT_FOLLOWED) it is the function's own source.
    """
    module, _, name = function.partition(":")
    if module in NOT_FOLLOWED:
        return digest([function, _own_source(module, name)])
    return digest([[name, _source_digest(name)] for name in modules_of(module)])


def _own_source(module: str, name: str) -> str:
    source = _path(module).read_text(encoding="utf-8")
    defined = (node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef) and node.name == name)
    return blanked(ast.get_source_segment(source, next(defined)) or "")


def modules_of(module: str) -> list[str]:
    """The first-party modules that `module` reaches, itself included, sorted."""
    reached: set[str] = set()
    ahead = [module]
    while ahead:
        name = ahead.pop()
        if name not in reached and name not in NOT_FOLLOWED:
            reached.add(name)
            ahead.extend(_imports(name, _stamp(name)))
    return sorted(reached)


def blanked(source: str) -> str:
    """`source` without comments, docstrings, blank lines and trailing spaces."""
    lines = source.splitlines(keepends=True)
    for start, stop in sorted([*_comments(source), *_docstrings(source)], reverse=True):
        _blank(lines, start, stop)
    return "\n".join(line.rstrip() for line in "".join(lines).split("\n") if line.strip())


def _source_digest(module: str) -> str:
    stamp = _stamp(module)
    data = [(_path(module).parent / name).read_bytes() for name in _blanked_of(module, stamp)[1]]
    return _digest_of(module, stamp, tuple(hashlib.sha256(item).hexdigest() for item in data))


@lru_cache(maxsize=1024)
def _digest_of(module: str, stamp: tuple[int, int], data: tuple[str, ...]) -> str:
    return digest([_blanked_of(module, stamp)[0], list(data)])


@lru_cache(maxsize=1024)
def _blanked_of(module: str, stamp: tuple[int, int]) -> tuple[str, tuple[str, ...]]:
    """The blanked source and the names of its data files; `stamp` renews the memory after an edit."""
    source = _path(module).read_text(encoding="utf-8")
    return blanked(source), tuple(data_files(source))


def _path(module: str) -> Path:
    path = HOUSE.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _stamp(module: str) -> tuple[int, int]:
    facts = _path(module).stat()
    return facts.st_mtime_ns, facts.st_size


@lru_cache(maxsize=1024)
def _imports(module: str, stamp: tuple[int, int]) -> tuple[str, ...]:
    """First-party modules that `module` imports; `stamp` renews the memory after an edit."""
    path = _path(module)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return tuple(sorted({name for node in _run_time(tree) for name in _named(node, package)}))


def _run_time(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node but those under `if TYPE_CHECKING`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        yield node
        yield from _run_time(node)


def _named(node: ast.AST, package: str) -> Iterator[str]:
    """Modules of ours that an import statement names."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if _ours(alias.name))
    elif isinstance(node, ast.ImportFrom):
        base = _absolute(node, package)
        if _ours(base):
            for alias in node.names:
                submodule = f"{base}.{alias.name}"
                yield submodule if _exists(submodule) else base


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    above = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join([*above, *([node.module] if node.module else [])])


def _ours(module: str) -> bool:
    return module == FIRST_PARTY or module.startswith(FIRST_PARTY + ".")


def _exists(module: str) -> bool:
    return _path(module).is_file()


def data_files(source: str) -> list[str]:
    """The names in a module's DATA_FILES, in order."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and any(_isdata_files(target) for target in node.targets):
            return [str(name) for name in ast.literal_eval(node.value)]
    return []


def _isdata_files(target: ast.expr) -> bool:
    return isinstance(target, ast.Name) and target.id == "DATA_FILES"


Place = tuple[int, int]


def _comments(source: str) -> Iterator[tuple[Place, Place]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start, token.end


def _docstrings(source: str) -> Iterator[tuple[Place, Place]]:
    """(line, character) spans of docstrings, and of bare strings that stand as statements (comments on names)."""
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        for item in body if isinstance(body, list) else []:
            if (
                isinstance(item, ast.Expr)
                and isinstance(item.value, ast.Constant)
                and isinstance(item.value.value, str)
            ):
                yield (
                    _place(lines, item.lineno, item.col_offset),
                    _place(lines, item.end_lineno or 0, item.end_col_offset or 0),
                )


def _place(lines: list[str], line: int, column: int) -> Place:
    """ast counts columns in UTF-8 bytes; we count characters."""
    return line, len(lines[line - 1].encode()[:column].decode())


def _blank(lines: list[str], start: Place, stop: Place) -> None:
    (first, left), (last, right) = start, stop
    tail = lines[last - 1][right:]
    lines[first - 1] = lines[first - 1][:left] + tail
    for line in range(first, last):
        lines[line] = ""
