"""All evaluation sets as one table of n-grams.

In: the sets and three numbers. Out: the table, and for each n-gram the items that hold it. Built once in a
process for the same files and numbers, in about a second for 30,000 items; it needs some 100 bytes an n-gram.

*N-gram*: `ngram_words` consecutive words (tasks.text.words: lower-cased letters and digits; a character is a
word in scripts without spaces). An item of fewer words but at least `short_words_min` is one n-gram, the
whole of it; an item shorter than that cannot be matched, and the certificate counts it. Items are taken in
NFC and, where it differs, in NFKC too, so that either form of a corpus is met.

*Boilerplate*: an n-gram that stands in `boilerplate_items_min` or more different texts of one set says
nothing about any of them (a notice, an instruction, a quotation) and is not looked for; the certificate lists
the first ones.

*Control*: every item that has n-grams is looked up in its own text by the code that reads the corpus; one
that is not found is an error, so that a check which cannot find anything never passes for a clean corpus.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tasks.decontaminate.passages import Grams, find_passages
from tasks.decontaminate.sets import EvaluationSet, Item, read_items
from tasks.errors import InvariantError, SourceError
from tasks.text.ngrams import ngram_table, window_hashes
from tasks.text.words import Words, split_words

BOILERPLATE_SHOWN = 10


class Numbers(NamedTuple):
    """The parameters that shape the index."""

    ngram_words: int
    short_words_min: int
    boilerplate_items_min: int


class SetFacts(NamedTuple):
    """What became of one set's items."""

    items: int
    too_short: int
    """items of fewer words than short_words_min."""
    boilerplate_only: int
    """items all of whose n-grams are boilerplate."""
    ngrams: int
    """different n-grams that are looked for."""
    boilerplate: tuple[str, ...]
    """the first BOILERPLATE_SHOWN n-grams left out, as they stand in the set,"""
    boilerplate_ngrams: int
    """and how many there are."""


class Windows(NamedTuple):
    """Every n-gram of every form of every item, G in all, item after item."""

    words: Words
    texts: list[str]
    hashes_G: np.ndarray
    forms_G: np.ndarray  # which text
    places_G: np.ndarray  # its first word in that text
    lengths_F: np.ndarray  # words in the n-grams of each text; 0 where it has none
    items_F: np.ndarray


class Index(NamedTuple):
    """I items of all sets, in the order of the sets."""

    sets: tuple[str, ...]
    sets_I: np.ndarray
    """int64: number of the item's set."""
    grams_I: np.ndarray
    """int64: different n-grams of the item that are looked for; of its form with the fewer."""
    names_I: tuple[str, ...]
    """ "line:field"."""
    grams: Grams
    facts: tuple[SetFacts, ...]
    windows: Windows


@lru_cache(maxsize=1)
def build_index(sets: tuple[EvaluationSet, ...], numbers: Numbers) -> Index:
    """The index of `sets`. Raises SourceError for a set that cannot be searched for, InvariantError by the
    control."""
    items = [read_items(one) for one in sets]
    flat = [item for of_set in items for item in of_set]
    sets_I = np.repeat(np.arange(len(sets)), np.array([len(of_set) for of_set in items], np.int64))
    windows = _windows(flat, numbers)
    items_G = windows.items_F[windows.forms_G]
    common_G = _boilerplate(windows, sets_I, numbers.boilerplate_items_min)
    unique, items_P = _pairs(windows.hashes_G[~common_G], items_G[~common_G])
    hashes, starts = np.unique(unique, return_index=True)
    lengths = tuple(int(length) for length in np.unique(windows.lengths_F) if length)
    grams = Grams(ngram_table(hashes), hashes, np.append(starts, len(unique)), items_P, lengths, numbers.ngram_words)
    facts = tuple(_facts(number, windows, sets_I, items_G, common_G) for number in range(len(sets)))
    grams_I = _grams_of_items(windows, common_G, len(flat))
    names_I = tuple(item.name for item in flat)
    index = Index(tuple(one.name for one in sets), sets_I, grams_I, names_I, grams, facts, windows)
    _refuse_empty(index, numbers)
    _control(index, windows, np.unique(items_P))
    return index


def _windows(items: list[Item], numbers: Numbers) -> Windows:
    texts, items_F = [], []
    for number, item in enumerate(items):
        composed = unicodedata.normalize("NFC", item.text)
        for form in dict.fromkeys((composed, unicodedata.normalize("NFKC", composed))):
            texts.append(form)
            items_F.append(number)
    words = split_words(pa.array(texts, pa.large_string()))
    words_F = np.diff(words.offsets_D1)
    short_F = np.where(words_F >= min(numbers.short_words_min, numbers.ngram_words), words_F, 0)
    lengths_F = np.where(words_F >= numbers.ngram_words, numbers.ngram_words, short_F)
    hashes_G, offsets_F1 = window_hashes(words.hashes_W, words.offsets_D1, lengths_F)
    forms_G = np.repeat(np.arange(len(texts)), np.diff(offsets_F1))
    places_G = np.arange(len(hashes_G)) - offsets_F1[forms_G]
    return Windows(words, texts, hashes_G, forms_G, places_G, lengths_F, np.array(items_F, np.int64))


def _pairs(hashes_G: np.ndarray, others_G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different (hash, other) pairs, sorted."""
    order = np.lexsort((others_G, hashes_G))
    hashes_G, others_G = hashes_G[order], others_G[order]
    first = np.ones(len(order), np.bool_)
    first[1:] = (hashes_G[1:] != hashes_G[:-1]) | (others_G[1:] != others_G[:-1])
    return hashes_G[first], others_G[first]


def _boilerplate(windows: Windows, sets_I: np.ndarray, least: int) -> np.ndarray:
    """bool [G]: the n-gram stands in `least` or more different texts of the set of its item."""
    common_G = np.zeros(len(windows.hashes_G), np.bool_)
    texts_G = _same_words(windows)[windows.forms_G]
    sets_G = sets_I[windows.items_F[windows.forms_G]]
    for number in np.unique(sets_G):
        mine = sets_G == number
        hashes, _ = _pairs(windows.hashes_G[mine], texts_G[mine])
        different, counts = np.unique(hashes, return_counts=True)
        common_G[mine] = np.isin(windows.hashes_G[mine], different[counts >= least])
    return common_G


def _same_words(windows: Windows) -> np.ndarray:
    """int64 [F]: a number for each text; equal where the words are equal, and for the forms of one item."""
    numbers: dict[bytes, int] = {}
    of_item: dict[int, int] = {}
    offsets = windows.words.offsets_D1
    for form, item in enumerate(windows.items_F.tolist()):
        words = windows.words.hashes_W[offsets[form] : offsets[form + 1]].tobytes()
        of_item.setdefault(item, numbers.setdefault(words, form))
    return np.array([of_item[item] for item in windows.items_F.tolist()], np.int64)


def _grams_of_items(windows: Windows, common_G: np.ndarray, items: int) -> np.ndarray:
    _, forms_P = _pairs(windows.hashes_G[~common_G], windows.forms_G[~common_G])
    grams_F = np.bincount(forms_P, minlength=len(windows.texts))
    most = np.iinfo(np.int64).max
    grams_I = np.full(items, most)
    np.minimum.at(grams_I, windows.items_F, np.where(grams_F > 0, grams_F, most))
    return np.where(grams_I < most, grams_I, 0)


def _facts(number: int, windows: Windows, sets_I: np.ndarray, items_G: np.ndarray, common_G: np.ndarray) -> SetFacts:
    mine_G = sets_I[items_G] == number
    items = int((sets_I == number).sum())
    with_ngrams = np.unique(items_G[mine_G])
    searched = np.unique(items_G[mine_G & ~common_G])
    shown, firsts = np.unique(windows.hashes_G[mine_G & common_G], return_index=True)
    places = np.flatnonzero(mine_G & common_G)[np.sort(firsts)[:BOILERPLATE_SHOWN]]
    return SetFacts(
        items=items,
        too_short=items - len(with_ngrams),
        boilerplate_only=len(with_ngrams) - len(searched),
        ngrams=len(np.unique(windows.hashes_G[mine_G & ~common_G])),
        boilerplate=tuple(_written(windows, int(place)) for place in places),
        boilerplate_ngrams=len(shown),
    )


def ngram_text(index: Index, ngram: int) -> str:
    """An n-gram of the index, by its hash, as it first stands in a set."""
    return _written(index.windows, int(np.flatnonzero(index.windows.hashes_G == np.uint64(ngram))[0]))


def _written(windows: Windows, place: int) -> str:
    """The n-gram as it stands in the set."""
    form = windows.forms_G[place]
    first = windows.words.offsets_D1[form] + windows.places_G[place]
    start = int(windows.words.starts_W[first])
    stop = int(windows.words.stops_W[first + windows.lengths_F[form] - 1])
    text: str = windows.texts[form]
    return text.encode()[start:stop].decode()


def _refuse_empty(index: Index, numbers: Numbers) -> None:
    for name, facts in zip(index.sets, index.facts, strict=True):
        if not facts.ngrams:
            raise SourceError(
                f"evaluation set {name} has no n-gram: of {facts.items} items {facts.too_short} have "
                f"fewer than {numbers.short_words_min} words and {facts.boilerplate_only} boilerplate",
                "name longer fields, or change short_words_min or boilerplate_items_min",
            )


def _control(index: Index, windows: Windows, searched: np.ndarray) -> None:
    """Look every item up in its own text."""
    passages = find_passages(windows.words, index.grams)
    own = windows.items_F[passages.texts_M] == passages.items_M
    lost = np.setdiff1d(searched, passages.items_M[own])
    if len(lost):
        item = int(lost[0])
        raise InvariantError(
            f"{len(lost)} of {len(searched)} evaluation items are not found in their own text, the first is "
            f"{index.names_I[item]} of {index.sets[index.sets_I[item]]}",
            "the check cannot be trusted; report it",
        )
