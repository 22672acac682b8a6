"""What another threshold of dedup would remove, with nothing built and hardly a text read.

In: a project whose dedup stands, and thresholds as "dedup.threshold=0.7..0.9" or "dedup.threshold.code=0.9". Out: for
each threshold the documents removed, by source, and examples of stored pairs near it. It writes nothing.

dedup's own rule decides, in rank order over the stored sketches; only the similarity of two candidates is what their
signatures say (128 values: a standard error of 0.035 at 0.8, against no error in a build). The line of the standing
thresholds bears the true counts beside the estimate, so that one sees how far to trust it. Examples are stored pairs
with their exact similarities; their texts alone are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa

from tasks.artifacts.manifest import Manifest
from tasks.artifacts.tables import read_table
from tasks.artifacts.verdicts import DROP, GONE
from tasks.dedup import STEP, DedupParams
from tasks.dedup.documents import Documents, rank_documents
from tasks.dedup.greedy import STAYS, Sets, choose
from tasks.dedup.matching import Buckets, match_documents
from tasks.dedup.places import outside_name
from tasks.dedup.planning import releases
from tasks.dedup.scratch import Scratch, scratch_of
from tasks.dedup.shinglesets import each_signature
from tasks.dedup.verdicts import thresholds_between
from tasks.errors import GristmillError, ParamsError
from tasks.project import Project
from tasks.sources import scan
from tasks.step import Reads
from tasks.text.recall import candidate_probability

PREFIX = "dedup.threshold"
CURVE = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9)
STEP_WIDTH, EXAMPLES, SHOWN_CHARACTERS = 0.05, 3, 120


@dataclass(frozen=True)
class Removed:
    """Documents of a source at one threshold."""

    source: str
    documents: int
    removed: int


@dataclass(frozen=True)
class Pair:
    """Two stored documents and their exact similarity."""

    similarity: float
    part: str
    row: int
    other_part: str
    other_row: int
    text: str
    other_text: str


@dataclass(frozen=True)
class Line:
    """threshold: by kind. removed: an estimate, or what stands where `measured`. pairs: stored ones near it."""

    threshold: dict[str, float]
    measured: bool
    sources: list[Removed]
    pairs: list[Pair]

    @property
    def of_kinds(self) -> str:
        """The thresholds as one reads them: 0.8, or 0.8 (code 0.85)."""
        common, _ = Counter(self.threshold.values()).most_common(1)[0]
        others = [f"{kind} {value:g}" for kind, value in sorted(self.threshold.items()) if value != common]
        return f"{common:g}" + (f" ({', '.join(others)})" if others else "")

    @property
    def removed(self) -> int:
        """Documents of all sources."""
        return sum(one.removed for one in self.sources)


@dataclass(frozen=True)
class Stored:
    """The tables that stand, as dedup's functions ask for them."""

    project: Project
    names: tuple[str, ...]
    spec: dict[str, Any]
    outside: dict[str, str]

    def units(self, _folder: str) -> list[str]:
        return list(self.names)

    def table(self, folder: str, columns: Sequence[str] | None = None, unit: str | None = None) -> pa.Table:
        if folder in self.outside:
            return read_table(Path(self.outside[folder]), columns)
        step, _, name = folder.partition("/")
        return read_table(self.project.artifact(step) / name / f"{unit}.parquet", columns)


def what_if(project: Project, spelled: Sequence[str]) -> list[Line]:
    """The standing thresholds as measured and as estimated, then each threshold asked for.

    Raises ParamsError for what is no threshold, GristmillError where dedup does not stand.
    """
    params = project.params(STEP)
    assert isinstance(params, DedupParams)  # noqa: S101
    asked = list(_thresholds(params, spelled))
    manifest = Manifest.read(project.artifact(STEP.name))
    if manifest is None:
        raise GristmillError("dedup does not stand, so there are no sketches", "gristmill build --until dedup")
    settings = {entry.setting for entry in manifest.folders["sketches"].values()}
    against, outside = releases(project.root, list(scan(project, ["against"])["against"]), settings)
    stored = Stored(project, tuple(manifest.folders["verdicts"]), {"against": against}, outside)
    pairs = pa.concat_tables(_pairs_of(stored))
    standing = {str(kind): value for kind, value in params.threshold.items()}
    lines = [Line(standing, True, _standing(stored), [])]
    reads = cast(Reads, stored)
    with scratch_of(reads) as scratch:
        documents = rank_documents(reads, params, scratch)
        buckets = match_documents(reads, documents, params.bands, params.bucket_survivors_max, scratch)
        sets = _signatures(reads, params, documents, scratch)
        for threshold in (standing, *asked):
            removed = _estimate(documents, buckets, sets, threshold, scratch)
            lines.append(Line(threshold, False, removed, _near(stored, pairs, min(threshold.values()))))
    return lines


def recall_curve(project: Project) -> str:
    """What share of the pairs at a similarity the bands of the recipe make candidates, in a sentence."""
    params = project.params(STEP)
    assert isinstance(params, DedupParams)  # noqa: S101
    shares = [f"{candidate_probability(at, params.bands, params.rows):.4f} of the pairs at {at}" for at in CURVE]
    return f"{params.bands} bands of {params.rows} rows compare {', '.join(shares)}"


def _thresholds(params: DedupParams, spelled: Sequence[str]) -> Iterator[dict[str, float]]:
    for item in spelled:
        where, _, written = item.partition("=")
        kind = where.removeprefix(PREFIX).removeprefix(".")
        first, dots, last = written.partition("..")
        try:
            least, most = float(first), float(last if dots else first)
        except ValueError:
            raise ParamsError(f"{item!r} is no threshold", f"write as {PREFIX}=0.7..0.9 or {PREFIX}.code=0.9") from None
        if (kind and kind not in params.threshold) or not 0 < least <= most <= 1:
            raise ParamsError(
                f"{item!r}: a threshold of {', '.join(sorted(params.threshold))} lies between 0 and 1",
                f"write as {PREFIX}=0.7..0.9 or {PREFIX}.code=0.9",
            )
        for value in np.round(np.arange(least, most + STEP_WIDTH / 2, STEP_WIDTH), 4).tolist():
            yield {name: value if kind in ("", name) else old for name, old in sorted(params.threshold.items())}


def _signatures(reads: Reads, params: DedupParams, documents: Documents, scratch: Scratch) -> Sets:
    """Each text's signature as a set of (place, value): two such sets of 128 share as many as the signatures agree."""
    count = len(documents.ranks_N)
    hashes_NP = scratch.array("signatures", np.uint64, 128 * count).reshape(count, 128)
    for numbers, values in each_signature(reads, params, documents):
        hashes_NP[numbers] = values | (np.arange(128, dtype=np.uint64) << np.uint64(32))
        scratch.relax()
    return Sets(hashes_NP.ravel(), np.arange(count) * 128, np.full(count, 128, np.int32))


def _estimate(
    documents: Documents, buckets: Buckets, sets: Sets, threshold: dict[str, float], scratch: Scratch
) -> list[Removed]:
    """m of 128 agreeing estimate m/128, while the sets' own similarity is m/(256 - m): so t becomes t/(2 - t)."""
    between = thresholds_between(threshold)
    scaled = between / (2 - between)
    choice = choose(documents, buckets, sets, scaled, float(scaled.min()), scratch)
    came: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    for at, place in enumerate(documents.places):
        if not place.release:
            ranks = documents.ranks_N[documents.numbers(at)]
            came[place.unit.split("-")[0]] += len(ranks)
            lost[place.unit.split("-")[0]] += int((choice.survivors_R[ranks] != STAYS).sum())
    return [Removed(source, came[source], lost[source]) for source in sorted(came)]


def _standing(stored: Stored) -> list[Removed]:
    came: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    for unit in stored.names:
        verdicts = Counter(stored.table("dedup/verdicts", ["verdict"], unit).column("verdict").to_pylist())
        came[unit.split("-")[0]] += sum(verdicts.values()) - verdicts[GONE]
        lost[unit.split("-")[0]] += verdicts[DROP]
    return [Removed(source, came[source], lost[source]) for source in sorted(came)]


def _pairs_of(stored: Stored) -> list[pa.Table]:
    tables = []
    for unit in stored.names:
        table = stored.table("dedup/pairs", unit=unit)
        tables.append(table.append_column("part", pa.array([unit] * table.num_rows, pa.string())))
    return tables


def _near(stored: Stored, pairs: pa.Table, threshold: float) -> list[Pair]:
    """The stored pairs whose similarity lies nearest."""
    distances = np.abs(pairs.column("similarity").to_numpy() - threshold)
    chosen = np.argsort(distances, kind="stable")[:EXAMPLES]
    return [
        Pair(
            line["similarity"],
            line["part"],
            line["row"],
            line["other_part"],
            line["other_row"],
            _head(stored, line["part"], line["row"]),
            _head(stored, line["other_part"], line["other_row"]),
        )
        for line in pairs.take(pa.array(chosen)).to_pylist()
    ]


def _head(stored: Stored, part: str, row: int) -> str:
    """The beginning of a text; part: as dedup/pairs names it, one of a release's as "<release>/<part>"."""
    release, _, unit = part.rpartition("/")
    folder = outside_name(release, "normalize/text", unit) if release else "normalize/text"
    text: str = stored.table(folder, ["text"], unit).column("text")[row].as_py()
    return " ".join(text[:SHOWN_CHARACTERS].split())
