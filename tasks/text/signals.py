"""What can be counted in a text: lengths, lines, words, symbols, repetition.

In: a column of texts. Out: one array a signal, a row a text, all but the language (tasks.text.languages). It
judges nothing (tasks.text.rules) and writes nothing. Every signal is an integer or one quotient of two
integers, so that it is the same on every machine.

Speed: 140 MB of English, 200 of Chinese a CPU second, words included (one core, 2026).
"""

from __future__ import annotations

from collections.abc import Iterator

import numba
import numpy as np
import pyarrow as pa

from tasks.text.words import Words, one_array, split_words, text_buffers

SLICE_BYTES = 1 << 19
"""Texts are taken in slices of about as many bytes: their words then stay in the caches of the processor."""

_STEP = np.uint64(0x9E3779B97F4A7C15)
_EMPTY, _FOR_EMPTY, _ONE, _HALF = np.uint64(0), np.uint64(1), np.uint64(1), np.uint64(32)


def measure_texts(texts: pa.Array | pa.ChunkedArray) -> dict[str, np.ndarray]:
    """The signals of D texts by name, each [D]; a null counts as an empty text.

    characters, bytes, words  int64
    lines                     int64: between line feeds, blank ones not counted
    mean_word_length          float64: characters in words / words, 0 where there are no words
    symbol_share              float64: characters neither in words nor white / those not white
    duplicate_3gram_share     float64: (3-grams of words - different ones) / 3-grams, 0 of no 3-gram
    """
    column = one_array(texts)
    parts = [_measure(column.slice(start, stop - start)) for start, stop in _slices(column)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _slices(column: pa.LargeStringArray) -> Iterator[tuple[int, int]]:
    """[start, stop) of rows that hold about SLICE_BYTES together: at least one slice, of a row if any."""
    offsets_D1, _ = text_buffers(column)
    start, rows = 0, len(column)
    while start < rows or rows == 0:
        stop = int(np.searchsorted(offsets_D1, offsets_D1[start] + SLICE_BYTES, side="right")) - 1
        stop = min(rows, max(stop, start + 1))
        yield start, stop
        if stop == rows:
            return
        start = stop


def _measure(column: pa.LargeStringArray) -> dict[str, np.ndarray]:
    words = split_words(column)
    words_D = np.diff(words.offsets_D1)
    in_words_D = words.characters_D - words.symbols_D - words.white_D
    return {
        "characters": words.characters_D,
        "bytes": np.diff(text_buffers(column)[0]),
        "words": words_D,
        "lines": words.lines_D,
        "mean_word_length": _quotient(in_words_D, words_D),
        "symbol_share": _quotient(words.symbols_D, words.characters_D - words.white_D),
        "duplicate_3gram_share": _quotient(_repeated_3grams(words), np.maximum(words_D - 2, 0)),
    }


def _quotient(counts_D: np.ndarray, totals_D: np.ndarray) -> np.ndarray:
    """counts / totals, 0 where the total is 0."""
    quotients_D = np.zeros(len(totals_D))
    np.divide(counts_D, totals_D, out=quotients_D, where=totals_D != 0)
    return quotients_D


def _repeated_3grams(words: Words) -> np.ndarray:
    """3-grams minus different 3-grams of each text, int64 [D]."""
    most = int(np.diff(words.offsets_D1).max(initial=0))
    table = np.zeros(2 << max(4, most.bit_length()), np.uint64)
    repeated_D = np.zeros(len(words.characters_D), np.int64)
    _count_repeated(words.hashes_W, words.offsets_D1, table, repeated_D)
    return repeated_D


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _count_repeated(hashes_W: np.ndarray, offsets_D1: np.ndarray, table: np.ndarray, repeated_D: np.ndarray) -> None:
    """Open addressing with linear steps, a text at a time, in the first 2 to 4 slots a word of `table`.

    A 3-gram is known by 64 bits over its words' hashes; two of a text are taken for one by a chance of 2^-64.
    """
    for text in range(len(offsets_D1) - 1):
        start, stop = offsets_D1[text], offsets_D1[text + 1]
        size = 32
        while size < 2 * (stop - start):
            size *= 2
        table[:size] = _EMPTY
        mask = np.uint64(size - 1)
        for at in range(start, stop - 2):
            gram = ((hashes_W[at] * _STEP) + hashes_W[at + 1]) * _STEP + hashes_W[at + 2]
            gram = gram ^ (gram >> _HALF)
            gram = gram if gram != _EMPTY else _FOR_EMPTY
            slot = gram & mask
            while table[slot] != _EMPTY and table[slot] != gram:
                slot = (slot + _ONE) & mask
            repeated_D[text] += table[slot] == gram
            table[slot] = gram
