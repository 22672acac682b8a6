"""The kernel of tasks.text.words: one pass over UTF-8 that finds, folds and hashes words.

In: bytes, where texts lie in them, and tables by code point. Out: each word's hash, first byte and end, and counts of
each text. What a word, its lower case and its hash are stands in tasks.text.words.

ASCII goes 64 bytes at a time: vector compares say where letters are, and so where words begin and end; a run's words
are hashed when all are known, eight side by side; `| 0x20` is the lower case of ASCII's letters and digits. A word that
a block cuts is begun again at the next one. Characters of three bytes that are words by themselves go one after another
without a branch that depends on them. Words with other characters go piece by piece, as do those of 64 bytes and more.

The intrinsics say what numba has no word for: unaligned loads, vectors, counts of bits, and plain pointers, whose
references are not counted at every call as those of arrays are. Little-endian machines only.
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
LOWERS, LEAST_BYTES, TOGETHER = 0x20000, 64, 8
"""No code point from here on has a lower case; data have so many bytes at least, a block; words noted and hashed at a
time, for so many of which there must be room beyond the last."""
_ZERO, _ONE, _TWO, _THREE, _EIGHT, _BLOCK = (U64(number) for number in (0, 1, 2, 3, 8, LEAST_BYTES))
_FULL, _TOP, _SMALL = U64((1 << 64) - 1), U64(63), U64(0x2020202020202020)
_NONE = (_ZERO, _ZERO, _ZERO)
_MIX_1, _MIX_2, _SHIFT = U64(0xFF51AFD7ED558CCD), U64(0xC4CEB9FE1A85EC53), U64(33)
_INT, _NUMBERS, _BYTES = ir.IntType(64), ir.VectorType(ir.IntType(64), TOGETHER), ir.VectorType(ir.IntType(8), 64)
_njit = numba.njit(nogil=True, cache=True, forceinline=True)


@intrinsic  # type: ignore[untyped-decorator]
def _pointer(_typing: Any, array: Any) -> Any:
    """The address of an array's first element, which is indexed as the array is."""
    kind = numba.types.CPointer(array.dtype)(array)
    return kind, lambda context, builder, _, given: context.make_array(array)(context, builder, given[0]).data


def _load(builder: Any, kind: Any, given: Any) -> Any:
    """Code that loads a value of that kind from given[0][given[1]] on, aligned or not."""
    return builder.load(builder.bitcast(builder.gep(given[0], [given[1]]), kind.as_pointer()), align=1)


def _every(kind: Any, value: Any) -> Any:
    """A vector of one number."""
    return ir.Constant(kind, [int(value)] * kind.count)


@intrinsic  # type: ignore[untyped-decorator]
def _eight_bytes(_typing: Any, data: Any, at: Any) -> Any:
    """uint64: the eight bytes from data[at] on, the first lowest."""
    return _U64(data, at), lambda _context, builder, _, given: _load(builder, _INT, given)


@intrinsic  # type: ignore[untyped-decorator]
def _kinds_of_64(_typing: Any, data: Any, at: Any) -> Any:
    """(letters and digits, white space, what is no ASCII), uint64 each: bit i is of data[at + i]."""

    def emit(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        def within(values: Any, first: int, last: int) -> Any:
            return builder.icmp_unsigned("<=", builder.sub(values, _every(_BYTES, first)), _every(_BYTES, last - first))

        block = _load(builder, _BYTES, given)
        letters = within(builder.or_(block, _every(_BYTES, 0x20)), 0x61, 0x7A)
        white = builder.or_(within(block, 0x09, 0x0D), within(block, 0x1C, 0x20))
        masks = (builder.or_(letters, within(block, 0x30, 0x39)), white, within(block, 0x80, 0xFF))
        return context.make_tuple(builder, signature.return_type, [builder.bitcast(mask, _INT) for mask in masks])

    return numba.types.UniTuple(_U64, 3)(data, at), emit


@intrinsic  # type: ignore[untyped-decorator]
def _hash_eight(_typing: Any, data: Any, begin: Any, last: Any, out: Any, word: Any) -> Any:
    """Fill in the hashes of eight words of ASCII by their first eight bytes; uint64: bit i is set where word + i has
    more. last: no word begins beyond; places that no word has yet may say anything, and are read no further on."""

    def emit(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        hashes, *places = (builder.extract_value(given[3], number) for number in range(3))
        starts, stops = (_load(builder, _NUMBERS, (place, given[4])) for place in places)
        text, few = builder.gep(given[0], [given[1]]), ir.Constant(_NUMBERS, ir.Undefined)
        for lane in (ir.Constant(ir.IntType(32), number) for number in range(TOGETHER)):
            at = builder.extract_element(starts, lane)
            at = builder.select(builder.icmp_unsigned("<", at, given[2]), at, given[2])
            few = builder.insert_element(few, _load(builder, _INT, (text, at)), lane)
        lengths, eight = builder.sub(stops, starts), _every(_NUMBERS, TOGETHER)
        more = builder.icmp_unsigned(">", lengths, eight)
        spare = builder.shl(builder.sub(eight, builder.select(more, eight, lengths)), _every(_NUMBERS, 3))
        found = builder.and_(builder.or_(few, _every(_NUMBERS, _SMALL)), builder.lshr(_every(_NUMBERS, _FULL), spare))
        for factor in (_MIX_1, _MIX_2, _ONE):
            found = builder.xor(found, builder.lshr(found, _every(_NUMBERS, _SHIFT)))
            found = builder.mul(found, _every(_NUMBERS, factor))
        builder.store(found, builder.bitcast(builder.gep(hashes, [given[4]]), _NUMBERS.as_pointer()), align=8)
        return builder.zext(builder.bitcast(more, ir.IntType(TOGETHER)), _INT)

    return _U64(data, begin, last, out, word), emit


def _of_bits(emit: Any) -> Any:
    """An intrinsic that makes a uint64 of one."""
    return intrinsic(lambda _typing, value: (_U64(value), lambda _, builder, __, given: emit(builder, given[0])))


_zeros_below = _of_bits(lambda builder, value: builder.cttz(value, ir.Constant(ir.IntType(1), 0)))  # 64 of 0
_zeros_above = _of_bits(lambda builder, value: builder.ctlz(value, ir.Constant(ir.IntType(1), 0)))
_ones = _of_bits(lambda builder, value: builder.ctpop(value))


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
    return np.uint32(0xFFFD), _ONE


@_njit  # type: ignore[untyped-decorator]
def _of_three(data: Any, at: Any) -> Any:
    """The lower six bits of three bytes."""
    return np.uint32((data[at] & 0x3F) << 12 | (data[at + _ONE] & 0x3F) << 6 | (data[at + _TWO] & 0x3F))


@_njit  # type: ignore[untyped-decorator]
def _end(out: Any, words: Any, word: Any, first: Any, stop: Any) -> None:
    """Note an open word that ends."""
    out[0][words] = _mix(word[0] ^ word[1]) if word[2] else word[0]
    out[1][words], out[2][words] = np.int64(first), np.int64(stop)


@_njit  # type: ignore[untyped-decorator]
def _of_ascii(data: Any, span: Any, classes: Any, out: Any, counts: Any) -> tuple[Any, Any]:
    """(where it went on to, counts of words, symbols, white space) of a run of ASCII without a word that goes on beyond
    it. span: its first byte, where the text begins and ends, where the data end."""
    (at, begin, stop, end), (words, symbols, white), goes_on = span, counts, True
    while goes_on:
        block, left = min(at, end - _BLOCK), min(_BLOCK, stop - at)
        letters, blank, high = _kinds_of_64(data, block)
        size = min(left, _zeros_below(high >> (at - block)))
        letters, blank = (letters >> (at - block)) & _low(size), (blank >> (at - block)) & _low(size)
        symbols, white = symbols + size - _ones(letters) - _ones(blank), white + _ones(blank)
        goes_on = size == left and at + size < stop
        if goes_on or (size < left and classes[_decode(data, at + size, stop)[0]] in (LETTER, MARK)):
            size -= _zeros_above(~(letters << ((_BLOCK - size) & _TOP)))
        letters &= _low(size)
        _note(out, words, letters, at - begin)
        at, words, goes_on = at + size, words + _ones(letters & ~(letters << _ONE)), goes_on and size > 0
    _hash(data, begin, end, out, counts[0], words)
    return at, (words, symbols, white)


@_njit  # type: ignore[untyped-decorator]
def _note(out: Any, words: Any, letters: Any, place: Any) -> None:
    """The first bytes and the ends of a block's words, TOGETHER at a time: what is written beyond them the next ones
    overwrite, and no branch waits for how many there are."""
    firsts, lasts = letters & ~(letters << _ONE), letters & ~(letters >> _ONE)
    while firsts:
        for at in range(TOGETHER):
            out[1][words + U64(at)] = np.int64(place + _zeros_below(firsts))
            out[2][words + U64(at)] = np.int64(place + _zeros_below(lasts) + _ONE)
            firsts, lasts = firsts & (firsts - _ONE), lasts & (lasts - _ONE)
        words += U64(TOGETHER)


@_njit  # type: ignore[untyped-decorator]
def _hash(data: Any, begin: Any, end: Any, out: Any, word: Any, words: Any) -> None:
    """The hashes of the words of ASCII from `word` on, whose places are noted."""
    while word < words:
        more = _low(min(_EIGHT, words - word))
        if begin + U64(out[1][word + _ones(more) - _ONE]) + _EIGHT <= end:
            more &= _hash_eight(data, begin, end - begin - _EIGHT, out, word)
        while more:
            this = word + _zeros_below(more)
            at, stop, found = begin + U64(out[1][this]), begin + U64(out[2][this]), _ZERO
            while at < stop:
                count = min(_EIGHT, stop - at)
                found = _mix(found ^ (_few_bytes(data, end, at, count) | (_SMALL & _low(count << _THREE))))
                at += _EIGHT
            out[0][this] = found
            more &= more - _ONE
        word += _EIGHT


@_njit  # type: ignore[untyped-decorator]
def _of_alone(data: Any, span: Any, classes: Any, out: Any, counts: Any) -> tuple[Any, Any, Any]:
    """(where it ends, whether its last character is a word that marks may follow, counts) of a run of characters of
    three bytes that begin and end words, or none."""
    (at, begin, stop, end), (words, symbols, white), kind = span, counts, SYMBOL
    while at + _TWO < stop and 0xE0 <= data[at] < 0xF0:
        new = classes[_of_three(data, at) & 0xFFFF]
        if new in (LETTER, MARK):
            break
        kind, place = new, at - begin
        _end(out, words, (_ZERO, _few_bytes(data, end, at, _THREE), _THREE), place, place + _THREE)
        at, words = at + _THREE, words + U64(kind == ALONE)
        symbols, white = symbols + U64(kind == SYMBOL), white + U64(kind == WHITE)
    return at, kind == ALONE, (words, symbols, white)


@_njit  # type: ignore[untyped-decorator]
def _text(data: Any, begin: Any, stop: Any, end: Any, tables: Any, out: Any, words: Any) -> Any:
    """(characters, words, symbols, white space) of the text data[begin:stop], words counted on."""
    (classes, lowers), at, within, counts = tables, begin, _ZERO, (words, _ZERO, _ZERO)
    kind, first, word = SYMBOL, _ZERO, _NONE  # kind: LETTER or ALONE while a word is open; within: bytes in characters
    while at < stop:
        if kind == SYMBOL and data[at] < 0x80:
            at, counts = _of_ascii(data, (at, begin, stop, end), classes, out, counts)
            if at == stop:
                break
        code, size = (np.uint32(data[at]), _ONE) if data[at] < 0x80 else _decode(data, at, stop)
        new, (words, symbols, white) = classes[code], counts
        if (kind == ALONE and new != MARK) or (kind == LETTER and new not in (MARK, LETTER)):
            _end(out, words, word, first, at - begin)
            counts, kind = (words + _ONE, symbols, white), SYMBOL
        elif kind == SYMBOL and size == _THREE and new not in (MARK, LETTER):
            place = at
            at, last, counts = _of_alone(data, (at, begin, stop, end), classes, out, counts)
            within += (at - place) // _THREE * _TWO
            if last:  # marks may follow
                counts, kind, first = (counts[0] - _ONE, counts[1], counts[2]), ALONE, at - _THREE - begin
                word = (_ZERO, _few_bytes(data, end, at - _THREE, _THREE), _THREE)
        else:
            if new >= LETTER and kind == SYMBOL:
                kind, first, word = (ALONE if new == ALONE else LETTER), at - begin, _NONE
            if data[at] < 0x80:  # letters, as what else there is of ASCII ends words: eight at most
                block = min(at, end - _BLOCK)
                size = min(min(_EIGHT, stop - at), _zeros_below(~(_kinds_of_64(data, block)[0] >> (at - block))))
                word = _joined(word, _few_bytes(data, end, at, size) | (_SMALL & _low(size << _THREE)), size)
            elif new >= LETTER:
                few = U64(lowers[code]) if code < LOWERS else _few_bytes(data, end, at, size)
                word = _joined(word, few, _ONE + U64(few > 0xFF) + U64(few > 0xFFFF) + U64(few > 0xFFFFFF))
            within += U64(data[at] >= 0x80) * (size - _ONE)
            counts, at = (words, symbols + U64(new == SYMBOL), white + U64(new == WHITE)), at + size
    if kind != SYMBOL:
        _end(out, counts[0], word, first, stop - begin)
    return stop - begin - within, counts[0] + U64(kind != SYMBOL), counts[1], counts[2]


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
        characters, words, symbols, white = _text(_pointer(data), begin, stop, end, (classes, lowers), out, words)
        counts_4D[0, text], counts_4D[1, text] = words, characters
        counts_4D[2, text], counts_4D[3, text] = symbols, white
    return np.int64(words)  # type: ignore[return-value]
