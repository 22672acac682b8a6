"""The schedule of a training run: mixture.json, the quotas of a period and the layout of its positions.

In: weights of each stage and the number of sequences of each source. Out: integers that say which source
position p reads and which of its sequences. It does not shuffle within a source (training.order does) and
knows no token. Everything is decided in integers and exact fractions, so every machine lays the same
schedule.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from tasks.artifacts.canonical import canonical

FORMAT = 1
PERIOD_MAX = 65_536
POSITIONS_MAX = 1 << 62
SPLIT_NAMES = ("train", "validation", "test")


class ScheduleError(ValueError):
    """Weights, stages or a mixture.json that cannot be followed; the message holds value, limit and mend."""


@dataclass(frozen=True)
class Shard:
    """name: file name without suffix; sequences: how many it holds; tokens: ids in its .bin."""

    name: str
    sequences: int
    tokens: int


@dataclass(frozen=True)
class Split:
    """One folder <source>/<split> of data/shard. content: see folder_content; shards: in reading order."""

    content: str
    sequences: int
    tokens: int
    shards: tuple[Shard, ...]


@dataclass(frozen=True)
class Stage:
    """From position `start` on, `quotas` positions of each period go to each source.

    cursors: sequences of every source that earlier stages consumed; a source left out stands only here. planned: each
    source's share by its weight; achieved: by its quota.
    """

    start: int
    weights: dict[str, float]
    quotas: dict[str, int]
    cursors: dict[str, int]
    planned: dict[str, float]
    achieved: dict[str, float]


@dataclass(frozen=True)
class Extent:
    """How far a stage was planned to go when the mixture was made; nothing is read by it.

    positions: of the last stage those of its tokens or epochs, where it has none as many as there are sequences.
    epochs: passes over each source from position 0 to the end of the stage.
    """

    name: str
    positions: int
    epochs: dict[str, float]


@dataclass(frozen=True)
class Schedule:
    """The content of mixture.json. sources: name -> split -> Split; dtype: "uint16" or "int32"; extents: one a stage,
    none in a mixture of an earlier version."""

    tokens_per_sequence: int
    vocab_size: int
    dtype: str
    eos_id: int
    tokenizer: dict[str, str]
    seed: int
    period: int
    sources: dict[str, dict[str, Split]]
    stages: tuple[Stage, ...]
    extents: tuple[Extent, ...] = ()

    def to_bytes(self) -> bytes:
        """Canonical JSON in UTF-8: keys sorted, no spaces, one line feed at the end."""
        return canonical({"format": FORMAT, **asdict(self)}) + b"\n"

    @classmethod
    def read(cls, path: Path) -> Schedule:
        """Read and check a mixture.json; raises ScheduleError naming the file and what does not hold."""
        try:
            content = json.loads(path.read_bytes())
            if content.pop("format") != FORMAT:
                raise ScheduleError(f"its format is not {FORMAT}; read it with the version that wrote it")
            extents = tuple(Extent(**extent) for extent in content.get("extents", ()))
            held = {"sources": _sources(content), "stages": _stages(content), "extents": extents}
            schedule = cls(**{**content, **held})
            _check(schedule)
        except (AttributeError, KeyError, TypeError, ValueError) as problem:
            raise ScheduleError(f"{path} is no mixture that can be followed: {problem}") from problem
        return schedule


def folder_content(digests: Mapping[str, str]) -> str:
    """64 hex over the (name, SHA-256) lines of a shard folder: what `sha256sum * | sha256sum` prints."""
    lines = "".join(f"{digests[name]}  {name}\n" for name in sorted(digests))
    return hashlib.sha256(lines.encode()).hexdigest()


def lay_quotas(weights: Mapping[str, float], period: int) -> dict[str, int]:
    """Positions of a period for each source, by largest remainder (Hamilton's method) in exact fractions.

    Weights are any positive numbers, taken as the decimals they are written as; only their ratio counts. Of
    equal remainders the source first in the alphabet is served first. The quotas sum to `period`.
    Raises ScheduleError for a weight that is no positive number or that would round to no position at all.
    """
    if not 1 <= period <= PERIOD_MAX:
        raise ScheduleError(f"period is {period}; it must lie between 1 and {PERIOD_MAX}")
    exact = {name: _fraction(name, weights[name]) for name in sorted(weights)}
    if not exact:
        raise ScheduleError("a stage has no weights; give at least one source a positive weight")
    total = sum(exact.values())
    shares = {name: weight * period / total for name, weight in exact.items()}
    quotas = {name: math.floor(share) for name, share in shares.items()}
    by_remainder = sorted(shares, key=lambda name: (quotas[name] - shares[name], name))
    for name in by_remainder[: period - sum(quotas.values())]:
        quotas[name] += 1
    for name, quota in quotas.items():
        if quota == 0:
            raise ScheduleError(
                f"source {name!r} has weight {weights[name]} of {float(total):.6g}, which is "
                f"{float(shares[name]):.3g} of {period} positions and rounds to none; raise it to "
                f"{float(total / period):.2g} or more, raise the period (limit {PERIOD_MAX}) or leave it out"
            )
    return quotas


def lay_period(quotas: Sequence[int]) -> np.ndarray:
    """Which source each position of a period reads: uint16[period], source i exactly quotas[i] times.

    Tijdeman's rule for the chairman assignment problem (R. Tijdeman, Discrete Mathematics 32, 1980): of k
    sources, source i has had n*q/P positions after any n, give or take 1 - 1/(2k-2). The rule is written
    here as unit jobs with release times and deadlines, served by earliest deadline, which is optimal. The
    j-th job of a source may run from position (j - 1 + 1/(2k-2)) * P/q on and must have run by (j -
    1/(2k-2)) * P/q. O(P log P): 0.1 s for 65,536 positions.
    """
    period, bound = sum(quotas), 2 * len(quotas) - 2
    table = np.zeros(period, np.uint16)
    if len(quotas) < 2:
        return table
    jobs = sorted(
        (
            -(-(done * bound + 1) * period // (bound * quota)),
            (done * bound + bound - 1) * period // (bound * quota),
            i,
        )
        for i, quota in enumerate(quotas)
        for done in range(quota)
    )
    waiting: list[tuple[int, int]] = []
    released = 0
    for position in range(period):
        while released < period and jobs[released][0] <= position + 1:
            heapq.heappush(waiting, jobs[released][1:])
            released += 1
        table[position] = heapq.heappop(waiting)[1]
    return table


def rank_in_period(table: np.ndarray) -> np.ndarray:
    """How often the source at each position stood before it in the period: int64[period]."""
    ranks = np.empty(len(table), np.int64)
    for source in np.unique(table):
        places = np.flatnonzero(table == source)
        ranks[places] = np.arange(len(places))
    return ranks


def lay_stages(
    stages: Sequence[tuple[int, Mapping[str, float]]], period: int, sources: Collection[str]
) -> tuple[Stage, ...]:
    """Quotas and cursors of every stage: a pure function of (start, weights) pairs, in positions.

    Adding a stage at the end changes no earlier stage. Raises ScheduleError for starts that do not ascend
    from 0 and for a weight of a source that is not in `sources`.
    """
    _check_starts([start for start, _ in stages])
    laid: list[Stage] = []
    cursors = dict.fromkeys(sorted(sources), 0)
    for start, weights in stages:
        for name in sorted(set(weights) - set(sources)):
            raise ScheduleError(
                f"the stage at {start} gives weight {weights[name]} to {name!r}, which has no sequences to "
                f"train on (sources that have: {', '.join(sorted(sources)) or 'none'}); take it out of the "
                f"weights or see which step emptied it"
            )
        if laid:
            cursors = cursors_after(laid[-1], start - laid[-1].start)
        laid.append(_stage(start, weights, period, cursors))
    return tuple(laid)


def _stage(start: int, weights: Mapping[str, float], period: int, cursors: Mapping[str, int]) -> Stage:
    quotas = lay_quotas(weights, period)
    exact = {name: _fraction(name, weights[name]) for name in sorted(weights)}
    planned = {name: float(weight / sum(exact.values())) for name, weight in exact.items()}
    achieved = {name: quota / period for name, quota in quotas.items()}
    return Stage(start, dict(sorted(weights.items())), quotas, dict(cursors), planned, achieved)


def cursors_after(stage: Stage, positions: int) -> dict[str, int]:
    """Sequences of each source consumed once `positions` positions of the stage have been read."""
    names = sorted(stage.quotas)
    quotas = [stage.quotas[name] for name in names]
    whole, rest = divmod(positions, sum(quotas))
    begun = np.bincount(lay_period(quotas)[:rest], minlength=len(names))
    drawn = {name: whole * quotas[i] + int(begun[i]) for i, name in enumerate(names)}
    return {name: cursor + drawn.get(name, 0) for name, cursor in stage.cursors.items()}


def _fraction(name: str, weight: object) -> Fraction:
    """The weight as the decimal it is written as: 0.1 is one tenth."""
    is_number = isinstance(weight, int | float) and not isinstance(weight, bool) and math.isfinite(weight)
    if not is_number or Fraction(str(weight)) <= 0:
        raise ScheduleError(
            f"source {name!r} has weight {weight!r}; a weight is a number above 0: mend it or leave it out"
        )
    return Fraction(str(weight))


def _check_starts(starts: Sequence[int]) -> None:
    if not starts or starts[0] != 0:
        raise ScheduleError(f"the first stage starts at {starts[0] if starts else None}; it must start at 0")
    for before, after in itertools.pairwise(starts):
        if not before < after <= POSITIONS_MAX:
            raise ScheduleError(f"a stage starts at {after} after one at {before}; starts must ascend")


def _sources(content: dict[str, Any]) -> dict[str, dict[str, Split]]:
    return {
        name: {
            split: Split(**{**folder, "shards": tuple(Shard(**shard) for shard in folder["shards"])})
            for split, folder in splits.items()
        }
        for name, splits in content["sources"].items()
    }


def _stages(content: dict[str, Any]) -> tuple[Stage, ...]:
    return tuple(Stage(**stage) for stage in content["stages"])


def _check(schedule: Schedule) -> None:
    """What a schedule promises: counts that add up, and stages that its weights give."""
    for name, splits in schedule.sources.items():
        for split, folder in splits.items():
            held = sum(shard.sequences for shard in folder.shards)
            if split not in SPLIT_NAMES or folder.sequences != held:
                raise ScheduleError(f"{name}/{split} says {folder.sequences} sequences, its shards say {held}")
    trained = sources_to_train(schedule.sources)
    stages = [(stage.start, stage.weights) for stage in schedule.stages]
    if lay_stages(stages, schedule.period, trained) != schedule.stages:
        raise ScheduleError("its quotas or cursors are not those that its weights give; build mix again")


def sources_to_train(sources: Mapping[str, Mapping[str, Split]]) -> list[str]:
    """Names of the sources that have sequences to train on, sorted."""
    return [name for name, splits in sorted(sources.items()) if "train" in splits and splits["train"].sequences]
