"""Chats of a part, message by message, without a Python object for each.

In: rows of ingest/documents of which some have messages. Out: all their contents as one column; and, of clean
contents, the columns text, messages and offsets as tasks.text.chats.joined makes them. It cleans nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.artifacts.documents import MESSAGES
from tasks.text.chats import BETWEEN


@dataclass(frozen=True)
class Chats:
    """The rows of a part. messages [rows]: null where a row is no chat; texts [rows]: null where it is one; contents
    and kinds_of_contents: of all messages, one after another.
    """

    messages: pa.ListArray
    kinds: pa.Array
    texts: pa.Array
    contents: pa.Array
    kinds_of_contents: pa.Array

    def joined(self, contents: pa.Array, texts: pa.Array) -> dict[str, pa.Array]:
        """text, messages and offsets, from clean contents, and clean texts of the rows that are no chats. Contents that
        are all empty give no text.
        """
        there, bounds = self.messages.is_valid(), self._bounds()
        sizes = np.concatenate(([0], np.cumsum(pc.binary_length(contents).to_numpy())))
        empty = sizes[bounds[1:]] == sizes[bounds[:-1]]
        rows = np.repeat(np.arange(len(there)), np.diff(bounds))
        begins = sizes[:-1] + len(BETWEEN) * np.arange(len(rows))
        begins = np.where(empty[rows], 0, begins - begins[bounds[rows]])
        said = pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), contents)
        together = pc.binary_join(said, pa.scalar(BETWEEN, contents.type))
        places = pa.array(bounds, pa.int32(), mask=np.append(~there.to_numpy(zero_copy_only=False), False))
        roles = pc.struct_field(self.messages.flatten(), "role")
        turns = pa.StructArray.from_arrays([roles, contents.cast(pa.string())], fields=list(MESSAGES.value_type))
        return {
            "text": pc.if_else(there, pc.if_else(pa.array(empty), "", together), texts),
            "messages": pa.ListArray.from_arrays(places, turns),
            "offsets": pa.ListArray.from_arrays(places, pa.array(begins, pa.int64())),
        }

    def _bounds(self) -> np.ndarray:
        """int64 [rows + 1]: where the contents of each row begin."""
        counts = pc.fill_null(pc.list_value_length(self.messages), 0).to_numpy()
        return np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))


def chats_of(table: pa.Table) -> Chats | None:
    """The chats among rows of ingest/documents, of which each column is one chunk; None where there are none."""
    if table["messages"].null_count == table.num_rows:
        return None
    messages, kinds, texts = (table[name].combine_chunks() for name in ("messages", "kind", "text"))
    parents = pc.list_parent_indices(messages)
    nothing = pa.scalar(None, pa.large_string())
    return Chats(
        messages,
        kinds,
        pc.if_else(messages.is_valid(), nothing, texts),
        pc.struct_field(messages.flatten(), "content"),
        kinds.take(parents),
    )
