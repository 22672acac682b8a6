"""The folder pack/sequences: where each training sequence lies in its group's stream.

In: the pieces of one group. Out: start and stop of each sequence. Concatenation: documents follow one
another, a sequence may hold the end of one and the beginning of the next, and neighbours share one id, so
that every id but the stream's first is the target of exactly one position. It reads no id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tasks.artifacts.tokens import SEQUENCES
from tasks.step import Made, Reads

if TYPE_CHECKING:
    from tasks.pack import PackParams

SCHEMA = SEQUENCES
PIECES = "pack/pieces"
Bounds = np.ndarray[Any, np.dtype[np.int64]]


def make(reads: Reads, params: PackParams) -> Made:
    """The sequences of the group, by the strategy of the params."""
    pieces = reads.table(PIECES, ["start", "stop"])
    tokens = int(np.sum(pieces["stop"].to_numpy() - pieces["start"].to_numpy()))
    starts, stops = STRATEGIES[params.strategy](tokens, params.tokens_per_sequence, keep_tail=params.tail == "keep")
    packed = int(stops[-1]) if len(stops) else 0
    counts = {"tokens_in": tokens, "tokens_packed": packed, "tokens_dropped": tokens - packed}
    counts |= {"sequences": len(starts)}
    if tokens > packed:
        counts["tokens_dropped|reason=tail"] = tokens - packed
    return Made({".parquet": pa.table({"start": starts, "stop": stops}, schema=SEQUENCES)}, counts)


def concat(tokens: int, tokens_per_sequence: int, *, keep_tail: bool) -> tuple[Bounds, Bounds]:
    """(starts, stops) of a stream of `tokens` ids: starts 0, T, 2T, ...; a full sequence is T + 1 ids long.

    keep_tail: the last sequence may be shorter, down to 2 ids (one position with a target); else only full
    ones stay. A stream of one id has no target, so it has no sequence.
    """
    starts = np.arange(0, max(0, tokens - 1), tokens_per_sequence, dtype=np.int64)
    stops = np.minimum(starts + tokens_per_sequence + 1, tokens)
    if not keep_tail:
        full = stops - starts == tokens_per_sequence + 1
        starts, stops = starts[full], stops[full]
    return starts, stops


STRATEGIES = {"concat": concat}
