"""All evaluation sets as one table of n-grams.

In: the sets and the numbers of params.yaml. Out: the table, for each n-gram the items that hold it, and the short
answers of each question. Built once in a process for the same files and numbers, in about a second for 30,000
items; it needs some 150 bytes an n-gram. Which rule an item is looked for by: tasks.decontaminate.windows.

*Boilerplate*: an n-gram that stands in `boilerplate_items_min` or more different texts of one set says
nothing about any of them (a notice, an instruction, a quotation) and is not looked for; the certificate lists
the first ones.

*Control*: every item that has n-grams is looked up in its own text by the code that reads the corpus; one
that is not found is an error, so that a check which cannot find anything never passes for a clean corpus.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tasks.decontaminate.answers import Answers
from tasks.decontaminate.passages import Grams, find_passages
from tasks.decontaminate.sets import EvaluationSet, read_items
from tasks.decontaminate.windows import NGRAMS, PAIR, RULES, WHOLE, Numbers, Windows, windows_of, written
from tasks.errors import InvariantError, SourceError
from tasks.text.ngram_search import Sampled, anchors_of, ngram_table, sampled
from tasks.text.words import Words

BOILERPLATE_SHOWN = 10


class SetFacts(NamedTuple):
    """What became of one set's items."""

    items: int
    by_rule: dict[str, int]
    """items by the rule that they are looked for by."""
    boilerplate_only: int
    """items all of whose n-grams are boilerplate or bare."""
    ngrams: int
    """different n-grams that are looked for."""
    boilerplate: tuple[str, ...]
    """the first BOILERPLATE_SHOWN n-grams left out, as they stand in the set,"""
    boilerplate_ngrams: int
    """and how many there are."""


class Index(NamedTuple):
    """I items of all sets, in the order of the sets."""

    sets: tuple[str, ...]
    sets_I: np.ndarray
    """int64: number of the item's set."""
    grams_I: np.ndarray
    """int64: different n-grams of the item that are looked for; of its form with the fewer."""
    names_I: tuple[str, ...]
    """"line:field"."""
    roles_I: tuple[str, ...]
    grams: Grams
    answers: Answers
    facts: tuple[SetFacts, ...]
    windows: Windows


@lru_cache(maxsize=1)
def build_index(sets: tuple[EvaluationSet, ...], numbers: Numbers) -> Index:
    """The index of `sets`. Raises SourceError for a set that cannot be searched for, InvariantError by the
    control."""
    flat = [item._replace(set=number) for number, one in enumerate(sets) for item in read_items(one)]
    sets_I = np.array([item.set for item in flat], np.int64)
    windows = windows_of(flat, numbers)
    items_G = windows.items_F[windows.forms_G]
    common_G = _boilerplate(windows, sets_I, numbers.boilerplate_items_min)
    left_G = common_G | windows.bare_G
    facts = tuple(_facts(number, windows, sets_I, items_G, common_G) for number in range(len(sets)))
    grams = _grams(windows, items_G, left_G)
    index = Index(
        tuple(one.name for one in sets),
        sets_I,
        _grams_of_items(windows, left_G, len(flat)),
        tuple(item.name for item in flat),
        tuple(item.role for item in flat),
        grams,
        _answers(windows, numbers),
        facts,
        windows,
    )
    _refuse_empty(index, numbers)
    _control(index, windows, np.unique(grams.items))
    return index


def _grams(windows: Windows, items_G: np.ndarray, left_G: np.ndarray) -> Grams:
    hashes_G, kept = windows.hashes_G, np.flatnonzero(~left_G)
    order = kept[np.lexsort((kept, items_G[kept], hashes_G[kept]))]
    first = np.ones(len(order), np.bool_)
    first[1:] = (np.diff(hashes_G[order]) != 0) | (np.diff(items_G[order]) != 0)
    order = order[first]
    hashes, starts = np.unique(hashes_G[order], return_index=True)
    firsts = windows.words.offsets_D1[windows.forms_G[order]] + windows.places_G[order]
    lasts = firsts + windows.lengths_F[windows.forms_G[order]] - 1
    whole_F = np.isin(windows.rules_I[windows.items_F], (WHOLE, PAIR)) & (windows.lengths_F > 0)
    return Grams(
        ngram_table(hashes),
        hashes,
        np.append(starts, len(order)),
        items_G[order],
        np.stack([windows.words.starts_W[firsts], windows.words.stops_W[lasts]]),
        _sampled(windows),
        anchors_of(*_chosen(windows.words, whole_F)),
        windows.gaps_I,
    )


def _sampled(windows: Windows) -> tuple[Sampled, ...]:
    long_F = windows.rules_I[windows.items_F] == NGRAMS
    lengths = np.unique(windows.lengths_F[long_F]).tolist()
    return tuple(sampled(*_chosen(windows.words, long_F & (windows.lengths_F == length)), length) for length in lengths)


def _chosen(words: Words, chosen_F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(hashes, offsets) of the words of some texts."""
    counts_F = np.diff(words.offsets_D1)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts_F[chosen_F])])
    return words.hashes_W[np.repeat(chosen_F, counts_F)], offsets


def _answers(windows: Windows, numbers: Numbers) -> Answers:
    """The answers in their first form, question after question."""
    counts = [len(of) for of in windows.answers_I]
    items = np.array([answer for of in windows.answers_I for answer in of], np.int64)
    forms = np.searchsorted(windows.items_F, items)
    firsts, stops = windows.words.offsets_D1[forms], windows.words.offsets_D1[forms + 1]
    hashes = [windows.words.hashes_W[first:stop] for first, stop in zip(firsts.tolist(), stops.tolist(), strict=True)]
    return Answers(
        numbers.answer_window_words,
        np.concatenate([np.zeros(1, np.int64), np.cumsum(np.array(counts, np.int64))]),
        items,
        np.concatenate([np.zeros(0, np.uint64), *hashes]),
        np.concatenate([np.zeros(1, np.int64), np.cumsum(stops - firsts)]),
    )


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


def _grams_of_items(windows: Windows, left_G: np.ndarray, items: int) -> np.ndarray:
    _, forms_P = _pairs(windows.hashes_G[~left_G], windows.forms_G[~left_G])
    grams_F = np.bincount(forms_P, minlength=len(windows.texts))
    most = np.iinfo(np.int64).max
    grams_I = np.full(items, most)
    np.minimum.at(grams_I, windows.items_F, np.where(grams_F > 0, grams_F, most))
    return np.where(grams_I < most, grams_I, 0)


def _facts(number: int, windows: Windows, sets_I: np.ndarray, items_G: np.ndarray, common_G: np.ndarray) -> SetFacts:
    mine_G = sets_I[items_G] == number
    items = int((sets_I == number).sum())
    with_ngrams = np.unique(items_G[mine_G])
    left_G = common_G | windows.bare_G
    searched = np.unique(items_G[mine_G & ~left_G])
    shown, firsts = np.unique(windows.hashes_G[mine_G & common_G], return_index=True)
    places = np.flatnonzero(mine_G & common_G)[np.sort(firsts)[:BOILERPLATE_SHOWN]]
    return SetFacts(
        items=items,
        by_rule={rule: int((windows.rules_I[sets_I == number] == code).sum()) for code, rule in enumerate(RULES)},
        boilerplate_only=len(with_ngrams) - len(searched),
        ngrams=len(np.unique(windows.hashes_G[mine_G & ~left_G])),
        boilerplate=tuple(written(windows, int(place)) for place in places),
        boilerplate_ngrams=len(shown),
    )


def ngram_text(index: Index, ngram: int) -> str:
    """An n-gram of the index, by its hash, as it first stands in a set."""
    return written(index.windows, int(np.flatnonzero(index.windows.hashes_G == np.uint64(ngram))[0]))


def _refuse_empty(index: Index, numbers: Numbers) -> None:
    for name, facts in zip(index.sets, index.facts, strict=True):
        if not facts.ngrams:
            short = facts.by_rule["none"] + facts.by_rule["answer"]
            raise SourceError(
                f"evaluation set {name} has no n-gram: of {facts.items} items {short} have "
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
