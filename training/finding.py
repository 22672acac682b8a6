"""Where sequences lie in mapped shards and where documents begin in them: compiled loops, thousands of rows a call.

In: what is mapped, as an int64 at every address, and the places of each shard's arrays in it. Out: ids, lengths,
beginnings of documents. `find` has numpy's way too; that of `borders` is training.borders. Legend: n rows, m documents.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from training import kernels

Array = np.ndarray[Any, Any]

KNOTS = 1024
"""Equal parts of a shard's ids; which document holds the first of each is noted, 4 KB a shard. From there a document is
guessed within 3 on average, of 30,000 lognormal ones."""

CHUNK = 512
"""Rows whose documents are asked for together, small enough that what is touched for them stays in the caches."""

FAR = 32
"""Documents from the guess within which the right one is looked for one by one, as steps in one direction are foretold;
beyond, in doubling steps."""

WORD, LINE = np.uint64(8), np.uint64(64)
"""Bytes of a pointer and of a cache line. Addresses are unsigned: a signed index may count from the end, and costs a
test."""


def find(words: Array, places: Array, shards: Array, place: Array) -> tuple[Array, Array]:
    """(ids, lengths), int64 [n]: the number of each sequence's first id in the mapped range, and its ids.

    words: int64 at every address; places int64 [7, shards]: a shard's first id, the addresses of its starts, stops and
    pointers, its documents and ids, its row of knots; shards, place int64 [n]: of each sequence.
    """
    if kernels.COMPILED:
        ids, lengths = np.empty_like(place), np.empty_like(place)
        _find(words, places, shards, place, ids, lengths)
        return ids, lengths
    first, starts, stops = places[:3, shards]
    start = words[starts + 8 * place]
    return first + start, words[stops + 8 * place] - start


@kernels.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _find(words: Array, places: Array, shards: Array, place: Array, ids: Array, lengths: Array) -> None:
    for row in range(len(place)):
        shard, at = shards[row], 8 * place[row]
        start, stop = words[places[1, shard] + at], words[places[2, shard] + at]
        ids[row], lengths[row] = places[0, shard] + start, stop - start


@kernels.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _upto(words: Array, pointers: int, documents: int, start: int, guess: int) -> int:
    """Number of the last document that begins at or before byte `start` of its shard's ids, from `guess` on in doubling
    steps, then by halving; 0 if there is none. pointers: address of the shard's first."""
    low, high, step = guess, guess, 1
    if words[pointers + 8 * guess] <= start:
        high = guess + 1
        while high < documents and words[pointers + 8 * high] <= start:
            low, step = high, 2 * step
            high = min(documents, high + step)
    else:
        low = guess - 1
        while low > 0 and words[pointers + 8 * low] > start:
            high, step = low, 2 * step
            low = max(0, low - step)
    while high - low > 1:
        middle = (low + high) >> 1
        if words[pointers + 8 * middle] <= start:
            low = middle
        else:
            high = middle
    return max(0, low)


def laid_knots(words: Array, pointers: int, documents: int, held: int) -> Array:
    """int32 [KNOTS + 1]: the document that holds the first id of each of KNOTS equal parts of a shard, and its last.
    pointers: address of the shard's first; held: bytes of its ids."""
    made = np.zeros(KNOTS + 1, np.int32)
    if documents:
        _knots(words, pointers, documents, held, made)
    return made


@kernels.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _knots(words: Array, pointers: int, documents: int, held: int, made: Array) -> None:
    found = 0
    for part in range(len(made)):
        found = _upto(words, pointers, documents, held * part // (len(made) - 1), found)
        made[part] = found


@kernels.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _guesses(words: Array, places: Array, knots: Array, shards: Array, starts: Array, guesses: Array) -> int:
    """guesses uint64 [n]: the address of a document near the one that each row begins in, taken between two knots as if
    all documents there had one size. starts: ids of the shard before the row's first."""
    seen = 0
    for row in range(len(starts)):
        shard = shards[row]
        part = starts[row] * (KNOTS / max(1, places[5, shard]))
        knot: Any = min(np.int64(part), KNOTS - 1)
        own = places[6, shard]
        below, above = knots[own, knot], knots[own, knot + 1]
        at = np.uint64(places[3, shard] + 8 * (below + np.int64((part - knot) * (above - below))))
        last = np.uint64(places[3, shard] + 8 * (places[4, shard] - 1))
        # Its cache line and the next, before any is looked at: all rows wait for memory together.
        seen ^= words[at] ^ words[min(at + LINE, last)]
        guesses[row] = at
    return seen  # or the compiler would leave the reads out


@kernels.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _next(words: Array, pointers: np.uint64, documents: int, start: int, guess: np.uint64) -> np.uint64:
    """The address behind that of the last document that begins at or before byte `start`, from `guess` on."""
    at, far, past = guess, WORD * np.uint64(FAR), pointers + WORD * np.uint64(documents)
    if words[at] > start:
        low = at - far if at > pointers + far else pointers
        while at > low and words[at] > start:
            at -= WORD
        if words[at] <= start:
            return at + WORD
    else:
        high = min(past, at + far)
        at += WORD
        while at < high and words[at] <= start:
            at += WORD
        if at < high or high == past:
            return at
        at -= WORD
    found = _upto(words, np.int64(pointers), documents, start, np.int64(at - pointers) >> 3)
    return pointers + WORD * np.uint64(found + 1)


@kernels.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _borders(
    words: Array,
    places: Array,
    knots: Array,
    shards: Array,
    ids: Array,
    lengths: Array,
    width: int,
    shift: int,
    group: int,
    begins: Array,
    of_row: Array,
) -> int:
    found, base, guesses, starts = 0, -width, np.empty(CHUNK, np.uint64), np.empty(CHUNK, np.int64)
    for chunk in range(0, len(ids), CHUNK):
        rows = min(CHUNK, len(ids) - chunk)
        own = shards[chunk : chunk + rows]
        for row in range(rows):
            starts[row] = ids[chunk + row] - places[0, own[row]]
        of_row[len(ids)] = _guesses(words, places, knots, own, starts[:rows], guesses)
        for row in range(rows):
            pointers, documents = np.uint64(places[3, own[row]]), places[4, own[row]]
            start = starts[row] << shift
            stop = start + (lengths[chunk + row] << shift)
            base = base + width if base + width < group * width else 0
            of_row[chunk + row] = found
            if found < len(begins):
                begins[found] = base
            found += 1
            at, past = _next(words, pointers, documents, start, guesses[row]), pointers + WORD * np.uint64(documents)
            while at < past and words[at] < stop:
                if found < len(begins):
                    begins[found] = base + ((words[at] - start) >> shift)
                found, at = found + 1, at + WORD
    of_row[len(ids)] = found
    return found


def borders(
    words: Array,
    places: Array,
    knots: Array,
    shards: Array,
    ids: Array,
    lengths: Array,
    *,
    width: int,
    item: int,
    group: int,
) -> tuple[Array, Array]:
    """(begins int64 [m]: row % group * width + place of each document that a row holds; of_row int64 [n + 1]: which of
    them are whose).

    words, places, shards: as of `find`, which gives ids and lengths; knots int32 [rows, KNOTS + 1]; item: bytes of an
    id. 0.05 us a row. Compiled only: training.borders is what there is without.
    """
    shift = item.bit_length() - 1  # a division would cost more than all else
    of_row = np.empty(len(ids) + 1, np.int64)
    begins = np.empty(4 * len(ids) + 64, np.int64)
    found = _borders(words, places, knots, shards, ids, lengths, width, shift, group, begins, of_row)
    if found > len(begins):
        begins = np.empty(found, np.int64)
        _borders(words, places, knots, shards, ids, lengths, width, shift, group, begins, of_row)
    return begins[:found], of_row
