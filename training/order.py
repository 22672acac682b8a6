"""The order of a training run as a rule: position -> stage, source, epoch and sequence, in O(1) memory.

In: a Schedule and positions, one per sequence of the run. Out: which sequence each of them reads. It never
touches a file and knows no rank, batch or worker; those are slices of positions. Integers only, so every
machine agrees. Sequences are shuffled over the whole source, or, for storage that is slow at random reads, shard by
shard with a buffer.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from tasks.artifacts.schedule import POSITIONS_MAX, Schedule, lay_period, rank_in_period, sources_to_train
from training.feistel import GOLDEN, Domain, Words, domain, mix, permute
from training.kernels import Drawing, draw


class Places(NamedTuple):
    """What positions read, each int64[B]. source: number in Order.sources; sequence: of its train split."""

    stage: np.ndarray
    source: np.ndarray
    epoch: np.ndarray
    sequence: np.ndarray


def source_key(seed: int, source: str) -> int:
    """64 bits for a source's permutations; it depends on the two names alone, never on a fingerprint."""
    return int.from_bytes(hashlib.sha256(f"{seed}\n{source}".encode()).digest()[:8], "little")


@dataclass(frozen=True)
class Shuffle:
    """How the sequences of a source are shuffled.

    "global": over the whole source. "shards": the shards in random order, then in windows of `buffer` sequences over
    shard after shard: reads go forward, and wander no further than a buffer; a position still reads the same sequence
    whoever asks, so that resuming is as exact as with "global". "none": as they lie.
    """

    how: Literal["global", "shards", "none"]
    buffer: int = 0

    def __post_init__(self) -> None:
        if self.how not in ("global", "shards", "none"):
            raise ValueError(f"shuffle is {self.how!r}; it must be 'global', 'shards' or 'none'")
        if self.how == "shards" and self.buffer < 1:
            raise ValueError(f"a shuffle of shards has a buffer of {self.buffer} sequences; give it 1,024 or more")

    def __str__(self) -> str:
        return f"shards:{self.buffer}" if self.how == "shards" else self.how


GLOBAL = Shuffle("global")


class Order:
    """The rule for one schedule. sources: the names that Places.source counts, sorted."""

    def __init__(self, schedule: Schedule, shuffle: Shuffle = GLOBAL) -> None:
        self.shuffle = shuffle
        self.sources = sources_to_train(schedule.sources)
        sizes = [schedule.sources[name]["train"].sequences for name in self.sources]
        self._sizes = np.array(sizes, np.int64)
        self._domain = domain(self._sizes)
        held = [[shard.sequences for shard in schedule.sources[name]["train"].shards] for name in self.sources]
        self._shards = [np.array(counts, np.int64) for counts in held]
        self._keys = np.array([source_key(schedule.seed, name) for name in self.sources], np.uint64)
        stages, names = schedule.stages, self.sources
        quotas = np.array([[stage.quotas.get(name, 0) for name in names] for stage in stages], np.int64)
        tables = np.stack([_lay(of_stage) for of_stage in quotas]).astype(np.int64)
        self._drawing = Drawing(
            starts=np.array([stage.start for stage in stages], np.int64),
            tables=tables,
            ranks=np.stack([rank_in_period(table) for table in tables]).astype(np.int64),
            cursors=np.array([[stage.cursors[name] for name in names] for stage in stages], np.int64),
            quotas=quotas,
            sizes=self._sizes,
        )

    def at(self, positions: np.ndarray) -> Places:
        """Where each position of int64[B] reads; raises ValueError for a position below 0 or beyond 2^62."""
        if len(positions) and not 0 <= positions.min() <= positions.max() < POSITIONS_MAX:
            bounds = f"[{positions.min()}, {positions.max()}]"
            raise ValueError(f"positions {bounds} must lie in [0, {POSITIONS_MAX})")
        stage, source, epoch, within = draw(positions, self._drawing)
        return Places(stage, source, epoch, self._shuffled(source, epoch, within))

    def _shuffled(self, source: np.ndarray, epoch: np.ndarray, within: np.ndarray) -> np.ndarray:
        """The sequence that stands at each place of its source's epoch, int64[B]."""
        if self.shuffle.how == "none":
            return within
        keys = _derived(self._keys[source], epoch)
        if self.shuffle.how == "global":
            on = Domain(*(field[source] for field in self._domain))
            return permute(within.astype(np.uint64), keys, on).astype(np.int64)
        found = np.empty_like(within)
        for key in np.unique(keys):
            these = np.flatnonzero(keys == key)
            found[these] = self._by_shards(self._shards[source[these[0]]], key, within[these])
        return found

    def _by_shards(self, counts: np.ndarray, key: np.uint64, within: np.ndarray) -> np.ndarray:
        """As `_shuffled`, for one epoch of a source of shards with `counts` sequences, int64 [shards]."""
        on = domain(np.full(len(counts), len(counts)))
        shards = permute(np.arange(len(counts), dtype=np.uint64), np.full(len(counts), key), on).astype(np.int64)
        ends = np.cumsum(counts[shards])
        window, place = np.divmod(within, self.shuffle.buffer)
        held = np.minimum(self.shuffle.buffer, ends[-1] - window * self.shuffle.buffer)
        place = permute(place.astype(np.uint64), _derived(key, window), domain(held)).astype(np.int64)
        line = window * self.shuffle.buffer + place
        number = np.searchsorted(ends, line, side="right")
        before = np.cumsum(counts) - counts
        found: np.ndarray = before[shards[number]] + line - (ends - counts[shards])[number]
        return found


def _derived(key: Any, number: np.ndarray) -> Words:
    """A key of its own for each number from 0 on, uint64[B]."""
    derived: Words = mix(key + (number.astype(np.uint64) + np.uint64(1)) * np.uint64(GOLDEN))
    return derived


def _lay(quotas: np.ndarray) -> np.ndarray:
    """The period of one stage over all sources: those without a quota take no part in the layout."""
    taking = np.flatnonzero(quotas)
    period: np.ndarray = taking[lay_period(quotas[taking].tolist())]
    return period
