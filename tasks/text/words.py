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

*Hash*: FNV-1a of 64 bits (offset basis 0xcbf29ce484222325, prime 0x100000001b3) over the lower-cased word
in UTF-8, then the 64-bit finalizer of MurmurHash3, since FNV alone hardly moves its upper bits on short
words. It has no seed.

General categories are those of the running Python (`unicodedata.unidata_version`). Speed: 200 MB of
English, 230 of Chinese a CPU second (one core, 2026); less where the memory for the words must be fetched
first.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
import pyarrow as pa

from tasks.text.columns import one_array as one_array
from tasks.text.columns import text_buffers as text_buffers

SYMBOL, WHITE, LETTER, ALONE, MARK = 0, 1, 2, 3, 4
"""Classes of code points; ALONE is a letter or digit of a script written without spaces."""

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
_LOWERS = 0x20000  # no code point from here on has a lower case
_REPLACEMENT = 0xFFFD
_DOTTED_I = 0x130
_SYMBOLS, _WHITES = np.uint64(1), np.uint64(1 << 32)
_BASIS, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
_MIX_1, _MIX_2, _SHIFT = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53), np.uint64(33)
_ZERO, _ONE, _HALF, _LOW = np.uint64(0), np.uint64(1), np.uint64(32), np.uint64((1 << 32) - 1)


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
    words = _split(data, offsets_D1, (*character_tables(), *_ascii_tables()), words_3W, counts_4D)
    words_D1 = np.concatenate((np.zeros(1, np.int64), counts_4D[0]))
    hashes_W, starts_W, stops_W = (column[:words] for column in words_3W)
    return Words(hashes_W, starts_W, stops_W, words_D1, *counts_4D[1:])


def word_room(size: int, texts: int) -> Arrays:
    """Memory for the words of so many bytes in so many texts: hashes, starts, stops."""
    # A word takes at least two bytes with its separator, three where it has none.
    most = (size + texts) // 2 + 1
    return np.empty(most, np.uint64), np.empty(most, np.int64), np.empty(most, np.int64)


@cache
def character_tables() -> tuple[np.ndarray, np.ndarray]:
    """(classes uint8 [0x110000], lower cases uint32 [0x20000]) by code point; made once, in about 0.1 s."""
    classes = np.zeros(0x110000, np.uint8)
    for first, stop in _ASSIGNED:
        classes[first:stop] = np.frombuffer(bytes(map(_class_of, map(chr, range(first, stop)))), np.uint8)
    for first, last in _NO_SPACES:
        span = classes[first : last + 1]
        span[span == LETTER] = ALONE
    lowers = np.fromiter((ord(chr(code).lower()[0]) for code in range(_LOWERS)), np.uint32, _LOWERS)
    lowers[ord("\u03c2")] = ord("\u03c3")
    return classes, lowers


_CLASS_OF_CATEGORY = {"L": LETTER, "N": LETTER, "M": MARK}


def _class_of(character: str) -> int:
    """The class of one character, scripts without spaces aside."""
    kind = _CLASS_OF_CATEGORY.get(unicodedata.category(character)[0], SYMBOL)
    return WHITE if kind == SYMBOL and character.isspace() else kind


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _decode(data: np.ndarray, at: int, stop: int) -> tuple[Any, int]:
    """(code point, bytes) of the character at `at`; damaged UTF-8 gives U+FFFD, a byte at a time."""
    first = np.int64(data[at])
    if first < 0x80:
        return first, 1
    if 0xC0 <= first < 0xE0 and at + 1 < stop:
        return (first & 0x1F) << 6 | (np.int64(data[at + 1]) & 0x3F), 2
    if 0xE0 <= first < 0xF0 and at + 2 < stop:
        high = (first & 0x0F) << 12 | (np.int64(data[at + 1]) & 0x3F) << 6
        return high | (np.int64(data[at + 2]) & 0x3F), 3
    if 0xF0 <= first < 0xF5 and at + 3 < stop:
        high = (first & 0x07) << 18 | (np.int64(data[at + 1]) & 0x3F) << 12
        code = high | (np.int64(data[at + 2]) & 0x3F) << 6 | (np.int64(data[at + 3]) & 0x3F)
        return (code, 4) if code < 0x110000 else (_REPLACEMENT, 1)
    return _REPLACEMENT, 1


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _fold_byte(state: np.uint64, byte: int) -> Any:
    return (state ^ np.uint64(byte)) * _PRIME


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _fold(state: np.uint64, code: int) -> Any:
    """FNV-1a over the UTF-8 bytes of one lower-cased code point."""
    if code < 0x80:
        return _fold_byte(state, code)
    if code < 0x800:
        state = _fold_byte(state, 0xC0 | code >> 6)
    elif code < 0x10000:
        state = _fold_byte(state, 0xE0 | code >> 12)
        state = _fold_byte(state, 0x80 | (code >> 6 & 0x3F))
    else:
        state = _fold_byte(state, 0xF0 | code >> 18)
        state = _fold_byte(state, 0x80 | (code >> 12 & 0x3F))
        state = _fold_byte(state, 0x80 | (code >> 6 & 0x3F))
    return _fold_byte(state, 0x80 | (code & 0x3F))


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _fold_lower(state: np.uint64, code: int, lowers: np.ndarray) -> Any:
    if code >= _LOWERS:
        return _fold(state, code)
    state = _fold(state, np.int64(lowers[code]))
    return _fold(state, 0x307) if code == _DOTTED_I else state


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _finish(state: np.uint64) -> Any:
    """The 64-bit finalizer of MurmurHash3."""
    state = (state ^ (state >> _SHIFT)) * _MIX_1
    state = (state ^ (state >> _SHIFT)) * _MIX_2
    return state ^ (state >> _SHIFT)


@cache
def _ascii_tables() -> tuple[np.ndarray, np.ndarray]:
    """uint64 [128] each: the small letter of a letter or digit, else 0; what else a character counts as."""
    classes, lowers = character_tables()
    folds = np.where(classes[:128] == LETTER, lowers[:128], 0).astype(np.uint64)
    return folds, np.where(classes[:128] == SYMBOL, _SYMBOLS, np.where(classes[:128] == WHITE, _WHITES, _ZERO))


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _of_ascii(data: Array, span: Any, tables: Arrays, words_3W: Arrays, opened: Any, words: Any) -> Any:
    """(where the run of ASCII ends, what is open then, words, symbols and white space as they are packed).

    span: its first byte, where it ends at most, where the text begins. opened: (whether a word is open, its first byte,
    its state). No branch depends on a character: where words end cannot be foretold, and each wrong guess would cost as
    much as three characters. So a word is written at each character and counted at its end.
    """
    (at, stop, begin), (_, _, folds, counted), (hashes_W, starts_W, stops_W) = span, tables, words_3W
    place, end, count, packed = np.uint64(at), np.uint64(stop), np.uint64(words), _ZERO
    inside, first, state = np.uint64(opened[0]), np.int64(opened[1]), opened[2]
    while place < end:
        byte = data[place]
        if byte >= 0x80:
            break
        fold, position = folds[byte], np.int64(place) - begin
        letter = np.uint64(fold != _ZERO)
        first = first if inside else position
        hashes_W[count], starts_W[count], stops_W[count] = state, first, position
        count += inside & (letter ^ _ONE)
        kept = _ZERO - letter
        state = (((state ^ fold) * _PRIME) & kept) | (_BASIS & ~kept)
        packed += counted[byte]
        inside = letter
        place += _ONE
    return np.int64(place), (inside, first, state), np.int64(count), packed


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _split(data: Array, offsets_D1: Array, tables: Arrays, words_3W: Arrays, counts_4D: Array) -> Any:
    """Fill hashes, starts and stops; per text words so far, characters, symbols, white space. -> W."""
    (classes, lowers, _, _), (hashes_W, starts_W, stops_W), words = tables, words_3W, np.int64(0)
    for text in range(len(offsets_D1) - 1):
        begin, stop, earlier = offsets_D1[text], offsets_D1[text + 1], words
        at, continuations, packed = begin, 0, _ZERO
        state, open_word = _BASIS, SYMBOL  # open_word: LETTER or ALONE while a word is open
        while at < stop:
            if data[at] < 0x80:
                if open_word == ALONE:
                    hashes_W[words], stops_W[words] = state, at - begin
                    words, state, open_word = words + 1, _BASIS, SYMBOL
                opened = (np.uint64(open_word != SYMBOL), starts_W[words], state)
                at, opened, words, found = _of_ascii(data, (at, stop, begin), tables, words_3W, opened, words)
                packed += found
                open_word, starts_W[words], state = LETTER if opened[0] else SYMBOL, opened[1], opened[2]
                continue
            code, size = _decode(data, at, stop)
            kind = classes[code]
            if open_word != SYMBOL and kind != MARK and (kind != LETTER or open_word == ALONE):
                hashes_W[words], stops_W[words] = state, at - begin
                words, state, open_word = words + 1, _BASIS, SYMBOL
            if kind >= LETTER:
                if open_word == SYMBOL:
                    starts_W[words], open_word = at - begin, ALONE if kind == ALONE else LETTER
                state = _fold_lower(state, code, lowers)
            packed += _SYMBOLS if kind == SYMBOL else _WHITES if kind == WHITE else _ZERO
            at += size
            continuations += size - 1
        if open_word != SYMBOL:
            hashes_W[words], stops_W[words] = state, stop - begin
            words += 1
        for word in range(earlier, words):
            hashes_W[word] = _finish(hashes_W[word])
        counts_4D[0, text], counts_4D[1, text] = words, stop - begin - continuations
        counts_4D[2, text], counts_4D[3, text] = packed & _LOW, packed >> _HALF
    return words
