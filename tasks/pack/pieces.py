"""The folder pack/pieces: which ids of which rows make up a group's stream, in order.

In: the rows and splits of the group's parts. Out: one piece a kept document of the group's split. It copies
no id.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tasks.artifacts.tokens import PIECES
from tasks.errors import InvariantError
from tasks.step import Made, Reads

if TYPE_CHECKING:
    from tasks.pack import PackParams

SCHEMA = PIECES
TOKENS, SPLITS = "tokenize/tokens", "pack/splits"


def make(reads: Reads, params: PackParams) -> Made:
    """The pieces of the group. spec: {"split": its split, "parts": its parts in order}."""
    parts: Sequence[str] = reads.spec["parts"]
    table = pa.concat_tables([_pieces(reads, part) for part in parts])
    tokens = int(np.sum(table["stop"].to_numpy() - table["start"].to_numpy()))
    return Made({".parquet": table}, {"tokens_in": tokens, "documents_in": table.num_rows, "parts": len(parts)})


def _pieces(reads: Reads, part: str) -> pa.Table:
    tokens = reads.table(TOKENS, ["tokens"], part)["tokens"].to_numpy()
    names = reads.table(SPLITS, None, part)["split"].to_numpy(zero_copy_only=False)
    if len(tokens) != len(names):
        raise InvariantError(
            f"{part} has {len(tokens)} rows in {TOKENS}, {len(names)} in {SPLITS}",
            "build pack again with --force",
        )
    stops = np.cumsum(tokens)
    rows = np.flatnonzero((names == reads.spec["split"]) & (tokens > 0))
    columns = {"part": [part] * len(rows), "row": rows, "start": (stops - tokens)[rows], "stop": stops[rows]}
    return pa.table(columns, schema=PIECES)
