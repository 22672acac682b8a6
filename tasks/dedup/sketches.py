"""dedup/sketches: what near deduplication needs to know of a text, one row a document.

In: normalize/text, every row of a part. Out: SKETCHES. It depends on the text alone and decides nothing, so
that neither a new threshold nor a new filter reads text again.

Cost on one core: 130 MB/s of English text, three quarters of it spent on finding words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tasks.artifacts.verdicts import SKETCHES
from tasks.step import Made, Reads
from tasks.text.minhash import permutations, sign
from tasks.text.shingles import count_different, shingle_texts

if TYPE_CHECKING:
    from tasks.dedup import DedupParams

SCHEMA = SKETCHES
ROWS_AT_ONCE = 4096


def sketch(reads: Reads, params: DedupParams) -> Made:
    """The sketches of one part, row-aligned, columns as in SCHEMA."""
    texts = reads.table("normalize/text", ["text"]).column("text")
    tables = [_sketch_rows(texts.slice(start, ROWS_AT_ONCE), params) for start in range(0, len(texts), ROWS_AT_ONCE)]
    table = pa.concat_tables(tables) if tables else SCHEMA.empty_table()
    return Made({".parquet": table}, {"texts": table.num_rows})


def _sketch_rows(texts: pa.ChunkedArray, params: DedupParams) -> pa.Table:
    shingles, words = shingle_texts(texts, params.shingle_words, params.shingle_characters)
    drawn = permutations(params.seed, params.permutations)
    signatures_DP = sign(shingles.hashes_S, shingles.offsets_D1, drawn)
    columns = {
        "characters": words.characters_D,
        "words": np.diff(words.offsets_D1),
        "unit": np.where(shingles.by_character_D, "characters", "words").tolist(),
        "shingles": count_different(shingles),
        "signature": pa.FixedSizeListArray.from_arrays(pa.array(signatures_DP.ravel()), params.permutations),
    }
    return pa.table(columns, schema=SCHEMA)
