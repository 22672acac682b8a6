"""What of each row is encoded: its verdicts and cuts applied.

In: text, verdicts and cuts of one part. Out: one Document a row, dropped ones without text. It encodes
nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tasks.errors import InvariantError
from tasks.step import Reads
from tasks.survivors import reasons, spans
from tasks.text.chats import BETWEEN
from tasks.text.excision import AnyCut, Cut, Excised, excise, settled

Turn = tuple[str, str]
Chat = tuple[list[str], list[int]]
TEXT = "normalize/text"
CUT_SHORT = "cut_short"


class Document(NamedTuple):
    """A row on its way to ids. characters = kept + cut for a kept one, kept = len(text) - separators.

    text: what is encoded, "" where dropped. reason: why it was dropped, or None. row_key: equal key, equal
    ids. turns: role and content of each message, where it is a chat that a template encodes.
    """

    text_sha: str
    row_key: str
    characters: int
    reason: str | None
    text: str = ""
    characters_cut: int = 0
    separators: int = 0
    turns: tuple[Turn, ...] = ()


def documents(reads: Reads, min_characters: int, maker: str, as_chats: bool = False) -> list[Document]:
    """One Document for each row of the part, in order.

    min_characters: a document that cuts leave with fewer characters is dropped as cut_short; an uncut one
    never is, the filter judged it. maker: names whatever turns text into ids, for row_key. as_chats: whether a
    template encodes what has messages. Raises InvariantError where rows do not match or a cut leaves its text.
    """
    table = reads.table(TEXT, ["text_sha", "text", *(["messages", "offsets"] if as_chats else [])])
    why, cuts = reasons(reads, reads.name), spans(reads, reads.name)
    _check(reads.name, table.num_rows, len(why), cuts)
    shas, lengths = table["text_sha"].to_pylist(), pc.utf8_length(table["text"]).to_pylist()
    texts, chats = _one_array(table["text"]), _chats(table) if as_chats else {}
    rows = zip(shas, lengths, why, strict=True)
    return [
        Document(sha, row_key(maker, sha, ()), length, reason)
        if reason is not None
        else _kept(reads.name, row, sha, maker, texts[row].as_py(), cuts.get(row, ()), min_characters, chats.get(row))
        if row in cuts or row in chats
        else Document(sha, row_key(maker, sha, ()), length, None, texts[row].as_py())
        for row, (sha, length, reason) in enumerate(rows)
    ]


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    """A column to be asked row by row."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def row_key(maker: str, text_sha: str, cuts: Sequence[AnyCut]) -> str:
    """32 hex of SHA-256 over "<maker>:<text_sha>" and for each cut of all as they settle, ":<start>-<stop>", with
    "=<what is put there>" where something is said of it."""
    spelled = f"{maker}:{text_sha}"
    for cut in settled(cuts) if cuts else ():
        spelled += f":{cut.start}-{cut.stop}{'' if cut.put is None else f'={cut.put!a}'}"
    return hashlib.sha256(spelled.encode()).hexdigest()[:32]


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
    part: str,
    row: int,
    sha: str,
    maker: str,
    text: str,
    cuts: Sequence[Cut],
    min_characters: int,
    chat: Chat | None,
) -> Document:
    try:
        left = excise(text, cuts) if cuts else Excised(text, 0, 0)
        turns = () if chat is None else _turns(text, cuts, chat)
    except ValueError as error:
        raise InvariantError(
            f"a cut of {part}, row {row}: {error}", "build filter, dedup and decontaminate again with --force"
        ) from None
    key = row_key(maker if chat is None else f"{maker}:{chat!a}", sha, cuts)
    if cuts and len(left.text) < min_characters:
        return Document(sha, key, len(text), CUT_SHORT)
    return Document(sha, key, len(text), None, left.text, left.characters_cut, left.separators, turns)


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
