"""What of an evaluation item is looked for: its n-grams, the whole of it, or it together with its answer.

In: items and the numbers of params.yaml. Out: every n-gram of every form of every item, with its place. It knows
nothing of the corpus.

*Unit*: words as dedup has them (tasks.text.words): runs of letters and digits, lower case; so in code the pieces of
names and the numbers count, and operators do not. Where more than half of an item's words are characters of a
script without spaces its unit is the character, and the lengths are those of characters.

*Rules*, by the length of an item in its unit:

- ngrams, from `ngram_words` (13; GPT-3, appendix C) or `ngram_characters` (16) on: any so many in a row.
- whole, from `short_words_min` (8; GPT-3 goes down to 8) or `short_characters_min` (8) on: all of it in a row.
- pair, a question from `question_words_min` (5) on that is shorter than that: all of it in a row, and an answer of its
  record, whole, at most `answer_window_words` (50; decon of OLMo 3) away. Without the answer it is no evidence.
- answer, shorter than whole: looked for near questions of its record alone, never by itself. An answer of one character
  (an option, a digit) or of stop words stands near everything, and is not looked for.
- none: the certificate counts it as too short.

*Bare n-grams*, of numbers and single letters alone, are not looked for: series and alphabets stand in much code. On
32 MB of code the prompts, solutions and tests of HumanEval and MBPP met nothing else by chance (project).

Items are taken in NFC and, where it differs, in NFKC too, so that either form of a corpus is met.
"""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tasks.decontaminate.sets import Item
from tasks.text.ngrams import window_hashes
from tasks.text.stopwords import STOP_WORDS
from tasks.text.words import ALONE, Words, character_tables, split_words

NONE, NGRAMS, WHOLE, PAIR, ANSWER = range(5)
RULES = ("none", "ngrams", "whole", "pair", "answer")
_SAYS_LITTLE = frozenset(" ".join(STOP_WORDS.values()).split())


class Numbers(NamedTuple):
    """The parameters that shape the index."""

    ngram_words: int
    short_words_min: int
    ngram_characters: int
    short_characters_min: int
    question_words_min: int
    answer_window_words: int
    boilerplate_items_min: int


class Windows(NamedTuple):
    """Every n-gram of every form of every item, G in all, item after item."""

    words: Words
    texts: list[str]
    hashes_G: np.ndarray
    forms_G: np.ndarray  # which text
    places_G: np.ndarray  # its first word in that text
    bare_G: np.ndarray  # bool: it says nothing
    lengths_F: np.ndarray  # words in the n-grams of each text; 0 where it has none
    items_F: np.ndarray
    rules_I: np.ndarray  # int64: the item's rule
    gaps_I: np.ndarray  # int64: words from one n-gram to the next within a passage, at most
    answers_I: tuple[tuple[int, ...], ...]  # answers that are looked for near the item


def windows_of(items: list[Item], numbers: Numbers) -> Windows:
    """The windows of all items, in their order."""
    texts, items_F = [], []
    for number, item in enumerate(items):
        composed = unicodedata.normalize("NFC", item.text)
        for form in dict.fromkeys((composed, unicodedata.normalize("NFKC", composed))):
            texts.append(form)
            items_F.append(number)
    words = split_words(pa.array(texts, pa.large_string()))
    forms = np.array(items_F, np.int64)
    words_F = np.diff(words.offsets_D1)
    alone_F = _mostly_alone(texts, words_F)
    longs_F = np.where(alone_F, numbers.ngram_characters, numbers.ngram_words)
    shorts_F = np.minimum(np.where(alone_F, numbers.short_characters_min, numbers.short_words_min), longs_F)
    firsts_I = np.searchsorted(forms, np.arange(len(items)))
    rules_I = _rules(items, words_F[firsts_I], longs_F[firsts_I], shorts_F[firsts_I])
    answers_I = _answers(items, rules_I, words_F[firsts_I], numbers.question_words_min)
    used = np.array(sorted({answer for of in answers_I for answer in of}), np.int64)
    alone_I = np.array([not of for of in answers_I], np.bool_)
    rules_I[(rules_I == PAIR) & alone_I] = NONE
    rules_I[np.setdiff1d(np.flatnonzero(rules_I == ANSWER), used)] = NONE
    sought_F = np.isin(rules_I[forms], (NGRAMS, WHOLE, PAIR))
    lengths_F = np.where(sought_F, np.minimum(longs_F, words_F), 0)
    hashes_G, offsets_F1 = window_hashes(words.hashes_W, words.offsets_D1, lengths_F)
    forms_G = np.repeat(np.arange(len(texts)), np.diff(offsets_F1))
    places_G = np.arange(len(hashes_G)) - offsets_F1[forms_G]
    bare_G = _bare(texts, words, words.offsets_D1[forms_G] + places_G, lengths_F[forms_G])
    return Windows(
        words, texts, hashes_G, forms_G, places_G, bare_G, lengths_F, forms, rules_I, longs_F[firsts_I], answers_I
    )


def written(windows: Windows, place: int) -> str:
    """N-gram number `place` as it stands in the set."""
    form = windows.forms_G[place]
    first = windows.words.offsets_D1[form] + windows.places_G[place]
    start = int(windows.words.starts_W[first])
    stop = int(windows.words.stops_W[first + windows.lengths_F[form] - 1])
    text: str = windows.texts[form]
    return text.encode()[start:stop].decode()


def _mostly_alone(texts: list[str], words_F: np.ndarray) -> np.ndarray:
    """bool: more than half of the text's words are characters of a script without spaces."""
    classes, alone_F = character_tables()[0], np.zeros(len(texts), np.int64)
    for number, text in enumerate(texts):
        if not text.isascii():
            alone_F[number] = (classes[np.frombuffer(text.encode("utf-32-le"), np.uint32)] == ALONE).sum()
    return np.asarray(2 * alone_F > words_F)


def _rules(items: list[Item], words_I: np.ndarray, longs_I: np.ndarray, shorts_I: np.ndarray) -> np.ndarray:
    """int64: the rule of each item; a short question is a pair for now."""
    rules_I = np.where(words_I >= longs_I, NGRAMS, np.where(words_I >= shorts_I, WHOLE, NONE))
    for number in np.flatnonzero(rules_I == NONE).tolist():
        if items[number].role == "question":
            rules_I[number] = PAIR
        elif items[number].role == "answer" and _says_something(items[number].text):
            rules_I[number] = ANSWER
    return rules_I


def _says_something(answer: str) -> bool:
    letters = [char for char in answer if char.isalnum()]
    words = "".join(char if char.isalnum() else " " for char in answer.lower()).split()
    return len(letters) > 1 and not set(words) <= _SAYS_LITTLE


def _answers(items: list[Item], rules_I: np.ndarray, words_I: np.ndarray, least: int) -> tuple[tuple[int, ...], ...]:
    """The short answers of each question's record; none of questions shorter than `least` words."""
    of_record: dict[tuple[int, int], list[int]] = {}
    for number in np.flatnonzero(rules_I == ANSWER).tolist():
        of_record.setdefault((items[number].set, items[number].line), []).append(number)
    return tuple(
        tuple(of_record.get((item.set, item.line), ())) if item.role == "question" and words >= least else ()
        for item, words in zip(items, words_I.tolist(), strict=True)
    )


def _bare(texts: list[str], words: Words, firsts_G: np.ndarray, lengths_G: np.ndarray) -> np.ndarray:
    """bool [G]: each word of the window is a number or one letter, in ASCII."""
    speaks_W = np.zeros(len(words.hashes_W) + 1, np.int64)
    for number, text in enumerate(texts):
        data = np.frombuffer(text.encode(), np.uint8)
        letters = (data >= 0x80) | (((data | 0x20) >= 0x61) & ((data | 0x20) <= 0x7A))
        sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(letters)])
        own = slice(words.offsets_D1[number], words.offsets_D1[number + 1])
        starts, stops = words.starts_W[own], words.stops_W[own]
        speaks_W[own] = (sums[stops] > sums[starts]) & (stops - starts > 1)
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(speaks_W)])
    bare_G: np.ndarray = before[firsts_G + lengths_G] == before[firsts_G]
    return bare_G
