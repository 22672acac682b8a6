"""Where texts share n-grams with evaluation items.

In: the words of texts and the n-grams of the items. Out: passages: stretches of one text in which n-grams of
one item follow each other. It decides nothing.

N-grams of an item belong to one passage while each begins at most `gap` words after the one before; so a book
that quotes an item in its first and its last chapter has two passages, and a cut does not take the book
between them.

Cost on one core: 6 ns a word for each length looked for; see tasks.text.ngrams.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tasks.text.ngrams import NgramTable, find_ngrams
from tasks.text.words import Words


class Grams(NamedTuple):
    """The n-grams of all items, by number."""

    table: NgramTable
    hashes: np.ndarray
    """uint64 [n-grams]: the hash of each, ascending."""
    starts: np.ndarray
    """int64 [n-grams + 1]: where each n-gram's items begin in `items`."""
    items: np.ndarray
    """int64: the items that hold each n-gram, n-gram after n-gram."""
    lengths: tuple[int, ...]
    """the numbers of words that an n-gram may have, ascending."""
    gap: int
    """words from the beginning of one n-gram to the next within a passage, at most."""


class Passages(NamedTuple):
    """M passages, sorted by (text, item, place)."""

    texts_M: np.ndarray
    """int64: number of the text."""
    items_M: np.ndarray
    """int64: number of the item."""
    grams_M: np.ndarray
    """int64: different n-grams shared."""
    starts_M: np.ndarray
    """int64: byte of the text where the first one begins,"""
    stops_M: np.ndarray
    """int64: and where the last one ends."""
    offsets_M1: np.ndarray
    """int64 [M + 1]: where each passage's n-grams begin in `hashes`."""
    hashes: np.ndarray
    """uint64: the different n-grams of each passage, ascending, passage after passage."""


def find_passages(words: Words, grams: Grams) -> Passages:
    """The passages that the texts share with items."""
    found = [_with_items(words, grams, length) for length in grams.lengths]
    if not found:
        nothing = np.zeros(0, np.int64)
        none = np.zeros(0, np.uint64)
        return Passages(nothing, nothing, nothing, nothing, nothing, np.zeros(1, np.int64), none)
    texts, items, places, numbers, lasts = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.lexsort((places, items, texts))
    texts, items, places, numbers, lasts = (column[order] for column in (texts, items, places, numbers, lasts))
    begins = np.ones(len(texts), np.bool_)
    begins[1:] = (texts[1:] != texts[:-1]) | (items[1:] != items[:-1]) | (np.diff(places) > grams.gap)
    firsts = np.flatnonzero(begins)
    passages = np.cumsum(begins) - 1
    of_passage, different = np.unique(np.stack([passages, numbers]), axis=1)
    grams_M = np.bincount(of_passage, minlength=len(firsts))
    stops = words.stops_W[lasts]
    return Passages(
        texts[firsts],
        items[firsts],
        grams_M,
        words.starts_W[words.offsets_D1[texts[firsts]] + places[firsts]],
        np.maximum.reduceat(stops, firsts) if len(firsts) else stops,
        np.concatenate([np.zeros(1, np.int64), np.cumsum(grams_M)]),
        grams.hashes[different],
    )


def _with_items(words: Words, grams: Grams, length: int) -> tuple[np.ndarray, ...]:
    """(text, item, first word in the text, n-gram, last word of all) of every hit, once for each item."""
    texts, places, numbers = find_ngrams(words.hashes_W, words.offsets_D1, length, grams.table)
    counts = grams.starts[numbers + 1] - grams.starts[numbers]
    hits = np.repeat(np.arange(len(numbers)), counts)
    within = np.arange(len(hits)) - np.repeat(np.cumsum(counts) - counts, counts)
    items = grams.items[grams.starts[numbers[hits]] + within]
    lasts = words.offsets_D1[texts] + places + length - 1
    return texts[hits], items, places[hits], numbers[hits], lasts[hits]
