"""What a word is, for the whole house: signals, shingles of dedup and n-grams of decontamination.

In: UTF-8 texts as Arrow holds them (offsets and bytes). Out: for every word a 64-bit hash of its
lower-cased form and its bytes in the text, and for every text some exact counts of the same pass. It makes
no strings, normalizes nothing (normalize did) and knows no dictionary.

*Word*: a maximal run of letters, digits and combining marks (Unicode general categories L, N, M). In
scripts written without spaces (`_NO_SPACES` below, after the line breaking classes SA and ID of UAX #14)
every letter or digit is a word by itself, with the marks that follow it. Everything else separates words,
format characters (ZWNJ, soft hyphen) too.

*Lower-casing* is Unicode's full one, code point by code point, without context: U+0130 becomes i and
U+0307. The final sigma U+03C2 becomes U+03C3 as the other sigmas do, so that a word in capitals equals the
same in small letters. A lower-cased word is `word.lower().replace("\u03c2", "\u03c3")`.

*Hash*: of the lower-cased word in UTF-8, eight bytes at a time, the first lowest and the last filled with
zeros: from 0 on, h becomes fmix64(h ^ bytes), fmix64 being the 64-bit finalizer of MurmurHash3 (project). fmix64
is one to one, so words of up to eight bytes never share a hash. It has no seed.

General categories are those of the running Python (`unicodedata.unidata_version`). The kernel is in
tasks.text.word_scan. Speed: 1,200 to 1,800 MB of English, 800 of Chinese and French, 1,800 of code, 300 of Russian a
CPU second (one core with AVX-512, 2026, in room that stays in the caches); a third less in fresh memory.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tasks.text.columns import largest, slices
from tasks.text.columns import one_array as one_array
from tasks.text.columns import text_buffers as text_buffers
from tasks.text.word_scan import ALONE as ALONE
from tasks.text.word_scan import LEAST_BYTES, LOWERS, SYMBOL, TOGETHER, scan
from tasks.text.word_scan import LETTER as LETTER
from tasks.text.word_scan import MARK as MARK
from tasks.text.word_scan import WHITE as WHITE

_NO_SPACES = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x1950, 0x19DF),  # Tai Le, New Tai Lue
    (0x1A20, 0x1AAF),  # Tai Tham
    (0x1B00, 0x1B7F),  # Balinese
    (0x3005, 0x3007),  # iteration mark, closing mark and zero of Han
    (0x3021, 0x303C),  # Hangzhou numerals, kana repeat marks
    (0x3040, 0x312F),  # Hiragana, Katakana, Bopomofo
    (0x3190, 0x31FF),  # Kanbun, Bopomofo and Katakana extensions
    (0x3400, 0x4DBF),  # Han extension A
    (0x4E00, 0xA4CF),  # Han, Yi
    (0xA980, 0xA9FF),  # Javanese, Myanmar extension B
    (0xAA60, 0xAADF),  # Myanmar extension A, Tai Viet
    (0xF900, 0xFAFF),  # Han compatibility
    (0xFF66, 0xFF9F),  # half-width Katakana
    (0x11700, 0x1174F),  # Ahom
    (0x16FE0, 0x18DFF),  # ideographic symbols, Tangut, Khitan
    (0x1AFF0, 0x1B2FF),  # kana extensions, Nushu
    (0x20000, 0x3FFFF),  # Han extensions B and later
)
Array = np.ndarray
Arrays = tuple[np.ndarray, ...]
_ASSIGNED = ((0, 0x40000), (0xE0000, 0xE1000))  # no letter, digit, mark or space of Unicode lies elsewhere


class Words(NamedTuple):
    """The words of D texts, W in all, text after text; text d: offsets_D1[d] to offsets_D1[d + 1]."""

    hashes_W: np.ndarray
    """uint64: hash of the lower-cased word."""
    starts_W: np.ndarray
    """int64: its first byte, counted from the beginning of its text."""
    stops_W: np.ndarray
    """int64: one past its last byte."""
    offsets_D1: np.ndarray
    """int64 [D + 1]."""
    characters_D: np.ndarray
    """int64: code points of the text."""
    symbols_D: np.ndarray
    """int64: code points that are neither part of a word nor white space."""
    white_D: np.ndarray
    """int64: code points of white space (as `str.isspace`)."""


def split_words(texts: pa.Array | pa.ChunkedArray, room: Arrays | None = None) -> Words:
    """The words of each text; a null counts as an empty text.

    room: `word_room` for as many bytes and texts, where one call follows another: fresh memory costs as much as a third
    of the work. The words then lie in it, until the next call.

    Needs memory for 24 bytes a word; the room reserved for the longest case is touched only where words are.
    Raises ArrowInvalid or ArrowNotImplementedError where `texts` is not a column of strings.
    """
    offsets_D1, data = text_buffers(texts)
    texts_count = len(offsets_D1) - 1
    words_3W = word_room(int(offsets_D1[-1] - offsets_D1[0]), texts_count) if room is None else room
    counts_4D = np.zeros((4, texts_count), np.int64)
    if len(data) < LEAST_BYTES:
        data = np.concatenate([data, np.zeros(LEAST_BYTES, np.uint8)])
    words = scan(data, offsets_D1, character_tables(), words_3W, counts_4D)
    words_D1 = np.concatenate((np.zeros(1, np.int64), counts_4D[0]))
    hashes_W, starts_W, stops_W = (column[:words] for column in words_3W)
    return Words(hashes_W, starts_W, stops_W, words_D1, *counts_4D[1:])


def split_slices(
    texts: pa.Array | pa.ChunkedArray, size: int, rows: np.ndarray | None = None
) -> Iterator[tuple[slice, pa.LargeStringArray, Words]]:
    """(which, the texts, their words) of all texts or of some rows, slices of about `size` bytes one after another.

    All words lie in the same room, in the caches of the processor, until the next slice.
    """
    column = one_array(texts)
    offsets_D1 = text_buffers(column)[0]
    if rows is not None:
        offsets_D1 = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.diff(offsets_D1)[rows])])
    spans = list(slices(offsets_D1, size))
    room = word_room(largest(offsets_D1, spans), max(count for _, count in spans))
    for at, count in spans:
        which = slice(at, at + count)
        part = column[which] if rows is None else column.take(pa.array(rows[which]))
        yield which, part, split_words(part, room)


def word_room(size: int, texts: int) -> Arrays:
    """Memory for the words of so many bytes in so many texts: hashes, starts, stops."""
    # A word takes at least two bytes with its separator, three where it has none.
    most = (size + texts) // 2 + 1 + TOGETHER
    return np.empty(most, np.uint64), np.empty(most, np.int64), np.empty(most, np.int64)


@cache
def character_tables() -> tuple[np.ndarray, np.ndarray]:
    """(classes uint8 [0x110000], lower cases uint32 [LOWERS]) by code point; made once, in about 0.1 s.

    A lower case is its UTF-8, the first byte lowest.
    """
    classes = np.zeros(0x110000, np.uint8)
    for first, stop in _ASSIGNED:
        classes[first:stop] = np.frombuffer(bytes(map(_class_of, map(chr, range(first, stop)))), np.uint8)
    for first, last in _NO_SPACES:
        span = classes[first : last + 1]
        span[span == LETTER] = ALONE
    lowers = np.fromiter(map(_lower_of, range(LOWERS)), np.uint32, LOWERS)
    lowers[ord("\u03c2")] = _lower_of(ord("\u03c3"))
    return classes, lowers


def _lower_of(code: int) -> int:
    return int.from_bytes(chr(code).lower().encode("utf-8", "surrogatepass"), "little")


_CLASS_OF_CATEGORY = {"L": LETTER, "N": LETTER, "M": MARK}


def _class_of(character: str) -> int:
    """The class of one character, scripts without spaces aside."""
    kind = _CLASS_OF_CATEGORY.get(unicodedata.category(character)[0], SYMBOL)
    return WHITE if kind == SYMBOL and character.isspace() else kind
