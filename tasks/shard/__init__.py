"""The step shard: each group of pack as files that a GPU's loader maps. This module wires; see the modules
beside it.

In: tokenize and pack. Out: data/shard/<domain>/<split>/shard_00000.{bin,idx,starts.npy,stops.npy}, where there is need
.loss and .classes.npy, and tokenizer.json. Shards are numbered within domain and split in the order of the corpus. A
number is in no key: a group that comes in between renames the shards behind it, their bytes are carried over.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from tasks.artifacts.shards import ShardError, ShardReader
from tasks.shard.planning import (
    PIECES,
    SEQUENCES,
    SPLITS,
    TOKENIZER,
    TOKENS,
    plan_classes,
    plan_sequences,
    plan_stream,
)
from tasks.step import Artifact, Folder, Step, StepParams

STREAM, BOUNDS = "shard/stream", "shard/sequences"


class ShardParams(StepParams):
    """Section shard of params.yaml: nothing to choose, groups and dtype are settled before."""


def invariants(artifact: Artifact) -> Iterator[str]:
    """Every token of pack lies in a shard, every shard opens, and its sequences are those of pack."""
    taken = sum(counts["tokens_stream"] for counts in artifact.counts(PIECES).values())
    held = sum(counts["tokens"] for counts in artifact.counts(STREAM).values())
    if taken != held:
        yield f"the streams of pack have {taken} tokens, the shards hold {held}"
    held_in = ("tokens_packed", "tokens_repeated", "tokens_added")
    packed = sum(counts.get(name, 0) for counts in artifact.counts(SEQUENCES).values() for name in held_in)
    covered = sum(counts["tokens_covered"] for counts in artifact.counts(BOUNDS).values())
    if packed != covered:
        yield f"pack packed {packed} tokens, the sequences of the shards cover {covered}"
    bounds = artifact.counts(BOUNDS)
    for unit, counts in artifact.counts(STREAM).items():
        yield from _breaches(artifact, unit, counts["tokens"], bounds[unit]["sequences"])


def rows(artifact: Artifact, unit: str) -> pa.Table:
    """One row, the shard: source (its domain), split, shard, tokens, sequences, bytes (of its .bin), documents."""
    stream, bounds = artifact.counts(STREAM)[unit], artifact.counts(BOUNDS)[unit]
    source, split, shard = unit.split("/")
    row = {"source": source, "split": split, "shard": shard, "tokens": stream["tokens"]}
    row |= {"sequences": bounds["sequences"], "bytes": stream["bytes"], "documents": stream["documents"]}
    return pa.Table.from_pylist([row])


def _breaches(artifact: Artifact, unit: str, tokens: int, sequences: int) -> Iterator[str]:
    path: Path = artifact.path(STREAM, ".bin", unit)
    try:
        shard = ShardReader(path.parent, path.stem)
        shard.verify()
    except ShardError as error:
        yield str(error)
        return
    found = (len(shard.tokens), len(shard))
    if found != (tokens, sequences):
        yield f"{unit}: counted {tokens} tokens and {sequences} sequences, it holds {found[0]} and {found[1]}"


STEP = Step(
    name="shard",
    params=ShardParams,
    folders=(
        Folder(
            "stream",
            "tasks.shard.stream:make",
            reads=(TOKENIZER, PIECES, TOKENS),
            plan=plan_stream,
            place="{unit}",
        ),
        Folder(
            "sequences",
            "tasks.shard.sequences:make",
            reads=(SEQUENCES,),
            plan=plan_sequences,
            place="{unit}",
        ),
        Folder(
            "classes",
            "tasks.shard.classes:make",
            reads=(PIECES, SPLITS),
            plan=plan_classes,
            place="{unit}",
        ),
        Folder("tokenizer", "tasks.shard.tokenizer:make", reads=(TOKENIZER,), place="{unit}"),
    ),
    inputs=("tokenize", "pack"),
    rows=rows,
    rows_of=STREAM,
    invariants=invariants,
)
