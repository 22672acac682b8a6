"""The folder shard/classes: the kind and the language of each document of a held-out shard.

In: the pieces of a group and the rows of its parts. Out: .classes.npy (tasks.artifacts.shards.CLASSES), in the order of
the .idx. So validation tells losses apart where only the shards are; a shard of train has none, nothing would read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tasks.artifacts.shards import CLASS_NAMES, CLASSES
from tasks.errors import InvariantError
from tasks.step import Made, Reads

if TYPE_CHECKING:
    from tasks.shard import ShardParams

PIECES, SPLITS = "pack/pieces", "pack/splits"


def make(reads: Reads, params: ShardParams) -> Made:
    """The classes of the group spec["group"]. Raises InvariantError for a name that has no room."""
    pieces = reads.table(PIECES, ["part", "row"], reads.spec["group"])
    classes = np.empty(pieces.num_rows, CLASSES)
    parts, rows = pieces["part"].to_numpy(zero_copy_only=False), pieces["row"].to_numpy()
    for part in dict.fromkeys(parts.tolist()):
        own = parts == part
        found = reads.table(SPLITS, CLASS_NAMES, part).take(rows[own])
        for name in CLASS_NAMES:
            classes[name][own] = _fitting(part, name, found[name].to_numpy(zero_copy_only=False))
    return Made({".classes.npy": classes}, {"documents_classed": len(classes)})


def _fitting(part: str, dimension: str, words: np.ndarray) -> np.ndarray:
    """`words` in ASCII; numpy would cut what is longer than its field, and two of them might become one."""
    width = CLASSES[dimension].itemsize
    for word in np.unique(words):
        if not word.isascii() or len(word) > width:
            raise InvariantError(
                f"{SPLITS}, {part}: the {dimension} {word!r} is not within {width} ASCII letters, as web and en are",
                "if the part was changed, run: gristmill build --force pack; if a step names them anew, widen CLASSES "
                "in tasks/artifacts/shards.py",
            )
    return words.astype(f"S{width}")
