"""dedup/sketches: what near deduplication needs to know of a text, one row a document.

In: normalize/text, every row of a part. Out: SKETCHES, and in the file's metadata what they were made by. They depend
on the text alone and decide nothing, so that neither a new threshold nor a new filter reads text again.

Cost on one core: 490 MB/s of English text; a third of it finds words, a third permutes.
"""

from __future__ import annotations

import json
import unicodedata
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tasks.artifacts.tables import MADE
from tasks.artifacts.verdicts import SKETCHES
from tasks.step import Made, Reads
from tasks.text.minhash import permutations, sign
from tasks.text.shingles import HASH, count_different, shingle_slices

if TYPE_CHECKING:
    from tasks.dedup import DedupParams

SCHEMA = SKETCHES
UNITS = ("words", "characters")
"""What a text's shingles are made of."""


def sketch(reads: Reads, params: DedupParams) -> Made:
    """The sketches of one part, row-aligned, columns as in SCHEMA."""
    texts = reads.table("normalize/text", ["text"]).column("text")
    rows, drawn = len(texts), permutations(params.seed, params.permutations)
    characters, words, shingles = (np.empty(rows, np.int64) for _ in range(3))
    by_character, signatures = np.empty(rows, np.int8), np.empty((rows, params.permutations), np.uint32)
    for some, found, split in shingle_slices(texts, params.shingle_words, params.shingle_characters):
        characters[some], words[some] = split.characters_D, np.diff(split.offsets_D1)
        shingles[some], by_character[some] = count_different(found), found.by_character_D
        sign(found.hashes_S, found.offsets_D1, drawn, signatures[some])
    columns = {
        "characters": characters,
        "words": words,
        "unit": pa.array(UNITS, pa.string()).take(pa.array(by_character)),
        "shingles": shingles,
        "signature": pa.FixedSizeListArray.from_arrays(pa.array(signatures.ravel()), params.permutations),
    }
    table = pa.table(columns, schema=SCHEMA).replace_schema_metadata({MADE: made_by(params)})
    return Made({".parquet": table}, {"texts": rows})


def made_by(params: DedupParams) -> str:
    """JSON of all that a signature depends on but the text: sketches that differ in it say nothing of each other."""
    names = ("permutations", "seed", "shingle_words", "shingle_characters")
    said = {"scheme": "affine32", "hash": HASH, "unicode": unicodedata.unidata_version}
    return json.dumps(said | {name: getattr(params, name) for name in names}, sort_keys=True)
