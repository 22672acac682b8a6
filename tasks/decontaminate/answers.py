"""Short answers near the questions that they answer.

In: the words of texts, passages of questions in them, and the short answers of each question. Out: for each passage the
nearest answer. It looks nowhere else: a short answer alone is no sign of anything.

Cost: a passage's window, some hundred words, for each answer of its question.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from tasks.decontaminate.passages import Passages
from tasks.text.words import Words


class Answers(NamedTuple):
    """The short answers of all items."""

    window: int
    """words between a question's passage and its answer, at most."""
    offsets_I1: np.ndarray
    """int64 [I + 1]: where each item's answers begin in `items`."""
    items: np.ndarray
    """int64 [A]: the answers, as items."""
    words: np.ndarray
    """uint64: hashes of the words of the answers, one after another,"""
    offsets_A1: np.ndarray
    """int64 [A + 1]: and where each begins."""


def find_answers(words: Words, passages: Passages, answers: Answers) -> tuple[np.ndarray, np.ndarray]:
    """(items int64 [M], bytes int64 [2, M]): the nearest answer to each passage and where it stands in the text; -1
    where there is none. Of two as near, the one that follows."""
    found_3M = np.full((3, len(passages.texts_M)), -1, np.int64)
    places = passages.texts_M, passages.items_M, passages.words_2M
    _nearest(words.hashes_W, words.offsets_D1, places, answers.window, answers[1:], found_3M)
    here = found_3M[0] >= 0
    spans_2M = np.full((2, len(here)), -1, np.int64)
    begins = words.offsets_D1[passages.texts_M[here]]
    spans_2M[0, here] = words.starts_W[begins + found_3M[1, here]]
    spans_2M[1, here] = words.stops_W[begins + found_3M[2, here]]
    return found_3M[0], spans_2M


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _stands(hashes_W: np.ndarray, at: int, stop: int, answer: np.ndarray) -> bool:
    if at + len(answer) > stop:
        return False
    same = 0
    while same < len(answer) and hashes_W[at + same] == answer[same]:
        same += 1
    return same == len(answer)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _nearest(
    hashes_W: np.ndarray,
    offsets_D1: np.ndarray,
    places: tuple[np.ndarray, np.ndarray, np.ndarray],
    window: int,
    answers: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    found_3M: np.ndarray,
) -> None:
    (texts_M, items_M, words_2M), (offsets_I1, items, words, offsets_A1) = places, answers
    for passage in range(len(texts_M)):
        begin, stop = offsets_D1[texts_M[passage]], offsets_D1[texts_M[passage] + 1]
        first, last, nearest = begin + words_2M[0, passage], begin + words_2M[1, passage], window + 1
        for number in range(offsets_I1[items_M[passage]], offsets_I1[items_M[passage] + 1]):
            answer = words[offsets_A1[number] : offsets_A1[number + 1]]
            for away in range(nearest):
                after, before = last + 1 + away, first - len(answer) - away
                if _stands(hashes_W, after, stop, answer):
                    at = after
                elif before >= begin and _stands(hashes_W, before, stop, answer):
                    at = before
                else:
                    continue
                nearest = away
                found_3M[0, passage], found_3M[1, passage] = items[number], at - begin
                found_3M[2, passage] = at - begin + len(answer) - 1
                break
