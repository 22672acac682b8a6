"""The folder tokenize/tokens: every kept document as ids, each closed by one EOS.

In: text, verdicts, cuts and a tokenizer. Out: the ids of the part, flat, and one row a document (a dropped
one is a row of zero tokens). Chats are encoded by a template (tasks.tokenize.chats), or as normalize joined them. It
splits nothing.

<part>.parquet: see tasks.artifacts.tokens.TOKEN_ROWS. <part>.bin: ids, uint16 or int32 by the vocabulary's
size, little-endian, rows in order. <part>.loss, where some id carries no loss: one byte an id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from tasks.artifacts.canonical import canonical
from tasks.artifacts.tokens import TOKEN_ROWS, token_dtype
from tasks.encoder import Tokenizer
from tasks.engines import open_model
from tasks.errors import InvariantError, TokenizerError
from tasks.step import Made, Payload, Reads
from tasks.tokenize.chats import encode_chats
from tasks.tokenize.documents import Document, documents

if TYPE_CHECKING:
    from tasks.tokenize import TokenizeParams

SCHEMA = TOKEN_ROWS
PLAIN = "plain"
ROWS_CHECKED = 8
"""Rows of each part, evenly spaced among those encoded, that are decoded again; judges, shapes no byte."""

Ids = np.ndarray[Any, np.dtype[Any]]


class Row(NamedTuple):
    """ids of a document, EOS included. loss: uint8 [ids], 1 where the model learns; None where it learns all."""

    ids: Ids
    loss: Ids | None


def make(reads: Reads, params: TokenizeParams) -> Made:
    """The ids and rows of one part. spec: see tasks.tokenize.tokenizer.facts.

    Raises InvariantError where rows, verdicts and cuts do not fit, TokenizerError where a text does not come
    back.
    """
    facts, chat = reads.spec["tokenizer"], params.chat
    path, options = reads.path("tokenizer"), canonical(facts["options"]).decode()
    tokenizer = open_model(str(path), facts["sha256"], path.parent.name, facts["engine"], options)
    rows = documents(reads, params.min_characters, facts["maker"], chat.template != PLAIN)
    found = rows_of(rows, tokenizer, earlier_rows(reads, facts["dtype"]), chat.template, chat.loss)
    flat = _flat([row.ids for row in found], tokenizer, np.dtype(facts["dtype"]))
    table = _table(rows, found, tokenizer)
    files: dict[str, Payload] = {".parquet": table, ".bin": flat}
    if any(row.loss is not None for row in found):
        files[".loss"] = np.concatenate([_loss(row) for row in found]).tobytes()
    return Made(files, _counts(rows, table, flat, tokenizer))


def rows_of(
    rows: Sequence[Document], tokenizer: Tokenizer, earlier: dict[str, Row], template: str, loss: str
) -> list[Row]:
    """The ids of each row; none for a dropped one. What `earlier` holds is not encoded."""
    fresh = [at for at, row in enumerate(rows) if row.reason is None and row.row_key not in earlier]
    plain = [at for at in fresh if not rows[at].turns]
    chats = [at for at in fresh if rows[at].turns]
    found = {
        at: Row(ids, None) for at, ids in zip(plain, encode([rows[at].text for at in plain], tokenizer), strict=True)
    }
    if chats:
        dtype = token_dtype(tokenizer.vocab_size)
        encoded = encode_chats([rows[at].turns for at in chats], tokenizer, template, loss)
        found |= {at: _row(ids.astype(dtype), own) for at, (ids, own) in zip(chats, encoded, strict=True)}
    nothing = Row(np.empty(0, token_dtype(tokenizer.vocab_size)), None)
    return [
        nothing if row.reason is not None else found[at] if at in found else earlier[row.row_key]
        for at, row in enumerate(rows)
    ]


def encode(texts: Sequence[str], tokenizer: Tokenizer) -> list[Ids]:
    """The ids of each text and one EOS; raises TokenizerError where one of a few comes back otherwise."""
    flat, lengths = tokenizer.encode_batch(texts)
    _check_ids(flat, tokenizer)
    ends = np.cumsum(lengths)
    closed = np.insert(flat, ends, tokenizer.eos_id).astype(token_dtype(tokenizer.vocab_size))
    each = np.split(closed, ends[:-1] + np.arange(1, len(ends))) if len(ends) else []
    for at in range(0, len(texts), max(1, len(texts) // ROWS_CHECKED)):
        _check_round_trip(texts[at], each[at][:-1], tokenizer)
    return each


def earlier_rows(reads: Reads, dtype: str) -> dict[str, Row]:
    """row_key -> ids of the same part as it stands, where it was made with this code and these parameters."""
    before = reads.previous()
    if before is None:
        return {}
    table = before.table("tokenize/tokens", ["row_key", "tokens", "learnt"])
    tokens, learnt = table["tokens"].to_numpy(), int(table["learnt"].to_numpy().sum())
    flat = before.array("tokenize/tokens", ".bin", dtype)
    stops = np.cumsum(tokens)
    if len(flat) != tokens.sum():
        return {}
    loss = before.array("tokenize/tokens", ".loss", "u1") if learnt < len(flat) else np.ones(len(flat), np.uint8)
    rows = zip(table["row_key"].to_pylist(), (stops - tokens).tolist(), stops.tolist(), strict=True)
    return {key: _row(flat[start:stop], loss[start:stop]) for key, start, stop in rows if stop > start}


def _row(ids: Ids, loss: Ids) -> Row:
    return Row(ids, None if loss.all() else loss)


def _loss(row: Row) -> Ids:
    return np.ones(len(row.ids), np.uint8) if row.loss is None else row.loss


def _check_ids(ids: Ids, tokenizer: Tokenizer) -> None:
    """No text may hold a control id, nor an id that the vocabulary lacks."""
    if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < tokenizer.vocab_size:
        raise TokenizerError(
            f"tokenizer {tokenizer.name} gave id {int(ids.max())}, its last is {tokenizer.vocab_size - 1}",
            "restore its files",
        )
    for word in ("eos_id", "bos_id", "pad_id"):
        if np.any(ids == getattr(tokenizer, word)):
            raise TokenizerError(
                f"tokenizer {tokenizer.name} turned text into its {word} {getattr(tokenizer, word)}",
                "use a model whose control pieces are of type CONTROL",
            )


def _check_round_trip(text: str, ids: Ids, tokenizer: Tokenizer) -> None:
    """Loss that nobody counts is an error; unknown ids are counted, and judged by the suite."""
    if np.any(ids == tokenizer.unk_id):
        return
    back = tokenizer.decode(ids)
    if back != text and tokenizer.exact_on(text):
        at = next((at for at, pair in enumerate(zip(back, text, strict=False)) if pair[0] != pair[1]), len(back))
        raise TokenizerError(
            f"tokenizer {tokenizer.name} is lossy: {text[at : at + 20]!r} at character {at} came back as"
            f" {back[at : at + 20]!r}",
            "use one with byte pieces and without normalization",
        )


def _flat(ids: Sequence[Ids], tokenizer: Tokenizer, dtype: np.dtype[Any]) -> Ids:
    needed = token_dtype(tokenizer.vocab_size)
    if dtype != needed:
        raise InvariantError(f"ids of {tokenizer.vocab_size} pieces need {needed.str}, planned was {dtype.str}")
    return np.concatenate([np.empty(0, dtype), *ids])


def _table(rows: Sequence[Document], found: Sequence[Row], tokenizer: Tokenizer) -> pa.Table:
    ids = [row.ids for row in found]
    columns = {
        "text_sha": [row.text_sha for row in rows],
        "row_key": [row.row_key for row in rows],
        "tokens": [len(own) for own in ids],
        "reason": [row.reason for row in rows],
        "characters": [row.characters for row in rows],
        "characters_kept": [len(row.text) - row.separators for row in rows],
        "characters_cut": [row.characters_cut for row in rows],
        "separators": [row.separators for row in rows],
        "bytes": [len(row.text.encode()) for row in rows],
        "unknown": [int(np.count_nonzero(own == tokenizer.unk_id)) for own in ids],
        "learnt": [len(row.ids) if row.loss is None else int(np.count_nonzero(row.loss)) for row in found],
    }
    return pa.table(columns, schema=TOKEN_ROWS)


def _counts(rows: Sequence[Document], table: pa.Table, flat: Ids, tokenizer: Tokenizer) -> dict[str, int]:
    """`tokens` and `ends` (ids that are EOS) are counted in the flat ids, all else in the rows."""
    kept = [row for row in rows if row.reason is None]
    counts = {
        "documents_in": len(rows),
        "documents_kept": len(kept),
        "documents_dropped": len(rows) - len(kept),
        "characters_in": sum(row.characters for row in rows),
        "characters_dropped": sum(row.characters for row in rows if row.reason is not None),
        "tokens": len(flat),
        "ends": int(np.count_nonzero(flat == tokenizer.eos_id)),
    }
    for name in ("characters_kept", "characters_cut", "separators", "bytes", "unknown", "learnt"):
        counts[name] = int(table[name].to_numpy().sum())
    unlearnt = (table["learnt"].to_numpy() == 0) & (table["tokens"].to_numpy() > 0)
    counts["documents_unlearnt"] = int(np.count_nonzero(unlearnt))
    dropped, characters = Counter[str](), Counter[str]()
    for row in rows:
        if row.reason is not None:
            dropped[f"dropped|rule={row.reason}"] += 1
            characters[f"characters_dropped|rule={row.reason}"] += row.characters
    return counts | dropped | characters
