"""The folder mix/mixture, the file mixture.json: the schedule of every stage over the shards that stand.

In: names, counts and digests of the shards (the unit's spec), tokenizer.json and the weights. Out: canonical
JSON, see tasks.artifacts.schedule.Schedule. A pure function of these; it opens no shard.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.artifacts.schedule import (
    Extent,
    Schedule,
    ScheduleError,
    Shard,
    Split,
    Stage,
    cursors_after,
    folder_content,
    lay_stages,
    sources_to_train,
)
from tasks.errors import ParamsError
from tasks.step import Counts, Made, Reads

if TYPE_CHECKING:
    from tasks.mix import MixParams, StageParams

TOKENIZER = "shard/tokenizer"


def make(reads: Reads, params: MixParams) -> Made:
    """mixture.json. Raises ParamsError where weights and sources do not fit, naming both."""
    known = json.loads(reads.path(TOKENIZER, ".json", "tokenizer").read_text(encoding="utf-8"))
    sources = _sources(reads.spec["shards"])
    empty = reads.spec.get("empty", [])
    stages, extents = _stages(params, sources, reads.spec["tokens_per_sequence"], empty)
    schedule = Schedule(
        tokens_per_sequence=reads.spec["tokens_per_sequence"],
        vocab_size=known["vocab_size"],
        dtype=np.dtype(known["dtype"]).name,
        eos_id=known["eos_id"],
        tokenizer={"name": reads.spec["tokenizer"], "sha256": known["sha256"]},
        seed=params.seed,
        period=params.period,
        sources=sources,
        stages=stages,
        extents=extents,
    )
    return Made({".json": schedule.to_bytes()}, _counts(schedule) | {f"empty|source={name}": 1 for name in empty})


def _sources(shards: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Split]]:
    """source -> split -> its folder, from units named <source>/<split>/<shard>."""
    units: dict[tuple[str, str], list[str]] = {}
    for unit in sorted(shards):
        source, split, _ = unit.split("/")
        units.setdefault((source, split), []).append(unit)
    sources: dict[str, dict[str, Split]] = {}
    for (source, split), own in units.items():
        laid = tuple(Shard(unit.rpartition("/")[2], *_size(shards[unit])) for unit in own)
        content = folder_content({file: sha for unit in own for file, sha in shards[unit]["files"].items()})
        counts = (sum(shard.sequences for shard in laid), sum(shard.tokens for shard in laid))
        sources.setdefault(source, {})[split] = Split(content, *counts, laid)
    return sources


def _size(shard: Mapping[str, Any]) -> tuple[int, int]:
    return shard["sequences"], shard["tokens"]


def _stages(
    params: MixParams, sources: Mapping[str, Mapping[str, Split]], targets: int, empty: Sequence[str]
) -> tuple[tuple[Stage, ...], tuple[Extent, ...]]:
    """The stages and how far each goes. targets: of a sequence. empty: sources whose weights count for nothing."""
    sizes = {name: sources[name]["train"].sequences for name in sources_to_train(sources)}
    given = [_weights(stage, sizes) for stage in params.stages]
    held = [{name: weight for name, weight in own.items() if name not in empty} for own in given]
    weights = [_checked(stage, own, sizes) for stage, own in zip(params.stages, held, strict=True)]
    starts, lengths = _bounds(params.stages, weights, sizes, targets)
    try:
        laid = lay_stages(list(zip(starts, weights, strict=True)), params.period, sizes)
    except ScheduleError as problem:
        raise ParamsError(f"mix.stages: {problem}") from problem
    return laid, tuple(
        _extent(own.name, stage, length, sizes) for own, stage, length in zip(params.stages, laid, lengths, strict=True)
    )


def _checked(stage: StageParams, weights: dict[str, float], sizes: Mapping[str, int]) -> dict[str, float]:
    """`weights`, which with leave_out name every source to train on, once. Raises ParamsError."""
    unsaid = sorted(set(sizes) - set(weights) - set(stage.leave_out))
    if unsaid:
        raise ParamsError(
            f"mix.stages: {_title(stage)} weighs {', '.join(sorted(weights)) or 'nothing'}, but not"
            f" {', '.join(unsaid)}, which has sequences to train on",
            "give it a weight, or name it under leave_out",
        )
    both = sorted(set(weights) & set(stage.leave_out))
    if both:
        raise ParamsError(f"mix.stages: {_title(stage)} both weighs and leaves out {', '.join(both)}", "choose one")
    return weights


def _title(stage: StageParams) -> str:
    return f"the stage {stage.name}" if stage.name else f"the stage at {stage.start or 0}"


def _bounds(
    stages: Sequence[StageParams], weights: Sequence[Mapping[str, float]], sizes: Mapping[str, int], targets: int
) -> tuple[list[int], list[int]]:
    """(starts, lengths) in positions: a start that is not given is where the stage before it ends."""
    starts, lengths = [0], []
    for number, stage in enumerate(stages):
        own = sum(sizes.get(name, 0) for name in weights[number])
        following = stages[number + 1].start if number + 1 < len(stages) else None
        if stage.tokens is not None:
            length = -(-stage.tokens // targets)
        elif stage.epochs is not None or following is None:
            length = math.ceil(Fraction(str(stage.epochs or 1)) * own)
        else:
            length = following - starts[-1]
        lengths.append(length)
        starts.append(starts[-1] + length if following is None else following)
    return starts[:-1], lengths


def _extent(name: str, stage: Stage, positions: int, sizes: Mapping[str, int]) -> Extent:
    after = cursors_after(stage, positions)
    return Extent(name, positions, {source: after[source] / size for source, size in sizes.items()})


def _weights(stage: StageParams, sizes: Mapping[str, int]) -> dict[str, float]:
    """The stage's weights: as given, or each source's sequences ** (1 / temperature), to six digits so that every
    machine has the same (Devlin et al., 2019, and Conneau et al., 2020, take 1 / 0.7 and 1 / 0.3)."""
    if stage.weights != "proportional":
        return dict(stage.weights)
    own = {name: size for name, size in sizes.items() if name not in stage.leave_out}
    return {name: float(f"{size ** (1 / stage.temperature):.6g}") for name, size in own.items()}


def _counts(schedule: Schedule) -> Counts:
    """Sequences to train on by source, and the quotas of the last stage."""
    trained = sources_to_train(schedule.sources)
    counts = {f"sequences|source={name}": schedule.sources[name]["train"].sequences for name in trained}
    quotas = schedule.stages[-1].quotas
    return {**counts, **{f"quota|source={name}": quota for name, quota in quotas.items()}}
