"""Schemas of documents, of the places they came from and of the records that were rejected."""

from __future__ import annotations

import pyarrow as pa

MESSAGES = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))

DOCUMENTS = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),  # 32 hex: SHA-256 of source name and raw record (and piece)
        pa.field("source", pa.string(), nullable=False),  # name of the source in params.yaml
        pa.field("kind", pa.string(), nullable=False),  # web, book, code, paper or chat
        pa.field("text", pa.large_string(), nullable=False),  # of a chat: contents joined by a blank line
        pa.field("messages", MESSAGES),  # chats only: role and content of each message
        pa.field("offsets", pa.list_(pa.int64())),  # chats only: byte of `text` where each message begins
        pa.field("url", pa.string()),
        pa.field("created", pa.string()),  # ISO 8601, as the record gave it
        pa.field("metadata", pa.string()),  # JSON of the record's other fields, keys sorted
    ]
)
"""ingest/documents: one row a document; row i of places/ and of every later aligned folder is the same document."""

TEXT = DOCUMENTS.insert(1, pa.field("text_sha", pa.string(), nullable=False))
"""normalize/text: as DOCUMENTS with `text_sha`, 64 hex, the SHA-256 of the normalized text in UTF-8."""

PLACES = pa.schema(
    [
        pa.field("file", pa.string(), nullable=False),  # path relative to its source, "/" between folders
        pa.field("record", pa.int64(), nullable=False),  # number of the record in its file, from 0
        pa.field("offset", pa.int64(), nullable=False),  # its first byte, after decompression
        pa.field("bytes", pa.int64(), nullable=False),  # its length in bytes, after decompression
        pa.field("piece", pa.int64(), nullable=False),  # number of the piece of an over-long record, from 0
    ]
)
"""ingest/places: row-aligned with documents. A record that was cut into pieces has as many rows, one after another."""

REJECTS = pa.schema(
    [
        *(PLACES.field(name) for name in ("file", "record", "offset", "bytes")),
        pa.field("reason", pa.string(), nullable=False),  # a word: json, encoding, no_text, empty, too_large, ...
        pa.field("detail", pa.string(), nullable=False),  # the library's sentence, with value and limit
        pa.field("sample", pa.string(), nullable=False),  # the first 200 characters, undecodable bytes replaced
    ]
)
"""ingest/rejects: records of the part that could not be read; not aligned."""
