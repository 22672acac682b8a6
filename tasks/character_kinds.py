"""What each character is to a tokenizer's library: a letter, a digit, white, or a mark.

In: the library's own pre-tokenizer. Out: kinds of characters, as tasks.text.byte_level_words takes them. Libraries
follow different versions of Unicode, so each character is asked for, once, and then tried between others (but for
letters without case, which an expression meets by their class alone): where words end otherwise than we cut them, it is
OTHER and the library stays in charge; so is one that its normalizer may touch.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import compress
from typing import Any

import numpy as np

import tokenizers
from tasks.text.byte_level_words import ASCII, DIGIT, LETTER, MARK, OTHER, WHITE, spread, word_stops

Array = np.ndarray[Any, Any]
CODE_POINTS, UNKNOWN = 0x110000, 255
JAMO = (range(0x1100, 0x1200), range(0xA960, 0xA980), range(0xD7B0, 0xD800))
CLASSES = ((r"\s", WHITE), (r"\p{N}", DIGIT), (r"\p{L}", LETTER))
PROBE = "a{0}a {0}{0}b'{0}e '{0}a 1{0}23\n{0} {0}\n {0}.{0}'s  {0}\n"
"""A character beside letters, digits, marks, white ones and itself."""
TOGETHER = 32
"""Characters tried in one call: the library's time grows faster than the text that it gets."""


class CharacterKinds:
    """Kinds by code point, as far as texts had them; 1 MB. modern, digits: see byte_level_words. normalizer: one of
    Unicode's forms, or None."""

    def __init__(self, before: Any, modern: bool, digits: int, normalizer: Any = None) -> None:
        self._before, self._modern, self._digits, self._normalizer = before, modern, digits, normalizer
        self._kinds = np.full(CODE_POINTS, UNKNOWN, np.uint8)
        self._kinds[:128] = np.where(ASCII == OTHER, UNKNOWN, ASCII)

    def of(self, data: Array) -> tuple[Array, bool]:
        """(the kind of each byte's character uint8 [n], whether one is OTHER). data: uint8 [n], UTF-8."""
        kinds, highest = spread(data, self._kinds)
        if highest == UNKNOWN:
            points = np.frombuffer(data.tobytes().decode().encode("utf-32-le"), np.uint32)
            self._ask(np.unique(points[self._kinds[points] == UNKNOWN]))
            kinds, highest = spread(data, self._kinds)
        return kinds, highest == OTHER

    def _ask(self, points: Array) -> None:
        """Note the kinds of characters not seen before."""
        text = points.tobytes().decode("utf-32-le")
        kinds = np.full(len(points), MARK, np.uint8)
        for expression, kind in CLASSES:
            split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(expression), "removed")
            others = np.zeros(len(points) + 1, np.int64)
            for _, (start, stop) in split.pre_tokenize_str(text):
                others[start] += 1
                others[stop] -= 1
            kinds[np.cumsum(others)[:-1] == 0] = kind
        self._kinds[points] = kinds
        tried = [
            kind != LETTER or unicodedata.category(letter) != "Lo" for letter, kind in zip(text, kinds, strict=True)
        ]
        asked = [*compress(text, tried)]
        for first in range(0, len(asked), TOGETHER):
            some = points[tried][first : first + TOGETHER]
            self._kinds[some[self._differs(asked[first : first + TOGETHER])]] = OTHER
        if self._normalizer is not None:
            self._kinds[points[[self._may_change(letter) for letter in text]]] = OTHER

    def _may_change(self, letter: str) -> bool:
        """Whether a form of Unicode alters a character, or may join it to the one before: marks and the letters of
        Hangul are, and what this Python does not know might be."""
        moves = unicodedata.category(letter) in ("Mn", "Mc", "Me", "Cn") or any(ord(letter) in own for own in JAMO)
        return moves or self._normalizer.normalize_str(letter) != letter

    def _differs(self, letters: Sequence[str]) -> Array:
        """Which characters are cut otherwise by the library, bool [characters]."""
        probes = [PROBE.format(letter) for letter in letters]
        spelled = "".join(probes) + "a"  # so that a word follows the last one too
        data = np.frombuffer(spelled.encode(), np.uint8)
        borders = np.cumsum([len(probe.encode()) for probe in probes])
        words = self._before.pre_tokenize_str(spelled)
        theirs = np.cumsum([len(word) for word, _ in words])  # a word is spelled with a character a byte
        one = np.array([len(data)])
        ours, _ = word_stops(data, self.of(data)[0], one, np.ones(1, bool), self._modern, self._digits)
        wrong = np.searchsorted(borders, np.setxor1d(ours, theirs, assume_unique=True), "left")
        return np.isin(np.arange(len(letters)), wrong)
