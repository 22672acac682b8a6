"""Schemas of signals, verdicts, cuts, sketches, pairs and matches: decisions about rows of normalize/text."""

from __future__ import annotations

import pyarrow as pa

KEEP, DROP, CUT, GONE = "keep", "drop", "cut", "gone"
"""The four verdicts; `gone`: an earlier step dropped the row already, this one did not judge it."""

_VERDICT = pa.field("verdict", pa.string(), nullable=False)  # keep, drop, cut or gone
_RULE = pa.field("rule", pa.string())  # the first rule broken; null where kept or gone

_COUNTS = (
    "characters",  # code points of the text
    "bytes",  # in UTF-8
    "words",  # tasks.text.words
    "letters",  # letters and marks (categories L, M)
    "lines",  # lines that are not blank
    "paragraphs",  # runs of lines with no blank one between
    "sentences",  # tasks.text.marks
    "max_word_length",  # characters of the longest word
    "max_line_length",  # characters of the longest line, white space at its ends aside
    "brief_lines",  # lines of fewer than 3 words
    "unterminated_lines",  # lines that end neither with a terminal mark nor with a closing quote
    "javascript_lines",  # lines with "javascript" in them
    "policy_lines",  # lines with one of C4's six phrases on cookies, terms and privacy
    "braces",  # { and }
    "lorem_ipsum",  # "lorem ipsum"
    "stop_words",  # different stop words of the text's language (tasks.text.stopwords)
)
_QUOTIENTS = (
    "mean_word_length",  # characters in words / words
    "mean_line_length",  # characters of lines / lines
    "letter_share",  # letters and marks / characters that are not white, as the next three
    "digit_share",  # category N
    "punctuation_share",  # category P
    "symbol_share",  # neither in words nor white
    "white_share",  # white / characters
    "url_share",  # characters in links / characters that are not white
    "replacement_share",  # U+FFFD / characters
    "private_use_share",  # category Co / characters
    "letter_word_share",  # words with a letter / words
    "stop_word_share",  # stop words / words
    "hashes_per_word",
    "ellipses_per_word",
    "newlines_per_word",
    "bullet_line_share",  # lines that begin with a bullet / lines
    "ellipsis_line_share",  # lines that end with an ellipsis / lines
    "terminated_line_share",  # lines that end with a terminal mark or closing quote / lines
    "short_line_share",  # lines of at most 30 characters / lines
    "duplicate_line_share",  # lines that stand in the text already / lines
    "duplicate_line_character_share",  # their characters / characters of lines
    "duplicate_paragraph_share",  # the same of paragraphs
    "duplicate_paragraph_character_share",
    "duplicate_3gram_share",  # (3-grams - different ones) / 3-grams
    "top_2gram_character_share",  # characters that the n-gram of words covers which covers most / characters
    "top_3gram_character_share",
    "top_4gram_character_share",
    "duplicate_5gram_character_share",  # characters of n-grams passed before / characters
    "duplicate_6gram_character_share",
    "duplicate_7gram_character_share",
    "duplicate_8gram_character_share",
    "duplicate_9gram_character_share",
    "duplicate_10gram_character_share",
)

SIGNALS = pa.schema(
    [
        *(pa.field(name, pa.int64(), nullable=False) for name in _COUNTS),
        *(pa.field(name, pa.float64(), nullable=False) for name in _QUOTIENTS),  # 0 where the divisor is 0
        pa.field("language", pa.string(), nullable=False),  # ISO 639-1, or "und" where there are no letters
        pa.field("language_score", pa.float64(), nullable=False),  # 0 to 1, rounded to two decimals
    ]
)
"""filter/signals: row-aligned; every row of the corpus, kept or not.

filter/own beside it: a float64 column for each signal of the user's own and each field of metadata, null where absent.
"""

FILTER_VERDICTS = pa.schema(
    [
        _VERDICT,  # cut: kept, with lines or passages of it in filter/cuts
        _RULE,
        pa.field("value", pa.float64()),  # the signal's value that broke the rule
        pa.field("limit", pa.float64()),  # the limit it broke
    ]
)
"""filter/verdicts: row-aligned. A rule that only cuts is named where none drops."""

FILTER_CUTS = pa.schema(
    [
        pa.field("row", pa.int64(), nullable=False),
        pa.field("start", pa.int64(), nullable=False),  # bytes of the normalized text, on character borders
        pa.field("stop", pa.int64(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),  # the rule's name, or mask:email, mask:ip, mask:phone
        pa.field("put", pa.string(), nullable=False),  # what stands in its place: nothing for a line
    ]
)
"""filter/cuts: sorted by (row, start); not aligned."""

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

SPANS = pa.schema(
    [
        pa.field("row", pa.int64(), nullable=False),
        pa.field("level", pa.int8(), nullable=False),  # 0 paragraph, 1 line
        pa.field("start", pa.int64(), nullable=False),  # bytes of the normalized text
        pa.field("stop", pa.int64(), nullable=False),
        pa.field("characters", pa.int64(), nullable=False),  # code points, span_characters_min or more
        pa.field("hash", pa.uint64(), nullable=False),  # of its bytes (tasks.text.spans)
    ]
)
"""dedup/spans: paragraphs and lines of every row; not aligned, sorted by row and stop."""

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
        pa.field("rule", pa.string(), nullable=False),  # ngrams, whole, pair; question: without answer, no evidence
        pa.field("grams", pa.int64(), nullable=False),  # different n-grams shared in this passage
        pa.field("start", pa.int64(), nullable=False),  # bytes of the normalized text: its first
        pa.field("stop", pa.int64(), nullable=False),  # shared n-gram to its last
        pa.field("item_start", pa.int64(), nullable=False),  # bytes of the item's text in NFC: the span in
        pa.field("item_stop", pa.int64(), nullable=False),  # which they stand there
        pa.field("item_grams", pa.int64(), nullable=False),  # different n-grams of the whole item
        pa.field("answer", pa.string()),  # a short answer of the same record near the passage,
        pa.field("answer_start", pa.int64()),  # and its bytes in the normalized text
        pa.field("answer_stop", pa.int64()),
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
