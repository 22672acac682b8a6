"""Cases 32 and 34 by their plans, number by number: ranks of uneven shards, and a stop at every step."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import torch

from tests.pin_maker import FINGERPRINT, lay_pin
from training import loader as loader_module
from training.loader import Loader, build_dataloader
from training.pin import Pin, open_pin

SHARDS, OWN_BATCH = (7, 5, 5), 2


@pytest.fixture(autouse=True)
def any_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """More workers than this machine has cores."""
    monkeypatch.setattr(loader_module, "capped", lambda workers: workers)
    monkeypatch.setattr(torch._utils, "cpu_count", lambda: 64)


@pytest.fixture
def uneven(tmp_path: Path) -> Pin:
    ids = itertools.count(3)
    shards = [[[next(ids) for _ in range(8 * size)] + [2]] for size in SHARDS]
    held = [[[next(ids) for _ in range(8 * size)] + [2]] for size in SHARDS]
    lay_pin(tmp_path, {"a": {"train": shards, "validation": held}})
    return open_pin(FINGERPRINT, tmp_path)


def rows(batch) -> list[tuple]:
    return [
        tuple(row) for row, real in zip(batch.tokens_BT1.tolist(), batch.attention_mask.any(1), strict=True) if real
    ]


@pytest.mark.parametrize("workers", [0, 1, 4])
@pytest.mark.parametrize("world", [1, 2, 4])
@pytest.mark.parametrize("split", ["train", "validation"])
def test_uneven_shards_give_each_rank_as_many_steps(uneven: Pin, world: int, workers: int, split: str) -> None:
    """Known before iterating; no row twice, and none missing but a tail below world * batch, which validation keeps."""
    size, whole = OWN_BATCH * world, sum(SHARDS)
    how = {"steps": whole // size} if split == "train" else {"split": split}
    ranks: list[Loader] = [
        build_dataloader(uneven, batch_size=size, rank=rank, world=world, num_workers=workers, **how)
        for rank in range(world)
    ]
    steps = {len(one) for one in ranks}
    read = [[rows(batch) for batch in one] for one in ranks]
    assert {len(batches) for batches in read} == steps == {whole // size if split == "train" else -(-whole // size)}
    found = [row for batches in read for batch in batches for row in batch]
    assert len(set(found)) == len(found)
    assert 0 <= whole - len(found) < size if split == "train" else len(found) == whole


def test_a_batch_larger_than_the_epoch_reads_on_into_the_next(uneven: Pin) -> None:
    whole = [row for batch in build_dataloader(uneven, batch_size=1, steps=50) for row in rows(batch)]
    assert rows(next(iter(build_dataloader(uneven, batch_size=50)))) == whole
    assert {whole[:34].count(row) for row in whole} == {2}


@pytest.mark.parametrize("workers", [0, 2])
def test_every_stop_in_two_epochs_goes_on_with_the_same_documents(tmp_path: Path, workers: int) -> None:
    """40 documents packed two to one, batch 4, prefetch 4; gone on with as many ranks, and with half of them."""
    documents = [[10 * n + place for place in range(4)] for n in range(1, 41)]
    lay_pin(tmp_path, {"a": {"train": [documents]}})
    pin = open_pin(FINGERPRINT, tmp_path)
    how = {"batch_size": 4, "steps": 2 * 20 // 4, "num_workers": workers, "prefetch_factor": 4}
    loaders = {world: [build_dataloader(pin, rank=r, world=world, **how) for r in range(world)] for world in (1, 2)}

    def read(world: int, steps: int) -> list[tuple]:
        taken = itertools.islice(zip(*loaders[world], strict=True), steps)
        return [row for step in taken for batch in step for row in map(tuple, batch.input_ids.tolist())]

    whole = read(1, 10)
    assert len(set(whole[:20])) == 20 and sorted(whole[:20]) == sorted(whole[20:]) and whole[:20] != whole[20:]
    for stop, (before, after) in itertools.product(range(11), ((1, 1), (2, 2), (2, 1))):
        for one in loaders[before]:
            one.rewind()
        consumed = read(before, stop)
        states = [one.state_dict() for one in loaders[before]]
        assert {state["position"] for state in states} == {4 * stop}, "what was prefetched does not count"
        for one in loaders[after]:
            one.load_state_dict(states[0])
        assert consumed + read(after, 10) == whole, (stop, before, after)
