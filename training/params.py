"""The section `train` of params.yaml as training sees it: a plain dataclass, checked without any library."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, get_type_hints

from tasks.artifacts.schedule import Schedule, cursors_after, sources_to_train
from training.dataset import own_rows
from training.masks import Labels
from training.order import Shuffle


@dataclass(frozen=True)
class TrainParams:
    """All numbers of a run.

    batch_size: sequences of a global batch, over all ranks. steps: global batches from position 0. labels:
    "shifted" or "model". threads: of torch on a CPU, 0 for its own choice. device: "auto", "cpu" or "cuda".
    validate_every, checkpoint_every: steps between them, 0 for the end of the run only. max_epochs: passes
    over a source that a run may make; max_epochs_of: the same for single sources. accumulate: pieces that a rank's
    share of a batch is worked in, one after another. shuffle, shuffle_buffer: see training.order.Shuffle. compile: the
    model by torch.compile.
    """

    seed: int
    batch_size: int
    steps: int
    learning_rate: float
    warmup_steps: int
    weight_decay: float
    layers: int
    heads: int
    width: int
    labels: Labels
    isolate_documents: bool
    threads: int
    device: str
    log_every: int
    validate_every: int
    checkpoint_every: int
    max_epochs: float
    max_epochs_of: dict[str, float] = field(default_factory=dict)
    accumulate: int = 1
    shuffle: str = "global"
    shuffle_buffer: int = 0
    compile: bool = False

    @classmethod
    def of(cls, section: Mapping[str, Any]) -> TrainParams:
        """The section as params; raises ValueError naming every key that is unknown, missing or of a wrong
        type."""
        known = {one.name for one in fields(cls)}
        optional = {"max_epochs_of", "accumulate", "shuffle", "shuffle_buffer", "compile"}
        faults = [f"train.{name} is an unknown key" for name in sorted(set(section) - known)]
        faults += [f"train.{name} is missing" for name in sorted(known - optional - set(section))]
        faults += [fault for name in sorted(known & set(section)) if (fault := _fault(name, section[name]))]
        if faults:
            raise ValueError("; ".join(faults) + "; correct params.yaml and run again")
        params = cls(**section)
        Shuffle(params.shuffle, params.shuffle_buffer)  # type: ignore[arg-type]
        return params


def check_repetition(schedule: Schedule, params: TrainParams) -> dict[str, float]:
    """source -> passes over it that the run makes; raises ValueError where that is more than allowed.

    Up to 4 passes cost little, later ones are worth less and less (Muennighoff et al., arXiv 2305.16264).
    """
    positions = params.batch_size * params.steps
    stage = [stage for stage in schedule.stages if stage.start <= positions][-1]
    drawn = cursors_after(stage, positions - stage.start)
    held = {name: schedule.sources[name]["train"].sequences for name in sources_to_train(schedule.sources)}
    epochs = {name: drawn[name] / sequences for name, sequences in held.items()}
    for name, passes in epochs.items():
        limit = params.max_epochs_of.get(name, params.max_epochs)
        if passes > limit:
            raise ValueError(
                f"{positions} positions repeat source {name} ({held[name]} sequences) {passes:.4g} times, "
                f"allowed are {limit:g}; lower its weight in mix, take fewer steps or allow it under "
                f"train.max_epochs_of"
            )
    return epochs


def learning_rate(step: int, params: TrainParams) -> float:
    """Linear warm-up, then a half cosine down to a tenth; step counts from 1."""
    if step <= params.warmup_steps:
        return params.learning_rate * step / params.warmup_steps
    done = (step - params.warmup_steps) / max(1, params.steps - params.warmup_steps)
    return params.learning_rate * (0.55 + 0.45 * math.cos(math.pi * min(1.0, done)))


def micro_batch(params: TrainParams, world: int) -> int:
    """Sequences that a rank works on at once; raises ValueError where ranks or `accumulate` do not divide the batch."""
    share = len(own_rows(params.batch_size, 0, world))
    if share % params.accumulate:
        raise ValueError(
            f"a rank's {share} sequences of a batch cannot be worked in {params.accumulate} equal pieces; "
            f"set train.accumulate to a divisor of {share}"
        )
    return share // params.accumulate


def _fault(name: str, value: Any) -> str | None:
    """What is wrong with one value, or None."""
    wanted = get_type_hints(TrainParams)[name]
    if name == "labels":
        return None if value in ("shifted", "model") else f"train.labels is {value!r}, not 'shifted' or 'model'"
    if name == "max_epochs_of":
        return None if isinstance(value, dict) else f"train.{name} is {value!r}, not a mapping of sources"
    if not isinstance(value, (int, float) if wanted is float else wanted) or (wanted is not bool and value is True):
        return f"train.{name} is {value!r}, not of type {wanted.__name__}"
    smallest = 1 if name in ("batch_size", "steps", "layers", "heads", "width", "log_every", "accumulate") else 0
    if wanted in (int, float) and value < smallest:
        return f"train.{name} is {value!r}, below {smallest}"
    return None
