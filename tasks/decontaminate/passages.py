"""Where texts share n-grams with evaluation items.

In: the words of texts and the n-grams of the items. Out: passages: stretches of one text in which n-grams of
one item follow each other, and where these stand in the item. It decides nothing.

N-grams of an item belong to one passage while each begins at most `gap` words after the one before; so a book
that quotes an item in its first and its last chapter has two passages, and a cut does not take the book
between them.

Cost on one core: 1 to 2 ns a word for each length of long items, 2 to 3 ns for all short ones together; see
tasks.text.ngram_search.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tasks.text.ngram_search import Anchors, NgramTable, Sampled, find_ngrams, find_whole
from tasks.text.words import Words


class Grams(NamedTuple):
    """The n-grams of all items, by number."""

    table: NgramTable
    hashes: np.ndarray
    """uint64 [n-grams]: the hash of each, ascending."""
    starts: np.ndarray
    """int64 [n-grams + 1]: where each n-gram's items begin in `items`."""
    items: np.ndarray
    """int64: the items that hold each n-gram, n-gram after n-gram,"""
    spans: np.ndarray
    """int64 [2, pairs]: its first byte in each of them, and one past its last."""
    sampled: tuple[Sampled, ...]
    """the lengths of n-grams of long items."""
    anchors: Anchors | None
    """of the items looked for whole."""
    gaps_I: np.ndarray
    """int64: words from the beginning of one n-gram to the next within a passage of the item, at most."""


class Passages(NamedTuple):
    """M passages, sorted by (text, item, place)."""

    texts_M: np.ndarray
    """int64: number of the text."""
    items_M: np.ndarray
    """int64: number of the item."""
    grams_M: np.ndarray
    """int64: different n-grams shared."""
    words_2M: np.ndarray
    """int64 [2, M]: its first word in the text, and its last."""
    spans_2M: np.ndarray
    """int64 [2, M]: byte of the text where the first n-gram begins, and where the last one ends."""
    item_spans_2M: np.ndarray
    """int64 [2, M]: the same in the item."""
    offsets_M1: np.ndarray
    """int64 [M + 1]: where each passage's n-grams begin in `hashes`."""
    hashes: np.ndarray
    """uint64: the different n-grams of each passage, ascending, passage after passage."""


_NONE, _NONE_2 = np.zeros(0, np.int64), np.zeros((2, 0), np.int64)
NO_PASSAGES = Passages(_NONE, _NONE, _NONE, _NONE_2, _NONE_2, _NONE_2, np.zeros(1, np.int64), np.zeros(0, np.uint64))


def find_passages(words: Words, grams: Grams) -> Passages:
    """The passages that the texts share with items."""
    hits = [find_ngrams(words.hashes_W, words.offsets_D1, one, grams.table) for one in grams.sampled]
    if grams.anchors is not None:
        hits.append(find_whole(words.hashes_W, words.offsets_D1, grams.anchors, grams.table))
    hits_4H = np.concatenate([np.zeros((4, 0), np.int64), *hits], axis=1)
    if not hits_4H.shape[1]:
        return NO_PASSAGES
    texts, items, places, lasts, numbers, pairs = _with_items(hits_4H, grams)
    begins = np.ones(len(texts), np.bool_)
    begins[1:] = (texts[1:] != texts[:-1]) | (items[1:] != items[:-1]) | (np.diff(places) > grams.gaps_I[items[1:]])
    firsts = np.flatnonzero(begins)
    of_passage, different = np.unique(np.stack([np.cumsum(begins) - 1, numbers]), axis=1)
    grams_M = np.bincount(of_passage, minlength=len(firsts))
    texts_M, lasts_M = texts[firsts], _most(lasts, firsts)
    begins_M = words.offsets_D1[texts_M]
    return Passages(
        texts_M,
        items[firsts],
        grams_M,
        np.stack([places[firsts], lasts_M]),
        np.stack([words.starts_W[begins_M + places[firsts]], words.stops_W[begins_M + lasts_M]]),
        np.stack([-_most(-grams.spans[0, pairs], firsts), _most(grams.spans[1, pairs], firsts)]),
        np.concatenate([np.zeros(1, np.int64), np.cumsum(grams_M)]),
        grams.hashes[different],
    )


def _most(values: np.ndarray, firsts: np.ndarray) -> np.ndarray:
    """The highest of each stretch of values."""
    return np.maximum.reduceat(values, firsts) if len(firsts) else values


def _with_items(hits_4H: np.ndarray, grams: Grams) -> tuple[np.ndarray, ...]:
    """(text, item, its first and last word in the text, n-gram, place among the pairs) of every hit, once for each
    item; sorted by text, item and first word."""
    texts, places, numbers, lengths = hits_4H
    counts = grams.starts[numbers + 1] - grams.starts[numbers]
    hits = np.repeat(np.arange(len(numbers)), counts)
    within = np.arange(len(hits)) - np.repeat(np.cumsum(counts) - counts, counts)
    pairs = grams.starts[numbers[hits]] + within
    items = grams.items[pairs]
    order = np.lexsort((places[hits], items, texts[hits]))
    hits, pairs = hits[order], pairs[order]
    return texts[hits], items[order], places[hits], (places + lengths - 1)[hits], numbers[hits], pairs
