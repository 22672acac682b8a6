"""The folder pack/sequences: where each training sequence lies in its group's stream.

In: the pieces of one group. Out: start and stop of each sequence. It reads no id.

concat: documents follow one another, a sequence may hold the end of one and the beginning of the next, and neighbours
share one id, so that every id but the stream's first is the target of exactly one position. stride: as concat, but a
window begins every S ids; nothing is stored twice. best_fit, document: a sequence is a run of whole pieces, and none
is in two of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tasks.artifacts.tokens import SEQUENCES
from tasks.step import Counts, Made, Reads

if TYPE_CHECKING:
    from tasks.pack import PackParams

SCHEMA = SEQUENCES
PIECES = "pack/pieces"
Bounds = np.ndarray[Any, np.dtype[np.int64]]


def make(reads: Reads, params: PackParams) -> Made:
    """The sequences of the group, by the strategy of the params. spec["counts"]: those of the pieces.

    Counts: tokens_in = tokens_packed (different ids that a sequence holds) + tokens_dropped, by reason; padding: ids
    that all sequences together are short of tokens_per_sequence + 1.
    """
    pieces = reads.table(PIECES, ["start", "stop", "opens"])
    sizes = pieces["stop"].to_numpy() - pieces["start"].to_numpy()
    length, keep = params.tokens_per_sequence, params.tail == "keep"
    if params.strategy in ("best_fit", "document"):
        starts, stops = whole_pieces(sizes, pieces["opens"].to_numpy())
    elif params.strategy == "stride":
        starts, stops = windows(int(sizes.sum()), length, params.stride, keep_tail=keep)
    else:
        starts, stops = concat(int(sizes.sum()), length, keep_tail=keep)
    counts = _counts(reads.spec["counts"], int(sizes.sum()), starts, stops)
    counts |= {"places": len(starts) * (length + 1)}
    counts |= {"padding": counts["places"] - int((stops - starts).sum())}
    return Made({".parquet": pa.table({"start": starts, "stop": stops}, schema=SEQUENCES)}, counts)


def _counts(before: Counts, stream: int, starts: Bounds, stops: Bounds) -> Counts:
    """What became of every token; the sequences ascend, so the last one's end is where packing ends."""
    dropped = {key: count for key, count in before.items() if key.startswith("tokens_dropped|")}
    tail = stream - (int(stops[-1]) if len(stops) else 0)
    if tail:
        dropped["tokens_dropped|reason=tail"] = tail
    total = sum(dropped.values())
    counts = {"tokens_in": before["tokens_in"], "tokens_packed": before["tokens_in"] - total, "tokens_dropped": total}
    repeated = before.get("tokens_repeated", 0)
    return {**counts, "tokens_repeated": repeated, "sequences": len(starts), **dropped}


def whole_pieces(sizes: Bounds, opens: np.ndarray[Any, np.dtype[np.bool_]]) -> tuple[Bounds, Bounds]:
    """(starts, stops): a sequence reaches from a piece that opens one to the next such piece."""
    ends = np.cumsum(sizes, dtype=np.int64)
    starts = (ends - sizes)[opens]
    return starts, np.append(starts[1:], ends[-1:])[: len(starts)]


def windows(tokens: int, tokens_per_sequence: int, stride: int, *, keep_tail: bool) -> tuple[Bounds, Bounds]:
    """(starts, stops): windows of T + 1 ids that begin at 0, S, 2S, ... (S at most T, so that no target is lost).

    keep_tail: a last, shorter window holds what the full ones leave.
    """
    full = (tokens - tokens_per_sequence - 1) // stride + 1 if tokens > tokens_per_sequence else 0
    covered = (full - 1) * stride + tokens_per_sequence + 1 if full else 0
    short = keep_tail and tokens > max(1, covered)
    starts = np.arange(full + short, dtype=np.int64) * stride
    return starts, np.minimum(starts + tokens_per_sequence + 1, tokens)


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
