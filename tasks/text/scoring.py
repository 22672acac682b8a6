"""What a fastText classifier says of texts, without fastText's program.

In: texts as Arrow holds them and a Classifier. Out: the best label of each with its probability, or the probability of
one label. It reads no file and trains nothing.

It gives what `fasttext.predict` gives for a text as one line: white space of ASCII separates words, and the word </s>
ends it (one that stands in the text is passed over). Probabilities are those that its log(p + 0.00001) makes, so they
lie up to 0.00001 above p, but never above 1; sums are taken in the same order, in float32.

Speed: 22 to 29 MB of text a CPU second with the model of languages (one core, 2026); the kernels release the GIL.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from tasks.text.classifier import SIGMOIDS, SOFTMAX, TREE, Classifier

Array = np.ndarray
_BASIS, _PRIME, _LOW = np.uint64(2166136261), np.uint64(16777619), np.uint64(0xFFFFFFFF)
_SIGN, _PHRASE, _ONE, _HIGH = np.uint64(0xFFFFFF00), np.uint64(116049371), np.uint64(1), np.uint64(63)
_SURELY = 1e-5
_TABLE, _MOST = 512, 8
_HELD = 4096
_END = np.frombuffer(b"</s>", np.uint8)


def best_labels(offsets_D1: Array, data: Array, classifier: Classifier) -> tuple[Array, Array]:
    """(label's place int64, probability float64), [D] each; -1 and 0 where no word or part of one is known.

    The text d is data[offsets_D1[d]:offsets_D1[d + 1]], valid UTF-8.
    """
    place_D, score_D = np.zeros(len(offsets_D1) - 1, np.int64), np.zeros(len(offsets_D1) - 1)
    _score(data, offsets_D1, _arrays(classifier), _layer(classifier), -1, place_D, score_D)
    return place_D, score_D


def label_scores(offsets_D1: Array, data: Array, classifier: Classifier, label: str) -> Array:
    """The label's probability, float64 [D]; NaN where no word or part of one is known."""
    place_D, score_D = np.zeros(len(offsets_D1) - 1, np.int64), np.zeros(len(offsets_D1) - 1)
    wanted = classifier.labels.index(label)
    _score(data, offsets_D1, _arrays(classifier), _layer(classifier), wanted, place_D, score_D)
    return np.where(place_D < 0, np.nan, score_D)


def _arrays(classifier: Classifier) -> Any:
    return *classifier.words, classifier.sizes, classifier.buckets, classifier.rows


def _layer(classifier: Classifier) -> Any:
    steps = (np.arange(_TABLE + 1, dtype=np.float32) * (2 * _MOST) / _TABLE - _MOST).astype(np.float32)
    sigmoid = (1.0 / (1.0 + np.exp(-steps))).astype(np.float32)
    kinds = (TREE, SIGMOIDS, SOFTMAX)
    return classifier.loss, kinds, len(classifier.labels), classifier.outputs, *classifier.paths, sigmoid


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _score(
    data: Array, offsets_D1: Array, arrays: Any, layer: Any, wanted: int, place_D: Array, score_D: Array
) -> None:
    most = 0
    for text in range(len(offsets_D1) - 1):
        most = max(most, offsets_D1[text + 1] - offsets_D1[text])
    scratch, found_N = np.empty(most + 2, np.uint8), np.empty(_HELD + max(2, arrays[3][1] + 1, arrays[3][2]), np.int32)
    phrases = np.empty((most // 2 + 2) if arrays[3][2] > 1 else 0, np.int32)
    hidden, stack, scores = (
        np.empty(arrays[5].shape[1], np.float32),
        np.empty(2 * layer[2], np.int64),
        np.empty(2 * layer[2]),
    )
    for text in range(len(offsets_D1) - 1):
        span = data[offsets_D1[text] : offsets_D1[text + 1]]
        hidden[:] = 0
        found = _look_at(span, arrays, scratch, phrases, found_N, hidden)
        if not found:
            place_D[text] = -1
            continue
        hidden *= np.float32(1.0 / np.float32(found))
        if layer[0] == layer[1][0]:
            place_D[text], score_D[text] = _of_tree(hidden, layer, wanted, stack, scores)
        else:
            place_D[text], score_D[text] = _of_outputs(hidden, layer, wanted)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _add(hidden: Array, rows: Array, found_N: Array) -> Any:
    """Add the rows found, in their order; returns how many there are."""
    for row in found_N:
        at = np.uint64(row)
        for place in range(np.uint64(len(hidden))):
            hidden[place] += rows[at, place]
    return len(found_N)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _look_at(span: Array, arrays: Any, scratch: Array, phrases: Array, found_N: Array, hidden: Array) -> Any:
    """Add the rows of a text's words, parts of words and phrases, some thousand at a time; returns their number."""
    spelled, starts, table, sizes, _, rows = arrays
    every, noted, words, at, stop = 0, 0, 0, 0, len(span)
    while at <= stop:
        first = at
        while at < stop and not _blank(span[at]):
            at += 1
        ending = at == stop and first == at
        word = _END if ending else span[first:at]
        if ending or (at > first and (len(word) != len(_END) or not _same(word, _END, 0))):
            state, place = _look_up(word, spelled, starts, table)
            if place >= 0:
                found_N[noted] = place
                noted += 1
            if not ending and (place < 0 or sizes[1] > 0):
                summed, noted = _parts(word, len(starts) - 1, arrays, scratch, found_N, noted, hidden)
                every += summed
            if len(phrases):
                phrases[words] = np.int32(np.uint32(state))
            words += 1
        if noted >= _HELD:
            every, noted = every + _add(hidden, rows, found_N[:noted]), 0
        at += at < stop or ending
    if len(phrases):
        summed, noted = _phrases(phrases[:words], len(starts) - 1, arrays, found_N, noted, hidden)
        every += summed
    return every + _add(hidden, rows, found_N[:noted])


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _blank(byte: int) -> bool:
    return byte == 32 or 9 <= byte <= 13 or byte == 0


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _fold(state: np.uint64, byte: np.uint8) -> Any:
    wide = np.uint64(byte)
    if byte > 127:
        wide |= _SIGN
    return ((state ^ wide) * _PRIME) & _LOW


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _look_up(word: Array, spelled: Array, starts: Array, table: Array) -> Any:
    """(hash, the word's place or -1)."""
    state = _BASIS
    for byte in word:
        state = _fold(state, byte)
    mask = np.uint64(len(table) - 1)
    slot = state & mask
    while table[slot] >= 0:
        place = table[slot]
        if starts[place + 1] - starts[place] == len(word) and _same(word, spelled, starts[place]):
            return state, np.int64(place)
        slot = (slot + np.uint64(1)) & mask
    return state, np.int64(-1)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _same(word: Array, other: Array, start: int) -> bool:
    same = True
    for place in range(len(word)):
        same &= word[place] == other[start + place]
    return same


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _bucket(state: Any, words: int, buckets: Array, count: np.uint64, inverse: float) -> Any:
    """The row of a bucket, or -1: state % count by a product, which costs a third of a division."""
    bucket = state - np.uint64(np.float64(state) * inverse) * count
    if bucket >> _HIGH:  # the product rounded up
        bucket += count
    if bucket >= count:
        bucket -= count
    if len(buckets):
        row = buckets[bucket]
        return row if row < 0 else row + words
    return np.int64(bucket) + words


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _parts(word: Array, words: int, arrays: Any, scratch: Array, found_N: Array, noted: Any, hidden: Array) -> Any:
    """(rows of the parts of <word> that were added, rows that are noted now)."""
    _, _, _, sizes, buckets, rows = arrays
    size, shortest, longest = np.uint64(len(word) + 2), np.uint64(max(0, sizes[0])), np.uint64(max(0, sizes[1]))
    every, inverse, summed = np.uint64(sizes[3]), 1.0 / max(1, sizes[3]), 0
    found: Any = np.uint64(noted)
    scratch[0], scratch[size - _ONE] = 60, 62
    for place in range(len(word)):
        scratch[np.uint64(place) + _ONE] = word[place]
    at: Any
    for start in range(size):
        if scratch[start] & 0xC0 == 0x80:
            continue
        state, at, characters = _BASIS, start, np.uint64(0)
        while at < size and characters < longest:
            state = _fold(state, scratch[at])
            at += _ONE
            while at < size and scratch[at] & 0xC0 == 0x80:
                state = _fold(state, scratch[at])
                at += _ONE
            characters += _ONE
            if characters >= shortest and (characters > _ONE or (start > 0 and at < size)):
                row = _bucket(state, words, buckets, every, inverse)
                found_N[found] = row
                found += np.uint64(row >= 0)
        if found >= np.uint64(_HELD):
            summed, found = summed + _add(hidden, rows, found_N[: np.int64(found)]), np.uint64(0)
    return summed, np.int64(found)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _phrases(hashes: Array, words: int, arrays: Any, found_N: Array, noted: Any, hidden: Array) -> Any:
    """As _parts, of runs of 2 words and more, of which the hashes, as signed numbers, make the bucket."""
    _, _, _, sizes, buckets, rows = arrays
    summed: Any = 0
    for first in range(len(hashes)):
        state = np.uint64(np.int64(hashes[first]))
        for place in range(first + 1, min(first + sizes[2], len(hashes))):
            state = state * _PHRASE + np.uint64(np.int64(hashes[place]))
            bucket = np.int64(state % np.uint64(sizes[3]))
            row = bucket if len(buckets) == 0 else np.int64(buckets[bucket])
            found_N[noted] = row + words
            noted += row >= 0
        if noted >= _HELD:
            summed, noted = summed + _add(hidden, rows, found_N[:noted]), 0
    return summed, noted


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _dot(hidden: Array, row: Array) -> Any:
    total = np.float32(0)
    for place in range(len(hidden)):
        total += row[place] * hidden[place]
    return total


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _of_tree(hidden: Array, layer: Any, wanted: int, stack: Array, scores: Array) -> Any:
    """(label's place, probability) by Huffman's tree; `wanted`: that label, else the best one."""
    _, _, labels, outputs, children, parents, _ = layer
    if wanted >= 0:
        score, node = 1.0, wanted
        while parents[node] >= 0:
            odds = _odds(_dot(hidden, outputs[parents[node] - labels]))
            score *= (odds if children[parents[node], 1] == node else 1.0 - odds) + _SURELY
            node = parents[node]
        return wanted, min(1.0, score)
    best, most, top = -1, -1.0, 1
    stack[0], scores[len(parents) - 1] = len(parents) - 1, 1.0
    while top:
        top -= 1
        node = stack[top]
        if scores[node] <= most:
            continue
        if node < labels:
            best, most = node, scores[node]
            continue
        odds = _odds(_dot(hidden, outputs[node - labels]))
        for right in (odds < 0.5, odds >= 0.5):  # the likelier child is looked at first
            child = children[node, int(right)]
            scores[child] = scores[node] * ((odds if right else 1.0 - odds) + _SURELY)
            stack[top] = child
            top += 1
    return best, min(1.0, most)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _odds(dot: Any) -> Any:
    return 1.0 / (1.0 + math.exp(-np.float64(dot)))


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _of_outputs(hidden: Array, layer: Any, wanted: int) -> Any:
    """(label's place, probability) of a layer with an output for each label."""
    loss, kinds, labels, outputs, _, _, table = layer
    values = np.empty(labels, np.float32)
    for place in range(labels):
        values[place] = _dot(hidden, outputs[place])
    if loss == kinds[2]:
        largest, total = values.max(), np.float32(0)
        for place in range(labels):
            values[place] = np.float32(math.exp(np.float64(values[place] - largest)))
            total += values[place]
        values /= total
    else:
        for place in range(labels):
            values[place] = _sigmoid(values[place], table)
    place = wanted if wanted >= 0 else int(values.argmax())
    return place, min(1.0, np.float64(values[place]) + _SURELY)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _sigmoid(value: Any, table: Array) -> Any:
    """By fastText's table of 512 steps between -8 and 8."""
    if value < -_MOST:
        return np.float32(0)
    if value > _MOST:
        return np.float32(1)
    return table[int((value + _MOST) * _TABLE / _MOST / 2)]
