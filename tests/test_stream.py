"""Whole batches for a plain DataLoader: the order of the run for any ranks and workers, exact resume, memory of their
own."""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from tests.pin_maker import EOS, FINGERPRINT, lay_pin, small_pin
from training import stream as stream_module
from training.dataset import PackedDataset, PositionBatches, keep
from training.examples import AsMapping
from training.loader import build_dataloader
from training.pin import Pin, open_pin
from training.stream import BatchStream

STEPS, BATCH = 40, 12


@pytest.fixture(scope="module")
def pin(tmp_path_factory: pytest.TempPathFactory) -> Pin:
    return small_pin(tmp_path_factory.mktemp("project"), stages=[(0, {"a": 1, "b": 2}), (50, {"a": 1, "b": 1})])


@pytest.fixture(params=["one batch a piece", "pieces within a block", "as it is"])
def pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of nine ids of two bytes: a block of 16 rows and more, cut after each batch, after some, or never."""
    held = {"one batch a piece": 1, "pieces within a block": 5 * BATCH * 18}.get(request.param)
    if held:
        monkeypatch.setattr(stream_module, "BLOCK_BYTES", held)


def plain(stream: BatchStream, workers: int = 0, **how) -> DataLoader:
    return DataLoader(stream, batch_size=None, collate_fn=keep, num_workers=workers, **how)


def rows(batches) -> list[tuple]:
    return [tuple(row) for batch in batches for row in batch.tokens_BT1.tolist()]


def by_position(pin: Pin, positions: range, **how) -> list[tuple]:
    return [tuple(row) for row in PackedDataset(pin, **how).__getitems__([*positions]).tokens_BT1.tolist()]


def test_batches_are_the_rows_at_their_positions(pin: Pin, pieces: None) -> None:
    """As the map-style dataset gives them one by one, with every part of a batch, and the position behind each."""
    for isolate in (False, True):
        dataset = PackedDataset(pin, isolate_documents=isolate)
        batches = list(plain(BatchStream(dataset, BATCH, STEPS * BATCH)))
        assert [batch.position for batch in batches] == [*range(BATCH, STEPS * BATCH + 1, BATCH)]
        for batch in batches:
            single = dataset.__getitems__([*range(batch.position - BATCH, batch.position)])
            assert torch.equal(batch.tokens_BT1, single.tokens_BT1)
            for own, other in zip(batch[1:4], single[1:4], strict=True):
                assert own is other is None or torch.equal(own, other)
        assert any(batch.lengths_B is not None for batch in batches)


def test_ids_without_loss_are_told(tmp_path: Path, pieces: None) -> None:
    chat, learnt = [[10, 11, 12, 13, 14, 2], [20, 21, 22, 23, 2]], [0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1]
    lay_pin(tmp_path, {"book": {"train": [[[*range(30, 46), 2]]]}, "chat": {"train": [chat]}}, losses={"chat": learnt})
    dataset = PackedDataset(open_pin(FINGERPRINT, tmp_path))
    for batch in BatchStream(dataset, 4, 80):
        assert torch.equal(batch.unlearnt, dataset.__getitems__([*range(batch.position - 4, batch.position)]).unlearnt)
    own = next(iter(DataLoader(BatchStream(dataset, 4), batch_size=None, collate_fn=AsMapping("shifted", False))))
    assert torch.equal(own["labels"], next(iter(build_dataloader(dataset.pin, batch_size=4))).labels)


def test_a_batch_stays_as_it_was_when_others_are_drawn_and_gone(pin: Pin, pieces: None) -> None:
    whole = by_position(pin, range(STEPS * BATCH))
    kept = list(plain(BatchStream(PackedDataset(pin), BATCH, STEPS * BATCH)))
    assert rows(kept) == whole
    kept[3].tokens_BT1.fill_(7)
    assert rows(kept[:3] + kept[4:]) == whole[: 3 * BATCH] + whole[4 * BATCH :]
    second = [batch.tokens_BT1 for batch in BatchStream(PackedDataset(pin), BATCH, STEPS * BATCH)][1]
    assert [tuple(row) for row in second.tolist()] == whole[BATCH : 2 * BATCH]


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_ranks_and_workers_read_one_order_and_go_on_from_any_batch(pin: Pin, workers: int, monkeypatch) -> None:
    """One stream and its persistent workers are wound to each position; what was prefetched does not count."""
    monkeypatch.setattr(torch._utils, "cpu_count", lambda: 64)
    monkeypatch.setattr(stream_module, "BLOCK_BYTES", 2 * BATCH * 18)
    steps = 7
    whole = by_position(pin, range(steps * BATCH))
    how = {"prefetch_factor": 4, "persistent_workers": True} if workers else {}
    for world in (1, 2, 4):
        streams = [BatchStream(PackedDataset(pin), BATCH, steps * BATCH, rank=r, world=world) for r in range(world)]
        loaders = [plain(one, workers, **how) for one in streams]
        for stop in range(steps + 1) if world < 4 else (0, 3, steps):
            for one in streams:
                one.position = 0
            before = [*itertools.islice(zip(*loaders, strict=True), stop)]
            for one in streams:
                one.position = before[-1][-1].position if before else 0
            assert {len(one) for one in streams} == {steps - stop}
            after = [*zip(*loaders, strict=True)]
            assert [row for step in (*before, *after) for row in rows(step)] == whole, (world, stop)


@pytest.mark.parametrize("batch", [1, 2, 3, 4, 5, 50])
def test_a_fixed_split_is_read_once_and_its_last_batch_is_filled(pin: Pin, batch: int) -> None:
    """Five sequences; also a batch that is larger than all of them, and a rank that has none of its own."""
    dataset = PackedDataset(pin, "validation", isolate_documents=True)
    expected = by_position(pin, range(5), split="validation")
    for workers in (0, 2) if batch == 2 else (0,):
        stream = BatchStream(dataset, batch, dataset.sequences)
        batches = list(plain(stream, workers))
        found, steps = rows(batches), -(-5 // batch)
        assert len(batches) == len(plain(stream)) == steps and found[:5] == expected
        assert found[5:] == [(EOS,) * 9] * (steps * batch - 5)
        single = PackedDataset(pin, "validation")
        held = [9 if single[at].lengths_B is None else int(single[at].lengths_B) for at in range(5)]
        told = [[9] * batch if one.lengths_B is None else one.lengths_B.tolist() for one in batches]
        assert [length for lengths in told for length in lengths] == held + [0] * (steps * batch - 5)
    if batch == 50:
        last = list(BatchStream(dataset, 50, 5, rank=9, world=10))
        assert rows(last) == [(EOS,) * 9] * 5 and last[0].lengths_B.tolist() == [0] * 5


def test_a_fixed_split_has_an_end_of_its_own(pin: Pin) -> None:
    dataset = PackedDataset(pin, "validation")
    for last in (None, 5, 100):
        assert [len(list(plain(BatchStream(dataset, batch, last)))) for batch in (1, 2, 5)] == [5, 3, 1]


def test_a_state_goes_between_stream_and_loader_and_to_no_other_data(pin: Pin) -> None:
    whole = by_position(pin, range(60))
    stream, loader = BatchStream(PackedDataset(pin), 6), build_dataloader(pin, batch_size=6, steps=10, labels="model")
    before = [*itertools.islice(stream, 4)]
    state = stream.state_dict(before[-1])
    loader.load_state_dict(state)
    assert [tuple(row) for batch in loader for row in batch.input_ids.tolist()] == whole[24:]
    stream.load_state_dict({**state, "position": 30})
    assert rows(itertools.islice(stream, 5)) == whole[30:]
    for wrong, told in (({"fingerprint": "cd" * 32}, "data cdcdcdcdcdcd"), ({"order": "none"}, "shuffled 'none'")):
        with pytest.raises(ValueError, match=f"the state belongs to .*{told}"):
            stream.load_state_dict({**state, **wrong})


def test_a_stream_begins_anew_and_runs_without_end(pin: Pin) -> None:
    stream = BatchStream(PackedDataset(pin), 5, position=35)
    first, second = (rows(itertools.islice(plain(stream), 300)) for _ in range(2))
    assert first == second == by_position(pin, range(35, 1535)) and stream.position == 35
    with pytest.raises(TypeError, match="no end"):
        len(stream)
    again = pickle.loads(pickle.dumps(stream))  # noqa: S301
    assert again.position == 35 and rows(itertools.islice(again, 3)) == first[:15]
    with pytest.raises(ValueError, match="batch of 5 cannot be shared by 2 ranks; use 1, 5 ranks"):
        BatchStream(PackedDataset(pin), 5, world=2)


def test_a_rank_locates_its_own_rows_alone(pin: Pin) -> None:
    dataset, asked = PackedDataset(pin), []
    numbers = dataset._numbers
    dataset._numbers = lambda positions: asked.append(positions) or numbers(positions)  # type: ignore[method-assign]
    read = list(itertools.islice(BatchStream(dataset, 64, rank=3, world=16), 400))
    assert all(set((located % 64).tolist()) == {12, 13, 14, 15} for located in asked)
    assert len(read) == 400 and sum(map(len, asked)) < 4 * 4 * 400


def test_the_map_style_dataset_gives_the_same(pin: Pin) -> None:
    dataset = PackedDataset(pin)
    mapped = DataLoader(dataset, batch_sampler=PositionBatches(4, 48), collate_fn=keep)
    assert np.array_equal(rows(mapped), rows(plain(BatchStream(dataset, 4, 48))))
