"""data/filter/signals: everything measured of every document, kept or not, so that new limits read no text.

In: the text of a part of normalize/text. Out: a table with the schema SIGNALS, row-aligned. It judges
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tasks.artifacts.verdicts import SIGNALS
from tasks.step import Made, Reads
from tasks.text.languages import detect_languages
from tasks.text.signals import measure_texts

if TYPE_CHECKING:
    from tasks.filter import FilterParams

SCHEMA = SIGNALS


def make(reads: Reads, params: FilterParams) -> Made:
    """Measure one part; reads one part's text at a time, params.language_characters, params.segmentation."""
    texts = reads.table("normalize/text", ["text"])["text"]
    codes, scores = detect_languages(texts, params.language_characters)
    table = pa.table({**measure_texts(texts, codes, params.segmentation), "language": codes, "language_score": scores})
    return Made({".parquet": table.select(SIGNALS.names)}, {"documents_in": table.num_rows})
