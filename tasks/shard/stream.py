"""The folder shard/stream: a group's ids in one file, and Megatron's index of its documents.

In: the pieces of a group and the flat ids of its parts. Out: .bin and .idx, and .loss where a part has one
(tasks.artifacts.shards). It cuts nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tasks.artifacts.shards import checked_ids, index_bytes
from tasks.errors import InvariantError
from tasks.shard.facts import facts
from tasks.step import Made, Payload, Reads

if TYPE_CHECKING:
    from tasks.shard import ShardParams

PIECES, TOKENS = "pack/pieces", "tokenize/tokens"
Ids = np.ndarray[Any, Any]


def make(reads: Reads, params: ShardParams) -> Made:
    """The stream of the group spec["group"]. Memory: the ids of one group, twice. A BOS that pack puts in begins the
    document of its piece in .idx, and carries no loss.

    Raises InvariantError where a piece leaves its part or does not end as it should, ShardError where an id does
    not fit.
    """
    known = facts(reads)
    dtype = np.dtype(known["dtype"])
    group = reads.spec["group"]
    pieces = reads.table(PIECES, ["part", "start", "stop", "closes", "bos"], group)
    sizes, begins = pieces["stop"].to_numpy() - pieces["start"].to_numpy(), pieces["bos"].to_numpy()
    parts = list(dict.fromkeys(pieces["part"].to_pylist()))
    flat = _gathered(pieces, {part: reads.array(TOKENS, ".bin", dtype.str, part) for part in parts}, dtype)
    _check(group, flat, sizes, pieces["closes"].to_numpy(), known["eos_id"])
    places = (np.cumsum(sizes) - sizes)[begins]
    flat, sizes = np.insert(flat, places, known["bos_id"]) if len(places) else flat, sizes + begins
    flat = checked_ids(group, flat, dtype, known["vocab_size"])
    counts = {"tokens": len(flat), "documents": len(sizes), "bytes": flat.nbytes}
    files: dict[str, Payload] = {".bin": flat, ".idx": index_bytes(sizes, dtype)}
    if reads.spec["masked"]:
        loss = _gathered(pieces, {part: _loss(reads, part) for part in parts}, np.dtype(np.uint8))
        loss = np.insert(loss, places, 0)
        files[".loss"], counts["learnt"] = loss.tobytes(), int(np.count_nonzero(loss))
    else:
        counts["learnt"] = len(flat) - len(places)
    return Made(files, counts)


def _loss(reads: Reads, part: str) -> Ids:
    if part in reads.spec["masked"]:
        return reads.array(TOKENS, ".loss", "u1", part)
    return np.ones(int(reads.table(TOKENS, ["tokens"], part)["tokens"].to_numpy().sum()), np.uint8)


def _gathered(pieces: pa.Table, flat: Mapping[str, Ids], dtype: np.dtype[Any]) -> Ids:
    """The ids (or their loss) of the pieces one after another; neighbours in a part are copied at once."""
    parts = pieces["part"].to_numpy(zero_copy_only=False)
    starts, stops = pieces["start"].to_numpy(), pieces["stop"].to_numpy()
    breaks = np.flatnonzero((parts[1:] != parts[:-1]) | (starts[1:] != stops[:-1])) + 1
    runs = pairwise([0, *breaks.tolist(), len(parts)]) if len(parts) else ()
    spans = [(parts[first], int(starts[first]), int(stops[after - 1])) for first, after in runs]
    return np.concatenate([np.empty(0, dtype), *(flat[part][start:stop] for part, start, stop in spans)])


def _check(group: str, flat: Ids, sizes: Ids, closes: Ids, eos_id: int) -> None:
    """A piece ends with EOS just where its document ends."""
    if len(flat) != sizes.sum():
        raise InvariantError(
            f"{group}: its pieces name {sizes.sum()} ids, its parts hold {len(flat)} of them",
            "build pack again with --force",
        )
    last = flat[np.cumsum(sizes) - 1]
    wrong = np.flatnonzero((last == eos_id) != closes)
    if len(wrong):
        at = int(wrong[0])
        raise InvariantError(
            f"{group}: document {at} ends with id {last[at]}, not with EOS {eos_id}"
            if closes[at]
            else f"{group}: piece {at} of a document that goes on ends with EOS",
            "build tokenize again with --force",
        )
