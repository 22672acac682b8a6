"""The order of documents by rank, sorted on disk.

In: for each document a key of bytes. Out: the documents' numbers, best rank first, block by block. Memory: one block.

*Rank*, best first: documents of earlier releases (`against`, in the order given), the source's place in
`source_priority` (sources not named come last, as equals), more words, more characters, earlier `created` (its first 32
bytes; none comes last), lower id, and between equal records of one source the earlier in the corpus. Everything but
that last tie is a property of the document, so that the kept set does not depend on where a document lies.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

RUN = 1 << 18
"""Documents that are sorted in memory at once."""
STRIDE = 1 << 10
_WIDE, _LAST = 32, b"\xff"
KEY_BYTES = 4 * 8 + 2 * _WIDE + 8


def rank_keys(
    levels_N: np.ndarray, numbers_3N: np.ndarray, created: pa.ChunkedArray, ids: pa.ChunkedArray, first: int
) -> np.ndarray:
    """bytes [N]: keys that sort as the documents rank, their last 8 bytes the document's number from `first` on.

    levels_N: int64, of the release. numbers_3N: int64, place of the source, words, characters.
    """
    count = len(levels_N)
    keys = np.zeros((count, KEY_BYTES), np.uint8)
    places, words, characters = numbers_3N
    leading = np.stack([levels_N, places, _LARGEST - words, _LARGEST - characters], axis=1)
    keys[:, :32] = leading.astype(">u8").view(np.uint8).reshape(count, 32)
    keys[:, 32 : 32 + _WIDE] = _bytes_of(created)
    keys[:, 32 + _WIDE : 32 + 2 * _WIDE] = _bytes_of(ids)
    numbers = np.arange(first, first + count).astype(">u8")
    keys[:, -8:] = numbers.view(np.uint8).reshape(count, 8)
    return keys.view(f"S{KEY_BYTES}").ravel()


_LARGEST = (1 << 63) - 1


def _bytes_of(values: pa.ChunkedArray) -> np.ndarray:
    """uint8 [N, _WIDE]: the first bytes of each text in UTF-8, zeros after its end; of null the highest there are."""
    binary = pc.binary_slice(values.cast(pa.binary()), 0, _WIDE)
    return (
        np.array(pc.fill_null(binary, _LAST * _WIDE).to_pylist() or [b""], f"S{_WIDE}")[: len(values)]
        .view(np.uint8)
        .reshape(len(values), _WIDE)
    )


class Ranker:
    """Takes keys as they come and gives the documents' numbers in order."""

    def __init__(self, path: Path) -> None:
        self.path, self._held, self._count, self._runs = path, list[np.ndarray](), 0, list[int]()

    def add(self, keys: np.ndarray) -> None:
        """keys: from rank_keys."""
        self._held.append(keys)
        self._count += len(keys)
        if self._count >= RUN:
            self._flush()

    def blocks(self) -> Iterator[np.ndarray]:
        """int64 [about RUN] each: numbers in the order of the keys."""
        self._flush()
        samples = [self._read(run, 0, size)[::STRIDE].copy() for run, size in enumerate(self._runs)]
        bounds = np.sort(np.concatenate([np.zeros(0, f"S{KEY_BYTES}"), *samples]))[RUN // STRIDE :: RUN // STRIDE]
        starts = [0] * len(self._runs)
        for bound in [*bounds.tolist(), None]:
            stops = [self._place(run, bound) for run in range(len(self._runs))]
            pieces = [self._read(run, starts[run], stops[run]) for run in range(len(self._runs))]
            keys = np.sort(np.concatenate(pieces)) if pieces else np.zeros(0, f"S{KEY_BYTES}")
            yield _numbers(keys)
            starts = stops

    def _flush(self) -> None:
        if not self._held:
            return
        with self.path.open("ab") as file:
            np.sort(np.concatenate(self._held)).tofile(file)
        self._runs.append(self._count)
        self._held.clear()
        self._count = 0

    def _read(self, run: int, start: int, stop: int) -> np.ndarray:
        before = sum(self._runs[:run])
        with self.path.open("rb") as file:
            file.seek((before + start) * KEY_BYTES)
            return np.frombuffer(file.read((stop - start) * KEY_BYTES), f"S{KEY_BYTES}")

    def _place(self, run: int, bound: bytes | None) -> int:
        """How many keys of a run lie below `bound`, by halving."""
        low, high = 0, self._runs[run]
        if bound is None:
            return high
        while low < high:
            middle = (low + high) // 2
            key = bytes(self._read(run, middle, middle + 1)[0])
            low, high = (middle + 1, high) if key < bound else (low, middle)
        return low


def _numbers(keys: np.ndarray) -> np.ndarray:
    last = keys.view(np.uint8).reshape(len(keys), KEY_BYTES)[:, -8:]
    return np.ascontiguousarray(last).view(">u8").ravel().astype(np.int64)
