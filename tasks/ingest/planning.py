"""What is a part: the files of each source cut into runs of units, and runs into parts by the local cut.

In: the sources of params.yaml, data/sources.json, and the larger files' records as tasks.ingest.scanning
finds them.
Out: units of work. It stands in no key: the specification of a unit says all that shapes its bytes.

A run is all files below small_file_bytes of one source, each a unit, in the order of their paths; or a larger
file, whose records are the units. Runs are cut by tasks.text.cut with window part_bytes / 2, so parts hold
part_bytes in the mean and part_bytes_max at most (but for a single unit that is larger); a run below the
window is one part. A part is named <source>-<16 hex of the SHA-256 over its units' digests>, with -2, -3 for
equals in the order of their origin, and its origin is the path and line of its first record.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import orjson

from tasks.digests import Digests, stamp_of
from tasks.errors import ParamsError
from tasks.homes import Home, room_of
from tasks.ingest.gathering import WHOLE
from tasks.ingest.how import How
from tasks.ingest.reading import Span
from tasks.ingest.records import file_unit, fold
from tasks.ingest.scanning import CHUNK, Asked, Scan, Scanner
from tasks.ingest.scans import GROUPS
from tasks.sources import format_of
from tasks.step import Folder, Plan, Unit
from tasks.text.cut import cut_points

if TYPE_CHECKING:
    from tasks.ingest import IngestParams

UNPACKED_MIN = 64 << 20
"""Bytes that a file read whole may unpack to in any case."""

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Part:
    """A part of a source. form: "files" for a run of small files, else what its records are read as."""

    name: str
    source: str
    kind: str
    form: str
    digest: str
    spans: tuple[Span, ...]
    how: How

    @property
    def origin(self) -> tuple[str, int]:
        return self.spans[0].file, self.spans[0].number

    @property
    def spec(self) -> dict[str, Any]:
        named = {"source": self.source, "kind": self.kind, "form": self.form, "digest": self.digest}
        return named | ({"how": self.how.plain} if self.how.plain else {})

    @property
    def places(self) -> list[list[Any]]:
        return [[span.file, span.form, span.start, span.stop, span.number] for span in self.spans]


def by_content(plan: Plan, folder: Folder) -> list[Unit]:
    """Units of `documents`: nothing about places in their keys."""
    return [Unit(part.name, (), part.spec, files, part.origin) for part, files in _laid(plan)]


def by_place(plan: Plan, folder: Folder) -> list[Unit]:
    """Units of `places` and `rejects`: paths, offsets and numbers stand in their keys too."""
    return [Unit(part.name, (), part.spec | {"spans": part.places}, files, part.origin) for part, files in _laid(plan)]


def take(count: int, limit: int | None, fraction: float | None) -> int:
    """How many of a source's `count` units a small run takes: the first `limit`, or that fraction, at least
    one.
    """
    wanted = count if fraction is None else math.ceil(count * fraction)
    return min(count, max(1, wanted if limit is None else min(wanted, limit)))


def _laid(plan: Plan) -> Iterator[tuple[Part, dict[str, str]]]:
    """Every part, with the file that tells a worker where its units lie."""
    scratch = plan.scratch()
    (scratch / "spans").mkdir(parents=True, exist_ok=True)
    for part, spans in parts(plan):
        file = scratch / "spans" / f"{part.name}.json"
        file.write_bytes(spans)
        yield part, {"spans": str(file)}


def _spans(plan: Plan, found: list[Part]) -> list[tuple[Part, bytes]]:
    """Each part with what that file holds."""
    scratch, homes = plan.scratch(), _homes(plan)
    same = {
        "spool": str(scratch / "spool"),
        "around": str(scratch / "around"),
        "whole_bytes_max": max(UNPACKED_MIN, 4 * plan.params.part_bytes_max),
    }
    told = ({"home": homes[part.source].plain, "spans": [list(span) for span in part.spans]} for part in found)
    return [(part, orjson.dumps(same | own)) for part, own in zip(found, told, strict=True)]


class Known(NamedTuple):
    """What was asked for, and the parts that were laid for it, each with its spans as JSON."""

    wanted: list[Any]
    parts: list[tuple[Part, bytes]]


_KNOWN: list[Known] = []
"""Those that were laid last, if any: the three folders of a build ask one after another."""


def parts(plan: Plan) -> list[tuple[Part, bytes]]:
    """Every part of every source, source by source (sorted by name), each in the order of origin; and its spans."""
    where = str(plan.root), str(plan.scratch())
    wanted = [plan.params.model_dump(mode="json"), plan.sources()["sources"], *where, plan.limit, plan.fraction]
    if not _KNOWN or _KNOWN[0].wanted != wanted or not _stand(plan, _KNOWN[0].parts):
        _KNOWN[:] = []
        _KNOWN[:] = [Known(wanted, _spans(plan, _parts(plan)))]
    return _KNOWN[0].parts


def _stand(plan: Plan, parts: list[tuple[Part, bytes]]) -> bool:
    """Whether every part's file is as it was when its records were found, and what was found is still there."""
    homes = _homes(plan)
    return all(_stands(homes[part.source], part) for part, _ in parts)


def _stands(home: Home, part: Part) -> bool:
    scan, _, _, stamp = part.spans[0].scan
    if not scan or not Path(scan).is_file() or not home.local:
        return not scan or Path(scan).is_file()
    file = Path(home.root) / part.spans[0].file
    return file.is_file() and stamp_of(file) == stamp


def _homes(plan: Plan) -> dict[str, Home]:
    """Where each source's files lie."""
    room = _room(plan)
    return {source.name: source.home(plan.root, room) for source in plan.params.sources}


def _parts(plan: Plan) -> list[Part]:
    found, state = plan.sources()["sources"], plan.root / ".gristmill"
    digests = Digests.recall(state / "stamps" / "sources.json")
    scanner = Scanner(state / "scans", plan.scratch() / "spool", digests, plan.executor())
    laid, homes = [], _homes(plan)
    for source in sorted(plan.params.sources, key=lambda source: source.name):
        runs = Runs(plan.params, source.name, source.kind, source.how, found[source.name]["files"])
        laid += runs.parts(scanner, homes[source.name], plan.limit, plan.fraction)
    if plan.limit is None and plan.fraction is None:
        scanner.forget_others()
    return laid


def _room(plan: Plan) -> int:
    """Bytes of copies of remote files that are kept."""
    try:
        return room_of(plan.section("run"))
    except ParamsError:
        return room_of(None)


@dataclass(frozen=True)
class Runs:
    """The runs of one source. files: path -> {"sha256", "bytes"}."""

    params: IngestParams
    source: str
    kind: str
    how: How
    files: Mapping[str, Mapping[str, Any]]

    def parts(self, scanner: Scanner, home: Home, limit: int | None, fraction: float | None) -> list[Part]:
        """The parts, named, in the order of origin."""
        found: list[tuple[str, str, tuple[Span, ...]]] = []
        small, large = self._sorted()
        scans = {} if limit is not None else scanner.scans([self._asked(home, path) for path in large])
        count = len(small) + sum(scan.count for scan in scans.values())
        left = limit if limit is not None else take(count, None, fraction)
        if small:
            taken = small[: max(1, left)]
            found += self._of_files(taken)
            left -= len(taken)
        for path in large:
            if left <= 0:
                break
            scan = scans[path] if path in scans else scanner.scans([self._asked(home, path)])[path]
            found += self._of_records(path, scan, left)
            left -= scan.count
        return self._named(found)

    def _sorted(self) -> tuple[list[str], list[str]]:
        below = self.params.small_file_bytes
        paths = sorted(self.files)
        return (
            [path for path in paths if self.files[path]["bytes"] < below],
            [path for path in paths if self.files[path]["bytes"] >= below],
        )

    def _form(self, path: str) -> str:
        form = format_of(path, self.kind)
        assert form is not None  # noqa: S101 - sources.json lists known formats only
        return self.how.claim(form)

    def _asked(self, home: Home, path: str) -> Asked:
        record, group = self.params.record_bytes_max, self.params.part_bytes_max
        sha256 = self.files[path]["sha256"]
        return Asked(home, path, self._form(path), sha256, self.how, self.source, record, group)

    def _cut(self, sizes: Array, digests: Array) -> Iterator[tuple[int, int]]:
        """[start, stop) of each part of a run; a run of no more than a window is one."""
        window = self.params.part_bytes // 2
        if len(sizes) > 0 and sizes.sum() <= window:
            return iter([(0, len(sizes))])
        ends = cut_points(sizes, digests, window, self.params.part_bytes_max).tolist()
        return zip([0, *ends[:-1]], ends, strict=True) if ends else iter(())

    def _of_files(self, paths: list[str]) -> Iterator[tuple[str, str, tuple[Span, ...]]]:
        facts = [self.files[path] for path in paths]
        sizes = np.array([fact["bytes"] for fact in facts], np.uint64)
        digests = np.array([int(fact["sha256"][:16], 16) for fact in facts], np.uint64)
        spans = [
            Span(path, self._form(path), fact["sha256"], 0, WHOLE, 0) for path, fact in zip(paths, facts, strict=True)
        ]
        for start, stop in self._cut(sizes, digests):
            taken = spans[start:stop]
            yield "files", fold(file_unit(span.form, span.sha256) for span in taken), tuple(taken)

    def _of_records(self, path: str, scan: Scan, most: int) -> Iterator[tuple[str, str, tuple[Span, ...]]]:
        """Parts of the first `most` records of a file."""
        form, sha256, rows = self._form(path), self.files[path]["sha256"], scan.first(most)
        digests = np.empty(len(rows), np.uint64)
        for start in range(0, len(rows), CHUNK):
            some = np.ascontiguousarray(rows["digest"][start : start + CHUNK, :8])
            digests[start : start + CHUNK] = some.view(">u8").reshape(-1)
        for start, stop in self._cut(rows["size"] + 1, digests):
            first, last = rows[start], rows[stop - 1]
            end = stop if scan.records == GROUPS else int(last["offset"] + last["size"])
            kept = (str(scan.file), start, stop, scan.stamp)
            span = Span(path, form, sha256, int(first["offset"]), end, int(first["number"]), kept)
            yield scan.records, fold([rows["digest"][start:stop].tobytes()]), (span,)

    def _named(self, found: list[tuple[str, str, tuple[Span, ...]]]) -> list[Part]:
        named, seen = [], Counter[str]()
        for form, digest, spans in sorted(found, key=lambda item: (item[2][0].file, item[2][0].number)):
            name = f"{self.source}-{digest[:16]}"
            seen[name] += 1
            name += f"-{seen[name]}" if seen[name] > 1 else ""
            named.append(Part(name, self.source, self.kind, form, digest, spans, self.how))
        return named
