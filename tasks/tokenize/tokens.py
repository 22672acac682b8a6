"""The folder tokenize/tokens: every kept document as ids, each closed by one EOS.

In: text, verdicts, cuts and a tokenizer. Out: the ids of the part, flat, and one row a document (a dropped
one is a row of zero tokens). Chats are encoded by a template (tasks.tokenize.chats), or as normalize joined them. It
splits nothing.

<part>.parquet: see tasks.artifacts.tokens.TOKEN_ROWS. <part>.bin: ids, uint16 or int32 by the vocabulary's
size, little-endian, rows in order. <part>.loss, where some id carries no loss: one byte an id.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tasks.artifacts.canonical import canonical
from tasks.artifacts.tokens import TOKEN_ROWS
from tasks.encoder import Tokenizer
from tasks.engines import open_model
from tasks.step import Made, Payload, Reads
from tasks.tokenize.chats import Form, Span, spans_of
from tasks.tokenize.documents import Documents, documents
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
    rows = rows.without([at for at, own in chats.items() if own is None], REFUSED)
    spans = {at: own for at, own in chats.items() if own is not None}
    found = encoded_rows(rows, spans, tokenizer, standing, np.dtype(facts["dtype"]), reads.spec["bos_each"])
    files: dict[str, Payload] = {".parquet": _table(rows, found, tokenizer), ".bin": found.flat}
    if found.loss is not None:
        files[".loss"] = found.loss.tobytes()
    return Made(files, _counts(rows, files[".parquet"], found.flat, tokenizer))


def _written(
    rows: Documents, standing: dict[str, tuple[int, int]], form: Form, tokenizer: Tokenizer
) -> dict[int, list[Span] | None]:
    """row -> what the template writes of it, None where it refuses; of the chats that do not stand already."""
    return {
        at: spans_of(turns, form, tokenizer)
        for at, turns in rows.turns.items()
        if rows.row_keys[at].as_py() not in standing
    }


def _table(rows: Documents, found: Encoded, tokenizer: Tokenizer) -> pa.Table:
    columns = {
        "text_sha": rows.text_shas,
        "row_key": rows.row_keys,
        "tokens": found.sizes,
        "reason": rows.reasons,
        "characters": rows.characters,
        "characters_kept": rows.encoded - rows.separators,
        "characters_cut": rows.cut,
        "separators": rows.separators,
        "bytes": rows.bytes,
        "unknown": found.counted(found.flat == tokenizer.unk_id)
        if tokenizer.unk_id >= 0
        else np.zeros_like(found.sizes),
        "learnt": found.sizes if found.loss is None else found.counted(found.loss),
    }
    return pa.table(columns, schema=TOKEN_ROWS)


def _counts(rows: Documents, table: Payload, flat: Ids, tokenizer: Tokenizer) -> dict[str, int]:
    """`tokens`, `ends` (ids that are EOS) and `begins` (BOS) are counted in the flat ids, all else in the rows."""
    assert isinstance(table, pa.Table)  # noqa: S101 - for the type checker
    kept = int(np.count_nonzero(rows.kept))
    counts = {
        "documents_in": len(rows),
        "documents_kept": kept,
        "documents_dropped": len(rows) - kept,
        "characters_in": int(rows.characters.sum()),
        "characters_dropped": int(rows.characters[~rows.kept].sum()),
        "tokens": len(flat),
        "ends": int(np.count_nonzero(flat == tokenizer.eos_id)),
        "begins": int(np.count_nonzero(flat == tokenizer.bos_id)) if tokenizer.bos_id >= 0 else 0,
    }
    for name in ("characters_kept", "characters_cut", "separators", "bytes", "unknown", "learnt"):
        counts[name] = int(table[name].to_numpy().sum())
    unlearnt = (table["learnt"].to_numpy() == 0) & (table["tokens"].to_numpy() > 0)
    counts["documents_unlearnt"] = int(np.count_nonzero(unlearnt))
    dropped, characters = Counter[str](), Counter[str]()
    for row in np.flatnonzero(~rows.kept).tolist():
        dropped[f"dropped|rule={rows.reasons[row]}"] += 1
        characters[f"characters_dropped|rule={rows.reasons[row]}"] += int(rows.characters[row])
    return counts | dropped | characters
