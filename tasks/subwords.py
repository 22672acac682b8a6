"""A byte-level BPE whose text is cut as far as its merges allow: into words, and words where no piece joins two
characters. Segments are then few and short, in any script.

In: what tasks.byte_words knows of a tokenizer without added tokens. Out: where segments begin, and their ids. A segment
is a part of a word, so that its ids are its merges alone, wherever it stands; or, where a character is OTHER
(tasks.character_kinds), all between two seams that hold for any text, which the library cuts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tasks.character_kinds import CharacterKinds
from tasks.text.ascii_words import ascii_words
from tasks.text.byte_level_words import mark_words, simple
from tasks.text.merging import Merges, with_others
from tasks.text.seams import WORD_SEAMS, BytePairSeams
from tasks.text.starts import cut_out, put_back, starts_of

Array = np.ndarray[Any, Any]
Whole = Callable[[Sequence[bytes]], list[list[int]]]

LONG = 512
"""Bytes of a word above which the library merges it: the time of merging grows with their square."""


class Subwords:
    """Seams and ids. pieces: the bytes of each; symbols: int32 [256], the id of each byte; foreign: ids by the library
    of segments with OTHER; long: of parts of words above LONG."""

    def __init__(
        self,
        kinds: CharacterKinds,
        how: tuple[bool, int],
        pieces: Iterable[bytes],
        symbols: Array,
        merges: Merges,
        foreign: Whole,
        long: Whole,
    ) -> None:
        self._kinds, self._how, self._pairs = kinds, how, BytePairSeams(pieces)
        self._symbols, self._merges, self._foreign, self._long = symbols, merges, foreign, long

    def starts(self, data: Array, borders: Array) -> Array:
        """See tasks.text.seams.Seams."""
        bits, stretches = ascii_words(data, borders, *self._how, self._pairs.plain)
        if len(stretches):
            own, begins = cut_out(data, stretches)
            put_back(bits, stretches, begins, self._judged(own, begins))
        return starts_of(bits)

    def _judged(self, data: Array, borders: Array) -> Array:
        """The same of any text, character by character."""
        kinds, foreign = self._kinds.of(data)
        outer = WORD_SEAMS.starts(data, borders) if foreign else borders
        marked = self._pairs.marks(data)
        mark_words(data, kinds, np.append(outer[1:], len(data)), *self._how, marked)
        return np.flatnonzero(marked[:-1])

    def learn(self, data: Array, stops: Array) -> tuple[Array, Array]:
        """(ids int32, ids of each segment int64)."""
        if not len(stops):
            return np.empty(0, np.int32), np.empty(0, np.int64)
        begins = np.concatenate([[0], stops[:-1]])
        plain, short = simple(self._kinds.of(data)[0], stops), stops - begins <= LONG
        kept = plain & short
        ends = np.cumsum(np.where(kept, stops - begins, 0))
        ids, sizes = self._merges.merged(self._symbols[data[np.repeat(kept, stops - begins)]], ends)
        others = dict[int, list[int]]()
        for rows, whole in ((np.flatnonzero(~plain), self._foreign), (np.flatnonzero(plain & ~short), self._long)):
            spelled = [data[begins[row] : stops[row]].tobytes() for row in rows.tolist()]
            others |= dict(zip(rows.tolist(), whole(spelled), strict=True))
        return with_others(ids, sizes, others)
