"""What can be counted in a text: lengths, lines, characters, words, repetition. Every signal of every rule set.

In: a column of texts and their languages. Out: one array a signal, a row a text. It judges nothing (tasks.text.rules)
and writes nothing. Every signal is an integer or one quotient of two integers, so that it is the same on every machine.
Which of the field's arithmetics is meant stands with the counts: tasks.text.words, marks, lines, repetition, stopwords.

Speed, words included: 220 MB of English, 110 of Japanese and Thai a CPU second for all of them (one core with AVX-512,
2026; docs/filter.md).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from tasks.text.columns import largest, one_array, slices, text_buffers
from tasks.text.lengths import measure_words
from tasks.text.lines import NAMES as LINES
from tasks.text.lines import count_lines
from tasks.text.marks import NAMES as MARKS
from tasks.text.marks import count_marks
from tasks.text.repetition import NAMES as REPETITION
from tasks.text.repetition import count_repetition
from tasks.text.segmentation import join_words
from tasks.text.stopwords import count_stop_words, lists_of
from tasks.text.words import split_words, word_room

SLICE_BYTES = 1 << 19
"""Texts are taken in slices of about as many bytes: their words then stay in the caches of the processor."""

COUNTS = (
    "characters", "bytes", "words", "letters", "lines", "paragraphs", "sentences", "max_word_length",
    "max_line_length", "brief_lines", "unterminated_lines", "javascript_lines", "policy_lines", "braces",
    "lorem_ipsum", "stop_words",
)  # fmt: skip
"""Signals that are counts."""

QUOTIENTS = {
    "mean_word_length": ("in_words", "words"),
    "mean_line_length": ("line_characters", "lines"),
    "letter_share": ("letters", "visible"),
    "digit_share": ("digits", "visible"),
    "punctuation_share": ("punctuation", "visible"),
    "symbol_share": ("symbols", "visible"),
    "white_share": ("white", "characters"),
    "url_share": ("url_characters", "visible"),
    "replacement_share": ("replacements", "characters"),
    "private_use_share": ("privates", "characters"),
    "letter_word_share": ("lettered", "words"),
    "stop_word_share": ("all_stop_words", "words"),
    "hashes_per_word": ("hashes", "words"),
    "ellipses_per_word": ("ellipses", "words"),
    "newlines_per_word": ("newlines", "words"),
    "bullet_line_share": ("bullet_lines", "lines"),
    "ellipsis_line_share": ("ellipsis_lines", "lines"),
    "terminated_line_share": ("terminated_lines", "lines"),
    "short_line_share": ("short_lines", "lines"),
    "duplicate_line_share": ("repeated_lines", "lines"),
    "duplicate_line_character_share": ("repeated_line_characters", "line_characters"),
    "duplicate_paragraph_share": ("repeated_paragraphs", "paragraphs"),
    "duplicate_paragraph_character_share": ("repeated_paragraph_characters", "line_characters"),
    "duplicate_3gram_share": ("repeated_3grams", "3grams"),
    **{f"top_{n}gram_character_share": (f"top_{n}", "characters") for n in (2, 3, 4)},
    **{f"duplicate_{n}gram_character_share": (f"repeated_{n}", "characters") for n in range(5, 11)},
}
"""Signals that are quotients: (what is divided, by what); 0 where the divisor is 0."""

_COUNTED = (
    *("characters", "white", "symbols", "words", "max_word_length", "lettered", "stop_words", "all_stop_words"),
    *(*MARKS, *LINES, *REPETITION),
)
"""What is counted slice by slice; the rest follows from it."""

NUMBERS = (*COUNTS, *QUOTIENTS)


def measure_texts(
    texts: pa.Array | pa.ChunkedArray, languages: pa.Array, segmentation: Mapping[str, str] | None = None
) -> dict[str, np.ndarray]:
    """NUMBERS of D texts by name, each [D], counts int64 and quotients float64; a null counts as an empty text.

    languages: ISO 639-1 of each text, for its stop words. segmentation: language -> library that tells its words
    (tasks.text.segmentation); in scripts without spaces a character is a word else.
    """
    column, lists_D = one_array(texts), lists_of(languages)
    offsets_D1, _ = text_buffers(column)
    spans = list(slices(offsets_D1, SLICE_BYTES))
    room = word_room(largest(offsets_D1, spans), max(rows for _, rows in spans))
    parts = []
    for at, rows in spans:
        part, own = column.slice(at, rows), languages.slice(at, rows)
        parts.append(_counted(part, own, lists_D[at : at + rows], room, segmentation or {}))
    counts = dict(zip(_COUNTED, np.ascontiguousarray(np.concatenate(parts).T), strict=True))
    counts["bytes"] = np.diff(offsets_D1)
    counts["visible"] = counts["characters"] - counts["white"]
    counts["in_words"] = counts["visible"] - counts["symbols"]
    counts["3grams"] = np.maximum(counts["words"] - 2, 0)
    counts["unterminated_lines"] = counts["lines"] - counts["terminated_lines"]
    found = {name: counts[name] for name in COUNTS}
    return found | {name: _quotient(counts[over], counts[under]) for name, (over, under) in QUOTIENTS.items()}


def _counted(
    column: pa.LargeStringArray,
    languages: pa.Array,
    list_D: np.ndarray,
    room: tuple[np.ndarray, ...],
    segmentation: Mapping[str, str],
) -> np.ndarray:
    """int64 [D, K] of _COUNTED, of one slice."""
    offsets_D1, data = text_buffers(column)
    words = split_words(column, room)
    if segmentation:
        words = join_words(words, offsets_D1, data, languages, segmentation)
    ends_W1, longest_D, lettered_D = measure_words(words, offsets_D1, data)
    marks_DK, breaks_N = count_marks(offsets_D1, data)
    ascii_D = np.diff(offsets_D1) == words.characters_D
    lines_DK = count_lines(offsets_D1, data, breaks_N, ascii_D, words.starts_W, words.offsets_D1)
    repetition_DK = count_repetition(words.hashes_W, ends_W1, words.offsets_D1)
    single = (
        *(words.characters_D, words.white_D, words.symbols_D, np.diff(words.offsets_D1), longest_D, lettered_D),
        *count_stop_words(words.hashes_W, words.offsets_D1, list_D),
    )
    return np.hstack((np.stack(single, axis=1), marks_DK, lines_DK, repetition_DK))


def _quotient(counts_D: np.ndarray, totals_D: np.ndarray) -> np.ndarray:
    """counts / totals, 0 where the total is 0."""
    quotients_D = np.zeros(len(totals_D))
    np.divide(counts_D, totals_D, out=quotients_D, where=totals_D != 0)
    return quotients_D
