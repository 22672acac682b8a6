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

from tasks.artifacts.tokens import SEQUENCE, SEQUENCES
from tasks.step import Counts, Made, Reads

if TYPE_CHECKING:
    from tasks.pack import PackParams

SCHEMA = SEQUENCES
PIECES = "pack/pieces"
Bounds = np.ndarray[Any, np.dtype[np.int64]]


def make(reads: Reads, params: PackParams) -> Made:
    """The sequences of the group, by the strategy of the params. spec: "counts", those of the pieces, and "bos" where
    pack puts it: with sequence, concat too is whole pieces, BOS and T ids each, of which every one is a target.

    Counts: tokens_in = tokens_packed (different ids that a sequence holds) + tokens_dropped, by reason; tokens_added:
    BOS that a sequence holds; padding: ids that all sequences together are short of tokens_per_sequence + 1.
    """
    pieces = reads.table(PIECES, ["start", "stop", "opens", "bos"])
    begins = pieces["bos"].to_numpy()
    sizes = pieces["stop"].to_numpy() - pieces["start"].to_numpy() + begins
    length, keep = params.tokens_per_sequence, params.tail == "keep"
    if params.strategy in ("best_fit", "document") or reads.spec.get("bos") == SEQUENCE:
        starts, stops = whole_pieces(sizes, pieces["opens"].to_numpy())
        if params.strategy == "concat" and not keep:
            full = stops - starts == length + 1
            starts, stops = starts[full], stops[full]
    elif params.strategy == "stride":
        starts, stops = windows(int(sizes.sum()), length, params.stride, keep_tail=keep)
    else:
        starts, stops = concat(int(sizes.sum()), length, keep_tail=keep)
    last = int(stops[-1]) if len(stops) else 0
    added = int(np.count_nonzero((np.cumsum(sizes) - sizes)[begins] < last))
    counts = _counts(reads.spec["counts"], int(sizes.sum()) - last, added, len(starts))
    counts |= {"places": len(starts) * (length + 1)}
    counts |= {"padding": counts["places"] - int((stops - starts).sum())}
    return Made({".parquet": pa.table({"start": starts, "stop": stops}, schema=SEQUENCES)}, counts)


def _counts(before: Counts, rest: int, added: int, sequences: int) -> Counts:
    """What became of every token. rest: ids of the stream behind the last sequence; added: BOS before that."""
    dropped = {key: count for key, count in before.items() if key.startswith("tokens_dropped|")}
    tail = rest - (before.get("tokens_added", 0) - added)
    if tail:
        dropped["tokens_dropped|reason=tail"] = tail
    total = sum(dropped.values())
    counts = {"tokens_in": before["tokens_in"], "tokens_packed": before["tokens_in"] - total, "tokens_dropped": total}
    counts |= {"tokens_added": added} if before.get("tokens_added") else {}
    return {**counts, "tokens_repeated": before.get("tokens_repeated", 0), "sequences": sequences, **dropped}


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
