"""The kernel of tasks.text.words: one pass over UTF-8 that finds, folds and hashes words.

In: bytes, where texts lie in them, and tables by code point. Out: each word's hash, first byte and end, and counts of
each text. What a word, its lower case and its hash are stands in tasks.text.words.

ASCII goes 64 bytes at a time: vector compares say where letters are, so that a word costs its beginning, its end and
its hash, eight bytes in one step; `| 0x20` is the lower case of ASCII's letters and digits. A word that a block cuts is
begun again at the next one. Characters of three bytes that are words by themselves go one after another without a
branch that depends on them. What is left goes character by character.

The intrinsics say what numba has no word for: unaligned loads, compares of 64 bytes, counts of bits, and plain
pointers, whose references are not counted at every call as those of arrays are. Little-endian machines only.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

Array = np.ndarray
U64, _U64 = np.uint64, numba.types.uint64
SYMBOL, WHITE, LETTER, ALONE, MARK = 0, 1, 2, 3, 4
"""Classes of code points; ALONE is a letter or digit of a script written without spaces."""
LOWERS, LEAST_BYTES = 0x20000, 64
"""No code point from here on has a lower case; data have so many bytes at least, a block."""
_REPLACEMENT = 0xFFFD
_ZERO, _ONE, _TWO, _THREE, _EIGHT, _BLOCK = (U64(number) for number in (0, 1, 2, 3, 8, LEAST_BYTES))
_FULL, _TOP, _SMALL = U64((1 << 64) - 1), U64(63), U64(0x2020202020202020)
_MIX_1, _MIX_2, _SHIFT = U64(0xFF51AFD7ED558CCD), U64(0xC4CEB9FE1A85EC53), U64(33)
_NONE = (_ZERO, _ZERO, _ZERO)
_njit = numba.njit(nogil=True, cache=True, forceinline=True)


@intrinsic  # type: ignore[untyped-decorator]
def _pointer(_typing: Any, array: Any) -> Any:
    """The address of an array's first element, which is indexed as the array is."""
    kind = numba.types.CPointer(array.dtype)(array)
    return kind, lambda context, builder, _, given: context.make_array(array)(context, builder, given[0]).data


def _load(builder: Any, kind: Any, given: Any) -> Any:
    """Code that loads a value of that kind from place given[1] of the bytes given[0], aligned or not."""
    return builder.load(builder.bitcast(builder.gep(given[0], [given[1]]), kind.as_pointer()), align=1)


@intrinsic  # type: ignore[untyped-decorator]
def _eight_bytes(_typing: Any, data: Any, at: Any) -> Any:
    """uint64: the eight bytes from data[at] on, the first lowest."""
    return _U64(data, at), lambda _context, builder, _, given: _load(builder, ir.IntType(64), given)


@intrinsic  # type: ignore[untyped-decorator]
def _kinds_of_64(_typing: Any, data: Any, at: Any) -> Any:
    """(letters and digits, white space, what is no ASCII), uint64 each: bit i is of data[at + i]."""
    vector = ir.VectorType(ir.IntType(8), LEAST_BYTES)

    def every(value: int) -> Any:
        return ir.Constant(vector, [value] * LEAST_BYTES)

    def emit(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        def within(values: Any, first: int, last: int) -> Any:
            return builder.icmp_unsigned("<=", builder.sub(values, every(first)), every(last - first))

        block = _load(builder, vector, given)
        letters = builder.or_(within(builder.or_(block, every(0x20)), 0x61, 0x7A), within(block, 0x30, 0x39))
        white = builder.or_(within(block, 0x09, 0x0D), within(block, 0x1C, 0x20))
        high = builder.icmp_unsigned(">=", block, every(0x80))
        masks = [builder.bitcast(mask, ir.IntType(64)) for mask in (letters, white, high)]
        return context.make_tuple(builder, signature.return_type, masks)

    return numba.types.UniTuple(_U64, 3)(data, at), emit


@intrinsic  # type: ignore[untyped-decorator]
def _zeros_below(_typing: Any, value: Any) -> Any:
    """uint64: zeros below the lowest one of a uint64; 64 of 0."""
    return _U64(value), lambda _context, builder, _, given: builder.cttz(given[0], ir.Constant(ir.IntType(1), 0))


@intrinsic  # type: ignore[untyped-decorator]
def _ones(_typing: Any, value: Any) -> Any:
    """uint64: ones of a uint64."""
    return _U64(value), lambda _context, builder, _, given: builder.ctpop(given[0])


@_njit  # type: ignore[untyped-decorator]
def _low(count: Any) -> Any:
    """The lowest `count` bits, 0 to 64."""
    return _FULL >> (_BLOCK - count) if count else _ZERO


@_njit  # type: ignore[untyped-decorator]
def _mix(state: Any) -> Any:
    """The 64-bit finalizer of MurmurHash3."""
    state = (state ^ (state >> _SHIFT)) * _MIX_1
    state = (state ^ (state >> _SHIFT)) * _MIX_2
    return state ^ (state >> _SHIFT)


@_njit  # type: ignore[untyped-decorator]
def _few_bytes(data: Any, end: Any, at: Any, count: Any) -> Any:
    """data[at : at + count] of 1 to 8 bytes, the first lowest, zeros above. end: where the data end."""
    if at + _EIGHT <= end:
        return _eight_bytes(data, at) & _low(count << _THREE)
    return (_eight_bytes(data, end - _EIGHT) >> ((at + _EIGHT - end) << _THREE)) & _low(count << _THREE)


@_njit  # type: ignore[untyped-decorator]
def _few_letters(data: Any, end: Any, at: Any, count: Any) -> Any:
    """_few_bytes of letters and digits of ASCII, in lower case."""
    return _few_bytes(data, end, at, count) | (_SMALL & _low(count << _THREE))


@_njit  # type: ignore[untyped-decorator]
def _joined(word: Any, few: Any, count: Any) -> Any:
    """The open word (state, bytes not mixed in yet, how many: 0 to 7) with `count` bytes more, at most 8."""
    state, held, size = word
    shift = size << _THREE
    held |= few << shift
    size += count
    if size < _EIGHT:
        return state, held, size
    return _mix(state ^ held), (few >> (_TOP - shift)) >> _ONE, size - _EIGHT


@_njit  # type: ignore[untyped-decorator]
def _with_ascii(word: Any, data: Any, end: Any, at: Any, length: Any) -> Any:
    """The open word with `length` letters or digits of ASCII more."""
    stop = at + length
    while at < stop:
        count = min(_EIGHT, stop - at)
        word = _joined(word, _few_letters(data, end, at, count), count)
        at += _EIGHT
    return word


@_njit  # type: ignore[untyped-decorator]
def _with_character(word: Any, data: Any, end: Any, at: Any, size: Any, code: np.uint32, lowers: Any) -> Any:
    """The open word with the lower case of one character more."""
    if code >= LOWERS:
        return _joined(word, _few_bytes(data, end, at, size), size)
    few = U64(lowers[code])
    return _joined(word, few, _ONE + U64(few > 0xFF) + U64(few > 0xFFFF) + U64(few > 0xFFFFFF))


@_njit  # type: ignore[untyped-decorator]
def _hash_of(word: Any) -> Any:
    """The hash of an open word that ends."""
    state, held, size = word
    return _mix(state ^ held) if size else state


@_njit  # type: ignore[untyped-decorator]
def _decode(data: Any, at: Any, stop: Any) -> tuple[Any, Any]:
    """(code point, bytes) of the character at `at`, no ASCII; damaged UTF-8 gives U+FFFD, a byte at a time."""
    left, first = stop - at, np.uint32(data[at])
    if 0xC0 <= first < 0xE0 and left > 1:
        return np.uint32((first & 0x1F) << 6 | (data[at + _ONE] & 0x3F)), _TWO
    if 0xE0 <= first < 0xF0 and left > 2:
        return np.uint32(_of_three(data, at) & 0xFFFF), _THREE
    if 0xF0 <= first < 0xF5 and left > 3:
        code = np.uint32((first & 0x07) << 18 | _of_three(data, at + _ONE))
        if code < 0x110000:
            return code, U64(4)
    return np.uint32(_REPLACEMENT), _ONE


@_njit  # type: ignore[untyped-decorator]
def _of_three(data: Any, at: Any) -> Any:
    """The lower six bits of three bytes."""
    return np.uint32((data[at] & 0x3F) << 12 | (data[at + _ONE] & 0x3F) << 6 | (data[at + _TWO] & 0x3F))


@_njit  # type: ignore[untyped-decorator]
def _put(out: Any, words: Any, found: Any, start: Any, stop: Any) -> None:
    out[0][words], out[1][words], out[2][words] = found, np.int64(start), np.int64(stop)


@_njit  # type: ignore[untyped-decorator]
def _block(data: Any, end: Any, at: Any, stop: Any) -> tuple[Any, Any, Any, Any]:
    """(bytes of ASCII from `at` on, at most 64; which of them are letters, which white; whether no other ends them)."""
    first = min(at, end - _BLOCK)
    letters, white, high = _kinds_of_64(data, first)
    before, left = at - first, min(_BLOCK, stop - at)
    size = min(left, _zeros_below(high >> before))
    known = _low(size)
    return size, (letters >> before) & known, (white >> before) & known, size == left


@_njit  # type: ignore[untyped-decorator]
def _of_ascii(data: Any, span: Any, opened: Any, out: Any, words: Any) -> tuple[Any, Any, Any, Any, Any]:
    """(where it went on to, what is open then, words, symbols, white space) of one block of ASCII, or less of it.

    span: its first byte, where the text begins and ends, where the data end. opened: (SYMBOL or LETTER, the word's
    first byte, the word).
    """
    (at, begin, stop, end), (kind, first, word) = span, opened
    size, letters, white, whole = _block(data, end, at, stop)
    last, place = at + size == stop, at - begin
    symbols = size - _ones(letters) - _ones(white)
    if kind == LETTER:
        length = _zeros_below(~letters)
        word = _with_ascii(word, data, end, at, length)
        if length < size:
            _put(out, words, _hash_of(word), first, place + length)
            words, kind = words + _ONE, SYMBOL
        letters &= ~_low(length)
    while letters:
        start = _zeros_below(letters)
        length = _zeros_below(~(letters >> start))
        if start + length == size and not last:
            if whole and start:  # it may go on: all of it with the next block
                size = start
            else:
                kind, first, word = LETTER, place + start, _with_ascii(_NONE, data, end, at + start, length)
            break
        found, done = _mix(_few_letters(data, end, at + start, min(length, _EIGHT))), _EIGHT
        while done < length:
            found = _mix(found ^ _few_letters(data, end, at + start + done, min(length - done, _EIGHT)))
            done += _EIGHT
        _put(out, words, found, place + start, place + start + length)
        words += _ONE
        letters &= letters + (_ONE << start)
    return at + size, (kind, first, word), words, symbols, _ones(white)


@_njit  # type: ignore[untyped-decorator]
def _of_alone(data: Any, span: Any, classes: Any, out: Any, words: Any) -> tuple[Any, Any, Any, Any, Any]:
    """(where it ends, whether its last character is a word that marks may follow, words, symbols, white space) of a run
    of characters of three bytes that begin and end words, or none."""
    (at, begin, stop, end), symbols, white, kind = span, _ZERO, _ZERO, SYMBOL
    while at + _TWO < stop and 0xE0 <= data[at] < 0xF0:
        new = classes[_of_three(data, at) & 0xFFFF]
        if new in (LETTER, MARK):
            break
        kind, place = new, at - begin
        _put(out, words, _mix(_few_bytes(data, end, at, _THREE)), place, place + _THREE)
        at, words = at + _THREE, words + U64(kind == ALONE)
        symbols, white = symbols + U64(kind == SYMBOL), white + U64(kind == WHITE)
    return at, kind == ALONE, words, symbols, white


@_njit  # type: ignore[untyped-decorator]
def _text(data: Any, begin: Any, stop: Any, end: Any, tables: Any, out: Any, words: Any) -> Any:
    """(words, characters, symbols, white space) of the text data[begin:stop], words counted on."""
    (classes, lowers), at, continuations, symbols, white = tables, begin, _ZERO, _ZERO, _ZERO
    kind, first, word = SYMBOL, _ZERO, _NONE  # kind: LETTER or ALONE while a word is open
    while at < stop:
        plain = data[at] < 0x80
        code, size = (np.uint32(data[at]), _ONE) if plain else _decode(data, at, stop)
        new = classes[code]
        if (kind == ALONE and new != MARK) or (kind == LETTER and not plain and new not in (MARK, LETTER)):
            _put(out, words, _hash_of(word), first, at - begin)
            words, kind = words + _ONE, SYMBOL
        span = at, begin, stop, end
        if plain:
            at, (kind, first, word), words, found, blank = _of_ascii(data, span, (kind, first, word), out, words)
            symbols, white = symbols + found, white + blank
        elif kind == SYMBOL and size == _THREE and new not in (MARK, LETTER):
            place = at
            at, last, words, found, blank = _of_alone(data, span, classes, out, words)
            symbols, white = symbols + found, white + blank
            continuations += (at - place) // _THREE * _TWO
            if last:  # marks may follow
                words, kind, first = words - _ONE, ALONE, at - _THREE - begin
                word = (_ZERO, _few_bytes(data, end, at - _THREE, _THREE), _THREE)
        else:
            if new >= LETTER:
                if kind == SYMBOL:
                    kind, first, word = (ALONE if new == ALONE else LETTER), at - begin, _NONE
                word = _with_character(word, data, end, at, size, code, lowers)
            symbols, white = symbols + U64(new == SYMBOL), white + U64(new == WHITE)
            at, continuations = at + size, continuations + size - _ONE
    if kind != SYMBOL:
        _put(out, words, _hash_of(word), first, stop - begin)
        words += _ONE
    return words, stop - begin - continuations, symbols, white


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def scan(data: Array, offsets_D1: Array, tables: Any, words_3W: Any, counts_4D: Array) -> int:
    """Fill hashes, starts and stops; per text words so far, characters, symbols, white space. Returns W.

    data: LEAST_BYTES and more. tables: classes, uint8 [0x110000]; the UTF-8 of each code point's lower case, the first
    byte lowest, uint32 [LOWERS].
    """
    classes, lowers = _pointer(tables[0]), _pointer(tables[1])
    out = _pointer(words_3W[0]), _pointer(words_3W[1]), _pointer(words_3W[2])
    words, end = _ZERO, U64(len(data))
    for text in range(len(offsets_D1) - 1):
        begin, stop = U64(offsets_D1[text]), U64(offsets_D1[text + 1])
        words, characters, symbols, white = _text(_pointer(data), begin, stop, end, (classes, lowers), out, words)
        counts_4D[0, text], counts_4D[1, text] = words, characters
        counts_4D[2, text], counts_4D[3, text] = symbols, white
    return np.int64(words)  # type: ignore[return-value]
