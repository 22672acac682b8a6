"""Where a text may be cut before it is encoded, so that the ids of the pieces are those of the whole.

In: UTF-8 bytes and what a tokenizer never joins. Out: where segments begin. It knows no tokenizer; which of the two
rules holds for one is tasks.encoder's and tasks.engines' affair.

PairSeams: between two characters that stand side by side in no piece of the vocabulary no merge can reach across.
BytePairSeams: the same of pieces that may begin and end within a character.
WORD_SEAMS: where every known expression that cuts text into words ends a match (tasks.byte_words says which and why).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import numba
import numpy as np

Array = np.ndarray[Any, Any]
BITS = 21
"""Bits of a code point."""
CODE_POINTS = 0x110000


class Seams(Protocol):
    """A rule that says where texts may be cut."""

    def starts(self, data: Array, borders: Array) -> Array:
        """First byte of each segment, int64 [m], rising.

        data: uint8 [n], UTF-8. borders: int64 [texts + 1], where each text begins, and n. Every text begins a segment.
        """


class PairSeams:
    """Cuts wherever no piece holds the two neighbours side by side. 300 MB a CPU second.

    plain: bool [128, 128], whether a piece may join two characters of ASCII."""

    def __init__(self, pieces: Iterable[str]) -> None:
        """pieces: all that a merge can make, as they stand in text."""
        held = list(pieces)
        points = np.frombuffer("".join(held).encode("utf-32-le"), np.uint32).astype(np.uint64)
        ends = np.cumsum([len(piece) for piece in held], dtype=np.int64)
        within = np.ones(len(points), bool)
        within[ends[:-1]] = False  # the first character of a piece follows none
        left, right = points[:-1][within[1:]], points[1:][within[1:]]
        plain = (left < 128) & (right < 128)
        self.plain = np.zeros((128, 128), bool)
        self.plain[left[plain], right[plain]] = True
        wide = np.unique(left[~plain] << np.uint64(BITS) | right[~plain])
        self._wide = np.zeros(1 << (2 * len(wide) + 1).bit_length(), np.uint64)
        _fill(self._wide, wide)
        self._parts = Parts(np.zeros(1, bool), np.zeros(1, bool), np.zeros((1, 1), bool))

    def starts(self, data: Array, borders: Array) -> Array:
        marked = self.marks(data)
        marked[borders] = True
        return np.flatnonzero(marked[:-1])

    def marks(self, data: Array) -> Array:
        """Whether no piece joins the character that begins at a byte to the one before, bool [n + 1]."""
        marked = np.zeros(len(data) + 1, bool)
        _mark_pairs(data, self.plain, self._wide, marked, *self._parts)
        return marked


class Parts(NamedTuple):
    """What joins characters without being two whole ones. before, after: by code point, bool; bytes: the last byte of
    one character and the first of the next, bool [256, 256]; all of length 1 where there is nothing."""

    before: Array
    after: Array
    bytes: Array


class BytePairSeams(PairSeams):
    """Pieces are bytes. One that begins or ends within a character may join it to any other: there is no seam before a
    character that follows part of one in a piece, none after one that part of one follows, and none between two bytes
    that stand side by side where a part follows a part."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        found = Parts(np.zeros(CODE_POINTS, bool), np.zeros(CODE_POINTS, bool), np.zeros((256, 256), bool))
        held = list(pieces)
        plain = [piece.decode() for piece in held if piece.isascii()]
        super().__init__(plain + list(_whole([piece for piece in held if not piece.isascii()], found)))
        self.plain |= found.before[:128] | found.after[:128, None]
        self._parts = found


def _whole(pieces: Iterable[bytes], found: Parts) -> Iterator[str]:
    """What each piece holds of whole characters; the rest is noted."""
    for piece in pieces:
        head, text, tail = _parted(piece)
        if text:
            yield text
        if text and head:
            found.before[ord(text[0])] = True
        if text and tail:
            found.after[ord(text[-1])] = True
        if head and tail and not text:
            found.bytes[head[-1], tail[0]] = True


def _parted(piece: bytes) -> tuple[bytes, str, bytes]:
    """(end of a character, whole characters, beginning of one); nothing of what is no UTF-8: no text has it."""
    first, last = 0, len(piece)
    while first < last and piece[first] & 0xC0 == 0x80:
        first += 1
    for at in range(last - 1, max(first, last - 4) - 1, -1):
        if piece[at] & 0xC0 != 0x80:
            width = 1 if piece[at] < 0x80 else 2 if piece[at] < 0xE0 else 3 if piece[at] < 0xF0 else 4
            last = at if at + width > last else last
            break
    try:
        return piece[:first], piece[first:last].decode(), piece[last:]
    except UnicodeDecodeError:
        return b"", "", b""


class WordSeams:
    """Cuts after an ASCII letter where neither letter, apostrophe nor another script follows, and before a space that
    follows what is not white."""

    def starts(self, data: Array, borders: Array) -> Array:
        return np.flatnonzero(self.marks(data, borders)[:-1])

    def marks(self, data: Array, borders: Array) -> Array:
        """Whether a segment begins at a byte, bool [n + 1]."""
        marked = np.zeros(len(data) + 1, bool)
        _mark_words(data, _LETTER, _CLOSES, _SEEN, _WHITE_ENDS, _WHITE_BEGINS, marked)
        marked[borders] = True
        return marked


def _set_of(*spans: tuple[int, int]) -> Array:
    flags = np.zeros(256, bool)
    for first, last in spans:
        flags[first : last + 1] = True
    return flags


_LETTER = _set_of((0x41, 0x5A), (0x61, 0x7A))
_CLOSES = _set_of((0x00, 0x26), (0x28, 0x40), (0x5B, 0x60), (0x7B, 0x7F))
_SEEN = _set_of((0x21, 0x7E), (0x80, 0xFF))
_WHITE_BEGINS = _set_of((0xC2, 0xC2), (0x80, 0x81), (0x9A, 0x9A))
_WHITE_ENDS = _set_of((0x80, 0x8A), (0x9F, 0xA0), (0xA8, 0xA9), (0xAF, 0xAF))
"""The last two bytes of the white characters beyond ASCII, and of some others: those are not cut after, which is no
error."""

WORD_SEAMS = WordSeams()


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _mixed(key: Any) -> Any:
    """splitmix64's multiplier (Steele, Lea, Flood 2014) between two shifts."""
    spread = (key ^ (key >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
    return spread ^ (spread >> np.uint64(29))


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _fill(table: Array, keys: Array) -> None:
    """Put keys (never 0) into an empty table at least twice as long."""
    mask = np.uint64(len(table) - 1)
    for key in keys:
        slot = _mixed(key) & mask
        while table[slot] != 0:
            slot = (slot + np.uint64(1)) & mask
        table[slot] = key


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _mark_words(
    data: Array, letter: Array, closes: Array, seen: Array, white_ends: Array, white_begins: Array, marked: Array
) -> None:
    for at in range(1, len(data)):
        before = data[at - 1]
        if letter[before]:
            marked[at] = closes[data[at]]
        elif data[at] == 0x20 and seen[before]:
            marked[at] = not (white_ends[before] and at > 1 and white_begins[data[at - 2]])


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _mark_pairs(
    data: Array, plain: Array, wide: Array, marked: Array, joins_before: Array, joins_after: Array, joined: Array
) -> None:
    """Mark the first byte of each character that no piece joins to the one before. data: whole characters; marked:
    nothing yet."""
    parted, one = len(joined) > 1, np.uint64(1)
    mask = np.uint64(len(wide) - 1)
    before = np.uint64(128)  # no text begins with a character joined to one before it
    at, size = np.uint64(0), np.uint64(len(data))
    while at < size:
        byte = data[at]
        if byte < 0x80:
            point = np.uint64(byte)
            if before < np.uint64(128):
                marked[at] = not plain[before, point]
                before = point
                at += one
                continue
            step = one
        else:
            step = np.uint64(2 if byte < 0xE0 else 3 if byte < 0xF0 else 4)
            point = np.uint64(byte) & (np.uint64(0xFF) >> (step + one))
            for later in range(at + one, min(at + step, size)):
                point = (point << np.uint64(6)) | np.uint64(data[later] & 0x3F)
        key = (before << np.uint64(BITS)) | point
        slot = _mixed(key) & mask
        while wide[slot] != 0 and wide[slot] != key:
            slot = (slot + one) & mask
        if wide[slot] != key:
            parts = parted and at and (joins_before[point] or joins_after[before] or joined[data[at - one], byte])
            marked[at] = not parts
        before = point
        at += step
