"""What a fastText classifier says of texts, without fastText's program.

In: texts as Arrow holds them and a Classifier. Out: the best label of each with its probability, or the probability of
one label. It reads no file and trains nothing.

It gives what `fasttext.predict` gives for a text as one line: white space of ASCII separates words, and the word </s>
ends it (one that stands in the text is passed over). Probabilities are those that its log(p + 0.00001) makes, so they
lie up to 0.00001 above p, but never above 1; sums are taken in the same order, in float32.

Speed: docs/filter.md; the kernels release the GIL.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from tasks.text.classifier import SIGMOIDS, SOFTMAX, TREE, Classifier
from tasks.text.features import mean_rows

Array = np.ndarray
_SURELY = 1e-5
_TABLE, _MOST = 512, 8


def best_labels(offsets_D1: Array, data: Array, classifier: Classifier) -> tuple[Array, Array]:
    """(label's place int64, probability float64), [D] each; -1 and 0 where no word or part of one is known.

    The text d is data[offsets_D1[d]:offsets_D1[d + 1]], valid UTF-8.
    """
    return _judged(offsets_D1, data, classifier, -1)


def label_scores(offsets_D1: Array, data: Array, classifier: Classifier, label: str) -> Array:
    """The label's probability, float64 [D]; NaN where no word or part of one is known."""
    place_D, score_D = _judged(offsets_D1, data, classifier, classifier.labels.index(label))
    return np.where(place_D < 0, np.nan, score_D)


def _judged(offsets_D1: Array, data: Array, classifier: Classifier, wanted: int) -> tuple[Array, Array]:
    place_D, score_D = np.zeros(len(offsets_D1) - 1, np.int64), np.zeros(len(offsets_D1) - 1)
    mean_Dn, known_D = mean_rows(offsets_D1, data, classifier)
    _score(mean_Dn, known_D, _layer(classifier), wanted, place_D, score_D)
    return place_D, score_D


def _layer(classifier: Classifier) -> Any:
    steps = (np.arange(_TABLE + 1, dtype=np.float32) * (2 * _MOST) / _TABLE - _MOST).astype(np.float32)
    sigmoid = (1.0 / (1.0 + np.exp(-steps))).astype(np.float32)
    kinds = (TREE, SIGMOIDS, SOFTMAX)
    return classifier.loss, kinds, len(classifier.labels), classifier.outputs, *classifier.paths, sigmoid


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _score(mean_Dn: Array, known_D: Array, layer: Any, wanted: int, place_D: Array, score_D: Array) -> None:
    stack, scores = np.empty(2 * layer[2], np.int64), np.empty(2 * layer[2])
    for text in range(len(mean_Dn)):
        if not known_D[text]:
            place_D[text] = -1
        elif layer[0] == layer[1][0]:
            place_D[text], score_D[text] = _of_tree(mean_Dn[text], layer, wanted, stack, scores)
        else:
            place_D[text], score_D[text] = _of_outputs(mean_Dn[text], layer, wanted)


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
