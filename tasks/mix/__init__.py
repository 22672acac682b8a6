"""The step mix: in which shares the sources are trained on, stage by stage. This module wires; see
mixture.py.

In: what shard wrote, known by counts and digests alone. Out: data/mix/mixture.json
(tasks.artifacts.schedule). It reads no token and shuffles nothing: the order within a source is a rule of
training.order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pydantic import field_validator, model_validator

from tasks.artifacts.schedule import PERIOD_MAX, Schedule, cursors_after, sources_to_train
from tasks.mix.planning import BOUNDS, STREAM, TOKENIZER, UNIT, plan_mixture
from tasks.step import Artifact, Folder, Step, StepParams, shapes

MIXTURE = "mix/mixture"


class StageParams(StepParams):
    """One stage of the run: from which position on, and what every source weighs in it."""

    start: int = shapes(ge=0)  # position of the run, in sequences; the first stage starts at 0
    weights: dict[str, float] = shapes()  # source -> any number above 0; only the ratio counts
    leave_out: tuple[str, ...] = shapes(())  # sources with sequences that this stage does not read

    @field_validator("leave_out")
    @classmethod
    def _in_order(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        """It stands for a set: in whatever order it is written, the stage is the same."""
        return tuple(sorted(set(names)))


class MixParams(StepParams):
    """Section mix of params.yaml."""

    seed: int = shapes()  # of the shuffle within each source
    period: int = shapes(ge=1, le=PERIOD_MAX)  # positions after which the layout of sources repeats
    stages: tuple[StageParams, ...] = shapes(min_length=1)

    @model_validator(mode="after")
    def _ascending(self) -> MixParams:
        starts = [stage.start for stage in self.stages]
        if starts[0] != 0 or starts != sorted(set(starts)):
            raise ValueError(f"stages start at {starts}; the first starts at 0, and each later one further on")
        return self


def invariants(artifact: Artifact) -> Iterator[str]:
    """The mixture can be read back, and orders every training sequence of shard."""
    schedule = Schedule.read(artifact.path(MIXTURE, ".json", UNIT))
    ordered = sum(folder.sequences for splits in schedule.sources.values() for folder in splits.values())
    held = sum(counts["sequences"] for counts in artifact.counts(BOUNDS).values())
    if ordered != held:
        yield f"the shards hold {held} sequences, mixture.json orders {ordered}; build shard and mix again"


def rows(artifact: Artifact, unit: str) -> pa.Table:
    """One row a stage and source: stage, start, positions, source, weight, quota, share (realised, 0 to 1),
    sequences, tokens (of train), epochs (passes over the source, from position 0 to the end of the stage).

    The last stage has no end; it is taken as long as the corpus has sequences, so that a small source with a
    large weight shows.
    """
    schedule = Schedule.read(artifact.path(MIXTURE, ".json", unit))
    held = {name: schedule.sources[name]["train"] for name in sources_to_train(schedule.sources)}
    found: list[dict[str, Any]] = []
    for number, stage in enumerate(schedule.stages):
        positions = _positions(schedule, number)
        after = cursors_after(stage, positions)
        for name, quota in stage.quotas.items():
            counts = {"sequences": held[name].sequences, "tokens": held[name].tokens}
            row = {"stage": number, "start": stage.start, "positions": positions, "source": name}
            row |= {"weight": float(stage.weights[name]), "quota": quota, "share": quota / schedule.period}
            found.append({**row, **counts, "epochs": after[name] / held[name].sequences})
    return pa.Table.from_pylist(found)


def _positions(schedule: Schedule, number: int) -> int:
    """Positions of a stage; of the last one, as many as there are sequences to train on."""
    if number + 1 < len(schedule.stages):
        return schedule.stages[number + 1].start - schedule.stages[number].start
    return sum(splits["train"].sequences for splits in schedule.sources.values() if "train" in splits)


STEP = Step(
    name="mix",
    params=MixParams,
    folders=(
        Folder(
            "mixture",
            "tasks.mix.mixture:make",
            reads=(STREAM, BOUNDS, TOKENIZER),
            shapes=("seed", "period", "stages"),
            plan=plan_mixture,
            place="{unit}",
        ),
    ),
    inputs=("shard",),
    rows=rows,
    rows_of=MIXTURE,
    invariants=invariants,
)
