"""What each character is to a tokenizer's library: a letter, a digit, white, or a mark.

In: the library's own pre-tokenizer. Out: kinds of characters, as tasks.text.byte_level_words takes them. Libraries
follow different versions of Unicode, so each character is asked for, once, and then tried between others: where words
end otherwise than we cut them, it is OTHER and the library stays in charge.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tokenizers
from tasks.text.byte_level_words import ASCII, DIGIT, LETTER, MARK, OTHER, WHITE, word_stops

Array = np.ndarray[Any, Any]
CODE_POINTS, UNKNOWN = 0x110000, 255
CLASSES = ((r"\s", WHITE), (r"\p{N}", DIGIT), (r"\p{L}", LETTER))
PROBE = "a{0}a {0}{0}b'{0}e '{0}a 1{0}23\n{0} {0}\n {0}.{0}'s  {0}\n"
"""A character beside letters, digits, marks, white ones and itself."""


class CharacterKinds:
    """Kinds by code point, as far as texts had them; 1 MB. modern, digits: see byte_level_words."""

    def __init__(self, before: Any, modern: bool, digits: int) -> None:
        self._before, self._modern, self._digits = before, modern, digits
        self._kinds = np.full(CODE_POINTS, UNKNOWN, np.uint8)
        self._kinds[:128] = np.where(ASCII == OTHER, UNKNOWN, ASCII)

    def of(self, data: Array) -> Array:
        """The kind of each byte's character, uint8 [n]. data: uint8 [n], UTF-8."""
        points = np.frombuffer(data.tobytes().decode().encode("utf-32-le"), np.uint32)
        kinds = self._kinds[points]
        if (kinds == UNKNOWN).any():
            self._ask(np.unique(points[kinds == UNKNOWN]))
            kinds = self._kinds[points]
        if len(points) == len(data):
            return kinds
        return np.repeat(kinds, np.diff(np.flatnonzero((data & 0xC0) != 0x80), append=len(data)))

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
        self._kinds[points[self._differs(text)]] = OTHER

    def _differs(self, text: str) -> Array:
        """Which characters are cut otherwise by the library, bool [characters]."""
        probes = [PROBE.format(letter) for letter in text]
        data = np.frombuffer("".join(probes).encode(), np.uint8)
        borders = np.cumsum([len(probe.encode()) for probe in probes])
        words = self._before.pre_tokenize_str("".join(probes))
        theirs = np.cumsum([len(word) for word, _ in words])  # a word is spelled with a character a byte
        one = np.array([len(data)])
        ours, _ = word_stops(data, self.of(data), one, np.ones(1, bool), self._modern, self._digits)
        wrong = np.searchsorted(borders, np.setxor1d(ours, theirs), "left")
        return np.isin(np.arange(len(text)), wrong)
