"""The step mix: in which shares the sources are trained on, stage by stage. This module wires; see
mixture.py.

In: what shard wrote, known by counts and digests alone. Out: data/mix/mixture.json
(tasks.artifacts.schedule). It reads no token and shuffles nothing: the order within a source is a rule of
training.order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import pyarrow as pa
from pydantic import field_validator, model_validator

from tasks.artifacts.schedule import PERIOD_MAX, Schedule, cursors_after, sources_to_train
from tasks.mix.planning import BOUNDS, STREAM, TOKENIZER, UNIT, plan_mixture
from tasks.step import Artifact, Folder, Step, StepParams, judges, shapes

MIXTURE = "mix/mixture"


class StageParams(StepParams):
    """One stage of the run: from which position on, and what every source weighs in it."""

    start: int = shapes(ge=0)  # position of the run, in sequences; the first stage starts at 0
    # source -> any number above 0, of which only the ratio counts; or each source by its sequences
    weights: dict[str, float] | Literal["proportional"] = shapes()
    temperature: float = shapes(1.0, ge=1, le=100)  # of proportional: size ** (1 / temperature), so 1 is proportional
    tokens: int | None = shapes(None, ge=1)  # of the last stage: where the run ends; of others, the next start says it
    leave_out: tuple[str, ...] = shapes(())  # sources with sequences that this stage does not read

    @model_validator(mode="after")
    def _temperature(self) -> StageParams:
        if self.temperature != 1 and self.weights != "proportional":
            raise ValueError(f"temperature is {self.temperature}, but weights are given; take weights: proportional")
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

    @model_validator(mode="after")
    def _ascending(self) -> MixParams:
        starts = [stage.start for stage in self.stages]
        if starts[0] != 0 or starts != sorted(set(starts)):
            raise ValueError(f"stages start at {starts}; the first starts at 0, and each later one further on")
        for stage in self.stages[:-1]:
            if stage.tokens is not None:
                raise ValueError(
                    f"the stage at {stage.start} has tokens {stage.tokens} and one behind it; its end is that one's"
                    f" start, so leave tokens to the last stage"
                )
        return self


def invariants(artifact: Artifact) -> Iterator[str]:
    """The mixture can be read back, orders every training sequence of shard, and repeats none too often."""
    schedule = Schedule.read(artifact.path(MIXTURE, ".json", UNIT))
    ordered = sum(folder.sequences for splits in schedule.sources.values() for folder in splits.values())
    held = sum(counts["sequences"] for counts in artifact.counts(BOUNDS).values())
    if ordered != held:
        yield f"the shards hold {held} sequences, mixture.json orders {ordered}; build shard and mix again"
    limit = artifact.params.max_epochs
    for row in _rows(schedule, artifact.params):
        if row["epochs"] > limit:
            yield (
                f"the stage at {row['start']} of {row['positions']} sequences reads {row['source']} "
                f"{row['epochs']:.3g} times up to its end, above mix.max_epochs {limit:g}; give it less weight than "
                f"{row['share']:.3g}, shorten the stage (tokens, or the next start), or raise max_epochs"
            )


def rows(artifact: Artifact, unit: str) -> pa.Table:
    """One row a stage and source: stage, start, positions, source, weight, quota, share (realised, 0 to 1),
    sequences, tokens (of train), epochs (passes over the source, from position 0 to the end of the stage).

    The last stage ends with its tokens; where none are said it is taken as long as the corpus has sequences, so that a
    small source with a large weight shows.
    """
    return pa.Table.from_pylist(_rows(Schedule.read(artifact.path(MIXTURE, ".json", unit)), artifact.params))


def _rows(schedule: Schedule, params: MixParams) -> list[dict[str, Any]]:
    held = {name: schedule.sources[name]["train"] for name in sources_to_train(schedule.sources)}
    found: list[dict[str, Any]] = []
    for number, stage in enumerate(schedule.stages):
        positions = _positions(schedule, number, params.stages[-1].tokens)
        after = cursors_after(stage, positions)
        for name, quota in stage.quotas.items():
            counts = {"sequences": held[name].sequences, "tokens": held[name].tokens}
            row = {"stage": number, "start": stage.start, "positions": positions, "source": name}
            row |= {"weight": float(stage.weights[name]), "quota": quota, "share": quota / schedule.period}
            found.append({**row, **counts, "epochs": after[name] / held[name].sequences})
    return found


def _positions(schedule: Schedule, number: int, tokens: int | None) -> int:
    """Positions of a stage; of the last one, those that its tokens take, or as many as there are sequences."""
    if number + 1 < len(schedule.stages):
        return schedule.stages[number + 1].start - schedule.stages[number].start
    if tokens is not None:
        return -(-tokens // schedule.tokens_per_sequence)
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
