"""Temporary arrays and records on disk, so that dedup's memory does not grow with the corpus.

In: a folder for temporary files. Out: arrays mapped from files, and records spilled by partition and read back one
partition at a time. It knows nothing of documents. Everything lies in plain files by name, so that a worker process, on
this machine or another that sees the folder, can open it too.
"""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

BUFFER_BYTES = 32 << 20
"""Records that a Spill holds before it writes them."""


class Scratch:
    """Arrays by name in one folder. Their pages are the system's: `relax` takes them out of this process's memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._maps: dict[str, mmap.mmap] = {}

    def array(self, name: str, dtype: Any, count: int) -> np.ndarray:
        """A new array of zeros, in the place of an older one of that name, which stays as it is for who holds it."""
        self.take_room(name, np.dtype(dtype).itemsize * count)
        return self.open(name, dtype)

    def take_room(self, name: str, size: int) -> None:
        """A new file of zeros, its room on disk taken at once: a full disk is an OSError here, not a signal later."""
        (self.folder / name).unlink(missing_ok=True)
        with (self.folder / name).open("w+b") as file:
            if size and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                os.truncate(file.fileno(), size)

    def open(self, name: str, dtype: Any) -> np.ndarray:
        """The array of a file that is there."""
        with (self.folder / name).open("r+b") as file:
            if not os.fstat(file.fileno()).st_size:
                return np.zeros(0, dtype)
            self._maps[name] = mmap.mmap(file.fileno(), 0)
        return np.frombuffer(self._maps[name], dtype)

    def flush(self) -> None:
        """Write all arrays to their files, for processes of other machines."""
        for mapped in self._maps.values():
            mapped.flush()

    def relax(self) -> None:
        """Let go of the pages of all arrays; what was written stays in their files."""
        for mapped in self._maps.values():
            mapped.madvise(mmap.MADV_DONTNEED)

    def spill(self, name: str, dtype: np.dtype, partitions: int) -> Spill:
        """Records that are to be read by partition."""
        return Spill(self.folder / name, dtype, partitions)


@contextmanager
def scratch_of(reads: Any) -> Iterator[Scratch]:
    """Scratch where `reads` says that a unit's temporary files lie, else where the system has them; gone at the end."""
    beside: Callable[[], Path] | None = getattr(reads, "scratch", None)
    folder = Path(tempfile.mkdtemp(prefix="dedup-", dir=beside() if beside else None))
    try:
        yield Scratch(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def each(
    reads: Any, scratch: Scratch, function: Callable[[Any, Any], Any], items: Iterable[tuple[str | None, Any]]
) -> Iterator[Any]:
    """function(reads of the unit, item) for each (unit or None, item), in order; on workers where `reads` has some."""
    spread: Callable[..., Iterator[Any]] | None = getattr(reads, "each", None)
    if spread is not None:
        scratch.flush()
        return spread(function, items)
    return (function(reads, item) for _, item in items)


def mapped(path: Path, dtype: Any) -> np.ndarray:
    """The array of a file, read-only."""
    if not path.stat().st_size:
        return np.zeros(0, dtype)
    return np.asarray(np.memmap(path, dtype, mode="r"))


class Spill:
    """Records of one dtype, written in the order they come and read back partition by partition.

    read() gives the records of a partition in the order in which they were added.
    """

    def __init__(self, path: Path, dtype: np.dtype, partitions: int) -> None:
        self.path, self.dtype, self.partitions = path, dtype, partitions
        self._held: list[tuple[np.ndarray, np.ndarray]] = []
        self._bytes, self._written, self._bounds = 0, 0, [np.zeros((0, partitions + 1), np.int64)]
        path.touch()

    def add(self, partitions_R: np.ndarray, records_R: np.ndarray) -> None:
        """partitions_R: whole numbers below `partitions`, one a record."""
        self._held.append((partitions_R.astype(np.min_scalar_type(self.partitions)), records_R))
        self._bytes += records_R.nbytes
        if self._bytes >= BUFFER_BYTES:
            self._flush()

    def close(self) -> Path:
        """Write what is held; the file can be read from now on, by any process that sees it."""
        self._flush()
        bounds_FP = np.concatenate(self._bounds)
        spans_PF = np.stack([bounds_FP[:, :-1].T, bounds_FP[:, 1:].T], axis=2)
        with _index(self.path).open("wb") as file:
            np.array([len(bounds_FP)]).tofile(file)
            spans_PF.tofile(file)
        self._bounds.clear()
        return self.path

    def _flush(self) -> None:
        if not self._held:
            return
        partitions_R, records_R = self._by_partition()
        bounds = np.searchsorted(partitions_R, np.arange(self.partitions + 1, dtype=partitions_R.dtype))
        with self.path.open("ab") as file:
            records_R.tofile(file)
        self._bounds.append((bounds + self._written)[None, :])
        self._written += len(records_R)
        self._held.clear()
        self._bytes = 0

    def _by_partition(self) -> tuple[np.ndarray, np.ndarray]:
        """What is held, partition by partition, each in the order in which it came. What came for one partition at a
        time, as bands do where each has one, is put in order whole."""
        held = [piece for piece in self._held if len(piece[0])] or self._held[:1]
        if all((partitions_R == partitions_R[:1]).all() for partitions_R, _ in held):
            held.sort(key=lambda piece: piece[0][:1].tolist())
            partitions_R, records_R = (np.concatenate(column) for column in zip(*held, strict=True))
            return partitions_R, records_R
        partitions_R, records_R = (np.concatenate(column) for column in zip(*held, strict=True))
        order = np.argsort(partitions_R, kind="stable")
        return partitions_R[order], records_R[order]


def read_partition(path: Path, dtype: np.dtype, partition: int) -> np.ndarray:
    """The records of one partition of a closed Spill."""
    return next(read_partitions(path, dtype, range(partition, partition + 1)))


def read_partitions(path: Path, dtype: np.dtype, partitions: range) -> Iterator[np.ndarray]:
    """The records of some partitions, one after another."""
    with _index(path).open("rb") as index, path.open("rb", buffering=0) as file:
        flushes = int.from_bytes(index.read(8), "little")
        index.seek(16 * flushes * partitions.start, os.SEEK_CUR)
        for _ in partitions:
            pieces = [np.zeros(0, dtype)]
            for start, stop in np.frombuffer(index.read(16 * flushes), np.int64).reshape(-1, 2).tolist():
                file.seek(start * dtype.itemsize)
                pieces.append(np.fromfile(file, dtype, stop - start))
            yield pieces[1] if len(pieces) == 2 else np.concatenate(pieces)


def _index(path: Path) -> Path:
    """How many times the Spill wrote, then for each partition the spans of its records in the file, int64."""
    return path.with_name(f"{path.name}.index")
