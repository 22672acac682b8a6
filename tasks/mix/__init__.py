"""The step mix: in which shares the sources are trained on, stage by stage. This module wires; see
mixture.py.

In: what shard wrote, known by counts and digests alone. Out: data/mix/mixture.json
(tasks.artifacts.schedule). It reads no token and shuffles nothing: the order within a source is a rule of
training.order.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Literal

import pyarrow as pa
from pydantic import field_validator, model_validator

from tasks.artifacts.schedule import PERIOD_MAX, Schedule, sources_to_train
from tasks.mix.planning import BOUNDS, CLASSES, STREAM, TOKENIZER, UNIT, plan_mixture
from tasks.step import Artifact, Folder, Step, StepParams, judges, shapes

MIXTURE = "mix/mixture"


class StageParams(StepParams):
    """One stage of the run (main, anneal, ...): how long it is, and what every source weighs in it. A source here is a
    source of ingest or a domain of pack."""

    name: str = shapes("", pattern=r"^[a-z0-9_]*$")
    start: int | None = shapes(None, ge=0)  # position of the run, in sequences; else where the stage before it ends
    tokens: int | None = shapes(None, ge=1)  # how long the stage is, in targets; else the next start says it
    epochs: float | None = shapes(None, gt=0)  # how long the stage is, in sequences of all sources that it reads
    # source -> any number above 0, of which only the ratio counts; or each source by its sequences
    weights: dict[str, float] | Literal["proportional"] = shapes()
    temperature: float = shapes(1.0, ge=1, le=100)  # of proportional: size ** (1 / temperature), so 1 is proportional
    leave_out: tuple[str, ...] = shapes(())  # sources with sequences that this stage does not read
    allow_empty: bool = shapes(False)  # a source that is weighed may have none; then the others share its weight

    @model_validator(mode="after")
    def _temperature(self) -> StageParams:
        if self.temperature != 1 and self.weights != "proportional":
            raise ValueError(f"temperature is {self.temperature}, but weights are given; take weights: proportional")
        return self

    @model_validator(mode="after")
    def _one_length(self) -> StageParams:
        if self.tokens is not None and self.epochs is not None:
            raise ValueError(f"the stage is both {self.tokens} tokens and {self.epochs:g} epochs long; keep one")
        return self

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
    max_epochs: float = judges(gt=0)  # passes over a source up to the end of a stage
    max_epochs_of: dict[str, float] = judges({})  # source -> the same for it alone

    @model_validator(mode="after")
    def _ascending(self) -> MixParams:
        starts = [stage.start for stage in self.stages if stage.start is not None]
        if self.stages[0].start not in (None, 0) or starts != sorted(set(starts)):
            raise ValueError(f"stages start at {starts}; the first starts at 0, and each later one further on")
        for number, (stage, following) in enumerate(pairwise(self.stages)):
            told = [name for name in ("tokens", "epochs") if getattr(stage, name) is not None]
            told += ["the next start"] if following.start is not None else []
            if len(told) != 1:
                raise ValueError(
                    f"where stage {number} ends is said {' and '.join(told) or 'nowhere'}; give it tokens or epochs, or"
                    f" the stage behind it a start: just one of them"
                )
        return self


def invariants(artifact: Artifact) -> Iterator[str]:
    """The mixture can be read back, orders every training sequence of shard, and repeats none too often."""
    schedule = Schedule.read(artifact.path(MIXTURE, ".json", UNIT))
    ordered = sum(folder.sequences for splits in schedule.sources.values() for folder in splits.values())
    held = sum(counts["sequences"] for counts in artifact.counts(BOUNDS).values())
    if ordered != held:
        yield f"the shards hold {held} sequences, mixture.json orders {ordered}; build shard and mix again"
    for row in _rows(schedule):
        limit = artifact.params.max_epochs_of.get(row["source"], artifact.params.max_epochs)
        if row["epochs"] > limit:
            yield (
                f"the stage at {row['start']} of {row['positions']} sequences reads {row['source']} "
                f"{row['epochs']:.3g} times up to its end, above mix.max_epochs {limit:g}; give it less weight than "
                f"{row['share']:.3g}, shorten the stage (tokens, epochs, or the next start), or raise max_epochs, or"
                f" max_epochs_of for it alone"
            )


def rows(artifact: Artifact, unit: str) -> pa.Table:
    """One row a stage and source: stage, start, positions, source, weight, quota, share (realised, 0 to 1),
    sequences, tokens (of train), epochs (passes over the source, from position 0 to the end of the stage).
    """
    return pa.Table.from_pylist(_rows(Schedule.read(artifact.path(MIXTURE, ".json", unit))))


def _rows(schedule: Schedule) -> list[dict[str, Any]]:
    held = {name: schedule.sources[name]["train"] for name in sources_to_train(schedule.sources)}
    found: list[dict[str, Any]] = []
    for number, stage in enumerate(schedule.stages):
        extent = schedule.extents[number]
        for name, quota in stage.quotas.items():
            counts = {"sequences": held[name].sequences, "tokens": held[name].tokens}
            row = {"stage": number, "start": stage.start, "positions": extent.positions, "source": name}
            row |= {"weight": float(stage.weights[name]), "quota": quota, "share": quota / schedule.period}
            found.append({**row, **counts, "epochs": extent.epochs[name]})
    return found


STEP = Step(
    name="mix",
    params=MixParams,
    folders=(
        Folder(
            "mixture",
            "tasks.mix.mixture:make",
            reads=(STREAM, BOUNDS, CLASSES, TOKENIZER),
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
