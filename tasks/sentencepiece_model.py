"""What a SentencePiece model file says of its pieces: the few fields of its Protocol Buffers that the library hides.

In: the bytes of a model. Out: pieces with score and type, and the kind of the model. Field numbers as in
sentencepiece_model.proto of the SentencePiece project. It checks little: the library has read the same bytes before.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
UNIGRAM, BPE = 1, 2
Value = int | bytes
_FLOAT = struct.Struct("<f")


class Piece(NamedTuple):
    """text: as the model spells it, a space as U+2581. kind: NORMAL, ..."""

    text: str
    score: float
    kind: int


class Model(NamedTuple):
    """kind: BPE, UNIGRAM or another. pieces: by id."""

    kind: int
    pieces: list[Piece]


def read_model(model: bytes) -> Model:
    """The pieces of a model; raises ValueError where the bytes are no message."""
    kind, pieces = UNIGRAM, []
    for number, value in _fields(model):
        if number == 1 and isinstance(value, bytes):
            pieces.append(_piece(value))
        elif number == 2 and isinstance(value, bytes):
            kind = next((int(found) for field, found in _fields(value) if field == 3), UNIGRAM)
    return Model(kind, pieces)


def _piece(data: bytes) -> Piece:
    """As the trainers write it: text, score, and a kind where it is not NORMAL; else by its fields."""
    end = 2 + data[1] if len(data) > 1 else 0
    if end < 130 and data[:1] == b"\x0a" and data[end : end + 1] == b"\x15" and len(data) in (end + 5, end + 7):
        (score,) = _FLOAT.unpack_from(data, end + 1)
        if len(data) == end + 5 or data[end + 5] == 0x18:
            return Piece(data[2:end].decode("utf-8", "replace"), score, data[-1] if len(data) > end + 5 else NORMAL)
    return _by_fields(data)


def _by_fields(data: bytes) -> Piece:
    text, score, kind = "", 0.0, NORMAL
    for number, value in _fields(data):
        if number == 1 and isinstance(value, bytes):
            text = value.decode("utf-8", "replace")
        elif number == 2 and isinstance(value, bytes):
            (score,) = _FLOAT.unpack(value)
        elif number == 3 and isinstance(value, int):
            kind = value
    return Piece(text, score, kind)


def _fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """(number, value) of each field; fixed-width ones as bytes."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        wire = tag & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield tag >> 3, value
            continue
        if wire == 2:
            size, at = _varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise ValueError(f"wire type {wire} at byte {at}")
        if at + size > len(data):
            raise ValueError(f"a field of {size} bytes at byte {at} leaves the file of {len(data)}")
        yield tag >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError(f"no number at byte {at}")
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return value, at
