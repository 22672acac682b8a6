"""Counts over the characters of a text: classes, sentences, links (and, by tasks.text.phrases, boilerplate).

In: UTF-8 texts as Arrow holds them. Out: one row of exact counts a text. It knows no words and makes no strings.

*Sentence*: a stretch of a line with a letter or digit in it, up to a terminal mark behind which, closing quotes and
brackets aside, a blank or the line's end follows (。！？ need none), or up to the line's end. No list of abbreviations:
"Mr. Hart" ends one (NLTK's Punkt, which C4's peers use, knows some).
*Ellipses*: each … and each three dots in a row, as `text.count("...")`.
*Link*: from http://, https:// or www. (with no letter or digit before it) over printable ASCII but <>"`{}|\\^.

ASCII goes 64 bytes at a time: vector compares say what is letter, digit and punctuation, and where one of the few
characters is that there is more to. Little-endian machines only.

Speed: 1 GB of English a CPU second (one core with AVX-512, 2026).
"""

from __future__ import annotations

import functools
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tasks.text.characters import CLOSING, FULL, PRIVATE, REPLACEMENT, TERMINAL, WHITE, character_bits
from tasks.text.phrases import NAMES as PHRASES
from tasks.text.phrases import count_phrases

NAMES = (
    "letters", "digits", "punctuation", "hashes", "ellipses", "braces", "sentences", "newlines", "url_characters",
    "replacements", "privates", *PHRASES,
)  # fmt: skip
_LETTERS, _DIGITS, _PUNCTUATION, _HASHES, _ELLIPSES, _BRACES, _SENTENCES, _NEWLINES, _URLS = range(9)
_REPLACEMENTS, _PRIVATES, _SAID, _URL_STOP, _COLUMNS = range(
    9, 14
)  # said in the last sentence's end, end of the last link
_BLOCK = 64
_64, _ZERO, _ONE, _FULL_MASK = np.uint64(_BLOCK), np.uint64(0), np.uint64(1), np.uint64((1 << 64) - 1)
_MARKS = ("!#", "%*", ",/", ":;", "?@", "[]", "__", "{{", "}}")
"""From which to which character of ASCII punctuation goes (general categories P)."""
_SPECIAL = b"\n.!?#{}:"
Array = np.ndarray


def count_marks(offsets_D1: Array, data: Array) -> tuple[Array, Array]:
    """(int64 [D, K] of NAMES, places of all line feeds [N]) of the texts data[offsets_D1[d]:offsets_D1[d + 1]].

    url_characters: characters in links; replacements: U+FFFD; privates: private use; braces: { and }.
    """
    rows_DK = np.zeros((len(offsets_D1) - 1, _COLUMNS), np.int64)
    first, size, moved = offsets_D1[0], offsets_D1[-1] - offsets_D1[0], 0
    if first < _BLOCK or offsets_D1[-1] + _BLOCK > len(data):
        moved, padded = _BLOCK - first, np.zeros(size + 2 * _BLOCK, np.uint8)
        padded[_BLOCK : _BLOCK + size] = data[first : first + size]
        offsets_D1, data = offsets_D1 + moved, padded
    breaks_N, masks = np.empty(size, np.int64), (TERMINAL, FULL, CLOSING, WHITE, PRIVATE, REPLACEMENT)
    count = _count(data, offsets_D1, character_bits(), masks, rows_DK, breaks_N)
    phrases_DK = count_phrases(offsets_D1, data, breaks_N[:count])
    return np.hstack((rows_DK[:, :_SAID], phrases_DK)), breaks_N[:count] - moved


@intrinsic  # type: ignore[untyped-decorator]
def _pointer(_typing: Any, array: Any) -> Any:
    """The address of an array's first element, which is indexed as the array is."""
    kind = types.CPointer(array.dtype)(array)
    return kind, lambda context, builder, _, given: context.make_array(array)(context, builder, given[0]).data


@intrinsic  # type: ignore[untyped-decorator]
def _row(_typing: Any, rows: Any, number: Any) -> Any:
    """The address of a row of a matrix of _COLUMNS."""
    kind = types.CPointer(rows.dtype)(rows, number)

    def emit(context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        first = builder.mul(given[1], ir.Constant(ir.IntType(64), _COLUMNS))
        return builder.gep(context.make_array(rows)(context, builder, given[0]).data, [first])

    return kind, emit


@intrinsic  # type: ignore[untyped-decorator]
def _kinds_of_64(_typing: Any, data: Any, at: Any) -> Any:
    """(letters, digits, punctuation, what there is more to, what is no ASCII): bit i of each is of data[at + i]."""
    vector = ir.VectorType(ir.IntType(8), _BLOCK)

    def every(value: int) -> Any:
        return ir.Constant(vector, [value] * _BLOCK)

    def emit(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        def within(values: Any, first: int, last: int) -> Any:
            return builder.icmp_unsigned("<=", builder.sub(values, every(first)), every(last - first))

        def either(masks: Any) -> Any:
            return functools.reduce(builder.or_, masks)

        block = builder.load(builder.bitcast(builder.gep(given[0], [given[1]]), vector.as_pointer()), align=1)
        found = (
            within(builder.or_(block, every(0x20)), 0x61, 0x7A),
            within(block, 0x30, 0x39),
            either([within(block, *map(ord, marks)) for marks in _MARKS]),
            either([builder.icmp_unsigned("==", block, every(byte)) for byte in _SPECIAL]),
            builder.icmp_unsigned(">=", block, every(0x80)),
        )
        masks = [builder.bitcast(mask, ir.IntType(64)) for mask in found]
        return context.make_tuple(builder, signature.return_type, masks)

    return types.UniTuple(types.uint64, 5)(data, at), emit


@intrinsic  # type: ignore[untyped-decorator]
def _zeros_below(_typing: Any, value: Any) -> Any:
    """Zeros below the lowest one of a uint64; 64 of 0."""
    zeros = ir.Constant(ir.IntType(1), 0)
    return types.int64(types.uint64), lambda _context, builder, _, given: builder.cttz(given[0], zeros)


@intrinsic  # type: ignore[untyped-decorator]
def _ones(_typing: Any, value: Any) -> Any:
    """Ones of a uint64."""
    return types.int64(types.uint64), lambda _context, builder, _, given: builder.ctpop(given[0])


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _count(data_N: Array, offsets_D1: Array, bits_C: Array, masks: Any, rows_DK: Array, breaks_N: Array) -> int:
    """Returns how many line feeds there are. data_N: with a block more before and behind."""
    rare, breaks, data, bits = np.uint16(masks[0] | masks[4] | masks[5]), 0, _pointer(data_N), _pointer(bits_C)
    for text in range(len(offsets_D1) - 1):
        begin, stop, row = offsets_D1[text], offsets_D1[text + 1], _row(rows_DK, text)
        at, row[_URL_STOP], letters, digits, punctuation = begin, begin, 0, 0, 0
        while at < stop:
            letter, digit, mark, special, wide = _kinds_of_64(data, at)
            size = min(stop - at, _zeros_below(wide))
            known = _FULL_MASK >> np.uint64(_BLOCK - size) if size else _ZERO
            special &= known
            while special:
                place = _zeros_below(special)
                said = letters + digits + _ones((letter | digit) & ((special & (~special + _ONE)) - _ONE))
                if data[at + place] == 10:
                    breaks_N[breaks], breaks, row[_NEWLINES] = at + place, breaks + 1, row[_NEWLINES] + 1
                    _close(said, row)
                else:
                    _look(data, begin, at + place, stop, bits, masks, said, row)
                special &= special - _ONE
            letters, digits, at = letters + _ones(letter & known), digits + _ones(digit & known), at + size
            punctuation += _ones(mark & known)
            while at < stop and data[at] >= 0x80:
                code, size = _decode(data, at, stop)
                found = bits[code]
                letters, digits, punctuation = (
                    letters + (found & 1),
                    digits + (found >> 1 & 1),
                    punctuation + (found >> 2 & 1),
                )
                at += size
                if found & rare:
                    _look_wide(data, at, stop, code, bits, masks, letters + digits, row)
        row[_LETTERS], row[_DIGITS], row[_PUNCTUATION] = letters, digits, punctuation
        _close(letters + digits, row)
    return breaks


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _look(data: Any, begin: int, at: int, stop: int, bits: Any, masks: Any, said: int, row: Any) -> None:
    """What there is to an ASCII character besides its class. said: letters and digits before it."""
    byte = data[at]
    if byte == 46:
        if at == begin or data[at - 1] != 46:
            row[_ELLIPSES] += _dots(data, at, stop) // 3
        if at > begin and data[at - 1] | 32 == 119:  # w
            _link(data, begin, at, stop, at - 3, bits, row)
        _end_sentence(data, at + 1, stop, bits, masks, said, row)
    elif byte == 33 or byte == 63:
        _end_sentence(data, at + 1, stop, bits, masks, said, row)
    elif byte == 35:
        row[_HASHES] += 1
    elif byte == 58 and at + 2 < stop and data[at + 1] == 47:
        _link(data, begin, at, stop, at - 4, bits, row)
        _link(data, begin, at, stop, at - 5, bits, row)
    elif byte != 58:
        row[_BRACES] += 1


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _look_wide(data: Any, after: int, stop: int, code: int, bits: Any, masks: Any, said: int, row: Any) -> None:
    """What there is to another character, behind which `after` is."""
    terminal, full, _, _, private, replacement = masks
    found = bits[code]
    row[_ELLIPSES] += code == 0x2026
    if found & full:
        _close(said, row)
    elif found & terminal:
        _end_sentence(data, after, stop, bits, masks, said, row)
    row[_PRIVATES] += (found & private) != 0
    row[_REPLACEMENTS] += (found & replacement) != 0


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _end_sentence(data: Any, at: int, stop: int, bits: Any, masks: Any, said: int, row: Any) -> None:
    """Close the sentence if a blank or the end follows `at`, further marks and closing ones passed over."""
    terminal, full, closing, white, _, _ = masks
    while at < stop:
        code, size = _decode(data, at, stop)
        if bits[code] & white:
            break
        if not bits[code] & (terminal | closing) or bits[code] & full:
            return
        at += size
    _close(said, row)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _close(said: int, row: Any) -> None:
    """End the sentence, if a letter or digit stands in it. said: those of the text up to here."""
    row[_SENTENCES] += said > row[_SAID]
    row[_SAID] = said


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _dots(data: Any, at: int, stop: int) -> int:
    start = at
    while at < stop and data[at] == 46:
        at += 1
    return at - start


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _link(data: Any, begin: int, at: int, stop: int, start: int, bits: Any, row: Any) -> None:
    """Count a link that begins at `start` and has its first : or . at `at`, if there is one."""
    if start < row[_URL_STOP] or start < begin or not _opens(data, start, at, stop):
        return
    if start > begin and data[start - 1] < 0x80 and bits[data[start - 1]] & 3:
        return
    end = at
    while end < stop and _in_link(data[end]):
        end += 1
    row[_URLS] += end - start
    row[_URL_STOP] = end


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _opens(data: Any, start: int, at: int, stop: int) -> bool:
    if data[at] == 46:
        return bool((data[start] | 32) == 119 and (data[start + 1] | 32) == 119 and (data[start + 2] | 32) == 119)
    if at + 2 >= stop or data[at + 1] != 47 or data[at + 2] != 47 or (at - start == 5 and (data[at - 1] | 32) != 115):
        return False
    http = (data[start] | 32) == 104 and (data[start + 1] | 32) == 116 and (data[start + 2] | 32) == 116
    return bool(http and (data[start + 3] | 32) == 112)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _in_link(byte: int) -> bool:
    return bool(32 < byte < 127 and byte not in (34, 60, 62, 92, 94, 96, 123, 124, 125))


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _decode(data: Any, at: int, stop: int) -> tuple[Any, int]:
    """(code point, bytes) of the character at `at` of valid UTF-8."""
    first = np.int64(data[at])
    if first < 0x80 or at + 1 >= stop:
        return first, 1
    if first < 0xE0:
        return (first & 0x1F) << 6 | (np.int64(data[at + 1]) & 0x3F), 2
    if first < 0xF0:
        high = (first & 0x0F) << 12 | (np.int64(data[at + 1]) & 0x3F) << 6
        return high | (np.int64(data[at + 2]) & 0x3F), 3
    high = (first & 0x07) << 18 | (np.int64(data[at + 1]) & 0x3F) << 12
    return high | (np.int64(data[at + 2]) & 0x3F) << 6 | (np.int64(data[at + 3]) & 0x3F), 4
