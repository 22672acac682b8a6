"""Encoding by segments: texts are cut at seams, each different segment is encoded once, and remembered.

In: texts, a rule that says where they may be cut, and a function for segments not seen before. Out: the ids that the
whole texts have. It knows no library; tasks.encoder and tasks.engines say for which tokenizers it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.errors import TokenizerError
from tasks.text.seams import Seams
from tasks.text.segments import SegmentMemory
from tasks.texts import as_texts, utf8_of

Array = np.ndarray[Any, Any]
Learn = Callable[[Array, Array], tuple[Array, Array]]

BATCH_BYTES = 1 << 21
"""Texts are worked in pieces of about so much, so that memory follows the ids, however long a text is."""

MEMORY_BYTES = 1 << 25
"""Bytes of segments that are kept for the batches to come, 100 to 400 MB with their ids; above, all begin anew."""

MOST_ALONE = 64
"""Strings that every text is searched for; with more of them a model is encoded by its library whole."""

CHECKED_BYTES = 1 << 12
"""So much of each batch is encoded whole as well."""


class Segmented:
    """Texts to ids by their segments.

    learn: (bytes uint8, stops int64) of new segments to (ids flat int32, ids of each int64). whole: the ids of a text
    by the library itself. prefix: what the model puts before a text. alone: what the library looks for before
    all else, wherever it stands; a text that holds one of these goes through the library. outer: seams whose pieces may
    be encoded by themselves, where `seams` need what stands around them.
    """

    def __init__(
        self,
        name: str,
        seams: Seams,
        learn: Learn,
        whole: Callable[[str], Array],
        prefix: str = "",
        alone: Sequence[str] = (),
        outer: Seams | None = None,
    ) -> None:
        self._name, self._seams, self._learn, self._whole, self._prefix = name, seams, learn, whole, prefix
        self._alone, self._outer = alone, outer or seams
        self._memory = SegmentMemory()
        self._lock = Lock()

    def encode(self, texts: Sequence[str]) -> tuple[Array, Array]:
        """(ids int32 [sum of lengths], lengths int64 [texts]).

        Raises TokenizerError where the beginning of a batch has other ids when it is encoded whole.
        """
        held = as_texts(texts).array()
        odd = np.zeros(len(held), bool)
        for found in self._alone:
            odd |= pc.match_substring(held, found).to_numpy(zero_copy_only=False)
        return self._with_odd(held, np.flatnonzero(odd)) if odd.any() else self._plain(held)

    def _plain(self, texts: pa.LargeStringArray) -> tuple[Array, Array]:
        if self._prefix:
            before, after = (pa.scalar(text, texts.type) for text in (self._prefix, ""))
            whole = pc.binary_join_element_wise(before, texts, after)
            texts = pc.if_else(pc.equal(pc.binary_length(texts), 0), texts, whole)
        data, offsets = utf8_of(texts)
        flat, lengths = list[Array](), np.zeros(len(texts), np.int64)
        for first, last in _batches(offsets):
            borders = offsets[first : last + 1]
            pieces = [borders] if last - first > 1 else map(np.array, pairwise(self._cut(data, *borders.tolist())))
            for number, piece in enumerate(pieces):
                ids, sizes = self._one_batch(data[piece[0] : piece[-1]], piece - piece[0], not number)
                flat.append(ids)
                lengths[first:last] += sizes
        return flat[0] if len(flat) == 1 else np.concatenate([np.empty(0, np.int32), *flat]), lengths

    def _with_odd(self, texts: pa.LargeStringArray, odd: Array) -> tuple[Array, Array]:
        """Those numbered in `odd` go through the library."""
        whole = [self._whole(texts[at].as_py()) for at in odd.tolist()]
        apart = pa.array(np.isin(np.arange(len(texts)), odd))
        ids, lengths = self._plain(pc.if_else(apart, pa.scalar("", texts.type), texts))
        lengths[odd] = [len(own) for own in whole]
        places = np.repeat((np.cumsum(lengths) - lengths)[odd], lengths[odd])
        before = np.cumsum(lengths[odd]) - lengths[odd]
        return np.insert(ids, places - np.repeat(before, lengths[odd]), np.concatenate(whole)), lengths

    def _cut(self, data: Array, start: int, stop: int) -> Iterator[int]:
        """Where the pieces of a text lie: of about BATCH_BYTES, up to a seam; longer where there is none."""
        yield start
        size = BATCH_BYTES
        while start + size < stop:
            view = data[start : _characters_end(data, start + size)]
            last = int(self._outer.starts(view, np.array([0, len(view)]))[-1])
            if last:
                yield start + last
                start, size = start + last, BATCH_BYTES
            else:
                size *= 2
        yield stop

    def _one_batch(self, data: Array, borders: Array, opens: bool) -> tuple[Array, Array]:
        """(ids, how many of each text). borders: int64 [texts + 1]. opens: whether the first begins here."""
        if not len(data):
            return np.empty(0, np.int32), np.zeros(len(borders) - 1, np.int64)
        starts = self._seams.starts(data, borders[borders < len(data)])
        checked = self._checked(data, int(borders[1])) if opens else 0
        marks = np.searchsorted(starts, [checked, *borders])
        with self._lock:  # a Dask worker runs several units at once
            if self._memory.bytes > MEMORY_BYTES:
                self._memory = SegmentMemory()
            which = self._memory.numbers_of(data, starts)
            self._memory.learn(*self._learn(*self._memory.unlearned()))
            ids, ends = self._memory.ids_of(which, np.sort(marks))
        ends = ends[np.searchsorted(np.sort(marks), marks)]
        if checked:
            self._check(data[:checked].tobytes().decode(), ids[: ends[0]])
        return ids, np.diff(ends[1:])

    def _checked(self, data: Array, size: int) -> int:
        """Bytes of the beginning of the batch's first text, up to a seam, that are encoded whole as well; 0 where no
        seam is near."""
        stop = size
        if size > CHECKED_BYTES:
            view = data[: _characters_end(data, min(size, 4 * CHECKED_BYTES))]
            seams = self._outer.starts(view, np.array([0, len(view)]))
            stop = min(seams[seams >= CHECKED_BYTES].tolist(), default=size)
        return stop if len(self._prefix) < stop <= 4 * CHECKED_BYTES else 0

    def _check(self, spelled: str, ids: Array) -> None:
        text = spelled[len(self._prefix) :]
        if not np.array_equal(self._whole(text), ids):
            raise TokenizerError(
                f"tokenizer {self._name} gives {text[:40]!r} other ids in segments than whole",
                "report its model: it must not be encoded by segments",
            )


def _batches(offsets: Array) -> Iterator[tuple[int, int]]:
    """(first text, one past the last) of stretches of BATCH_BYTES at most, or of one text."""
    first, count = 0, len(offsets) - 1
    while first < count:
        last = int(np.searchsorted(offsets, offsets[first] + BATCH_BYTES, "right")) - 1
        last = max(last, first + 1)
        yield first, last
        first = last


def _characters_end(data: Array, stop: int) -> int:
    """The last end of a character up to `stop`."""
    while stop < len(data) and data[stop] & 0xC0 == 0x80:
        stop -= 1
    return stop
