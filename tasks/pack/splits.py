"""The folder pack/splits: train, validation or test, for each row of a part.

In: the rows of tokenize. Out: one word a row, dropped rows too. It moves no token.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa

from tasks.artifacts.tokens import SPLITS
from tasks.step import Made, Reads
from tasks.text.split import splits

if TYPE_CHECKING:
    from tasks.pack import PackParams

SCHEMA = SPLITS
TOKENS = "tokenize/tokens"


def make(reads: Reads, params: PackParams) -> Made:
    """The split of every row, and the documents and tokens that each split keeps."""
    rows = reads.table(TOKENS, ["text_sha", "tokens"])
    shas, tokens = (rows[name].to_pylist() for name in ("text_sha", "tokens"))
    names = splits(shas, params.split_seed, params.validation_share, params.test_share)
    counts = Counter[str]()
    for name, count in zip(names, tokens, strict=True):
        counts[f"documents|split={name}"] += count > 0
        counts[f"tokens|split={name}"] += count
    return Made({".parquet": pa.table({"split": names}, schema=SPLITS)}, dict(counts))
