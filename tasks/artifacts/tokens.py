"""Schemas of tokenized rows and of the packing map, and the dtype of token ids."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

TOKEN_ROWS = pa.schema(
    [
        pa.field("text_sha", pa.string(), nullable=False),
        pa.field("row_key", pa.string(), nullable=False),  # 32 hex of text_sha and cuts: equal key, equal ids
        pa.field("tokens", pa.int64(), nullable=False),  # ids of this row in <part>.bin, EOS counted; 0 if dropped
        pa.field("reason", pa.string()),  # filter:<rule>, dedup:<rule>, decontaminate:<set>, cut_short; null if kept
        pa.field("characters", pa.int64(), nullable=False),  # of the normalized text
        pa.field("characters_kept", pa.int64(), nullable=False),  # that were encoded, without separators
        pa.field("characters_cut", pa.int64(), nullable=False),  # removed by cuts
        pa.field("separators", pa.int64(), nullable=False),  # characters put in where spans were cut
        pa.field("bytes", pa.int64(), nullable=False),  # UTF-8 bytes that were encoded
        pa.field("unknown", pa.int64(), nullable=False),  # ids equal to the tokenizer's unk
        pa.field("learnt", pa.int64(), nullable=False),  # ids that carry loss: all of them, but of chats
    ]
)
"""tokenize/tokens/<part>.parquet: row-aligned. Beside it <part>.bin: the ids, flat, little-endian, in order; and, where
some id carries no loss, <part>.loss: one byte an id, 1 or 0."""

USAGE = pa.schema(
    [
        pa.field("token", pa.int32(), nullable=False),  # an id that the part holds
        pa.field("count", pa.int64(), nullable=False),  # how often; EOS and BOS counted
    ]
)
"""tokenize/usage: sorted by id; not aligned."""

SPLITS = pa.schema(
    [
        pa.field("split", pa.string(), nullable=False),  # train, validation or test, by text_sha
        pa.field("domain", pa.string(), nullable=False),  # what the mixture weighs the row in: its source, or of params
        pa.field("kind", pa.string(), nullable=False),
        pa.field("language", pa.string(), nullable=False),
    ]
)
"""pack/splits: row-aligned, dropped rows too."""

PIECES = pa.schema(
    [
        pa.field("part", pa.string(), nullable=False),
        pa.field("row", pa.int64(), nullable=False),
        pa.field("start", pa.int64(), nullable=False),  # ids of the part's flat file: this piece's first
        pa.field("stop", pa.int64(), nullable=False),  # and one past its last
        pa.field("opens", pa.bool_(), nullable=False),  # a sequence of its own begins with it; never of a flat stream
        pa.field("closes", pa.bool_(), nullable=False),  # it ends with its document's EOS
        pa.field("bos", pa.bool_(), nullable=False),  # pack puts a BOS before it: tokenize.bos is sequence or first
    ]
)
"""pack/pieces/<group>.parquet: the group's stream is these pieces and their BOS, one after another."""

SEQUENCES = pa.schema(
    [
        pa.field("start", pa.int64(), nullable=False),  # ids of the group's stream
        pa.field("stop", pa.int64(), nullable=False),  # at most tokens_per_sequence + 1 later
    ]
)
"""pack/sequences/<group>.parquet: neighbours of a flat stream overlap by one id, so that no target is lost."""

FIRST, SEQUENCE = "first", "sequence"
"""What tokenize.bos says where pack puts it: before each stream's first id, or each sequence's."""

LARGEST_UINT16 = 65_535


def token_dtype(vocab_size: int) -> np.dtype:
    """uint16 while every id fits it, else int32 (Megatron's index has no code for uint32); little-endian.

    Raises ValueError for a vocabulary beyond int32.
    """
    if vocab_size - 1 > np.iinfo(np.int32).max:
        raise ValueError(f"vocab_size {vocab_size} is beyond int32; use a smaller vocabulary")
    return np.dtype("<u2") if vocab_size - 1 <= LARGEST_UINT16 else np.dtype("<i4")
