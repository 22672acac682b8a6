"""The step pack: which spans of which rows make up which sequence. This module wires; see the modules beside
it.

In: tokenize. Out: data/pack/splits, pieces and sequences, all small. A group is a run of consecutive parts of
one source, as far as they are of one split: its ids will be one shard, and no sequence crosses it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import model_validator

from tasks.pack.planning import PIECES, SEQUENCES, SPLITS, TOKENS, plan_groups
from tasks.step import Artifact, Counts, Folder, Step, StepParams, shapes


class PackParams(StepParams):
    """Section pack of params.yaml."""

    tokens_per_sequence: int = shapes(ge=1)  # positions with a target; a full sequence is one id longer
    strategy: Literal["concat"] = shapes()  # how documents become sequences
    tail: Literal["keep", "drop"] = shapes()  # what becomes of a group's last, shorter sequence
    split_seed: int = shapes()  # other seed, other documents in validation and test
    validation_share: float = shapes(ge=0, le=1)  # of the documents
    test_share: float = shapes(ge=0, le=1)  # of the documents
    group_bytes: int = shapes(ge=2)  # about a group's ids; a shard is never above twice that by grouping parts

    @model_validator(mode="after")
    def _shares(self) -> PackParams:
        both = self.validation_share + self.test_share
        if both > 1:
            raise ValueError(f"validation_share and test_share are {both:g} together; leave train something below 1")
        return self


def invariants(artifact: Artifact) -> Iterator[str]:
    """Tokens in are packed or dropped, streams have no gap, and nothing of tokenize is missing."""
    kept = sum(counts["tokens"] for counts in artifact.counts(TOKENS).values())
    taken = sum(counts["tokens_in"] for counts in artifact.counts(PIECES).values())
    if kept != taken:
        yield f"tokenize kept {kept} tokens, but the groups hold {taken}"
    limit = artifact.params.tokens_per_sequence + 1
    for unit, counts in artifact.counts(SEQUENCES).items():
        yield from _breaches(unit, counts, artifact.table(SEQUENCES, None, unit), limit)


def rows(artifact: Artifact, unit: str) -> pa.Table:
    """One row a sequence: group, source, split, start, stop, tokens (ids, the shared one counted)."""
    table = artifact.table(SEQUENCES, None, unit)
    source, split, _ = unit.split("-")
    names = {"group": unit, "source": source, "split": split}
    columns = {name: pa.array([value] * table.num_rows, pa.string()) for name, value in names.items()}
    bounds = {name: table[name] for name in ("start", "stop")}
    return pa.table({**columns, **bounds, "tokens": pc.subtract(table["stop"], table["start"])})


def _breaches(unit: str, counts: Counts, table: pa.Table, limit: int) -> Iterator[str]:
    starts, stops = (table[name].to_numpy() for name in ("start", "stop"))
    packed, dropped = counts["tokens_packed"], counts["tokens_dropped"]
    if counts["tokens_in"] != packed + dropped:
        yield f"{unit}: {counts['tokens_in']} tokens in, {packed} packed, {dropped} dropped"
    if counts["tokens_dropped"] != counts.get("tokens_dropped|reason=tail", 0):
        yield f"{unit}: {counts['tokens_dropped']} tokens are dropped, not all of them for a reason"
    if len(starts) == 0:
        return
    lengths = stops - starts
    if lengths.min() < 2 or lengths.max() > limit:
        yield f"{unit}: sequences of {lengths.min()} to {lengths.max()} ids, allowed are 2 to {limit}"
    if starts[0] != 0 or stops[-1] != counts["tokens_packed"] or stops[-1] > counts["tokens_in"]:
        yield f"{unit}: sequences cover ids {starts[0]} to {stops[-1]}, packed are {counts['tokens_packed']}"
    if (starts[1:] != stops[:-1] - 1).any():
        yield f"{unit}: neighbouring sequences do not share exactly one id"


STEP = Step(
    name="pack",
    params=PackParams,
    folders=(
        Folder(
            "splits",
            "tasks.pack.splits:make",
            reads=(TOKENS,),
            shapes=("split_seed", "validation_share", "test_share"),
        ),
        Folder(
            "pieces",
            "tasks.pack.pieces:make",
            reads=(TOKENS, SPLITS),
            shapes=("group_bytes",),
            plan=plan_groups,
        ),
        Folder(
            "sequences",
            "tasks.pack.sequences:make",
            reads=(PIECES,),
            shapes=("tokens_per_sequence", "strategy", "tail"),
        ),
    ),
    inputs=("tokenize",),
    rows=rows,
    rows_of=SEQUENCES,
    invariants=invariants,
)
