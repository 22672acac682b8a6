"""Schemas of signals, verdicts, cuts, sketches, pairs and matches: decisions about rows of normalize/text."""

from __future__ import annotations

import pyarrow as pa

KEEP, DROP, CUT, GONE = "keep", "drop", "cut", "gone"
"""The four verdicts; `gone`: an earlier step dropped the row already, this one did not judge it."""

_VERDICT = pa.field("verdict", pa.string(), nullable=False)  # keep, drop, cut or gone
_RULE = pa.field("rule", pa.string())  # the first rule broken; null where kept or gone

SIGNALS = pa.schema(
    [
        pa.field("characters", pa.int64(), nullable=False),  # code points of the text
        pa.field("bytes", pa.int64(), nullable=False),  # bytes in UTF-8
        pa.field("words", pa.int64(), nullable=False),  # words (tasks.text.words)
        pa.field("lines", pa.int64(), nullable=False),  # lines that are not blank
        pa.field("mean_word_length", pa.float64(), nullable=False),  # characters in words / words; 0 of none
        pa.field("symbol_share", pa.float64(), nullable=False),  # symbols / characters that are not white
        pa.field("duplicate_3gram_share", pa.float64(), nullable=False),  # repeated 3-grams / 3-grams
        pa.field("language", pa.string(), nullable=False),  # ISO 639-1, or "und" where there are no letters
        pa.field("language_score", pa.float64(), nullable=False),  # 0 to 1, rounded to two decimals
    ]
)
"""filter/signals: row-aligned; every row of the corpus, kept or not."""

FILTER_VERDICTS = pa.schema(
    [
        _VERDICT,
        _RULE,
        pa.field("value", pa.float64()),  # the signal's value that broke the rule
        pa.field("limit", pa.float64()),  # the limit it broke
    ]
)
"""filter/verdicts: row-aligned."""

DEDUP_VERDICTS = pa.schema(
    [
        _VERDICT,
        _RULE,  # exact or near
        pa.field("survivor_part", pa.string()),  # the kept document that stands for this one
        pa.field("survivor_row", pa.int64()),
        pa.field("similarity", pa.float64()),  # exact Jaccard of the two shingle sets, 0 to 1
    ]
)
"""dedup/verdicts: row-aligned."""

DECONTAMINATE_VERDICTS = pa.schema(
    [
        _VERDICT,
        _RULE,  # name of the evaluation set
        pa.field("item", pa.string()),  # the evaluation item, as "line:field"
        pa.field("grams", pa.int64()),  # n-grams shared with that item
    ]
)
"""decontaminate/verdicts: row-aligned."""

CUTS = pa.schema(
    [
        pa.field("row", pa.int64(), nullable=False),
        pa.field("start", pa.int64(), nullable=False),  # bytes of the normalized text, on character borders
        pa.field("stop", pa.int64(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
    ]
)
"""dedup/cuts, decontaminate/cuts: sorted by (row, start); not aligned; spans of one row may overlap."""

SKETCHES = pa.schema(
    [
        pa.field("characters", pa.int64(), nullable=False),  # code points of the text
        pa.field("words", pa.int64(), nullable=False),  # words (tasks.text.words)
        pa.field("unit", pa.string(), nullable=False),  # what its shingles are made of: words or characters
        pa.field("shingles", pa.int64(), nullable=False),  # number of different shingles
        pa.field("signature", pa.list_(pa.uint32(), 128), nullable=False),  # as datasketch 2, scheme affine32
    ]
)
"""dedup/sketches: row-aligned; every row of the corpus."""

PAIRS = pa.schema(
    [
        pa.field("row", pa.int64(), nullable=False),  # the document of this part
        pa.field("other_part", pa.string(), nullable=False),  # the better ranked document
        pa.field("other_row", pa.int64(), nullable=False),
        pa.field("similarity", pa.float64(), nullable=False),  # exact Jaccard, pair_similarity_min or more
        pa.field("removes", pa.bool_(), nullable=False),  # the pair that decided the row
    ]
)
"""dedup/pairs: for each document the survivor that removed it, and the most similar one that did not.

Not aligned; sorted by (row, other_part, other_row)."""

MATCHES = pa.schema(
    [
        pa.field("row", pa.int64(), nullable=False),
        pa.field("set", pa.string(), nullable=False),  # name of the evaluation set in params.yaml
        pa.field("item", pa.string(), nullable=False),  # "line:field" within that set's file
        pa.field("grams", pa.int64(), nullable=False),  # different n-grams shared in this passage
        pa.field("start", pa.int64(), nullable=False),  # bytes of the normalized text: its first
        pa.field("stop", pa.int64(), nullable=False),  # shared n-gram to its last
        pa.field("item_grams", pa.int64(), nullable=False),  # different n-grams of the whole item
        pa.field("ngrams", pa.list_(pa.uint64()), nullable=False),  # hashes of those shared here, ascending
    ]
)
"""decontaminate/matches: a row a passage; not aligned, sorted by (row, set, item, start)."""

BOILERPLATE = pa.schema(
    [
        pa.field("ngram", pa.uint64(), nullable=False),  # hash, as in matches
        pa.field("documents", pa.int64(), nullable=False),  # that hold it, but no item as a whole
        pa.field("sources", pa.int64(), nullable=False),  # they come from
    ]
)
"""decontaminate/boilerplate: n-grams of items that tell nothing; one table, sorted by ngram."""
