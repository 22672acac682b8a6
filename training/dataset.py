"""Packed sequences of a pin, memory-mapped: positions in, one array of tokens out.

In: a Pin and positions of its order. Out: batches of rows of T+1 tokens gathered at once, with their lengths and,
where asked, the places where documents begin (from the shards' index, never by looking for EOS); and for the
curious which documents a position reads. It widens nothing and knows no device. Legend: B rows, T1 =
tokens_per_sequence + 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor, from_numpy

from tasks.artifacts.shards import ShardReader
from training.ahead import Ahead
from training.gather import Block, Gathered, MappedShards, Room
from training.order import GLOBAL, Order, Shuffle
from training.pin import Pin


class Rows(NamedTuple):
    """A gathered batch: tokens [B, T1] in the shards' dtype (torch.uint16 or int32); lengths int32 [B], None where all
    rows are full; begins int64 [m], where documents are isolated: row * T1 + place of each row's start and of each
    document that begins in it; unlearnt int64 [k], where some shard has such: row * T1 + place of each id that
    carries no loss; position: of the run, after the global batch that they are a share of, where they are one."""

    tokens_BT1: Tensor
    lengths_B: Tensor | None
    begins: Tensor | None
    unlearnt: Tensor | None
    position: int | None = None


@dataclass(frozen=True)
class Origin:
    """What one position reads. sequence: its number in the shard; ids: from and to of the shard's .bin; documents:
    their numbers in the shard's .idx, whole or in part."""

    position: int
    source: str
    epoch: int
    shard: str
    sequence: int
    ids: tuple[int, int]
    documents: range


class PackedDataset:
    """The sequences of one split. train is read in the order of the run, by position, without end; validation
    and test in a fixed order: source by source, shard by shard, once.

    Serves training.loader, and any torch DataLoader through `__getitems__` with `collate_fn=keep`:
    DataLoader(dataset, batch_sampler=PositionBatches(...), collate_fn=keep) gathers each batch at once. For trainers
    that want examples as dictionaries see training.examples. Raises ShardError for a file that is absent, and where
    `vocab_size` (of the model) is below the pin's and an id is found beyond it.
    """

    def __init__(
        self,
        pin: Pin,
        split: str = "train",
        *,
        shuffle: Shuffle = GLOBAL,
        isolate_documents: bool = False,
        vocab_size: int | None = None,
    ) -> None:
        self.pin, self.split, self.shuffle, self.isolate_documents = pin, split, shuffle, isolate_documents
        self.width = pin.schedule.tokens_per_sequence + 1
        self.dtype, self.filler = np.dtype(pin.schedule.dtype), pin.schedule.eos_id
        self.order = Order(pin.schedule, shuffle) if split == "train" else None
        self.sources = self.order.sources if self.order else sorted(pin.schedule.sources)
        held = [pin.schedule.sources[name].get(split) for name in self.sources]
        shards = [list(zip(pin.shards(name, split), one.shards if one else (), strict=True))
                  for name, one in zip(self.sources, held, strict=True)]  # fmt: skip
        counts = [one.sequences if one else 0 for one in held]
        self._firsts = np.cumsum([0, *counts])
        self.sequences = sum(counts)
        self.shards = MappedShards([pair for of_source in shards for pair in of_source], self.dtype, self.width)
        self._ahead = Ahead(self.locate, None if self.order else self.sequences)
        if vocab_size is not None and vocab_size < pin.schedule.vocab_size:
            self._check_ids(vocab_size)

    def __len__(self) -> int:
        """Sequences of the split, each counted once; positions of train run on beyond it."""
        return self.sequences

    def __reduce__(self) -> tuple[Any, ...]:
        """A process that is started afresh maps the shards itself; a forked one has the maps already."""
        return _again, (self.pin, self.split, self.shuffle, self.isolate_documents)

    def __getitem__(self, position: int) -> Rows:
        rows = self.__getitems__([position])
        return Rows(rows.tokens_BT1[0], None if rows.lengths_B is None else rows.lengths_B[0], *rows[2:])

    def __getitems__(self, positions: Sequence[int] | np.ndarray) -> Rows:
        """The rows at `positions`, for a standard DataLoader; a range of them is located thousands of rows ahead."""
        if isinstance(positions, range) and positions.step == 1:
            gathered = self.rows(positions.start, len(positions))
        else:
            asked = np.asarray(positions, np.int64)
            held = asked if self.order else asked[asked < self.sequences]
            out = np.empty((len(asked), self.width), self.dtype)
            room = Room(out[: len(held)])
            found = self.shards.gather(self.locate(held), 0, len(held), self.filler, room)
            gathered = self._filled(found, out)
        tokens, lengths, begins, unlearnt, *_ = gathered
        return Rows(
            from_numpy(tokens),
            None if lengths is None else from_numpy(lengths),
            None if begins is None else from_numpy(begins),
            None if unlearnt is None else from_numpy(unlearnt),
        )

    def rows(self, first: int, count: int, room: Room | None = None) -> Gathered:
        """The rows at positions [first, first + count); those beyond the end of a fixed split are empty. They are
        written into `room` where it is given, of `count` rows."""
        if room is None:
            room = Room(np.empty((count, self.width), self.dtype))
        held = count if self.order else min(count, max(0, self.sequences - first))
        block, at = self._ahead.find(first, held)
        if held == count:
            return self.shards.gather(block, at, at + held, self.filler, room)
        return self._filled(
            self.shards.gather(block, at, at + held, self.filler, Room(room.tokens[:held])), room.tokens
        )

    def locate(self, positions: np.ndarray, group: int | None = None) -> Block:
        """Where the sequences at `positions` int64 [n] lie; begins are counted from the first row of each `group` rows,
        of all if None."""
        held = group or max(1, len(positions))
        return self.shards.find(self._numbers(positions), documents=self.isolate_documents, group=held)

    def origins(self, positions: Sequence[int] | range) -> list[Origin]:
        """Which documents stand at each position."""
        asked = np.asarray(positions, np.int64)
        numbers = self._numbers(asked)
        epochs = self.order.at(asked).epoch if self.order else np.zeros_like(asked)
        names = np.searchsorted(self._firsts, numbers, side="right") - 1
        found = []
        for position, epoch, name, shard, place in zip(
            asked.tolist(), epochs.tolist(), names.tolist(), *(part.tolist() for part in self.shards.split(numbers)),
            strict=True,
        ):  # fmt: skip
            start, stop, documents = self.shards.documents_of(shard, place)
            held = (self.sources[name], epoch, self.shards.paths[shard].name, place, (start, stop), documents)
            found.append(Origin(position, *held))
        return found

    def state(self, position: int) -> dict[str, Any]:
        """What a checkpoint holds to go on at `position`: that, and the data and order it belongs to."""
        return {"position": position, "fingerprint": self.pin.fingerprint, "order": str(self.shuffle)}

    def position_of(self, state: dict[str, Any], *, allow_other_pin: bool = False) -> int:
        """The position of a `state`; raises ValueError where it belongs to another order, or to another pin and that is
        not allowed."""
        theirs, own = str(state["fingerprint"]), self.pin.fingerprint
        if theirs != own and not allow_other_pin:
            raise ValueError(
                f"the state belongs to data {theirs[:12]}, this loader reads {own[:12]}; "
                f"open that pin, or pass allow_other_pin=True"
            )
        if state.get("order", "global") != str(self.shuffle):
            raise ValueError(
                f"the state belongs to a run shuffled {state.get('order', 'global')!r}, this loader shuffles "
                f"{str(self.shuffle)!r}; build it with the same shuffle"
            )
        return int(state["position"])

    def _filled(self, held: Gathered, out: np.ndarray) -> Gathered:
        """`held`, which lies in the first rows of `out`, and rows of no tokens up to its last."""
        count, missing = len(out), len(out) - len(held.tokens)
        if not missing:
            return held
        out[count - missing :] = self.filler
        lengths = np.full(count - missing, self.width, np.int32) if held.lengths is None else held.lengths
        begins = held.begins
        if begins is not None:
            begins = np.concatenate([begins, np.arange(count - missing, count) * self.width])
        return Gathered(out, np.pad(lengths, (0, missing)), begins, held.unlearnt)

    def _numbers(self, positions: np.ndarray) -> np.ndarray:
        """Number of each position's sequence among all of the split."""
        if self.order is None:
            if len(positions) and not 0 <= positions.min() <= positions.max() < self.sequences:
                asked = f"{positions.min()} to {positions.max()}"
                raise IndexError(f"{self.split} has positions 0 to {self.sequences - 1}, asked for were {asked}")
            return positions
        places = self.order.at(positions)
        numbers: np.ndarray = self._firsts[places.source] + places.sequence
        return numbers

    def _check_ids(self, vocab_size: int) -> None:
        for path in self.shards.paths:
            ShardReader(path.parent, path.name).check_ids(vocab_size)


class PositionBatches:
    """A batch sampler for a standard DataLoader: ranges of one rank's positions, `batch_size` of all ranks together,
    from `position` (which may be moved between two passes) to `last`, or without end."""

    def __init__(self, batch_size: int, last: int | None, *, position: int = 0, rank: int = 0, world: int = 1) -> None:
        self.batch_size, self.last, self.position = batch_size, last, position
        self.own = own_rows(batch_size, rank, world)

    def __len__(self) -> int:
        if self.last is None:
            raise TypeError("this run has no end; give it its steps")
        return max(0, -(-(self.last - self.position) // self.batch_size))

    def __iter__(self) -> Iterator[range]:
        first = self.position
        while self.last is None or first < self.last:
            yield range(first + self.own.start, first + self.own.stop)
            first += self.batch_size


def own_rows(batch_size: int, rank: int, world: int) -> range:
    """The rows of a global batch that a rank reads; raises ValueError where the ranks do not divide the
    batch."""
    if batch_size < 1 or world < 1 or not 0 <= rank < world:
        raise ValueError(f"rank {rank} of {world} cannot read a batch of {batch_size}")
    if batch_size % world:
        divisors = [str(n) for n in range(1, batch_size + 1) if batch_size % n == 0]
        raise ValueError(
            f"a global batch of {batch_size} cannot be shared by {world} ranks; "
            f"use {', '.join(divisors)} ranks or another batch_size"
        )
    share = batch_size // world
    return range(rank * share, (rank + 1) * share)


def keep(rows: Rows) -> Rows:
    """The collate_fn of a DataLoader over PackedDataset: a batch is gathered, there is nothing to collate."""
    return rows


def _again(pin: Pin, split: str, shuffle: Shuffle, isolate_documents: bool) -> PackedDataset:
    return PackedDataset(pin, split, shuffle=shuffle, isolate_documents=isolate_documents)
