"""The nine steps in their order: the table of contents of the house."""

from __future__ import annotations

from tasks import decontaminate, dedup, filter, ingest, mix, normalize, pack, shard, tokenize
from tasks.step import Step

STEPS: dict[str, Step] = {
    step.name: step
    for step in (
        ingest.STEP,
        normalize.STEP,
        filter.STEP,
        dedup.STEP,
        decontaminate.STEP,
        tokenize.STEP,
        pack.STEP,
        shard.STEP,
        mix.STEP,
    )
}
