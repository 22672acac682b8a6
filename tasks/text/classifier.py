"""A classifier as fastText saves it (.bin, or quantized .ftz), read into arrays.

In: the bytes of a supervised model's file, version 11 or 12 of the format. Out: a Classifier. It scores nothing
(tasks.text.scoring) and trains nothing. A .bin is mapped, not read: what is not looked up takes no memory; the vectors
of a .ftz are spelled out once, which takes four bytes for each of their numbers.

The format is that of Joulin et al. 2016 (arXiv 1607.01759 and, quantized, 1612.03651) as their program writes it.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

MAGIC, SUPERVISED = 793712314, 3
TREE, SIGMOIDS, SOFTMAX, ONE_BY_ONE = 1, 2, 3, 4
"""What the last layer is: a tree of yes and no (hs), sigmoids of a table (ns), softmax, sigmoids (ova)."""
PREFIX = "__label__"
Array = np.ndarray


class Classifier(NamedTuple):
    """V words, L labels, R rows of n numbers: those of the words, then those of the buckets that are kept."""

    labels: list[str]
    """Without their prefix, the most frequent first."""
    loss: int
    sizes: tuple[int, int, int, int]
    """Least and most characters of a part of a word, words of a phrase, buckets that both are hashed into."""
    rows: Array
    """float32 [R, n]."""
    outputs: Array
    """float32 [L, n], or [L - 1, n] of the nodes of a tree."""
    buckets: Array
    """uint32 [(V + buckets) / 32, 2]: which of 32 words and, after all of those, buckets have a row, the lowest bit for
    the first, and how many before them have one: rows are in that order. Empty where each has its own."""
    words: tuple[Array, Array, Array]
    """uint8: the words one after another; int64 [V + 1]: where each begins; int64 [slots, 2]: a table of (place, hash)
    by their hashes, place -1 where a slot is free."""
    paths: tuple[Array, Array]
    """Of a tree: int32 [2L - 1, 2]: the children of each node (leaves first, theirs -1); int32 [2L - 1]: its parent."""


class _File:
    """Reads what the format consists of, in turn."""

    def __init__(self, data: Array) -> None:
        self.data, self.at = data, 0

    def take(self, form: str) -> tuple[Any, ...]:
        size = struct.calcsize("<" + form)
        if self.at + size > len(self.data):
            raise ValueError(f"it ends after {len(self.data)} bytes, in the middle of something")
        found = struct.unpack("<" + form, self.data[self.at : self.at + size].tobytes())
        self.at += size
        return found

    def array(self, dtype: Any, *shape: int) -> Array:
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if min(shape) < 0 or self.at + size > len(self.data):
            raise ValueError(f"it ends after {len(self.data)} bytes, in the middle of {shape} numbers")
        found: Array = self.data[self.at : self.at + size].view(dtype).reshape(shape)
        self.at += size
        return found


def load_classifier(path: Path) -> Classifier:
    """Raises ValueError where the file is no such model."""
    file = _File(np.memmap(path, np.uint8, mode="r").view(np.ndarray) if path.stat().st_size else np.empty(0, np.uint8))
    magic, version = file.take("ii")
    if magic != MAGIC or version not in (11, 12):
        raise ValueError("it is no model that fastText saved, or of another version than 11 and 12")
    columns, _, _, _, _, phrase, loss, model, buckets, shortest, longest, _, _ = file.take("12id")
    if model != SUPERVISED:
        raise ValueError("it is a model of word vectors, not a classifier")
    words, names, counts, kept = _dictionary(file)
    first = len(words[1]) - 1
    pruned = file.array(np.int32, max(kept, 0), 2)
    rows, quantized = _matrix(file, None)
    outputs, _ = _matrix(file, quantized)
    own = (shortest, 0) if version == 11 else (shortest, longest)
    wrong = [len(outputs) < len(counts) - (loss == TREE), columns < 1 or {rows.shape[1], outputs.shape[1]} != {columns}]
    if any(wrong) or not _fit(len(rows) - first, buckets if own[1] > 0 or phrase > 1 else None, kept, pruned):
        raise ValueError("its parts do not fit together")
    if loss not in (TREE, SIGMOIDS, SOFTMAX, ONE_BY_ONE):
        raise ValueError(f"its last layer is {loss}, which is none of 1 to 4")
    labels = [name.removeprefix(PREFIX) for name in names]
    table = np.empty((0, 2), np.uint32)
    if kept >= 0:
        table, order = _bucket_rows(first, buckets, pruned)
        rows = np.concatenate([rows[:first], rows[first:][order]])
    return Classifier(labels, loss, (*own, phrase, buckets), rows, outputs, table, words, _tree(counts))


def _dictionary(file: _File) -> tuple[tuple[Array, Array, Array], list[str], list[int], int]:
    """(words as Classifier has them; labels; how often each was seen; buckets that are kept, -1 for all)."""
    size, words, labels, _, kept = file.take("iiiqq")
    if not 0 <= words <= size == words + labels or not labels:
        raise ValueError(f"it says to hold {size} names, {words} of words and {labels} of labels")
    spans_N3, end = np.empty((size, 3), np.int64), file.at
    end = _names(file.data, end, words, spans_N3)
    if end < 0:
        raise ValueError(f"it ends after {len(file.data)} bytes, or its labels do not follow its words")
    file.at = end
    names = [file.data[first:stop].tobytes().decode("utf-8", "replace") for first, stop, _ in spans_N3[words:].tolist()]
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(spans_N3[:words, 1] - spans_N3[:words, 0])])
    spelled, table = np.empty(starts[-1], np.uint8), np.full((2 << max(4, words.bit_length()), 2), -1)
    _fill(file.data, spans_N3[:words], spelled, table)
    return (spelled, starts, table), names, spans_N3[words:, 2].tolist(), kept


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _names(data: Array, at: int, words: int, spans_N3: Array) -> int:
    """Note (first byte, one past the last, count) of each name; returns where they end, -1 where they do not fit."""
    for place in range(len(spans_N3)):
        first = at
        while at < len(data) and data[at] != 0:
            at += 1
        if at + 10 > len(data) or data[at + 9] != (place >= words):
            return -1
        count = np.int64(0)
        for byte in range(8):
            count |= np.int64(data[at + 1 + byte]) << np.int64(8 * byte)
        spans_N3[place, 0], spans_N3[place, 1], spans_N3[place, 2] = first, at, count
        at += 10
    return at


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _fill(data: Array, spans_N3: Array, spelled: Array, table: Array) -> None:
    """Put the words one after another, and each into the table of hashes."""
    end, mask = 0, len(table) - 1
    for place in range(len(spans_N3)):
        first, stop = spans_N3[place, 0], spans_N3[place, 1]
        spelled[end : end + stop - first] = data[first:stop]
        end += stop - first
        state = _hash(data[first:stop])
        slot = state & mask
        while table[slot, 0] >= 0:
            slot = (slot + 1) & mask
        table[slot, 0], table[slot, 1] = place, state


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _hash(name: Array) -> Any:
    """FNV-1a of 32 bits, each byte taken as a signed one."""
    state: Any = 2166136261
    for byte in name:
        wide = np.int64(byte) | (0xFFFFFF00 if byte > 127 else 0)
        state = (state ^ wide) * 16777619 & 0xFFFFFFFF
    return state


def _matrix(file: _File, quantized: bool | None) -> tuple[Array, bool]:
    """(float32 [rows, columns], whether the file says that it is quantized).

    quantized: whether the matrix before was; the second one's mark counts only then.
    """
    (marked,) = file.take("?")
    if not marked or quantized is False:
        rows, columns = file.take("qq")
        return file.array(np.float32, rows, columns), marked
    with_norms, rows, columns, size = file.take("?qqi")
    codes = file.array(np.uint8, size)
    centroids, width = _quantizer(file, columns)
    norms = None
    if with_norms:
        norm_codes = file.array(np.uint8, rows)
        norms = _quantizer(file, 1)[0][norm_codes]
    parts = size // max(rows, 1)
    spelled = np.empty((rows, columns), np.float32)
    for part in range(parts):
        stop = min((part + 1) * width, columns)
        own = centroids[part * 256 * width : part * 256 * width + 256 * (stop - part * width)]
        spelled[:, part * width : stop] = own.reshape(256, -1)[codes.reshape(rows, parts)[:, part]]
    return (spelled if norms is None else spelled * norms.reshape(-1, 1)), marked


def _quantizer(file: _File, columns: int) -> tuple[Array, int]:
    """(centroids, how many columns one of them stands for)."""
    own, _, width, _ = file.take("iiii")
    if own != columns:
        raise ValueError(f"it is quantized for {own} columns and has {columns}")
    return file.array(np.float32, own * 256), width


def _fit(spare: int, buckets: int | None, kept: int, pruned: Array) -> bool:
    """Whether each bucket that may be asked for has a row; spare: rows behind those of the words."""
    if buckets is None or kept == 0:
        return spare >= 0
    if kept < 0:
        return 0 < buckets <= spare
    inside = (pruned >= 0) & (pruned < [buckets, spare])
    return bool(buckets > 0 and inside.all())


def _bucket_rows(words: int, buckets: int, pruned: Array) -> tuple[Array, Array]:
    """(the table of a Classifier, the places of the buckets' rows in the order of their buckets).

    250 KB for each million of buckets: it stays in the cache of the processor, where a number a bucket did not.
    """
    places = np.full(-(-(words + buckets) // 32) * 32, -1, np.int64)
    places[words + pruned[:, 0]] = pruned[:, 1]
    order = places[places >= 0]
    places[:words] = 0
    masks = np.packbits(places >= 0, bitorder="little").view("<u4")
    counts = (places >= 0).reshape(-1, 32).sum(axis=1)
    return np.stack([masks, np.cumsum(counts) - counts], axis=1).astype(np.uint32), order


def _tree(counts: list[int]) -> tuple[Array, Array]:
    """Huffman's tree over the labels, as the program builds it: ties go to the inner node."""
    leaves = len(counts)
    children, parents = np.full((2 * leaves - 1, 2), -1, np.int32), np.full(2 * leaves - 1, -1, np.int32)
    sizes = [*counts, *[10**15] * (leaves - 1)]
    leaf, inner = leaves - 1, leaves
    for node in range(leaves, 2 * leaves - 1):
        for side in (0, 1):
            if leaf >= 0 and (inner >= node or sizes[leaf] < sizes[inner]):
                child, leaf = leaf, leaf - 1
            else:
                child, inner = inner, inner + 1
            children[node, side], parents[child] = child, node
        sizes[node] = sum(sizes[child] for child in children[node])
    return children, parents
