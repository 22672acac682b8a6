"""normalize/text: clean text of a part, the same rows in the same order.

In: ingest/documents. Out: <part>.parquet, tasks.artifacts.documents.TEXT: the columns of documents, `text`
made clean by tasks.text.whitespace as the document's kind wants it, and `text_sha`, the SHA-256 of the clean
text. A chat is cleaned message by message; its text is joined anew and its offsets follow. A document of
which nothing is left stays
as a row without text: the rows of a part stay aligned, and filter drops it.
"""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from tasks.artifacts.documents import TEXT as SCHEMA
from tasks.step import Made, Reads
from tasks.text.chats import joined
from tasks.text.whitespace import normalize

if TYPE_CHECKING:
    from collections.abc import Callable

    from tasks.normalize import NormalizeParams

    Clean = Callable[[str], str]

__all__ = ["SCHEMA", "make"]


def make(reads: Reads, params: NormalizeParams) -> Made:
    """Clean a part. Counts: documents_in, documents_out, characters_in, characters_out."""
    table = reads.table("ingest/documents")
    texts, messages, offsets = _cleaned(table, _cleaners(params))
    columns = {
        "text": pa.array(texts, pa.large_string()),
        "text_sha": pa.array([hashlib.sha256(text.encode()).hexdigest() for text in texts], pa.string()),
        "messages": pa.array(messages, SCHEMA.field("messages").type),
        "offsets": pa.array(offsets, SCHEMA.field("offsets").type),
    }
    clean = pa.table(
        {name: columns.get(name, table[name] if name in table.column_names else None) for name in SCHEMA.names}
    )
    counts = {
        "documents_in": table.num_rows,
        "documents_out": clean.num_rows,
        "characters_in": _characters(table),
        "characters_out": _characters(clean),
    }
    return Made({".parquet": clean}, counts)


def _cleaners(params: NormalizeParams) -> dict[str, Clean]:
    """kind -> its way to clean a text."""
    most = params.combining_marks_max
    return {
        kind: partial(normalize, form=how.form, whitespace=how.whitespace, marks_max=most)
        for kind, how in params.kinds.items()
    }


def _cleaned(table: pa.Table, cleaners: dict[str, Clean]) -> tuple[list[str], list[Any], list[Any]]:
    """Texts, messages and offsets of every row."""
    texts, messages, offsets = list[str](), list[Any](), list[Any]()
    columns = (table[name] for name in ("kind", "text", "messages"))
    for kind, text, said in zip(*columns, strict=True):
        clean = cleaners[kind.as_py()]
        if not said.is_valid:
            texts.append(clean(text.as_py()))
            messages.append(None)
            offsets.append(None)
            continue
        turns = [{"role": turn["role"], "content": clean(turn["content"])} for turn in said.as_py()]
        whole, begins = joined([turn["content"] for turn in turns])
        texts.append(whole)
        messages.append(turns)
        offsets.append(begins)
    return texts, messages, offsets


def _characters(table: pa.Table) -> int:
    return int(pc.sum(pc.utf8_length(table["text"])).as_py() or 0)
