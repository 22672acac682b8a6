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

FIRST_BLOCK, LARGEST_BLOCK = 16, 8192
"""Positions to compute ahead: at the start of a run, and once it is under way."""

ROUNDS = 6
SMALLEST_BITS = 4
WORD = (1 << 64) - 1

_GOLDEN = 0x9E3779B97F4A7C15
_STEPS = tuple(np.uint64(_GOLDEN * turn & WORD) for turn in range(ROUNDS))
_A, _B = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31 = np.uint64(27), np.uint64(30), np.uint64(31)

Words = np.ndarray[Any, np.dtype[np.uint64]]


class Places(NamedTuple):
    """What positions read, each int64[B]. source: number in Order.sources; sequence: of its train split."""

    stage: np.ndarray
    source: np.ndarray
    epoch: np.ndarray
    sequence: np.ndarray


class Domain(NamedTuple):
    """Sizes n and the shifts and masks of a Feistel network on the smallest 2^b >= n, each uint64[B]."""

    size: Words
    low_bits: Words
    high_mask: Words
    low_mask: Words


def domain(size: np.ndarray) -> Domain:
    """The network for [0, size), elementwise; size: int64[B], at least 1 and below 2^62."""
    distinct, back = np.unique(size, return_inverse=True)
    bits = np.array([max(SMALLEST_BITS, (int(n) - 1).bit_length()) for n in distinct], np.uint64)[back]
    high = bits // np.uint64(2)
    one = np.uint64(1)
    return Domain(size.astype(np.uint64), bits - high, (one << high) - one, (one << (bits - high)) - one)


def permute(index: Words, key: Words, on: Domain) -> Words:
    """A keyed bijection of [0, size), elementwise: uint64[B] -> uint64[B].

    An alternating Feistel network of six rounds (SplitMix64's finaliser as round function) on the smallest
    power of two that holds size, walked along its cycle until it is back below size (Black and Rogaway,
    CT-RSA 2002): two turns at most on average. 50 ns an index in blocks of 16,384, 90 of 4,096, 210 of 1,024 (one core,
    2026); numba's 20 would cost a second of compilation before the first batch.
    """
    return _walk(index, key, *on)


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
        self._period = schedule.period
        self._starts = np.array([stage.start for stage in schedule.stages], np.int64)
        stages, names = schedule.stages, self.sources
        self._quotas = np.array([[stage.quotas.get(name, 0) for name in names] for stage in stages], np.int64)
        self._cursors = np.array([[stage.cursors[name] for name in names] for stage in stages], np.int64)
        self._tables = np.stack([_lay(quotas) for quotas in self._quotas])
        self._ranks = np.stack([rank_in_period(table) for table in self._tables])

    def at(self, positions: np.ndarray) -> Places:
        """Where each position of int64[B] reads; raises ValueError for a position below 0 or beyond 2^62."""
        if len(positions) and not 0 <= positions.min() <= positions.max() < POSITIONS_MAX:
            bounds = f"[{positions.min()}, {positions.max()}]"
            raise ValueError(f"positions {bounds} must lie in [0, {POSITIONS_MAX})")
        stage = np.searchsorted(self._starts, positions, side="right") - 1
        periods, offset = np.divmod(positions - self._starts[stage], self._period)
        source = self._tables[stage, offset]
        drawn = self._cursors[stage, source] + periods * self._quotas[stage, source] + self._ranks[stage, offset]
        epoch, within = np.divmod(drawn, self._sizes[source])
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
    derived: Words = _mix(key + (number.astype(np.uint64) + np.uint64(1)) * np.uint64(_GOLDEN))
    return derived


def _lay(quotas: np.ndarray) -> np.ndarray:
    """The period of one stage over all sources: those without a quota take no part in the layout."""
    taking = np.flatnonzero(quotas)
    period: np.ndarray = taking[lay_period(quotas[taking].tolist())]
    return period


def _mix(word: Any) -> Any:
    """SplitMix64's finaliser (Steele, Lea and Flood, OOPSLA 2014)."""
    word = (word ^ (word >> _S30)) * _A
    word = (word ^ (word >> _S27)) * _B
    return word ^ (word >> _S31)


def _network(word: Any, key: Any, low_bits: Any, high_mask: Any, low_mask: Any) -> Any:
    high, low = word >> low_bits, word & low_mask
    for turn in range(0, ROUNDS, 2):
        high = high ^ (_mix(low + key + _STEPS[turn]) & high_mask)
        low = low ^ (_mix(high + key + _STEPS[turn + 1]) & low_mask)
    return (high << low_bits) | low


def _walk(index: Words, key: Words, size: Words, *shape: Words) -> Words:
    found: Words = _network(index, key, *shape)
    outside = np.flatnonzero(found >= size)
    while len(outside):
        found[outside] = _network(found[outside], key[outside], *(field[outside] for field in shape))
        outside = outside[found[outside] >= size[outside]]
    return found
