"""Token shards on disk: <name>.bin + .idx as Megatron reads them, .starts.npy + .stops.npy for the sequences.

In: ids, sizes of documents, bounds of sequences. Out: the same, checked. It knows no tokenizer and no order
of training.

<name>.bin         ids, flat, little-endian, uint16 or int32
<name>.idx         little-endian: b"MMIDIDX\\0\\0", version uint64 = 1, dtype code uint8 (8 uint16, 4 int32),
                   n uint64, n + 1 uint64, sizes int32 [n] in ids, pointers int64 [n] in bytes,
                   document_indices int64 [n + 1] = 0 .. n. What Megatron calls a sequence is a document here,
                   closed by its EOS.
<name>.starts.npy  uint64 [sequences]: first id of each sequence in .bin
<name>.stops.npy   uint64 [sequences]: one past its last
<name>.loss        uint8 [ids]: 1 where a model learns the id, 0 where not; absent where it learns all
<name>.classes.npy CLASSES [n]: kind and language of each document of .idx; of validation and test only
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

MAGIC = b"MMIDIDX\x00\x00"
VERSION = 1
HEADER = struct.Struct("<9sQBQQ")
CODES: dict[int, np.dtype[Any]] = {8: np.dtype("<u2"), 4: np.dtype("<i4")}
"""Megatron's codes of the dtypes that we write; it has no code for uint32."""

CLASS_NAMES = ("kind", "language")
CLASSES = np.dtype([(name, "S8") for name in CLASS_NAMES])
"""Of a document: ASCII, filled up with zero bytes."""

LARGEST_SIZE = np.iinfo(np.int32).max
Array = np.ndarray[Any, Any]


class ShardError(ValueError):
    """A shard that is not whole, or ids that do not fit it; names the file, expected and found."""


def checked_ids(name: str, ids: Array, dtype: np.dtype[Any], vocab_size: int) -> Array:
    """`ids` as `dtype`; raises ShardError naming the first id outside of the vocabulary or the dtype, and
    where it is.

    A cast alone would wrap 65,536 to 0 in silence. 3 GB of ids a CPU second.
    """
    limit = min(vocab_size - 1, int(np.iinfo(dtype).max))
    if len(ids) and not (int(ids.max()) <= limit and int(ids.min()) >= 0):
        at = int(np.flatnonzero((ids > limit) | (ids < 0))[0])
        raise ShardError(
            f"{name}: id {int(ids[at])} at {at} is not within 0 to {limit}"
            f" (vocabulary of {vocab_size}, {dtype.name}); take the tokenizer that made the ids"
        )
    return ids.astype(dtype, copy=False)


def index_bytes(sizes: Array, dtype: np.dtype[Any]) -> bytes:
    """The .idx of documents of `sizes` ids [n]; raises ShardError where a size or the dtype does not fit."""
    code = next((code for code, known in CODES.items() if known == dtype), None)
    if code is None:
        raise ShardError(f"dtype {np.dtype(dtype).name} has no code in the index; use uint16 or int32")
    if len(sizes) and not 0 < int(sizes.min()) <= int(sizes.max()) <= LARGEST_SIZE:
        raise ShardError(f"documents of {sizes.min()} to {sizes.max()} ids; the index holds 1 to {LARGEST_SIZE}")
    number = len(sizes)
    pointers = np.cumsum(sizes, dtype=np.int64) - sizes
    arrays = (
        sizes.astype("<i4"),
        (pointers * dtype.itemsize).astype("<i8"),
        np.arange(number + 1, dtype="<i8"),
    )
    header = HEADER.pack(MAGIC, VERSION, code, number, number + 1)
    return header + b"".join(array.tobytes() for array in arrays)


@dataclass(frozen=True)
class ShardIndex:
    """The header of a .idx, and its arrays read when asked for. documents: how many it lists."""

    path: Path
    dtype: np.dtype[Any]
    documents: int

    @classmethod
    def open(cls, path: Path) -> ShardIndex:
        """Read and check the header; raises ShardError naming file, expected and found."""
        with _opened(path) as file:
            head = file.read(HEADER.size)
        if len(head) < HEADER.size or head[: len(MAGIC)] != MAGIC:
            raise ShardError(f"{path}: expected {MAGIC!r} at its start, found {head[: len(MAGIC)]!r}; lay it anew")
        _, version, code, number, listed = HEADER.unpack(head)
        if (version, listed) != (VERSION, number + 1) or code not in CODES:
            raise ShardError(
                f"{path}: expected version {VERSION}, dtype code {sorted(CODES)} and {number + 1} boundaries,"
                f" found {version}, {code} and {listed}; lay it anew"
            )
        _check_bytes(path, HEADER.size + 4 * number + 8 * number + 8 * listed)
        return cls(path, CODES[code], number)

    @cached_property
    def sizes(self) -> Array:
        """Ids of each document, int32 [documents]."""
        return self._array("<i4", HEADER.size, self.documents)

    @cached_property
    def pointers(self) -> Array:
        """First byte of each document in .bin, int64 [documents]."""
        return self._array("<i8", HEADER.size + 4 * self.documents, self.documents)

    @property
    def tokens(self) -> int:
        """Ids that the .bin beside it must hold, from the last document alone."""
        if not self.documents:
            return 0
        return int(self.pointers[-1]) // self.dtype.itemsize + int(self.sizes[-1])

    def verify(self) -> None:
        """Hold every pointer against the sizes; raises ShardError naming the first document that is off."""
        expected = (np.cumsum(self.sizes, dtype=np.int64) - self.sizes) * self.dtype.itemsize
        wrong = np.flatnonzero(expected != self.pointers)
        if len(wrong):
            at = int(wrong[0])
            raise ShardError(
                f"{self.path}: expected document {at} at byte {expected[at]}, found {self.pointers[at]}; lay it anew"
            )

    def _array(self, dtype: str, offset: int, number: int) -> Array:
        if not number:
            return np.empty(0, dtype)
        return np.asarray(np.memmap(self.path, dtype, "r", offset, (number,)))


class ShardReader:
    """One shard, open for reading: nothing is copied, the system's page cache holds what is used.

    tokens [ids]: the stream, memory-mapped. loss: uint8 [ids], or None where all are learnt. starts, stops
    [sequences]: uint64 bounds into it. Opening costs a few stats, whatever the shard holds; raises ShardError where a
    file is absent, cut off or longer than the others say. `verify` looks at every bound.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.index = ShardIndex.open(folder / f"{name}.idx")
        self.tokens = _flat(folder / f"{name}.bin", self.index.dtype, self.index.tokens)
        loss = folder / f"{name}.loss"
        self.loss = _flat(loss, np.dtype("u1"), self.index.tokens) if loss.exists() else None
        self.starts = _bounds(folder / f"{name}.starts.npy")
        self.stops = _bounds(folder / f"{name}.stops.npy")
        self._folder = folder
        if len(self.starts) != len(self.stops):
            path = folder / f"{name}.stops.npy"
            raise ShardError(f"{path}: expected {len(self.starts)} bounds, found {len(self.stops)}; lay it anew")

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.index.dtype

    def __len__(self) -> int:
        """Sequences."""
        return len(self.starts)

    def sequence(self, number: int) -> Array:
        """The ids of one sequence, a view [at most tokens_per_sequence + 1]."""
        return self.tokens[int(self.starts[number]) : int(self.stops[number])]

    def check_ids(self, vocab_size: int) -> None:
        """Raises ShardError naming the shard and the first id that a model of `vocab_size` rows lacks."""
        checked_ids(str(self._folder / f"{self.name}.bin"), self.tokens, self.dtype, vocab_size)

    def verify(self) -> None:
        """Hold every pointer and every bound against the stream (16 bytes a sequence, 12 a document); raises
        ShardError naming the first that leaves it."""
        self.index.verify()
        path = self._folder / f"{self.name}.stops.npy"
        wrong = np.flatnonzero((self.starts >= self.stops) | (self.stops > len(self.tokens)))
        if len(wrong):
            at = int(wrong[0])
            raise ShardError(
                f"{path}: expected sequence {at} to end after {self.starts[at]} and by {len(self.tokens)},"
                f" found {self.stops[at]}; lay it anew"
            )


def array_place(path: Path, length: int) -> int:
    """Where the data of a .npy of uint64 [length] begins, in bytes; raises ShardError where it is none."""
    with _opened(path) as file:
        try:
            version = np.lib.format.read_magic(file)
            header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = header(file)
        except ValueError as error:
            raise ShardError(f"{path}: expected an array of uint64, found {error}; lay it anew") from None
        if (shape, dtype) != ((length,), np.dtype("<u8")):
            raise ShardError(f"{path}: expected uint64 [{length}], found {dtype} {list(shape)}; lay it anew")
        return int(file.tell())


def _flat(path: Path, dtype: np.dtype[Any], tokens: int) -> Array:
    _check_bytes(path, tokens * dtype.itemsize)
    return np.asarray(np.memmap(path, dtype, "r")) if tokens else np.empty(0, dtype)


def _bounds(path: Path) -> Array:
    with _opened(path):
        pass
    try:
        bounds = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ShardError(f"{path}: expected an array of uint64, found {error}; lay it anew") from None
    if not isinstance(bounds, np.ndarray) or bounds.dtype != np.dtype("<u8") or bounds.ndim != 1:
        raise ShardError(f"{path}: expected uint64 [sequences], found {getattr(bounds, 'dtype', bounds)}; lay it anew")
    return np.asarray(bounds)


def _check_bytes(path: Path, expected: int) -> None:
    with _opened(path):
        found = path.stat().st_size
    if found != expected:
        raise ShardError(f"{path}: expected {expected} bytes, found {found}; lay it anew")


def _opened(path: Path) -> Any:
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise ShardError(f"{path}: expected a file, found none; lay it anew") from None
