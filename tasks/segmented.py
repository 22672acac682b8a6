"""Encoding by segments: texts are cut at seams, each different segment is encoded once, and remembered.

In: texts, a rule that says where they may be cut, and a function for segments not seen before. Out: the ids that the
whole texts have. It knows no library; tasks.encoder and tasks.engines say for which tokenizers it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import Any

import numpy as np

from tasks.errors import TokenizerError
from tasks.text.seams import Seams
from tasks.text.segments import SegmentMemory

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
    by the library itself. prefix: what the model puts before a text, as bytes. alone: what the library looks for before
    all else, wherever it stands; a text that holds one of these goes through the library. outer: seams whose pieces may
    be encoded by themselves, where `seams` need what stands around them.
    """

    def __init__(
        self,
        name: str,
        seams: Seams,
        learn: Learn,
        whole: Callable[[str], Array],
        prefix: bytes = b"",
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
        if self._alone:
            odd = [at for at, text in enumerate(texts) if any(found in text for found in self._alone)]
            if odd:
                return self._with_odd(list(texts), odd)
        return self._plain(texts)

    def _plain(self, texts: Sequence[str]) -> tuple[Array, Array]:
        flat, lengths = [np.empty(0, np.int32)], np.zeros(len(texts), np.int64)
        for numbers, pieces, opens in self._batches(texts):
            ids, sizes = self._one_batch(pieces, opens)
            flat.append(ids)
            np.add.at(lengths, numbers, sizes)
        return np.concatenate(flat), lengths

    def _with_odd(self, texts: list[str], odd: list[int]) -> tuple[Array, Array]:
        """Those numbered in `odd` go through the library."""
        whole = [self._whole(texts[at]) for at in odd]
        for at in odd:
            texts[at] = ""
        ids, lengths = self._plain(texts)
        lengths[odd] = [len(own) for own in whole]
        places = np.repeat((np.cumsum(lengths) - lengths)[odd], lengths[odd])
        before = np.cumsum(lengths[odd]) - lengths[odd]
        return np.insert(ids, places - np.repeat(before, lengths[odd]), np.concatenate(whole)), lengths

    def _batches(self, texts: Sequence[str]) -> Iterator[tuple[list[int], list[bytes], bool]]:
        """(number of each piece's text, pieces, whether the first begins a text)."""
        numbers, pieces, room = list[int](), list[bytes](), BATCH_BYTES
        for number, text in enumerate(texts):
            data = self._prefix + text.encode() if text else b""
            if len(data) > room and pieces:
                yield numbers, pieces, True
                numbers, pieces, room = [], [], BATCH_BYTES
            if len(data) <= BATCH_BYTES:
                numbers.append(number)
                pieces.append(data)
                room -= len(data)
            else:
                yield from (([number], [piece], not at) for at, piece in enumerate(self._cut(data)))
        if pieces:
            yield numbers, pieces, True

    def _cut(self, data: bytes) -> Iterator[bytes]:
        """A long text in pieces of about BATCH_BYTES that end at seams; longer ones where there is no seam."""
        start, size = 0, BATCH_BYTES
        while start + size < len(data):
            view = np.frombuffer(data, np.uint8)[start : _characters_end(data, start + size)]
            last = int(self._outer.starts(view, np.array([0, len(view)]))[-1])
            if last:
                yield data[start : start + last]
                start, size = start + last, BATCH_BYTES
            else:
                size *= 2
        yield data[start:]

    def _one_batch(self, pieces: list[bytes], opens: bool) -> tuple[Array, Array]:
        borders = np.cumsum([0, *map(len, pieces)])
        data = np.frombuffer(b"".join(pieces), np.uint8)
        if not len(data):
            return np.empty(0, np.int32), np.zeros(len(pieces), np.int64)
        starts = self._seams.starts(data, borders[borders < len(data)])
        with self._lock:  # a Dask worker runs several units at once
            if self._memory.bytes > MEMORY_BYTES:
                self._memory = SegmentMemory()
            which = self._memory.numbers_of(data, starts)
            self._memory.learn(*self._learn(*self._memory.unlearned()))
            ids, stops = self._memory.ids_of(which)
        ends = np.concatenate([np.zeros(1, np.int64), stops])
        if opens:
            self._check(data, int(borders[1]), starts, ids, ends)
        return ids, np.diff(ends[np.searchsorted(starts, borders)])

    def _check(self, data: Array, size: int, starts: Array, ids: Array, ends: Array) -> None:
        """The beginning of the batch's first text, up to a seam, has the ids that the library gives it."""
        stop = size
        if size > CHECKED_BYTES:
            view = data[: _characters_end(data, min(size, 4 * CHECKED_BYTES))]
            seams = self._outer.starts(view, np.array([0, len(view)]))
            stop = min(seams[seams >= CHECKED_BYTES].tolist(), default=size)
        if not len(self._prefix) < stop <= 4 * CHECKED_BYTES:
            return
        text = data[len(self._prefix) : stop].tobytes().decode()
        if not np.array_equal(self._whole(text), ids[: ends[np.searchsorted(starts, stop)]]):
            raise TokenizerError(
                f"tokenizer {self._name} gives {text[:40]!r} other ids in segments than whole",
                "report its model: it must not be encoded by segments",
            )


def _characters_end(data: Array | bytes, stop: int) -> int:
    """The last end of a character up to `stop`."""
    while stop < len(data) and data[stop] & 0xC0 == 0x80:
        stop -= 1
    return stop
