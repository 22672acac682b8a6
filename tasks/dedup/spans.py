"""dedup/spans: the paragraphs and lines of a part that may stand elsewhere too.

In: normalize/text, every row of a part. Out: SPANS. It depends on the text alone, so that no threshold reads it again.

Cost on one core: 380 MB/s with the reading; about 15 bytes on disk a span.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tasks.artifacts.verdicts import SPANS
from tasks.step import Made, Reads
from tasks.text.spans import find_spans

if TYPE_CHECKING:
    from tasks.dedup import DedupParams

SCHEMA = SPANS
ROWS_AT_ONCE = 4096


def find(reads: Reads, params: DedupParams) -> Made:
    """The spans of one part, sorted by row and end; counts spans."""
    texts = reads.table("normalize/text", ["text"]).column("text")
    tables = [
        _find_rows(texts.slice(start, ROWS_AT_ONCE), start, params.span_characters_min)
        for start in range(0, len(texts), ROWS_AT_ONCE)
    ]
    table = pa.concat_tables([SCHEMA.empty_table(), *tables])
    return Made({".parquet": table}, {"spans": table.num_rows})


def _find_rows(texts: pa.ChunkedArray, first: int, characters_min: int) -> pa.Table:
    spans = find_spans(texts, characters_min)
    columns = (spans.texts_S + first, spans.levels_S, *spans[2:])
    return pa.table([pa.array(column) for column in columns], SCHEMA.names).cast(SCHEMA)
