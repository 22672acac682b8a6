"""The loader: one global order for any ranks, exact resume, no target lost or made up."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from tasks.artifacts.shards import ShardError
from tests.pin_maker import EOS, FINGERPRINT, lay_pin, small_pin
from training.dataset import PackedDataset, PositionBatches, keep
from training.examples import as_mapping
from training.loader import Loader, build_dataloader
from training.masks import IGNORED
from training.pin import Pin, open_pin

CASES = Path(__file__).parents[2] / "shared" / "cases"


@pytest.fixture(scope="module")
def pin(tmp_path_factory: pytest.TempPathFactory) -> Pin:
    return small_pin(tmp_path_factory.mktemp("project"), stages=[(0, {"a": 1, "b": 2}), (50, {"a": 1, "b": 1})])


def loader(pin: Pin, batch_size: int = 4, **changes) -> Loader:
    return build_dataloader(pin, batch_size=batch_size, **changes)


def rows(batches) -> list[tuple[int, ...]]:
    return [tuple(row) for batch in batches for row in batch.input_ids.tolist()]


def test_rows_are_the_sequences_that_the_order_names(pin: Pin) -> None:
    dataset = PackedDataset(pin)
    places = dataset.order.at(np.arange(200))
    got = rows(loader(pin, 8, steps=25))
    shards = {name: [np.fromfile(f"{path}.bin", "<u2") for path in pin.shards(name, "train")] for name in "ab"}
    whole = {
        name: [tuple(ids[at : at + 9].tolist()) for ids in shards[name] for at in range(0, len(ids) - 1, 8)]
        for name in "ab"
    }
    for row, source, sequence in zip(got, places.source, places.sequence, strict=True):
        expected = whole[dataset.order.sources[source]][sequence]
        assert row == (expected + (EOS,) * 9)[: len(row)]


def test_blocks_ahead_answer_as_single_positions_do(pin: Pin) -> None:
    """Steps from one call to the next: contiguous, another batch size, jumps, then those of a rank or a worker."""
    dataset = PackedDataset(pin, isolate_documents=True)
    calls = [(0, 4), (4, 4), (62, 8), (2, 5), (300, 40), (10_000, 5000), (9000, 1), (15_000, 0)]
    calls += [(at, 4) for at in range(0, 400, 4)] + [(at, 3) for at in range(7, 900, 12)] + [(at, 3) for at in (7, 19)]
    for first, count in calls:
        seen, alone = (
            dataset.__getitems__(asked) for asked in (range(first, first + count), [*range(first, first + count)])
        )
        assert torch.equal(seen.tokens_BT1, alone.tokens_BT1) and torch.equal(seen.begins, alone.begins)
        assert (seen.lengths_B is None) == (alone.lengths_B is None)
        assert seen.lengths_B is None or torch.equal(seen.lengths_B, alone.lengths_B)


def test_a_rank_locates_its_own_rows_alone(pin: Pin) -> None:
    """Of 16 ranks one would otherwise compute the order of the other 15 too."""
    dataset, asked = PackedDataset(pin), []
    numbers = dataset._numbers
    dataset._numbers = lambda positions: asked.append(positions) or numbers(positions)  # type: ignore[method-assign]
    for first in range(6, 64 * 400, 64):
        dataset.rows(first, 4)
    first, *following = asked  # nothing is known yet at the first call
    assert all(set((located - 6) % 64) == {0, 1, 2, 3} for located in following)
    assert len(following) < 10 and sum(map(len, asked)) < 4 * 4 * 400


def test_every_id_but_a_streams_first_is_a_target_once_an_epoch(tmp_path: Path) -> None:
    documents = [[*range(10 * n, 10 * n + 9), EOS] for n in range(1, 30)]
    lay_pin(tmp_path, {"a": {"train": [documents[:11], documents[11:]]}})
    pin = open_pin(FINGERPRINT, tmp_path)
    sequences = len(PackedDataset(pin))
    for labels in ("shifted", "model"):
        batches = list(build_dataloader(pin, batch_size=1, labels=labels, steps=sequences))
        targets = [batch.labels[0, 1:] if labels == "model" else batch.labels[0] for batch in batches]
        seen = sorted(int(t) for row in targets for t in row if t != IGNORED)
        expected = sorted([t for d in documents[:11] for t in d][1:] + [t for d in documents[11:] for t in d][1:])
        assert seen == expected


@pytest.mark.parametrize("isolate", [False, True])
@pytest.mark.parametrize("workers", [0, 1])
def test_ids_without_loss_are_no_target(tmp_path: Path, isolate: bool, workers: int) -> None:
    """Beside a source whose shards have no .loss, which learns all as before; in every convention and part."""
    chat, book = [10, 11, 12, 13, 14, 2, 20, 21, 22, 23, 2], [*range(30, 46), 2]
    learnt = [0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1]
    corpus = {"book": {"train": [[book]]}, "chat": {"train": [[chat[:6], chat[6:]]]}}
    lay_pin(tmp_path, corpus, losses={"chat": learnt})
    pin = open_pin(FINGERPRINT, tmp_path)
    expected = {id for id, own in zip(chat, learnt, strict=True) if own} | set(book[1:])
    for labels in ("shifted", "model"):
        batches = build_dataloader(pin, batch_size=4, labels=labels, steps=1, isolate_documents=isolate,
                                   num_workers=workers)  # fmt: skip
        batch = next(iter(batches))
        for own in (batch, batch.part(slice(0, 4))):
            targets = own.labels[:, 1:] if labels == "model" else own.labels
            assert set(targets.flatten().tolist()) - {IGNORED} == expected
        halves = [batch.part(slice(0, 2)).labels, batch.part(slice(2, 4)).labels]
        assert torch.equal(torch.cat(halves), batch.labels)
    examples = as_mapping(PackedDataset(pin).__getitems__(range(4)), "model", False)
    assert set(examples["labels"][:, 1:].flatten().tolist()) - {IGNORED} == expected
    (pin.folder / "shard/chat/train/shard_00000.loss").write_bytes(b"1")
    with pytest.raises(ShardError, match=r"shard_00000.loss: expected 11 bytes, found 1"):
        list(build_dataloader(pin, batch_size=4, steps=1))


def test_labels_at_borders(tmp_path: Path) -> None:
    """Case 29: EOS is always a target, padding and the next document's first token never are."""
    lay_pin(tmp_path, {"a": {"train": [[[10, 11, 12, 2], [20, 21, 2]]]}})
    pin = open_pin(FINGERPRINT, tmp_path)
    shifted = next(iter(loader(pin, 1, isolate_documents=True)))
    assert shifted.input_ids.tolist() == [[10, 11, 12, 2, 20, 21, 2, 2]]
    assert shifted.labels.tolist() == [[11, 12, 2, -100, 21, 2, -100, -100]]
    assert shifted.document_ids.tolist() == [[1, 1, 1, 1, 2, 2, 2, 0]]
    assert shifted.position_ids.tolist() == [[0, 1, 2, 3, 0, 1, 2, 3]]
    assert (shifted.cu_seqlens.tolist(), shifted.max_seqlen) == ([0, 4, 7], 4)
    model = next(iter(loader(pin, 1, isolate_documents=True, labels="model")))
    assert model.labels.tolist() == [[-100, 11, 12, 2, -100, 21, 2, -100, -100]]
    if CASES.exists():
        expected = json.loads((CASES / "29-labels-at-boundaries" / "expect.json").read_text())
        assert [shifted.input_ids[0].tolist(), shifted.labels[0].tolist()] == list(expected.values())
    together = next(iter(loader(pin, 1)))
    assert together.labels.tolist() == [[11, 12, 2, 20, 21, 2, -100, -100]]
    assert together.position_ids.tolist() == [[*range(8)]]
    assert together.document_ids.tolist() == [[1] * 7 + [0]]
    assert together.cu_seqlens.tolist() == [0, 7]


def test_documents_begin_where_the_index_says(pin: Pin) -> None:
    """Ids are unique but EOS, so the borders can be told from the ids; each row also begins a document."""
    for batch in loader(pin, 4, isolate_documents=True, steps=30):
        after_eos = torch.nn.functional.pad(batch.input_ids[:, :-1] == EOS, (1, 0), value=True)
        inside = batch.document_ids > 0
        assert torch.equal((batch.position_ids == 0) & inside, after_eos & inside)


@pytest.mark.parametrize("isolate", [False, True])
def test_ranks_share_one_global_order(pin: Pin, isolate: bool) -> None:
    whole = rows(loader(pin, 12, steps=20, isolate_documents=isolate))
    for world in (1, 2, 3, 4, 6, 12):
        loaders = [loader(pin, 12, steps=20, rank=r, world=world, isolate_documents=isolate) for r in range(world)]
        assert {len(one) for one in loaders} == {20}
        steps = zip(*loaders, strict=True)
        assert [row for step in steps for row in rows(step)] == whole


def test_a_world_that_does_not_divide_the_batch_is_refused(pin: Pin) -> None:
    with pytest.raises(ValueError, match="batch of 12 cannot be shared by 5 ranks; use 1, 2, 3, 4, 6, 12 ranks"):
        loader(pin, 12, world=5)
    with pytest.raises(ValueError, match="rank 2 of 2"):
        loader(pin, 12, rank=2, world=2)


def test_resume_is_exact_after_every_step(pin: Pin) -> None:
    """Case 34: also with other ranks; the state counts what was handed out, over more than two epochs."""
    steps = 3 * len(PackedDataset(pin)) // 4
    whole = rows(loader(pin, 4, steps=steps))
    for stop in range(steps + 1):
        first = loader(pin, 4, steps=steps)
        before = [batch for _, batch in zip(range(stop), first, strict=False)]
        state = json.loads(json.dumps(first.state_dict()))
        assert state == {"position": 4 * stop, "fingerprint": FINGERPRINT, "order": "global"}
        ranks = [loader(pin, 4, steps=steps, rank=rank, world=2) for rank in (0, 1)]
        for rank in ranks:
            rank.load_state_dict(state)
            assert len(rank) == steps - stop
        after = [row for step in zip(*ranks, strict=True) for row in rows(step)]
        assert rows(before) + after == whole


def test_resume_with_another_batch_size_goes_on_at_the_same_position(pin: Pin) -> None:
    whole = rows(loader(pin, 1, steps=120))
    first, other = loader(pin, 4, steps=30), loader(pin, 6, steps=20)
    assert rows(batch for _, batch in zip(range(11), first, strict=False)) == whole[:44]
    other.load_state_dict(first.state_dict())
    assert len(other) == 13 and other.state_dict()["position"] == 44
    assert rows(other)[: 120 - 44] == whole[44:]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_is_read_again_and_again_but_by_one_pass_at_a_time(pin: Pin, workers: int) -> None:
    """Two passes would fill the same pinned buffers, each with what the other has not yet copied."""
    one = loader(pin, 4, steps=6, num_workers=workers)
    whole = rows(one)
    assert list(one) == [] and len(one) == 0
    one.rewind()
    first = iter(one)
    assert rows([next(first)]) == whole[:4]
    second = iter(one)
    assert rows([next(second)]) == whole[4:8], "where the first had come to"
    with pytest.raises(RuntimeError, match=r"another pass .* had come to position 4; build a second loader"):
        next(first)
    assert rows(second) == whole[8:]
    others = [loader(pin, 4, steps=6, num_workers=workers) for _ in range(2)]
    for ours, theirs in zip(*others, strict=True):
        assert rows([ours]) == rows([theirs])


def test_a_state_of_other_data_is_refused(pin: Pin) -> None:
    state = {"position": 4, "fingerprint": "cd" * 32}
    one = loader(pin)
    with pytest.raises(ValueError, match=r"belongs to data cdcdcdcdcdcd, this loader reads abababababab.*allow"):
        one.load_state_dict(state)
    one.load_state_dict(state, allow_other_pin=True)
    assert one.state_dict()["position"] == 4


def test_validation_is_read_once_in_order_and_filled_with_rows_of_no_loss(pin: Pin) -> None:
    one = loader(pin, 4, split="validation")
    batches = list(one)
    assert len(batches) == 2
    assert [batch.input_ids.shape[0] for batch in batches] == [4, 4]
    ids = np.fromfile(f"{pin.shards('a', 'validation')[0]}.bin", "<u2").tolist()
    targets = [t for batch in batches for row in batch.labels.tolist() for t in row if t != IGNORED]
    assert targets == ids[1:]
    assert (batches[1].labels[1:] == IGNORED).all()
    assert len(one) == 0
    one.rewind()
    assert rows(one) == rows(batches)
    ranks = [loader(pin, 4, split="validation", rank=rank, world=4, isolate_documents=True) for rank in range(4)]
    assert [row for step in zip(*ranks, strict=True) for row in rows(step)] == rows(batches)


def test_a_split_without_sequences_is_refused(pin: Pin) -> None:
    with pytest.raises(ValueError, match="no test sequences"):
        loader(pin, split="test")


def test_a_run_without_end_has_no_length(pin: Pin) -> None:
    with pytest.raises(TypeError, match="no end"):
        len(loader(pin))
    assert len(rows(batch for _, batch in zip(range(100), loader(pin), strict=False))) == 400


def test_labels_are_named_never_guessed(pin: Pin) -> None:
    with pytest.raises(ValueError, match="'next'; it must be"):
        next(iter(loader(pin, labels="next")))


def test_wide_ids_come_through(tmp_path: Path) -> None:
    documents = [[70_000, 2**31 - 1, 65_535, EOS]]
    lay_pin(tmp_path / "wide", {"a": {"train": [documents]}}, vocab_size=2**31, dtype="int32")
    batch = next(iter(loader(open_pin(FINGERPRINT, tmp_path / "wide"), 1)))
    assert batch.input_ids[0, :4].tolist() == documents[0]
    lay_pin(tmp_path / "narrow", {"a": {"train": [[[65_535, 32_768, 40_000, EOS]]]}}, vocab_size=65_536)
    batch = next(iter(loader(open_pin(FINGERPRINT, tmp_path / "narrow"), 1)))
    assert batch.input_ids[0, :4].tolist() == [65_535, 32_768, 40_000, EOS]


def test_a_standard_dataloader_reads_the_same(pin: Pin) -> None:
    dataset = PackedDataset(pin)
    sampler = PositionBatches(4, 48, position=8, rank=1, world=2)
    own = loader(pin, 4, steps=12, rank=1, world=2)
    own.position = 8
    batches = list(DataLoader(dataset, batch_sampler=sampler, collate_fn=keep))
    assert len(sampler) == len(batches) == 10
    assert [tuple(row) for batch in batches for row in batch.tokens_BT1[:, :-1].long().tolist()] == rows(own)
    assert torch.equal(dataset[8].tokens_BT1, dataset.__getitems__([8]).tokens_BT1[0])
    again = pickle.loads(pickle.dumps(dataset))  # noqa: S301
    assert torch.equal(again.__getitems__([5, 3]).tokens_BT1, dataset.__getitems__([5, 3]).tokens_BT1)


@pytest.mark.gpu
def test_a_gpu_gets_what_a_cpu_gets(pin: Pin) -> None:
    """The ring under load: batches are read late, while later ones are gathered and copied."""
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    expected = list(loader(pin, 4, steps=60, isolate_documents=True))
    got = []
    for batch in loader(pin, 4, steps=60, isolate_documents=True, device="cuda"):
        torch.cuda._sleep(2_000_000)
        got.append(batch)
    for one, other in zip(expected, got, strict=True):
        assert torch.equal(one.input_ids, other.input_ids.cpu())
        assert torch.equal(one.labels, other.labels.cpu())
        assert torch.equal(one.position_ids, other.position_ids.cpu())
        assert torch.equal(one.document_ids, other.document_ids.cpu())
