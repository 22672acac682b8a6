"""decontaminate/matches: where a part shares n-grams with evaluation items.

In: normalize/text, every row of a part, and the evaluation sets. Out: MATCHES, a row a passage, sorted by
(row, set, item, start). It depends on texts and sets alone: what earlier steps dropped, and what is done
about a match, is not its concern, so that neither makes it read text again.

Cost on one core: 150 MB/s of English text against 3,000 items.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tasks.artifacts.verdicts import MATCHES
from tasks.decontaminate.index import Index, Numbers, build_index
from tasks.decontaminate.passages import find_passages
from tasks.decontaminate.sets import EvaluationSet
from tasks.step import Made, Reads
from tasks.text.words import split_words

if TYPE_CHECKING:
    from tasks.decontaminate import DecontaminateParams

SCHEMA = MATCHES
ROWS_AT_ONCE = 4096


def match(reads: Reads, params: DecontaminateParams) -> Made:
    """The passages of one part; counts texts, and texts_matched of them, earlier steps' losses included.

    reads.spec: {"sets": [{"name", "sha256", "fields", "format"}]}; a file by each set's name.
    """
    index = index_of(reads, params)
    texts = reads.table("normalize/text", ["text"]).column("text")
    tables = [
        _match_rows(texts.slice(start, ROWS_AT_ONCE), start, index) for start in range(0, len(texts), ROWS_AT_ONCE)
    ]
    table = pa.concat_tables([SCHEMA.empty_table(), *tables])
    order = [(name, "ascending") for name in ("row", "set", "item", "start")]
    rows = len(set(table.column("row").to_pylist()))
    return Made({".parquet": table.sort_by(order)}, {"texts": len(texts), "texts_matched": rows})


def index_of(reads: Reads, params: DecontaminateParams) -> Index:
    """The index of the sets that the unit's plan names."""
    sets = tuple(
        EvaluationSet(one["name"], str(reads.path(one["name"])), one["sha256"], tuple(one["fields"]), one["format"])
        for one in reads.spec["sets"]
    )
    numbers = Numbers(params.ngram_words, params.short_words_min, params.boilerplate_items_min)
    return build_index(sets, numbers)


def _match_rows(texts: pa.ChunkedArray, first: int, index: Index) -> pa.Table:
    """The passages of rows `first` and on; not sorted yet."""
    passages = find_passages(split_words(texts), index.grams)
    names = pa.array(index.names_I, pa.string())
    sets = pa.array(index.sets, pa.string())
    columns = {
        "row": passages.texts_M + first,
        "set": sets.take(pa.array(index.sets_I[passages.items_M])),
        "item": names.take(pa.array(passages.items_M)),
        "grams": passages.grams_M.astype(np.int64),
        "start": passages.starts_M,
        "stop": passages.stops_M,
        "item_grams": index.grams_I[passages.items_M],
        "ngrams": pa.ListArray.from_arrays(pa.array(passages.offsets_M1, pa.int32()), pa.array(passages.hashes)),
    }
    return pa.table(columns, schema=SCHEMA)
