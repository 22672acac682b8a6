"""Small files of plain text as documents, many at a time, without a string for any of them.

In: whole files. Out: what tasks.ingest.fields makes of those that are plain UTF-8, and which others it must look at:
those with a mark, a NUL or an escape, those that begin as another format does, and what is no UTF-8. So every word on
an encoding is said there. A test holds both ways against each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from tasks.ingest.containers import MAGIC
from tasks.ingest.known import FILE, Known, are_utf8, documents_of, emptied, ids_of, whole_texts
from tasks.ingest.records import file_unit, named
from tasks.ingest.streams import PACKED
from tasks.text.encodings import MARKS
from tasks.text.sha256 import digests

FORM = "text"
TOGETHER = 16 << 20
"""Bytes of files that are read together."""

_OTHERS = (*PACKED, *(magic for magic, _ in MAGIC), *(mark for mark, _ in MARKS))
_ODD = (0, 0x1B)
"""NUL, and what begins an escape: such a file may be in another encoding (tasks.text.encodings)."""

Array = np.ndarray[Any, Any]


@dataclass
class Texts:
    """Files that wait to be read together: their names and bytes."""

    names: list[str] = field(default_factory=list)
    files: list[bytes] = field(default_factory=list)
    size: int = 0

    def add(self, name: str, data: bytes) -> None:
        self.names.append(name)
        self.files.append(data)
        self.size += len(data)

    @property
    def full(self) -> bool:
        return self.size >= TOGETHER

    def read(self, source: str, kind: str, limit: int, most: int | None) -> tuple[Known, list[bytes]]:
        """The files as records, and their units. limit: bytes of a record; most: characters of a text not cut."""
        held, offsets_R1 = b"".join(self.files), np.zeros(len(self.files) + 1, np.int64)
        np.cumsum([len(data) for data in self.files], out=offsets_R1[1:])
        data = np.frombuffer(held, np.uint8)
        begins, ends, sizes = offsets_R1[:-1], offsets_R1[1:], np.diff(offsets_R1)
        texts = pa.LargeStringArray.from_buffers(len(sizes), pa.py_buffer(offsets_R1), pa.py_buffer(held))
        known = are_utf8(texts) & (sizes <= limit) & ~_are_odd(held, offsets_R1) & ~_are_others(self.files)
        texts = emptied(texts, known)
        known &= whole_texts(texts, kind == "code", most)
        table = documents_of(source, kind, ids_of(named(source, data, begins, ends)), {"text": texts})
        letters = digests(data, begins, ends).hex()
        units = [file_unit(FORM, letters[at : at + 64]) for at in range(0, len(letters), 64)]
        return Known(table, sizes, known, np.full(len(sizes), FILE, np.uint8)), units


def _are_others(files: Sequence[bytes]) -> Array:
    return np.array([data.startswith(_OTHERS) for data in files], np.bool_)


def _are_odd(held: bytes, offsets_R1: Array) -> Array:
    """bool [R]: which files hold one of _ODD; few corpora have any at all."""
    odd = np.zeros(len(offsets_R1) - 1, np.bool_)
    for code in _ODD:
        if code in held:
            places = np.flatnonzero(np.frombuffer(held, np.uint8) == code)
            odd[np.searchsorted(offsets_R1, places, "right") - 1] = True
    return odd
