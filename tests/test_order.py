"""The order: a bijection in every epoch, and exact from any position."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.artifacts.schedule import Schedule, Shard, Split, lay_stages
from training.feistel import domain, permute
from training.order import Order, Shuffle, source_key


def permuted(size: int, indices: np.ndarray, key: int = 1) -> np.ndarray:
    count = len(indices)
    found = permute(indices.astype(np.uint64), np.full(count, key, np.uint64), domain(np.full(count, size)))
    assert found.dtype == np.uint64
    return found


def schedule(sizes: dict[str, int], stages: list, period: int = 64, seed: int = 3) -> Schedule:
    def split(n: int) -> dict[str, Split]:
        return {"train": Split("0" * 64, n, 8 * n, (Shard("shard_00000", n, 8 * n),))}

    return Schedule(
        8, 100, "uint16", 2, {}, seed, period,
        {name: split(n) for name, n in sizes.items()}, lay_stages(stages, period, list(sizes)),
    )  # fmt: skip


def read(order: Order, first: int, count: int) -> list[tuple[str, int, int]]:
    places = order.at(np.arange(first, first + count))
    return [(order.sources[s], int(e), int(i)) for s, e, i in zip(*places[1:], strict=True)]


@pytest.mark.parametrize("size", [*range(1, 40), 255, 256, 257, 1000, 4096, 65_537, 97_656])
def test_bijection(size: int) -> None:
    found = permuted(size, np.arange(size), key=size)
    assert np.array_equal(np.sort(found), np.arange(size))


@settings(max_examples=60)
@given(st.integers(1, 3000), st.integers(0, 2**64 - 1))
def test_bijection_for_any_size_and_key(size: int, key: int) -> None:
    assert np.array_equal(np.sort(permuted(size, np.arange(size), key)), np.arange(size))


@pytest.mark.parametrize("size", [488_281_250, 5_000_000_011, 2**40 + 1, 2**61 + 9])
def test_no_two_indices_meet_at_the_size_of_a_trillion_tokens(size: int) -> None:
    """A permutation in float64 lost 42% of the last 60 million of 488,281,250 indices elsewhere (numpy 2)."""
    random = np.random.default_rng(5)
    last = np.arange(size - 200_000, size)
    indices = np.unique(np.concatenate([last, random.integers(0, size, 200_000), np.arange(200_000)]))
    found = permuted(size, indices)
    assert len(np.unique(found)) == len(indices)
    assert int(found.max()) < size
    assert abs(float(found.mean()) / size - 0.5) < 0.01


def test_worked_out_values_never_change() -> None:
    """A pinned run's order is these integers; a change of them breaks every resume."""
    assert permuted(10, np.arange(10), key=1).tolist() == [7, 8, 0, 4, 5, 1, 9, 3, 2, 6]
    assert permuted(488_281_250, np.arange(3), key=7).tolist() == [27_858_565, 426_460_027, 409_243_703]
    assert source_key(3, "code") == 6_690_829_120_985_774_564
    order = Order(schedule({"code": 5, "web": 9}, [(0, {"code": 1, "web": 3})], period=4))
    first = [("web", 0, 4), ("code", 0, 4), ("web", 0, 3), ("web", 0, 5), ("web", 0, 1), ("code", 0, 1)]
    assert read(order, 0, 6) == first


def test_every_epoch_reads_every_sequence_once_and_in_another_order() -> None:
    order = Order(schedule({"a": 37, "b": 200, "c": 1}, [(0, {"a": 3, "b": 2, "c": 1})]))
    seen: dict[tuple[str, int], list[int]] = {}
    for source, epoch, index in read(order, 0, 3000):
        seen.setdefault((source, epoch), []).append(index)
    whole = {key: indices for key, indices in seen.items() if (key[0], key[1] + 1) in seen}
    sizes = {"a": 37, "b": 200, "c": 1}
    assert len(whole) > 40
    assert all(sorted(indices) == list(range(sizes[source])) for (source, _), indices in whole.items())
    assert len({tuple(indices) for (source, _), indices in whole.items() if source == "a"}) > 30


def test_first_places_are_spread_evenly_over_epochs() -> None:
    size, epochs = 11, 11_000
    order = Order(schedule({"a": size}, [(0, {"a": 1})]))
    firsts = order.at(np.arange(epochs) * size).sequence
    counts = np.bincount(firsts, minlength=size)
    chi_square = float(((counts - epochs / size) ** 2).sum() / (epochs / size))
    assert chi_square < 35  # 10 degrees of freedom: beyond it once in 10,000


def test_sources_come_in_their_shares_and_stage_borders_lose_nothing() -> None:
    sizes = {"a": 50, "b": 70, "c": 30}
    stages = [(0, {"a": 1, "b": 1, "c": 2}), (101, {"a": 5, "b": 3}), (450, {"a": 1, "b": 1, "c": 1})]
    rows = read(Order(schedule(sizes, stages, period=32)), 0, 900)
    for name, size in sizes.items():
        mine = [(epoch, index) for source, epoch, index in rows if source == name]
        for epoch in range(len(mine) // size):
            assert sorted(mine[epoch * size : (epoch + 1) * size]) == [(epoch, i) for i in range(size)]
    assert "c" not in {source for source, _, _ in rows[101:450]}
    assert Counter(source for source, _, _ in rows[101 : 101 + 320]) == {"a": 200, "b": 120}


def test_a_later_stage_leaves_earlier_positions_as_they_were() -> None:
    sizes = {"a": 50, "b": 70}
    one = Order(schedule(sizes, [(0, {"a": 1, "b": 1})]))
    two = Order(schedule(sizes, [(0, {"a": 1, "b": 1}), (77, {"a": 1, "b": 9})]))
    assert read(one, 0, 77) == read(two, 0, 77)
    assert read(one, 77, 50) != read(two, 77, 50)


def test_the_seed_and_the_name_change_the_order() -> None:
    rows = [read(Order(schedule({"a": 500}, [(0, {"a": 1})], seed=seed)), 0, 500) for seed in (1, 2)]
    assert rows[0] != rows[1]
    both = read(Order(schedule({"a": 500, "b": 500}, [(0, {"a": 1, "b": 1})])), 0, 1000)
    assert [r[2] for r in both if r[0] == "a"] != [r[2] for r in both if r[0] == "b"]


def test_positions_out_of_range_are_refused() -> None:
    order = Order(schedule({"a": 5}, [(0, {"a": 1})]))
    for position in (-1, 2**62):
        with pytest.raises(ValueError, match="must lie in"):
            order.at(np.array([position]))
    assert order.at(np.array([2**61])).epoch[0] == 2**61 // 5


def in_shards(counts: list[int], seed: int = 3) -> Schedule:
    whole = schedule({"a": sum(counts)}, [(0, {"a": 1})], seed=seed)
    shards = tuple(Shard(f"shard_{n:05d}", count, 8 * count) for n, count in enumerate(counts))
    split = Split("0" * 64, sum(counts), 8 * sum(counts), shards)
    return replace(whole, sources={"a": {"train": split}})


@pytest.mark.parametrize("buffer", [1, 7, 16, 1000])
@pytest.mark.parametrize("counts", [[7, 5, 5], [100, 1, 30, 64], [50]])
def test_shards_and_buffer_read_every_sequence_once_an_epoch(counts: list[int], buffer: int) -> None:
    order, size = Order(in_shards(counts), Shuffle("shards", buffer)), sum(counts)
    epochs = [order.at(np.arange(size) + size * epoch).sequence for epoch in range(6)]
    assert all(np.array_equal(np.sort(one), np.arange(size)) for one in epochs)
    assert len({tuple(one) for one in epochs}) > (1 if max(len(counts), buffer) > 1 else 0)
    assert all(order.at(np.array([n])).sequence[0] == epochs[n // size][n % size] for n in range(0, 3 * size, 5))
    other = Order(in_shards(counts, seed=4), Shuffle("shards", buffer))
    assert (size < 20 or buffer == 1) or not np.array_equal(other.at(np.arange(size)).sequence, epochs[0])


def test_shards_and_buffer_read_shard_after_shard_and_never_far_ahead() -> None:
    """What cold storage is asked for: at any time a buffer's worth, which lies in few shards."""
    counts, buffer = [400, 300, 500, 350], 100
    order = Order(in_shards(counts), Shuffle("shards", buffer))
    ends = np.cumsum(counts)
    sequence = order.at(np.arange(sum(counts))).sequence
    shards = np.searchsorted(ends, sequence, side="right")
    for window in range(0, sum(counts), buffer):
        assert len(np.unique(shards[window : window + buffer])) <= 2
    inside = sequence[:buffer]
    assert inside.max() - inside.min() < buffer and not np.array_equal(np.sort(inside), inside)
    assert len({tuple(np.unique(order.at(np.arange(100) + 1550 * epoch).sequence // 100)) for epoch in range(8)}) > 1


def test_without_shuffling_sequences_come_as_they_lie() -> None:
    order = Order(schedule({"a": 5, "b": 9}, [(0, {"a": 1, "b": 1})]), Shuffle("none"))
    rows = read(order, 0, 40)
    assert [index for source, _, index in rows if source == "a"] == [n % 5 for n in range(20)]
    assert [index for source, _, index in rows if source == "b"] == [n % 9 for n in range(20)]


def test_a_shuffle_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="shuffle is 'local'; it must be 'global', 'shards' or 'none'"):
        Shuffle("local")
    with pytest.raises(ValueError, match="buffer of 0 sequences; give it 1,024 or more"):
        Shuffle("shards")
