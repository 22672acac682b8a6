"""Resume: the very same sequence of documents, after any step, with any ranks, workers and number of resumes."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
import torch

from tests.pin_maker import FINGERPRINT, lay_pin, small_pin
from training import loader as loader_module
from training.loader import WorkerLoader, build_dataloader
from training.order import Shuffle
from training.pin import Pin, open_pin

BATCH, STEPS = 24, 6


@pytest.fixture(scope="module")
def pin(tmp_path_factory: pytest.TempPathFactory) -> Pin:
    return small_pin(tmp_path_factory.mktemp("project"), stages=[(0, {"a": 1, "b": 2}), (50, {"a": 1, "b": 1})])


@pytest.fixture
def any_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """More workers than this machine has cores."""
    monkeypatch.setattr(loader_module, "capped", lambda workers: workers)
    monkeypatch.setattr(torch._utils, "cpu_count", lambda: 64)


def open_loader(pin: Pin, workers: int = 0, steps: int = STEPS, batch: int = BATCH, **changes):
    return build_dataloader(pin, batch_size=batch, steps=steps, num_workers=workers, prefetch_factor=4, **changes)


def seen(batch) -> list[tuple]:
    """The ids of each row, and the documents they come from."""
    origins = [(one.source, one.shard, one.sequence, one.documents) for one in batch.origins()]
    return list(zip(map(tuple, batch.input_ids.tolist()), origins, strict=True))


def read(ranks: list, steps: int) -> list[tuple]:
    """The rows of so many global batches, rank after rank."""
    found = []
    for step in itertools.islice(zip(*ranks, strict=True), steps):
        for batch in step:
            found += seen(batch)
    return found


def go_on(pin: Pin, state: dict, world: int, workers: int = 0, **changes) -> list:
    ranks = [open_loader(pin, workers, rank=rank, world=world, **changes) for rank in range(world)]
    for one in ranks:
        one.load_state_dict(json.loads(json.dumps(state)))
    return ranks


def test_two_resumes_in_a_row_from_every_pair_of_steps(pin: Pin) -> None:
    """Also at the run's end, and past two epochs of both sources."""
    steps = 2 * len(open_loader(pin).dataset) // 8
    whole = read([open_loader(pin, steps=steps, batch=8)], steps)
    for stop in range(steps + 1):
        for more in (0, 1, 3):
            first = open_loader(pin, steps=steps, batch=8)
            found = read([first], stop)
            second = go_on(pin, first.state_dict(), 1, steps=steps, batch=8)
            assert second[0].state_dict() == first.state_dict()
            found += read(second, more)
            third = go_on(pin, second[0].state_dict(), 1, steps=steps, batch=8)
            found += read(third, steps)
            assert found == whole, (stop, more)


@pytest.mark.parametrize(("before", "after"), [*itertools.product((1, 2, 3, 4, 8), repeat=2)])
def test_any_number_of_ranks_goes_on_where_any_other_stopped(pin: Pin, before: int, after: int) -> None:
    whole = read([open_loader(pin)], STEPS)
    for stop in range(STEPS + 1):
        ranks = [open_loader(pin, rank=rank, world=before) for rank in range(before)]
        found = read(ranks, stop)
        states = [one.state_dict() for one in ranks]
        assert all(state == states[0] for state in states)
        assert found + read(go_on(pin, states[-1], after), STEPS) == whole


def test_workers_change_nothing_and_prefetched_batches_do_not_count(pin: Pin, any_workers: None) -> None:
    """Case 34: persistent workers, four batches ahead; one loader is wound back and forth while they work."""
    whole = read([open_loader(pin)], STEPS)
    for workers in (1, 3):
        one = open_loader(pin, workers)
        assert isinstance(one, WorkerLoader)
        for stop in range(STEPS + 1):
            one.rewind()
            found = read([one], stop)
            assert one.position == stop * BATCH
            assert found + read(go_on(pin, one.state_dict(), 2), STEPS) == whole
            assert found + read([one], STEPS) == whole
        assert one.position == STEPS * BATCH


SETS = [*itertools.product((1, 2, 3, 4, 8), (0, 1, 3))]


@pytest.mark.parametrize("at", range(len(SETS)))
def test_ranks_with_workers_go_on_where_others_stopped(pin: Pin, at: int, any_workers: None) -> None:
    """Every world size with every number of workers stops once and goes on once, at one step after another."""
    whole, stop = read([open_loader(pin)], STEPS), at % STEPS
    (before, workers), (after, others) = SETS[at], SETS[(4 * at + 7) % len(SETS)]
    ranks = [open_loader(pin, workers, rank=rank, world=before) for rank in range(before)]
    found = read(ranks, stop)
    state = ranks[-1].state_dict()
    del ranks
    assert found + read(go_on(pin, state, after, others), STEPS) == whole


@pytest.mark.parametrize("how", [Shuffle("shards", 4), Shuffle("none")])
def test_other_orders_resume_as_exactly(pin: Pin, how: Shuffle) -> None:
    whole = read([open_loader(pin, shuffle=how)], STEPS)
    assert whole != read([open_loader(pin)], STEPS)
    for stop in range(STEPS):
        first = open_loader(pin, shuffle=how)
        found = read([first], stop)
        assert found + read(go_on(pin, first.state_dict(), 3, shuffle=how), STEPS) == whole
    with pytest.raises(ValueError, match=r"a run shuffled '.*', this loader shuffles 'global'; build it with the same"):
        open_loader(pin).load_state_dict(first.state_dict())


def test_epochs_end_in_the_middle_of_a_batch_and_nothing_is_lost(tmp_path: Path) -> None:
    """Case 34's plan: 40 sequences; every batch size resumes at every step of two epochs."""
    lay_pin(tmp_path, {"a": {"train": [[[*range(10 * n, 10 * n + 7), 2] for n in range(1, 41)]]}})
    pin = open_pin(FINGERPRINT, tmp_path)
    sequences = len(open_loader(pin).dataset)
    whole = read([open_loader(pin, batch=1, steps=2 * sequences)], 2 * sequences)
    epochs = [sorted(whole[:sequences]), sorted(whole[sequences:])]
    assert epochs[0] == epochs[1] and whole[:sequences] != whole[sequences:]
    assert len({ids for ids, _ in whole}) == sequences
    for batch in (3, 4, 7):
        steps = 2 * sequences // batch
        for stop in range(steps + 1):
            first = open_loader(pin, batch=batch, steps=steps)
            found = read([first], stop)
            found += read(go_on(pin, first.state_dict(), 1, batch=batch, steps=steps), steps)
            assert found == whole[: steps * batch]


def test_order_is_the_same_for_any_workers_and_another_each_epoch(tmp_path: Path, any_workers: None) -> None:
    """Case 33; nobody sets an epoch, and the random state of torch is neither read nor changed."""
    lay_pin(tmp_path, {"a": {"train": [[[n] * 8 for n in range(3, 103)]]}})
    pin = open_pin(FINGERPRINT, tmp_path)
    torch.manual_seed(1)
    state = torch.get_rng_state()
    orders = [read([open_loader(pin, batch=20, steps=10)], 10)]
    assert torch.equal(torch.get_rng_state(), state)
    orders += [read([open_loader(pin, workers, batch=20, steps=10)], 10) for workers in (1, 4)]
    assert orders[0] == orders[1] == orders[2]
    torch.manual_seed(2)
    assert read([open_loader(pin, batch=20, steps=10)], 10) == orders[0]
    assert orders[0][:100] != orders[0][100:]
