"""normalize/text: clean text of a part, the same rows in the same order.

In: ingest/documents. Out: <part>.parquet, tasks.artifacts.documents.TEXT: the columns of documents, `text` made clean
by tasks.text.whitespace as the document's kind wants it, and `text_sha`, the SHA-256 of the clean text. A chat is
cleaned message by message; its text is joined anew and its offsets follow. A document of which nothing is left stays as
a row without text: the rows of a part stay aligned, and filter drops it.

Of a CPU second that goes here, a third is SHA-256 (tasks.text.sha256), the rest the kernels; no row costs any Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.artifacts.documents import TEXT as SCHEMA
from tasks.errors import IntegrityError
from tasks.normalize.chats import Chats, chats_of
from tasks.step import Made, Reads
from tasks.text import sha256
from tasks.text.byte_counts import character_counts
from tasks.text.columns import text_buffers
from tasks.text.whitespace import normalize_texts

if TYPE_CHECKING:
    from tasks.normalize import NormalizeParams

__all__ = ["SCHEMA", "make"]


def make(reads: Reads, params: NormalizeParams) -> Made:
    """Clean a part. Counts: documents_in, documents_out, characters_in, characters_out."""
    table = reads.table("ingest/documents").combine_chunks()
    chats = chats_of(table)
    columns = {"text": cleaned(table["text"], table["kind"], params)} if chats is None else _of_chats(chats, params)
    columns["text_sha"] = digests(columns["text"])
    clean = pa.table({name: columns[name] if name in columns else table[name] for name in SCHEMA.names})
    counts = {
        "documents_in": table.num_rows,
        "documents_out": clean.num_rows,
        "characters_in": _characters(table),
        "characters_out": _characters(clean),
    }
    return Made({".parquet": clean}, counts)


def _of_chats(chats: Chats, params: NormalizeParams) -> dict[str, pa.Array]:
    """text, messages and offsets of a part with chats in it."""
    contents = cleaned(chats.contents, chats.kinds_of_contents, params)
    return chats.joined(contents, cleaned(chats.texts, chats.kinds, params))


def cleaned(texts: pa.ChunkedArray, kinds: pa.ChunkedArray, params: NormalizeParams) -> pa.LargeStringArray:
    """Each text as its kind wants it; a part has one kind as a rule."""
    names = sorted(pc.unique(kinds).to_pylist())
    if len(names) == 1:
        return _in_one_way(texts, names[0], params)
    rows = [np.flatnonzero(pc.equal(kinds, name).to_numpy(zero_copy_only=False)) for name in names]
    parts = [_in_one_way(texts.take(pa.array(those)), name, params) for name, those in zip(names, rows, strict=True)]
    back = np.argsort(np.concatenate([np.empty(0, np.int64), *rows]))
    return pa.concat_arrays([pa.array([], pa.large_string()), *parts]).take(pa.array(back, pa.int64()))


def _in_one_way(texts: pa.ChunkedArray, kind: str, params: NormalizeParams) -> pa.LargeStringArray:
    known = {str(name): how for name, how in params.kinds.items()}
    if kind not in known:
        raise IntegrityError(
            f"documents of kind {kind} lie in a part whose source is of kind {', '.join(known)}", "build ingest first"
        )
    how = known[kind]
    return normalize_texts(texts, how.form, how.whitespace, params.combining_marks_max)


def digests(texts: pa.LargeStringArray) -> pa.StringArray:
    """64 hex of each text's bytes."""
    offsets_D1, data = text_buffers(texts)
    raw = sha256.digests(data, offsets_D1[:-1], offsets_D1[1:])
    places_D1 = np.arange(len(texts) + 1, dtype=np.int32) * 64
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(places_D1), pa.py_buffer(raw.hex().encode()))


def _characters(table: pa.Table) -> int:
    return int(pc.sum(character_counts(table["text"])).as_py() or 0)
