"""The step pack: which spans of which rows make up which sequence. This module wires; see the modules beside
it.

In: tokenize, and of each row its kind (normalize) and language (filter). Out: data/pack/splits, pieces and sequences,
all small. A group is a run of consecutive parts, as far as their rows are of one domain and one split: its ids will be
one shard, and no sequence crosses it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import field_validator, model_validator

from tasks.pack.planning import PIECES, SEQUENCES, SIGNALS, SPLITS, TEXT, TOKENS, plan_groups, plan_sequences
from tasks.step import Artifact, Counts, Folder, Step, StepParams, shapes

Kind = Literal["web", "book", "code", "paper", "chat"]
Long = Literal["split", "cut", "leave_out"]


class DomainParams(StepParams):
    """What is weighed together in a mixture: the rows that every list which is not empty names. "Source" in mix and in
    the names of shards is a domain: one of these, or what they leave of a source."""

    name: str = shapes(pattern=r"^[a-z0-9][a-z0-9_]*$")
    sources: tuple[str, ...] = shapes(())
    kinds: tuple[Kind, ...] = shapes(())
    languages: tuple[str, ...] = shapes(())  # ISO 639-1, as filter finds them; "und": none was found

    @field_validator("sources", "kinds", "languages")
    @classmethod
    def _in_order(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        """It stands for a set: in whatever order it is written, the domain is the same."""
        return tuple(sorted(set(names)))


class PackParams(StepParams):
    """Section pack of params.yaml."""

    tokens_per_sequence: int = shapes(ge=1)  # positions with a target; a full sequence is one id longer
    strategy: Literal["concat", "stride", "best_fit", "document"] = shapes()  # how documents become sequences
    tail: Literal["keep", "drop"] = shapes()  # concat and stride: what becomes of a group's last, shorter sequence
    stride: int = shapes(ge=1)  # ids from one window to the next, for the strategy stride
    long: Long = shapes()  # best_fit and document: what becomes of a document longer than a sequence
    long_of: dict[str, Long] = shapes()  # source -> the same for that source
    seed: int = shapes()  # best_fit: which pieces of equal length meet, and the order of the sequences
    domains: tuple[DomainParams, ...] = shapes()  # in order: a row belongs to the first that selects it
    split_seed: int = shapes()  # other seed, other documents in validation and test
    validation_share: float = shapes(ge=0, le=1)  # of the documents
    test_share: float = shapes(ge=0, le=1)  # of the documents
    group_bytes: int = shapes(ge=2)  # about a group's ids; a shard is never above twice that by grouping parts

    @field_validator("domains")
    @classmethod
    def _named_once(cls, domains: tuple[DomainParams, ...]) -> tuple[DomainParams, ...]:
        names = [domain.name for domain in domains]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"the domain {name!r} stands there twice; give each a name of its own")
        return domains

    @model_validator(mode="after")
    def _shares(self) -> PackParams:
        both = self.validation_share + self.test_share
        if both > 1:
            raise ValueError(f"validation_share and test_share are {both:g} together; leave train something below 1")
        if self.strategy == "stride" and self.stride > self.tokens_per_sequence:
            raise ValueError(
                f"stride is {self.stride}, above tokens_per_sequence {self.tokens_per_sequence}: the tokens between two"
                f" windows would be lost; take at most {self.tokens_per_sequence}"
            )
        return self


def invariants(artifact: Artifact) -> Iterator[str]:
    """Tokens in are packed or dropped, streams have no gap, and nothing of tokenize is missing."""
    kept = sum(counts["tokens"] for counts in artifact.counts(TOKENS).values())
    taken = sum(counts["tokens_in"] for counts in artifact.counts(PIECES).values())
    if kept != taken:
        yield f"tokenize kept {kept} tokens, but the groups hold {taken}"
    streams = artifact.counts(PIECES)
    for unit, counts in artifact.counts(SEQUENCES).items():
        table = artifact.table(SEQUENCES, None, unit)
        yield from _unbalanced(unit, counts, streams[unit])
        yield from _breaches(unit, artifact.params, table, streams[unit])


def rows(artifact: Artifact, unit: str) -> pa.Table:
    """One row a sequence: group, source (its domain), split, start, stop, tokens (ids, the shared one counted)."""
    table = artifact.table(SEQUENCES, None, unit)
    source, split, _ = unit.split("-")
    names = {"group": unit, "source": source, "split": split}
    columns = {name: pa.array([value] * table.num_rows, pa.string()) for name, value in names.items()}
    bounds = {name: table[name] for name in ("start", "stop")}
    return pa.table({**columns, **bounds, "tokens": pc.subtract(table["stop"], table["start"])})


def _unbalanced(unit: str, counts: Counts, stream: Counts) -> Iterator[str]:
    packed, dropped = counts["tokens_packed"], counts["tokens_dropped"]
    if counts["tokens_in"] != packed + dropped:
        yield f"{unit}: {counts['tokens_in']} tokens in, {packed} packed, {dropped} dropped"
    reasons = {key: count for key, count in counts.items() if key.startswith("tokens_dropped|reason=")}
    if dropped != sum(reasons.values()):
        yield f"{unit}: {dropped} tokens are dropped, not all of them for a reason"
    held = packed + counts["tokens_repeated"] + reasons.get("tokens_dropped|reason=tail", 0)
    held += stream.get("tokens_added", 0)
    if held != stream["tokens_stream"]:
        yield f"{unit}: its stream has {stream['tokens_stream']} ids, packed, repeated, added, in its tail are {held}"


def _breaches(unit: str, params: PackParams, table: pa.Table, counts: Counts) -> Iterator[str]:
    """Sequences as the strategy lays them: from the stream's first id on, none beyond its end. Those of a flat stream
    share an id with their neighbour, but where each begins with a BOS of its own."""
    starts, stops = (table[name].to_numpy() for name in ("start", "stop"))
    if len(starts) == 0:
        return
    limit, lengths, stream = params.tokens_per_sequence + 1, stops - starts, counts["tokens_stream"]
    shared = params.strategy == "concat" and counts.get("tokens_added", 0) < 2
    if lengths.min() < 2 or lengths.max() > limit:
        yield f"{unit}: sequences of {lengths.min()} to {lengths.max()} ids, allowed are 2 to {limit}"
    if starts[0] != 0 or stops[-1] > stream:
        yield f"{unit}: sequences cover ids {starts[0]} to {stops[-1]} of {stream}"
    if params.strategy == "stride":
        if (np.diff(starts) != params.stride).any():
            yield f"{unit}: neighbouring windows do not begin {params.stride} ids apart"
    elif (starts[1:] != stops[:-1] - shared).any():
        yield f"{unit}: neighbouring sequences do not share {'exactly one id' if shared else 'an end and a beginning'}"


STEP = Step(
    name="pack",
    params=PackParams,
    folders=(
        Folder(
            "splits",
            "tasks.pack.splits:make",
            reads=(TOKENS, TEXT, SIGNALS),
            shapes=("split_seed", "validation_share", "test_share", "domains"),
        ),
        Folder(
            "pieces",
            "tasks.pack.pieces:make",
            reads=(TOKENS, SPLITS),
            shapes=("group_bytes", "long", "long_of", "seed"),
            plan=plan_groups,
        ),
        Folder(
            "sequences",
            "tasks.pack.sequences:make",
            reads=(PIECES,),
            shapes=("tokens_per_sequence", "strategy", "tail", "stride"),
            plan=plan_sequences,
        ),
    ),
    inputs=("normalize", "filter", "tokenize"),
    rows=rows,
    rows_of=SEQUENCES,
    invariants=invariants,
)
