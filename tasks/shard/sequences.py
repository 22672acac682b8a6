"""The folder shard/sequences: where each sequence of a group lies in its .bin.

In: pack/sequences. Out: .starts.npy and .stops.npy, uint64 [sequences]. It reads no id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tasks.step import Made, Reads

if TYPE_CHECKING:
    from tasks.shard import ShardParams

SEQUENCES = "pack/sequences"


def make(reads: Reads, params: ShardParams) -> Made:
    """The bounds of the group spec["group"]; tokens_covered counts an id that two sequences share once."""
    table = reads.table(SEQUENCES, None, reads.spec["group"])
    starts, stops = (table[name].to_numpy().astype("<u8") for name in ("start", "stop"))
    seen = np.maximum.accumulate(np.concatenate([np.zeros(1, "<u8"), stops]))
    covered = seen[1:] - np.minimum(np.maximum(starts, seen[:-1]), seen[1:])
    counts = {"sequences": len(starts), "tokens_covered": int(covered.sum())}
    return Made({".starts.npy": starts, ".stops.npy": stops}, counts)
