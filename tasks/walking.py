"""The files below a local source, in the order of their names, and which of a source's files it leaves out.

In: a folder or a file. Out: relative paths, "/" between folders, sorted by code point. Passed over are names that begin
with a dot, __pycache__, links to what lies in the same source, and whatever is no regular file. It reads no file.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tasks.errors import ParamsError, SourceError


def walk(root: Path, named: str) -> Iterator[str]:
    """Paths of the files below `root`, relative, sorted by code point; `named` stands for the source in
    errors.
    """
    if root.is_file():
        return iter([root.name])
    found: list[str] = []
    _add_below(str(root), root, "", named, found)
    return iter(sorted(found))


def without(paths: Sequence[str], patterns: Any, named: str) -> tuple[list[str], dict[str, int]]:
    """The paths that no pattern means, and how many each left out; a path counts for the first pattern that means it.

    patterns: as shells have them, on the path in the source, where * crosses folders too; anything that is no list of
    texts is a ParamsError.
    """
    if not isinstance(patterns, list) or not all(isinstance(item, str) for item in patterns):
        raise ParamsError(f"params.yaml: leave_out of {named} is {patterns!r}", 'give a list, as ["*.tmp", "old/*"]')
    first = {path: next((one for one in patterns if fnmatchcase(path, one)), None) for path in paths}
    counts = Counter(pattern for pattern in first.values() if pattern is not None)
    return [path for path in paths if first[path] is None], {pattern: counts[pattern] for pattern in patterns}


def _add_below(folder: str, root: Path, prefix: str, named: str, found: list[str]) -> None:
    """Put the paths below a folder to `found`, each with `prefix` before it."""
    try:
        with os.scandir(folder) as there:
            entries = [entry for entry in there if _is_named(entry.name, named)]
    except OSError as error:
        raise SourceError(
            f"{named} cannot be read: {error.strerror}: {error.filename}", "give the right to read it"
        ) from error
    for entry in entries:
        if entry.is_symlink():
            _check_link(Path(entry.path), root, named)
        elif entry.is_dir(follow_symlinks=False):
            _add_below(entry.path, root, f"{prefix}{entry.name}/", named, found)
        elif entry.is_file(follow_symlinks=False):
            found.append(prefix + entry.name)


def _is_named(name: str, named: str) -> bool:
    """Whether a name is one of those that are looked at."""
    if name.startswith(".") or name == "__pycache__":
        return False
    if name.isascii():
        return True
    try:
        name.encode()
    except UnicodeEncodeError:
        raise SourceError(f"{named} holds a file whose name is not UTF-8: {name!a}", "rename it") from None
    return True


def _check_link(path: Path, root: Path, named: str) -> None:
    """A link is passed over; raises SourceError where it leads to nothing or out of the source."""
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise SourceError(f"{named} holds {path.relative_to(root)}, a link to nothing", "remove it") from error
    if not target.is_relative_to(root):
        raise SourceError(
            f"{named} holds {path.relative_to(root)}, a link out of the source",
            "put the file itself there, or name its folder as a source of its own",
        )
