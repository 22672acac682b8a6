"""A SentencePiece BPE as seams and merges: what tasks.segmented needs to give the library's ids.

In: the pieces of a model. Out: where texts may be cut, and the ids of the segments. It holds for BPE models with byte
pieces; any other is encoded by its library whole, as is a text that spells a longer symbol of the user (alone).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from tasks.segmented import MOST_ALONE
from tasks.sentencepiece_model import BPE, BYTE, NORMAL, UNUSED, USER_DEFINED, Model
from tasks.text.merging import Merges
from tasks.text.seams import PairSeams

Array = np.ndarray[Any, Any]
CODE_POINTS = 0x110000
SPACE_MARK = "\u2581"
LONG = 256
"""Symbols of a segment above which the library encodes it: the time of merging grows with their square."""


class Words:
    """The seams of a model, and the ids of segments between them."""

    def __init__(self, model: Model, ids: Mapping[str, int], byte_ids: list[int], alone: list[str]) -> None:
        self._size, self._bytes = len(model.pieces), np.array(byte_ids, np.int32)
        self._symbols = np.arange(CODE_POINTS, dtype=np.int32) + self._size  # a character that is no piece
        for text, number in ids.items():
            if len(text) == 1:
                self._symbols[ord(text)] = number
        scores = np.array([piece.score for piece in model.pieces], np.float32)
        ranks = np.unique(-scores, return_inverse=True)[1]
        rows = np.array(list(_splits(ids, self._size)), np.int64).reshape(-1, 3)
        self._merges = Merges(rows[:, 0], rows[:, 1], rows[:, 2], ranks[rows[:, 2]].astype(np.int32))
        self.seams, self.alone = PairSeams(ids), alone

    def learn(self, data: Array, stops: Array, whole: Callable[[str], Array]) -> tuple[Array, Array]:
        """(ids int32, ids of each segment int64). whole: the library's ids of a long segment."""
        if not len(stops):
            return np.empty(0, np.int32), np.empty(0, np.int64)
        points = np.frombuffer(data.tobytes().decode().encode("utf-32-le"), np.uint32)
        ends = np.cumsum((data & 0xC0) != 0x80)[stops - 1]
        sizes = np.diff(ends, prepend=0)
        long = np.flatnonzero(sizes > LONG)
        symbols = self._symbols[points]
        if len(long):
            symbols, ends = symbols[np.repeat(sizes <= LONG, sizes)], np.cumsum(np.where(sizes > LONG, 0, sizes))
        ids, counts = self._spelled(*self._merges.merged(symbols, ends))
        if not len(long):
            return ids, counts
        begins = np.concatenate([[0], stops[:-1]])
        others = [whole(data[begins[at] : stops[at]].tobytes().decode()) for at in long]
        at = np.repeat((np.cumsum(counts) - counts)[long], [len(own) for own in others])
        counts[long] = [len(own) for own in others]
        return np.insert(ids, at, np.concatenate(others)), counts

    def _spelled(self, ids: Array, counts: Array) -> tuple[Array, Array]:
        """With the bytes of characters that are no piece."""
        unknown = np.flatnonzero(ids >= self._size)
        if not len(unknown):
            return ids, counts
        each = [self._bytes[np.frombuffer(chr(number - self._size).encode(), np.uint8)] for number in ids[unknown]]
        more = np.array([len(own) for own in each])
        widths = np.ones(len(ids), np.int64)
        widths[unknown] = more
        out = np.repeat(ids, widths)
        out[np.repeat(ids >= self._size, widths)] = np.concatenate(each)
        ends = np.concatenate([[0], np.cumsum(widths)])
        stops = np.concatenate([[0], np.cumsum(counts)])
        return out, np.diff(ends[stops])


def words_of(model: Model) -> Words | None:
    """None where the model is not of the kind that this holds for."""
    own = [piece.text for piece in model.pieces if piece.kind == USER_DEFINED]
    normal = [piece.text for piece in model.pieces if piece.kind == NORMAL]
    byte_ids = [number for number, piece in enumerate(model.pieces) if piece.kind == BYTE]
    single = {text for text in own if len(text) == 1}
    joined = any(len(text) > 1 and set(text) & single for text in normal)
    unused = any(piece.kind == UNUSED for piece in model.pieces)
    spelled = [model.pieces[number].text for number in byte_ids] == [f"<0x{byte:02X}>" for byte in range(256)]
    if model.kind != BPE or not spelled or unused or joined or len(own) > MOST_ALONE:
        return None
    ids = {
        piece.text.replace(SPACE_MARK, " "): number
        for number, piece in enumerate(model.pieces)
        if piece.kind == NORMAL or (piece.kind == USER_DEFINED and len(piece.text) == 1)
    }
    alone = [text.replace(SPACE_MARK, " ") for text in own if len(text) > 1]
    return Words(model, ids, byte_ids, alone) if " " in ids else None


def _splits(ids: Mapping[str, int], size: int) -> Iterator[tuple[int, int, int]]:
    """(left, right, result) of every two symbols that a merge may join to a piece."""
    single = {letter: size + ord(letter) for text in ids for letter in text}  # a character that is no piece
    find = (single | dict(ids)).get
    for text, number in ids.items():
        for at in range(1, len(text)):
            left = find(text[:at])
            right = find(text[at:]) if left is not None else None
            if left is not None and right is not None:
                yield left, right, number
