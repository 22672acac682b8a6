"""The step pack: which spans of which rows make up which sequence. This module wires; see the modules beside
it.

In: tokenize. Out: data/pack/splits, pieces and sequences, all small. A group is a run of consecutive parts of
one source, as far as they are of one split: its ids will be one shard, and no sequence crosses it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import model_validator

from tasks.artifacts.manifest import Entry
from tasks.step import Artifact, Counts, Folder, Plan, Step, StepParams, Unit, shapes
from tasks.text.cut import cut_points
from tasks.text.split import SPLIT_NAMES

TOKENS, SPLITS, PIECES, SEQUENCES = "tokenize/tokens", "pack/splits", "pack/pieces", "pack/sequences"


class PackParams(StepParams):
    """Section pack of params.yaml."""

    tokens_per_sequence: int = shapes(ge=1)  # positions with a target; a full sequence is one id longer
    strategy: Literal["concat"] = shapes()  # how documents become sequences
    tail: Literal["keep", "drop"] = shapes()  # what becomes of a group's last, shorter sequence
    split_seed: int = shapes()  # other seed, other documents in validation and test
    validation_share: float = shapes(ge=0, le=1)  # of the documents
    test_share: float = shapes(ge=0, le=1)  # of the documents
    group_bytes: int = shapes(
        ge=2
    )  # about a group's ids; a shard is never above twice that by grouping parts

    @model_validator(mode="after")
    def _shares(self) -> PackParams:
        both = self.validation_share + self.test_share
        if both > 1:
            raise ValueError(
                f"validation_share and test_share are {both:g} together; leave train something below 1"
            )
        return self


def plan_groups(plan: Plan, folder: Folder) -> list[Unit]:
    """A unit for each group that has tokens: source by source, split by split, in the order of the parts."""
    tokens, split = plan.entries(TOKENS), plan.entries(SPLITS)
    units = []
    for source in dict.fromkeys(name.split("-")[0] for name in split):
        for word in SPLIT_NAMES:
            parts = [name for name in split if name.split("-")[0] == source and _tokens(split[name], word)]
            sizes = [_bytes(tokens[name], _tokens(split[name], word)) for name in parts]
            groups = group(parts, sizes, plan.params.group_bytes)
            units += [_unit(source, word, number, own) for number, own in enumerate(groups)]
    return units


def group(parts: Sequence[str], sizes: Sequence[int], group_bytes: int) -> list[list[str]]:
    """`parts` cut into runs of about `group_bytes` by the local rule (tasks.text.cut), so that a part that
    comes or goes changes the groups near it only. sizes: bytes of ids of each part; each is above 0.
    """
    digests = np.array([int(_digest([name])[:16], 16) for name in parts], np.uint64)
    window = max(1, group_bytes // 2)
    ends = cut_points(np.array(sizes, np.uint64), digests, window, 2 * group_bytes).tolist()
    return [list(parts[start:stop]) for start, stop in zip([0, *ends], ends, strict=False)]


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


def _unit(source: str, split: str, number: int, parts: list[str]) -> Unit:
    name = f"{source}-{split}-{_digest(parts)[:16]}"
    reads = tuple((folder, part) for folder in (TOKENS, SPLITS) for part in parts)
    return Unit(name, reads, {"split": split, "parts": parts}, origin=(f"{source}/{split}", number))


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _tokens(entry: Entry, split: str) -> int:
    return entry.counts.get(f"tokens|split={split}", 0)


def _bytes(entry: Entry, tokens: int) -> int:
    """Bytes of `tokens` ids of a part, from the length of its flat file: 2 or 4 each."""
    flat: int = entry.files[entry.suffixes()[".bin"]]["bytes"]
    return flat * tokens // entry.counts["tokens"]


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
