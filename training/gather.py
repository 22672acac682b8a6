"""The hot path on the host: rows of many shards gathered by one index, and where documents begin in them.

In: numbers of sequences. Out: a Block that says where they lie and where documents begin in them (from the shards'
index, never by looking for EOS), computed for thousands of sequences at once; and batches gathered from it. It
knows no order and no device. Legend: n rows of a block, B of a batch, T1 = tokens_per_sequence + 1.

A row of 4 KB costs 0.5 us to gather, from any number of shards, 0.06 us to locate and as much again where its documents
are asked for (one core, 2026).
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tasks.artifacts.schedule import Shard
from tasks.artifacts.shards import HEADER, ShardError, ShardIndex, array_place
from training import finding, kernels
from training.borders import Spans, count_upto, counted
from training.masks import IGNORED
from training.region import Region, span

BOUNDS_HEADER = 4096
SECONDS_BETWEEN_LOOKS = 5.0

Words = np.ndarray[Any, np.dtype[np.int64]]


class Block(NamedTuple):
    """Where n rows lie.

    ids int64 [n]: number of a row's first id in the mapped range. lengths int32 [n]: its ids, at most T1. short: the
    rows below T1, ascending. begins int64 [m]: row * T1 + place of each row's start and of every document that begins
    in it, the row counted from the first of its group (a batch); of_row, n + 1 numbers: begins[of_row[i] :
    of_row[i + 1]] belong to row i. Both None if not asked.
    loss int64 [n]: where a row's bytes of .loss begin in the mapped range, -1 in a shard without; None if none has any.
    """

    ids: Words
    lengths: np.ndarray
    short: list[int]
    begins: Words | None
    of_row: memoryview | None
    loss: Words | None = None

    def short_in(self, first: int, stop: int) -> list[int]:
        """The rows below T1 among [first, stop)."""
        short = self.short
        if not short or short[0] >= stop or short[-1] < first:
            return []
        return short[bisect_left(short, first) : bisect_left(short, stop)]

    def plain(self, first: int, stop: int) -> bool:
        """Whether there is nothing to tell of rows [first, stop) but their ids."""
        return self.begins is None and self.loss is None and not self.short_in(first, stop)


class Room(NamedTuple):
    """Where a batch is gathered: tokens [B, T1] of the shards' dtype or wider. ahead: ids that a row has beyond its
    inputs, 0 or 1, where the borders of isolated documents shall be told for these; and to write more in the same pass,
    of tokens' dtype, labels [B, T1] and positions [B * (T1 - ahead) + training.kernels.SLACK]."""

    tokens: np.ndarray
    ahead: int | None = None
    labels: np.ndarray | None = None
    positions: np.ndarray | None = None


class Apart(NamedTuple):
    """Of isolated documents: labels [B, T1], before inputs and targets are shifted against each other, and positions
    [B, T1 - ahead], both as in training.batch.Batch."""

    labels: np.ndarray
    positions: np.ndarray


class Gathered(NamedTuple):
    """A batch on the host: tokens [B, T1] in the shards' dtype, lengths int32 [B] or None where all rows are full,
    begins int64 [m] as in Block, counted from the batch's first row. unlearnt int64 [k]: row * T1 + place of each id
    that carries no loss, ascending; None where no shard has such ids. borders int32: as of
    training.kernels.piece_borders, and apart: both if the room asked for them."""

    tokens: np.ndarray
    lengths: np.ndarray | None
    begins: np.ndarray | None
    unlearnt: np.ndarray | None = None
    borders: np.ndarray | None = None
    apart: Apart | None = None


Told = tuple["np.ndarray | None", "Words | None", "Words | None"]
"""lengths, begins and unlearnt of Gathered."""


class MappedShards:
    """The sequences of shards one after another, counted from 0. A shard is mapped when it is first read, so opening
    costs one stat a shard. ends int64 [shards]: sequences up to and with each shard."""

    def __init__(self, paths: Sequence[tuple[Path, Shard]], dtype: np.dtype[Any], width: int) -> None:
        self.paths, self.dtype, self.width = [path for path, _ in paths], dtype.newbyteorder("<"), width
        self._held = [shard for _, shard in paths]
        self.ends = np.cumsum([shard.sequences for shard in self._held], dtype=np.int64)
        self._firsts = np.concatenate([[0], self.ends])[:-1]
        self._guard = width * dtype.itemsize
        self._beyond = 8 * (width + 2)
        self._region = Region(sum(self._addresses(path, shard) for path, shard in paths))
        everything = self._region.bytes
        # Strides of one byte: an int64 at any address, as .idx holds its int64 where they fall.
        self._words = np.ndarray((max(0, len(everything) - 7),), "<i8", everything.data, strides=(1,))
        self._ids = everything[: len(everything) // dtype.itemsize * dtype.itemsize].view(self.dtype)
        # Bytes of a row's .loss at any address, as the shards that have such a file need them.
        beyond = max(0, len(everything) - width + 1)
        self._masks = np.ndarray((beyond, width), np.uint8, everything.data, strides=(1, 1))
        self._loss = np.full(len(paths), -1, np.int64) if any(map(_has_loss, self.paths)) else None
        # Per shard: is it mapped, first id, first byte of starts, stops and pointers, documents, tokens, row of knots.
        self._mapped = np.zeros(len(paths), np.bool_)
        self._places = np.zeros((7, len(paths)), np.int64)
        self._knots = np.zeros((8, finding.KNOTS + 1), np.int32)  # of mapped shards alone; grows
        self._looked = np.full(len(paths), -np.inf)
        self._sizes: dict[int, dict[Path, int]] = {}

    def find(self, numbers: Words, *, documents: bool, group: int) -> Block:
        """The block of sequences `numbers` int64 [n], in groups of rows; raises ShardError naming a file that is not as
        it was laid."""
        shards, places = self.split(numbers)
        self._open(shards)
        ids, lengths = finding.find(self._words, self._places, shards, places)
        if len(lengths) and not 1 <= lengths.min() <= lengths.max() <= self.width:
            at = int(np.flatnonzero((lengths < 1) | (lengths > self.width))[0])
            raise ShardError(
                f"{self.paths[shards[at]]}.stops.npy: sequence {places[at]} has {lengths[at]} ids, the mixture allows "
                f"1 to {self.width}; fetch the pin again"
            )
        short = np.flatnonzero(lengths < self.width).tolist()
        begins, of_row = self._begins(shards, ids, lengths, group) if documents else (None, None)
        loss = None
        if self._loss is not None:
            loss = np.where(self._loss[shards] < 0, -1, self._loss[shards] + ids - self._places[0, shards])
        return Block(ids, lengths.astype(np.int32), short, begins, of_row, loss)

    def gather(self, block: Block, first: int, stop: int, filler: int, room: Room) -> Gathered:
        """Rows [first, stop) of the block, a group of it or a group's first, `filler` beyond a row's length."""
        tokens, ahead = room.tokens, room.ahead
        if ahead is None or block.begins is None or block.of_row is None:
            self.copy(block, first, stop, filler, tokens)
            return Gathered(tokens, *self.told(block, first, stop))
        if room.labels is not None and room.positions is not None:
            return self._gather_apart(block, first, stop, filler, tokens, (ahead, room.labels, room.positions))
        # Said here once more and not by `told`: a call costs a twentieth of a batch of 8 rows.
        begins = block.begins[block.of_row[first] : block.of_row[stop]]
        borders = kernels.gather_bordered(self._ids, block.ids[first:stop], begins, tokens, ahead)
        if block.loss is None and not (block.short and block.short_in(first, stop)):
            return Gathered(tokens, None, begins, None, borders)
        self._fill(block, first, stop, filler, tokens)
        return Gathered(tokens, *self.told(block, first, stop), borders)

    def _gather_apart(
        self,
        block: Block,
        first: int,
        stop: int,
        filler: int,
        tokens: np.ndarray,
        room: tuple[int, np.ndarray, np.ndarray],
    ) -> Gathered:
        lengths, begins, unlearnt = self.told(block, first, stop)
        (_, labels, positions), own = room, np.asarray(begins)
        borders = kernels.gather_apart(self._ids, block.ids[first:stop], own, tokens, *room, IGNORED)
        self._fill(block, first, stop, filler, tokens)
        self._fill(block, first, stop, IGNORED, labels)
        if unlearnt is not None:
            labels.reshape(-1)[unlearnt] = IGNORED
        counted = positions[: len(positions) - kernels.SLACK].reshape(len(tokens), -1)
        return Gathered(tokens, lengths, begins, unlearnt, borders, Apart(labels, counted))

    def _fill(self, block: Block, first: int, stop: int, filler: int, rows: np.ndarray) -> None:
        for at in block.short_in(first, stop):
            rows[at - first, block.lengths[at] :] = filler

    def copy(self, block: Block, first: int, stop: int, filler: int, tokens: np.ndarray) -> None:
        """The ids of rows [first, stop) of the block into `tokens` [stop - first, T1], `filler` beyond a row's
        length."""
        kernels.gather(self._ids, block.ids[first:stop], tokens)
        if block.short:
            self._fill(block, first, stop, filler, tokens)

    def told(self, block: Block, first: int, stop: int) -> Told:
        """What Gathered says of rows [first, stop), a group or a group's first, beside their tokens."""
        lengths = block.lengths[first:stop] if block.short and block.short_in(first, stop) else None
        begins = None
        if block.begins is not None and block.of_row is not None:
            begins = block.begins[block.of_row[first] : block.of_row[stop]]
        return lengths, begins, None if block.loss is None else self._unlearnt(block.loss[first:stop])

    def _unlearnt(self, loss: Words) -> Words:
        masked = np.flatnonzero(loss >= 0)
        row, place = np.nonzero(self._masks[loss[masked]] == 0)
        return np.asarray(masked[row] * self.width + place)

    def split(self, numbers: Words) -> tuple[Words, Words]:
        """(shard, place in it) of each sequence, both int64 [n]."""
        shards = np.searchsorted(self.ends, numbers, side="right")
        return shards, numbers - self._firsts[shards]

    def documents_of(self, shard: int, place: int) -> tuple[int, int, range]:
        """(first id, id past the last, numbers of the documents in the shard's index) of one sequence."""
        self._open(np.array([shard]))
        starts, stops = self._places[1:3, shard].tolist()
        start, stop = int(self._words[starts + 8 * place]), int(self._words[stops + 8 * place])
        ends = np.array([start, stop - 1])
        first, past = count_upto(self._region.bytes, self._spans(np.array([shard, shard]), ends, ends)).tolist()
        return start, stop, range(first - 1, past)

    def _begins(self, shards: Words, ids: Words, lengths: Words, group: int) -> tuple[Words, memoryview]:
        if kernels.COMPILED:
            begins, rows = finding.borders(
                self._words, self._places, self._knots, shards, ids, lengths,
                width=self.width, item=self.dtype.itemsize, group=group,
            )  # fmt: skip
            return begins, rows.data
        start, item = ids - self._places[0, shards], self.dtype.itemsize
        spans = self._spans(shards, start, start + lengths)
        begins, rows = counted(self._region.bytes, spans, width=self.width, item=item, group=group)
        return begins, rows.data

    def _spans(self, shards: Words, start: Words, stop: Words) -> Spans:
        pointers, documents, tokens = self._places[3:6, shards]
        item = self.dtype.itemsize
        return Spans(pointers, documents, tokens * item, start * item, stop * item)

    def _open(self, shards: Words) -> None:
        """Map what is not mapped yet, and see that what is mapped has not shrunk since."""
        now = time.monotonic()
        for number in np.unique(shards[self._looked[shards] < now - SECONDS_BETWEEN_LOOKS]).tolist():
            if self._mapped[number]:
                self._look(number)
            else:
                self._lay(number)
                self._mapped[number] = True
            self._looked[number] = now

    def _lay(self, number: int) -> None:
        path, held, item = self.paths[number], self._held[number], self.dtype.itemsize
        index = ShardIndex.open(path.with_name(f"{path.name}.idx"))
        if index.dtype != self.dtype:
            raise ShardError(f"{index.path}: expected {self.dtype.name} as the mixture says, found {index.dtype.name}")
        tokens = self._map(number, ".bin", held.tokens * item, self._guard)
        bounds = [self._bounds(number, suffix) for suffix in (".starts.npy", ".stops.npy")]
        documents = index.documents
        at = self._map(number, ".idx", HEADER.size + 20 * documents + 8, self._beyond)
        pointers = at + HEADER.size + 4 * documents
        if self._loss is not None and _has_loss(path):
            self._loss[number] = self._map(number, ".loss", held.tokens, self.width)
        row = int(self._mapped.sum())
        self._places[:, number] = tokens // item, *bounds, pointers, documents, held.tokens, row
        if kernels.COMPILED:
            if row == len(self._knots):
                self._knots = np.concatenate([self._knots, np.zeros_like(self._knots)])
            self._knots[row] = finding.laid_knots(self._words, pointers, documents, held.tokens * item)

    def _bounds(self, number: int, suffix: str) -> int:
        sequences = self._held[number].sequences
        begin = array_place(self._file(number, suffix), sequences)
        return self._map(number, suffix, begin + 8 * sequences, 8) + begin

    def _map(self, number: int, suffix: str, size: int, guard: int) -> int:
        path = self._file(number, suffix)
        self._sizes.setdefault(number, {})[path] = size
        return self._region.lay(path, size, guard)

    def _look(self, number: int) -> None:
        for path, expected in self._sizes[number].items():
            found = path.stat().st_size if path.exists() else 0
            if found < expected:
                raise ShardError(f"{path}: {expected} bytes when it was opened, {found} now; fetch the pin again")

    def _file(self, number: int, suffix: str) -> Path:
        path = self.paths[number]
        return path.with_name(path.name + suffix)

    def _addresses(self, path: Path, shard: Shard) -> int:
        try:
            index = path.with_name(f"{path.name}.idx").stat().st_size
        except FileNotFoundError:
            raise ShardError(f"{path}.idx: expected a file, found none; lay it anew") from None
        bounds = span(BOUNDS_HEADER + 8 * shard.sequences, 8)
        loss = span(shard.tokens, self.width) if _has_loss(path) else 0
        return span(shard.tokens * self.dtype.itemsize, self._guard) + span(index, self._beyond) + 2 * bounds + loss


def _has_loss(path: Path) -> bool:
    """Whether some id of the shard carries no loss: a file that is absent where all do."""
    return path.with_name(f"{path.name}.loss").exists()
