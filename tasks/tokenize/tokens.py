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
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tasks.artifacts.canonical import canonical
from tasks.artifacts.tokens import TOKEN_ROWS
from tasks.encoder import Tokenizer
from tasks.engines import open_model
from tasks.step import Made, Payload, Reads
from tasks.tokenize.chats import Form, Span, spans_of
from tasks.tokenize.documents import Document, documents
from tasks.tokenize.encoding import Encoded, Ids, encoded_rows, standing_rows

if TYPE_CHECKING:
    from tasks.tokenize import TokenizeParams

SCHEMA = TOKEN_ROWS
PLAIN = "plain"
REFUSED = "template"
"""Why a chat was dropped: the template does not take it (roles that do not alternate, no system message allowed)."""


def make(reads: Reads, params: TokenizeParams) -> Made:
    """The ids and rows of one part. spec: see tasks.tokenize.planning.

    Raises InvariantError where rows, verdicts and cuts do not fit, TokenizerError where a text does not come
    back or a chat's mask cannot be made.
    """
    facts, form = reads.spec["tokenizer"], Form(reads.spec["template"], params.chat.loss)
    path, options = reads.path("tokenizer"), canonical(facts["options"]).decode()
    tokenizer = open_model(str(path), facts["sha256"], path.parent.name, facts["engine"], options)
    rows = documents(reads, params.min_characters, facts["maker"], form.template != PLAIN)
    standing = standing_rows(reads, facts["dtype"], tokenizer.vocab_size)
    chats = _written(rows, standing.places, form, tokenizer)
    rows = [
        row._replace(reason=REFUSED, text="", characters_cut=0, separators=0) if chats.get(at, ()) is None else row
        for at, row in enumerate(rows)
    ]
    spans = {at: own for at, own in chats.items() if own is not None}
    found = encoded_rows(rows, spans, tokenizer, standing, np.dtype(facts["dtype"]), reads.spec["bos_each"])
    files: dict[str, Payload] = {".parquet": _table(rows, found, tokenizer), ".bin": found.flat}
    if found.loss is not None:
        files[".loss"] = found.loss.tobytes()
    return Made(files, _counts(rows, files[".parquet"], found.flat, tokenizer))


def _written(
    rows: Sequence[Document], standing: dict[str, tuple[int, int]], form: Form, tokenizer: Tokenizer
) -> dict[int, list[Span] | None]:
    """row -> what the template writes of it, None where it refuses; of the chats that do not stand already."""
    return {
        at: spans_of(row.turns, form, tokenizer)
        for at, row in enumerate(rows)
        if row.turns and row.reason is None and row.row_key not in standing
    }


def _table(rows: Sequence[Document], found: Encoded, tokenizer: Tokenizer) -> pa.Table:
    learnt = found.sizes if found.loss is None else found.counted(found.loss)
    columns = {
        "text_sha": [row.text_sha for row in rows],
        "row_key": [row.row_key for row in rows],
        "tokens": found.sizes,
        "reason": [row.reason for row in rows],
        "characters": [row.characters for row in rows],
        "characters_kept": [len(row.text) - row.separators for row in rows],
        "characters_cut": [row.characters_cut for row in rows],
        "separators": [row.separators for row in rows],
        "bytes": [len(row.text) if row.text.isascii() else len(row.text.encode()) for row in rows],
        "unknown": found.counted(found.flat == tokenizer.unk_id),
        "learnt": learnt,
    }
    return pa.table(columns, schema=TOKEN_ROWS)


def _counts(rows: Sequence[Document], table: Payload, flat: Ids, tokenizer: Tokenizer) -> dict[str, int]:
    """`tokens`, `ends` (ids that are EOS) and `begins` (BOS) are counted in the flat ids, all else in the rows."""
    assert isinstance(table, pa.Table)  # noqa: S101 - for the type checker
    kept = sum(row.reason is None for row in rows)
    counts = {
        "documents_in": len(rows),
        "documents_kept": kept,
        "documents_dropped": len(rows) - kept,
        "characters_in": sum(row.characters for row in rows),
        "characters_dropped": sum(row.characters for row in rows if row.reason is not None),
        "tokens": len(flat),
        "ends": int(np.count_nonzero(flat == tokenizer.eos_id)),
        "begins": int(np.count_nonzero(flat == tokenizer.bos_id)),
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
