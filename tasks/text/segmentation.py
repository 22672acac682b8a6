"""Words of scripts without spaces, by a library that knows them, in place of the default's single characters.

In: words as tasks.text.words splits them, their texts and languages. Out: the same words, but characters of scripts
without spaces that stand together are one word wherever the library sets no border between them. Words of other scripts
stay as they are. Only signals use it: dedup and decontaminate compare characters.

*rjieba*: Chinese, jieba's words (accurate mode, new words by its hidden Markov model). *icu*: ICU's dictionaries, for
Chinese, Japanese, Thai, Lao, Khmer and Burmese. Speed, agreement and sizes: docs/filter.md. Neither is needed unless it
is asked for; a word of one character has the hash that it has without them, so that lists of stop words hold.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import metadata
from typing import Any

import numba
import numpy as np
import pyarrow as pa

from tasks.text.words import ALONE, Words, character_tables

CHINESE = ("zh", "yue", "wuu")
LIBRARIES = {"icu": (*CHINESE, "ja", "th", "lo", "km", "my"), "rjieba": CHINESE}
"""What may be asked for, and the languages that each knows."""
PACKAGES = {"icu": "pyicu-wheels", "rjieba": "rjieba"}
"""What to install for it."""
_STEP, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(29)
_WIDE = 0xF0  # the first byte of a character that UTF-16 spells with two units
Array = np.ndarray
Borders = Callable[[str], Array]


def library_version(library: str) -> str:
    """Raises ModuleNotFoundError where it is not installed."""
    module = importlib.import_module(library)
    if library == "icu":
        return f"{module.VERSION}, ICU {module.ICU_VERSION}"
    return metadata.version(library)


def join_words(
    words: Words, offsets_D1: Array, data: Array, languages: pa.Array, segmentation: Mapping[str, str]
) -> Words:
    """The words of D texts with those joined that their language's library joins.

    segmentation: language -> library; texts in other languages stay as they are. Raises ModuleNotFoundError where a
    library is not installed.
    """
    borders_N = np.zeros(int(offsets_D1[-1] - offsets_D1[0]) + 1, np.bool_)
    wanted_D = np.zeros(len(languages), np.bool_)
    for text, language in enumerate(languages.to_pylist()):
        if language in segmentation:
            first, stop = int(offsets_D1[text]), int(offsets_D1[text + 1])
            found = _borders(segmentation[language], language)(data[first:stop].tobytes().decode())
            borders_N[found + first - offsets_D1[0]] = True
            wanted_D[text] = True
    if not wanted_D.any():
        return words
    hashes_W, starts_W, stops_W = (np.empty_like(column) for column in words[:3])
    words_D1 = np.zeros_like(words.offsets_D1)
    classes = (character_tables()[0], ALONE)
    _join(data, offsets_D1, borders_N, wanted_D, classes, words[:4], (hashes_W, starts_W, stops_W), words_D1)
    last = words_D1[-1]
    return words._replace(
        hashes_W=hashes_W[:last], starts_W=starts_W[:last], stops_W=stops_W[:last], offsets_D1=words_D1
    )


@cache
def _borders(library: str, language: str) -> Borders:
    """A function that gives the bytes of a text at which a word of the library begins or ends."""
    module = importlib.import_module(library)
    if library == "icu":
        return partial(_icu_borders, module, module.BreakIterator.createWordInstance(module.Locale(language)))
    return partial(_jieba_borders, module)


def _jieba_borders(module: Any, text: str) -> Array:
    sizes = np.array([len(word) for word in module.cut(text)], np.int64)
    return _character_starts(text)[0][np.cumsum(sizes)]


def _icu_borders(module: Any, iterator: Any, text: str) -> Array:
    iterator.setText(module.UnicodeString(text))
    units = np.array(list(iterator), np.int64)
    starts, unit_starts = _character_starts(text)
    return starts[np.searchsorted(unit_starts, units)]


def _character_starts(text: str) -> tuple[Array, Array]:
    """(byte, unit of UTF-16), int64 [characters + 1], where each character begins and the text ends."""
    data = np.frombuffer(text.encode(), np.uint8)
    starts = np.flatnonzero(data & 0xC0 != 0x80)
    units = np.cumsum(1 + (data[starts] >= _WIDE))
    return np.append(starts, len(data)), np.concatenate([np.zeros(1, np.int64), units])


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _join(
    data: Array, offsets_D1: Array, borders_N: Array, wanted_D: Array, classes: Any, old: Any, new: Any, words_D1: Array
) -> None:
    (table, alone), (hashes_W, starts_W, stops_W, old_D1), end, last = classes, old, 0, False
    for text in range(len(offsets_D1) - 1):
        begin = offsets_D1[text]
        for word in range(old_D1[text], old_D1[text + 1]):
            start = starts_W[word]
            single = wanted_D[text] and table[_code(data, begin + start)] == alone
            together = single and last and end > words_D1[text] and new[2][end - 1] == start
            if together and not borders_N[begin + start - offsets_D1[0]]:
                state = new[0][end - 1] * _STEP + hashes_W[word]
                new[0][end - 1], new[2][end - 1] = state ^ (state >> _SHIFT), stops_W[word]
            else:
                new[0][end], new[1][end], new[2][end] = hashes_W[word], start, stops_W[word]
                end += 1
            last = single
        words_D1[text + 1] = end


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _code(data: Array, at: int) -> Any:
    """The code point of the character at `at` of valid UTF-8."""
    first = np.int64(data[at])
    if first < 0x80:
        return first
    if first < 0xE0:
        return (first & 0x1F) << 6 | (np.int64(data[at + 1]) & 0x3F)
    if first < 0xF0:
        return (first & 0x0F) << 12 | (np.int64(data[at + 1]) & 0x3F) << 6 | (np.int64(data[at + 2]) & 0x3F)
    high = (first & 0x07) << 18 | (np.int64(data[at + 1]) & 0x3F) << 12
    return high | (np.int64(data[at + 2]) & 0x3F) << 6 | (np.int64(data[at + 3]) & 0x3F)
