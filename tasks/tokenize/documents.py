"""What of each row is encoded: its verdicts and cuts applied.

In: text, verdicts and cuts of one part. Out: the rows as columns. It encodes nothing, and makes a str of no text that
is neither cut nor a chat.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.errors import InvariantError
from tasks.step import Reads
from tasks.survivors import reasons, spans
from tasks.text.chats import BETWEEN
from tasks.text.excision import AnyCut, Cut, Excised, excise, settled
from tasks.text.sha256 import digests
from tasks.texts import Texts, lengths_of, utf8_of

Array = np.ndarray[Any, Any]
Turn = tuple[str, str]
Chat = tuple[list[str], list[int]]
TEXT = "normalize/text"
CUT_SHORT = "cut_short"
KEY_BYTES = 16
"""Of a row_key; it is written in hex."""


@dataclass(frozen=True)
class Documents:
    """The rows of a part on their way to ids, as columns [n]. characters = kept + cut of a kept row, kept = encoded -
    separators.

    row_keys: equal key, equal ids. texts: what is encoded; of a dropped row it says nothing. reasons: why a row was
    dropped, or None. characters: of the normalized text; encoded: of what is encoded, 0 where dropped. turns: by row,
    role and content of each message, where it is a chat that a template encodes.
    """

    text_shas: pa.ChunkedArray
    row_keys: pa.StringArray
    texts: pa.ChunkedArray
    reasons: Sequence[str | None]
    characters: Array
    encoded: Array
    cut: Array
    separators: Array
    turns: Mapping[int, tuple[Turn, ...]]

    def __len__(self) -> int:
        return len(self.reasons)

    @cached_property
    def kept(self) -> Array:
        """bool [n]."""
        return np.array([reason is None for reason in self.reasons], bool)

    @cached_property
    def bytes(self) -> Array:
        """Of what is encoded, int64 [n]."""
        return lengths_of(self.texts) * self.kept

    def some(self, rows: Array) -> Texts:
        """What is encoded of the rows, int64, rising."""
        return Texts(self.texts, rows)

    def without(self, rows: Sequence[int], reason: str) -> Documents:
        """The same with some rows dropped."""
        if not rows:
            return self
        left = {name: getattr(self, name).copy() for name in ("encoded", "cut", "separators")}
        for column in left.values():
            column[rows] = 0
        gone = set(rows)
        why = [reason if row in gone else own for row, own in enumerate(self.reasons)]
        return replace(self, reasons=why, **left)


class _Kept(NamedTuple):
    """A row whose text is not as it stood, or which is a chat."""

    key: str
    reason: str | None
    left: Excised
    turns: tuple[Turn, ...]


def documents(reads: Reads, min_characters: int, maker: str, as_chats: bool = False) -> Documents:
    """The rows of the part, in order.

    min_characters: a document that cuts leave with fewer characters is dropped as cut_short; an uncut one
    never is, the filter judged it. maker: names whatever turns text into ids, for row_key. as_chats: whether a
    template encodes what has messages. Raises InvariantError where rows do not match or a cut leaves its text.
    """
    table = reads.table(TEXT, ["text_sha", "text", *(["messages", "offsets"] if as_chats else [])])
    why, cuts = reasons(reads, reads.name), spans(reads, reads.name)
    _check(reads.name, table.num_rows, len(why), cuts)
    chats = _chats(table) if as_chats else {}
    characters = np.asarray(pc.utf8_length(table["text"]).to_numpy(), np.int64)
    own = {
        row: _kept(reads.name, row, table, maker, cuts.get(row, ()), min_characters, chats.get(row))
        for row in sorted({*cuts, *chats})
        if why[row] is None
    }
    why = [own[row].reason if row in own else reason for row, reason in enumerate(why)]
    encoded = np.where([reason is None for reason in why], characters, 0)
    cut, separators = np.zeros(len(why), np.int64), np.zeros(len(why), np.int64)
    for row, one in own.items():
        encoded[row], cut[row], separators[row] = len(one.left.text), one.left.characters_cut, one.left.separators
    return Documents(
        table["text_sha"],
        _with_own(_row_keys(maker, table["text_sha"]), {row: one.key for row, one in own.items()}),
        _chunks_with_own(table["text"], {row: one.left.text for row, one in own.items() if row in cuts}),
        why,
        characters,
        encoded,
        cut,
        separators,
        {row: one.turns for row, one in own.items() if one.turns},
    )


def row_key(maker: str, text_sha: str, cuts: Sequence[AnyCut]) -> str:
    """32 hex of SHA-256 over "<maker>:<text_sha>" and for each cut of all as they settle, ":<start>-<stop>", with
    "=<what is put there>" where something is said of it."""
    spelled = f"{maker}:{text_sha}"
    for cut in settled(cuts) if cuts else ():
        spelled += f":{cut.start}-{cut.stop}{'' if cut.put is None else f'={cut.put!a}'}"
    return hashlib.sha256(spelled.encode()).hexdigest()[: 2 * KEY_BYTES]


def _row_keys(maker: str, text_shas: pa.ChunkedArray) -> pa.StringArray:
    """The row_key of each text without cuts."""
    if not len(text_shas):
        return pa.array([], pa.string())
    data, offsets = utf8_of(Texts(text_shas.cast(pa.large_string())).array())
    whole = np.frombuffer(digests(data, offsets[:-1], offsets[1:], f"{maker}:".encode()), np.uint8)
    written = whole.reshape(len(text_shas), -1)[:, :KEY_BYTES].tobytes().hex().encode()
    places = np.arange(len(text_shas) + 1, dtype=np.int32) * (2 * KEY_BYTES)
    return pa.StringArray.from_buffers(len(text_shas), pa.py_buffer(places), pa.py_buffer(written))


def _with_own(column: pa.Array, own: Mapping[int, str]) -> pa.Array:
    """The column with some of its rows as `own` has them."""
    if not own:
        return column
    rows = sorted(own)
    mask = np.zeros(len(column), bool)
    mask[rows] = True
    return pc.replace_with_mask(column, pa.array(mask), pa.array([own[row] for row in rows], column.type))


def _chunks_with_own(column: pa.ChunkedArray, own: Mapping[int, str]) -> pa.ChunkedArray:
    """The same; chunk by chunk, of which only those that hold such a row are copied."""
    chunks, first = list[pa.Array](), 0
    for chunk in column.chunks:
        chunks.append(
            _with_own(chunk, {row - first: text for row, text in own.items() if first <= row < first + len(chunk)})
        )
        first += len(chunk)
    return pa.chunked_array(chunks, column.type)


def _chats(table: pa.Table) -> dict[int, Chat]:
    """row -> (roles, offsets) of the rows that have messages."""
    messages, offsets = (table[name].to_pylist() for name in ("messages", "offsets"))
    rows = enumerate(zip(messages, offsets, strict=True))
    return {row: ([turn["role"] for turn in own], at) for row, (own, at) in rows if own}


def _turns(text: str, cuts: Sequence[Cut], chat: Chat) -> tuple[Turn, ...]:
    """Each message as its cuts leave it; what a cut puts in stands in the first message that it meets."""
    data, (roles, begins) = text.encode(), chat
    ends = [*(begin - len(BETWEEN) for begin in begins[1:]), len(data)]
    turns = []
    for role, begin, end in zip(roles, begins, ends, strict=True):
        own = [
            Cut(max(cut.start, begin) - begin, min(cut.stop, end) - begin, cut.put if cut.start >= begin else "")
            for cut in cuts
            if cut.start < end and begin < cut.stop
        ]
        turns.append((role, excise(data[begin:end].decode(), own).text))
    return tuple(turns)


def _kept(
    part: str, row: int, table: pa.Table, maker: str, cuts: Sequence[Cut], min_characters: int, chat: Chat | None
) -> _Kept:
    text, sha = (table[name][row].as_py() for name in ("text", "text_sha"))
    try:
        left = excise(text, cuts) if cuts else Excised(text, 0, 0)
        turns = () if chat is None else _turns(text, cuts, chat)
    except ValueError as error:
        raise InvariantError(
            f"a cut of {part}, row {row}: {error}", "build filter, dedup and decontaminate again with --force"
        ) from None
    key = row_key(maker if chat is None else f"{maker}:{chat!a}", sha, cuts)
    if cuts and len(left.text) < min_characters:
        return _Kept(key, CUT_SHORT, Excised("", 0, 0), ())
    return _Kept(key, None, left, turns)


def _check(part: str, rows: int, judged: int, cuts: dict[int, list[Cut]]) -> None:
    if rows != judged:
        raise InvariantError(
            f"{TEXT} of {part} has {rows} rows, its verdicts have {judged}", "build filter again with --force"
        )
    if cuts and not 0 <= min(cuts) <= max(cuts) < rows:
        raise InvariantError(
            f"a cut of {part} names row {max(cuts)} of {rows}",
            "build filter, dedup and decontaminate again with --force",
        )
