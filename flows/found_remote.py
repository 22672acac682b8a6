"""Which sources lie behind a URL, and of which kind each seems to be.

In: the URL of a folder or file. Out: a Found for each source, by the rules of flows.found. It reads a listing and, of
the first files of records, what flows.sampled looks at: files up to WHOLE_BYTES whole, of larger JSON Lines the head;
of other large files nothing is said and no mapping is written.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from flows.found import ABOUT, Found, found_of, in_known_formats, is_loose_text, refuse_unknown, stem_of
from flows.sampled import FILES, Sample, is_of_records, sample
from tasks.remote import Remote
from tasks.sources import format_of
from tasks.tags import Facts

WHOLE_BYTES = 64 << 20
HEAD_BYTES = 8 << 20


def find_remote(url: str) -> list[Found]:
    """The sources behind `url`, sorted by path. Options of its storage come from the environment.

    Raises SourceError where there is nothing to read, ParamsError for a URL that may not stand in params.yaml.
    """
    remote = Remote(url.rstrip("/"), {}, "--from")
    remote.refuse()
    listed = {path: facts for path, facts in remote.listed().items() if in_known_formats(path)}
    found: list[Found] = []
    for place, paths in _places(remote, list(listed)):
        where = "/".join([remote.url, *([place] if place else [])])
        below = {path: path.removeprefix(f"{place}/") if path != place else PurePosixPath(path).name for path in paths}
        sizes = {below[path]: max(0, listed[path].size) for path in paths}
        with tempfile.TemporaryDirectory() as folder:
            seen = _sampled(remote, {path: listed[path] for path in paths}, below, Path(folder))
        name = PurePosixPath(where).name
        stem = name.split(".")[0] if list(sizes) == [name] else name
        found.append(found_of(stem, where, sizes, seen, {item.name for item in found}))
    refuse_unknown(remote.said, found)
    return found


def _places(remote: Remote, paths: list[str]) -> Iterator[tuple[str, list[str]]]:
    """(what lies right below the URL, "" for the URL itself; its files of known formats)."""
    if paths == [PurePosixPath(remote.url).name]:  # the URL is a file's
        yield "", paths
        return
    groups: dict[str, list[str]] = {}
    for path in paths:
        groups.setdefault(path.split("/")[0], []).append(path)
    folders = {name for name, members in groups.items() if members != [name]}
    if not folders and any(map(is_loose_text, groups)):
        yield "", paths
        return
    for name, members in sorted(groups.items()):
        if name in folders or not folders or stem_of(name) not in ABOUT:
            yield name, members


def _sampled(remote: Remote, files: Mapping[str, Facts], below: Mapping[str, str], folder: Path) -> Sample:
    """What the records of a source look like."""
    held = [path for path in sorted(files) if is_of_records(path)]
    fetched = {}
    for number, path in enumerate(held[:FILES]):
        target = folder / str(number)
        if _fetch(remote, path, files[path].size, target):
            fetched[below[path]] = target
    seen = sample(fetched)
    seen.whole = len(fetched) == len(held)
    return seen


def _fetch(remote: Remote, path: str, size: int, target: Path) -> bool:
    """Whether `target` now holds the file, or whole lines of its head."""
    head = format_of(path, "web") == "jsonl" and not 0 <= size <= WHOLE_BYTES
    if size > WHOLE_BYTES and not head:
        return False
    held = 0
    with target.open("wb") as out:
        for block in remote.blocks(path, size):
            held += out.write(block)
            if held > (HEAD_BYTES if head else WHOLE_BYTES):
                break
    if head and held > HEAD_BYTES:
        data = target.read_bytes()
        target.write_bytes(data[: data.rfind(b"\n") + 1])
    return head or held <= WHOLE_BYTES
