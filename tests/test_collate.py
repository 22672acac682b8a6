"""Collating: padded no further than needed, by position, all rows in step; batches of like length."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from training.collate import BUCKETS, LLMDataCollator
from training.grouping import LengthGroupedBatches
from training.masks import attention_mask
from training.model import GPT

PAD = 2


def plain(batch: dict[str, torch.Tensor]) -> dict[str, list[list[int]]]:
    return {name: tensor.tolist() for name, tensor in batch.items()}


def test_left_padding_by_hand() -> None:
    """Failure 25: positions follow the mask; an EOS equal to the pad id stays a target."""
    batch = LLMDataCollator(PAD)([[5, 6, 2], [7]])
    assert {tensor.dtype for tensor in batch.values()} == {torch.int64}
    assert plain(batch) == {
        "input_ids": [[5, 6, 2], [2, 2, 7]],
        "labels": [[-100, 6, 2], [-100, -100, -100]],
        "attention_mask": [[1, 1, 1], [0, 0, 1]],
        "position_ids": [[0, 1, 2], [1, 1, 0]],
    }


def test_right_padding_and_shifted_labels_by_hand() -> None:
    batch = LLMDataCollator(0, padding_side="right", labels="shifted", first_position=2)([[5, 6, 2], [7]])
    assert plain(batch) == {
        "input_ids": [[5, 6, 2], [7, 0, 0]],
        "labels": [[6, 2, -100], [-100, -100, -100]],
        "attention_mask": [[1, 1, 1], [1, 0, 0]],
        "position_ids": [[2, 3, 4], [2, 3, 3]],
    }


def test_what_a_sample_brings_stays_with_its_ids() -> None:
    """A chat's loss mask, and the positions of two packed documents."""
    chat = {"input_ids": [1, 8, 9, 2], "labels": [-100, -100, 9, 2]}
    packed = {"input_ids": torch.tensor([4, 5, 6]), "position_ids": np.array([0, 1, 0]), "labels": None}
    batch = plain(LLMDataCollator(PAD)([chat, packed]))
    assert batch["labels"] == [[-100, -100, 9, 2], [-100, -100, 5, 6]]
    assert batch["position_ids"] == [[0, 1, 2, 3], [1, 0, 1, 0]]


def test_padding_that_a_sample_brings_is_taken_off() -> None:
    sample = {"input_ids": [0, 0, 5, 6, 0], "attention_mask": torch.tensor([0, 0, 1, 1, 0]).bool()}
    batch = plain(LLMDataCollator(0, padding_side="right")([sample, [9, 9, 9]]))
    assert batch["input_ids"] == [[5, 6, 0], [9, 9, 9]]
    assert batch["labels"] == [[-100, 6, -100], [-100, 9, 9]]
    assert batch["attention_mask"] == [[1, 1, 0], [1, 1, 1]]
    with pytest.raises(ValueError, match=r"sample 1 masks an id between others; .* label it -100"):
        LLMDataCollator(0)([[1], {"input_ids": [1, 2, 3], "attention_mask": [1, 0, 1]}])


@pytest.mark.filterwarnings("ignore:a batch of")
def test_a_sample_of_nothing_is_a_row_of_padding() -> None:
    for nothing in ([], {"input_ids": [7, 7], "attention_mask": [0, 0]}):
        for labels in ("model", "shifted"):
            batch = plain(LLMDataCollator(PAD, labels=labels)([nothing, [5]]))
            assert [rows[0] for rows in batch.values()] == [[PAD], [-100], [0], [1]]
    assert plain(LLMDataCollator(PAD)([[]]))["input_ids"] == [[PAD]]


@pytest.mark.filterwarnings("ignore:a batch of")
@pytest.mark.parametrize(
    ("length", "options", "width"),
    [
        (1, {"buckets": BUCKETS}, 256),
        (256, {"buckets": BUCKETS}, 256),
        (257, {"buckets": BUCKETS}, 512),
        (2048, {"buckets": BUCKETS}, 2048),
        (300, {"buckets": BUCKETS, "max_length": 400}, 400),
        (9, {"multiple_of": 8}, 16),
        (8, {"multiple_of": 8}, 8),
        (9, {}, 9),
    ],
)
def test_widths(length: int, options: dict, width: int) -> None:
    assert LLMDataCollator(PAD, **options)([[1] * length])["input_ids"].shape == (1, width)


def test_too_long_for_every_bucket_is_told_with_the_mend() -> None:
    with pytest.raises(ValueError, match="2049 ids is longer than the widest bucket, 2048; give max_length=2048"):
        LLMDataCollator(PAD, buckets=BUCKETS)([[1] * 2049])


def test_cutting_is_counted_and_told_once() -> None:
    """Failure 28: nothing is lost in silence."""
    collate = LLMDataCollator(PAD, max_length=3)
    with pytest.warns(UserWarning, match="a sample of 5 ids is cut to max_length=3"):
        assert plain(collate([[1, 2, 3, 4, 5], [6, 7]]))["input_ids"] == [[1, 2, 3], [2, 6, 7]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        collate([[1, 2, 3, 4]])
    assert (collate.samples_cut, collate.tokens_cut) == (2, 3)
    with pytest.raises(ValueError, match="sample 1 has 4 ids, max_length is 3"):
        LLMDataCollator(PAD, max_length=3, keep="all")([[1], [1, 2, 3, 4]])


@pytest.mark.filterwarnings("ignore:a sample of")
def test_a_batch_without_labels_is_told_once() -> None:
    """Failure 30: cutting took all answers away, and a mean over no target is NaN."""
    chat = {"input_ids": [1, 8, 9, 2], "labels": [-100, -100, 9, 2]}
    collate = LLMDataCollator(PAD, max_length=2)
    with pytest.warns(UserWarning, match="a batch of 2 samples has no label"):
        assert (collate([chat, chat])["labels"] == -100).all()
    collate([chat])
    LLMDataCollator(PAD)([chat])


@pytest.mark.filterwarnings("ignore:a sample of")
def test_keeping_the_end_lets_the_cut_document_begin_anew() -> None:
    collate = LLMDataCollator(PAD, max_length=3, keep="end")
    packed = {"input_ids": [1, 2, 3, 4, 5], "position_ids": [0, 1, 2, 3, 0]}
    batch = plain(collate([[1, 2, 3, 4, 5], packed]))
    assert batch["input_ids"] == [[3, 4, 5]] * 2 and batch["labels"] == [[-100, 4, 5]] * 2
    assert batch["position_ids"] == [[0, 1, 2], [0, 1, 0]]
    assert plain(LLMDataCollator(PAD, max_length=3)([packed]))["position_ids"] == [[0, 1, 2]]


@pytest.mark.filterwarnings("ignore:a sample of", "ignore:a batch of")
def test_a_cut_sample_keeps_the_target_that_follows_it() -> None:
    assert plain(LLMDataCollator(PAD, labels="shifted", max_length=2)([[1, 2, 3]]))["labels"] == [[2, 3]]


class Tokenizer:
    pad_token_id = None


class Piece:
    def pad_id(self) -> int:
        return -1


@pytest.mark.parametrize("given_id", [None, -1, Tokenizer(), Piece()])
def test_a_pad_id_of_none_or_minus_one_is_refused_with_the_mend(given_id) -> None:
    with pytest.raises(ValueError, match=r"pad id is (None|-1), no id of a vocabulary; pass one"):
        LLMDataCollator(given_id)


def test_a_tokenizers_pad_id_is_taken() -> None:
    tokenizer = Tokenizer()
    tokenizer.pad_token_id = 7
    assert LLMDataCollator(tokenizer).pad_id == 7


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"padding_side": "both"}, "padding_side is 'both'"),
        ({"keep": "middle"}, "keep 'middle'"),
        ({"labels": "next"}, "labels is 'next'"),
        ({"buckets": (8,), "multiple_of": 8}, "both given"),
        ({"multiple_of": 8, "max_length": 20}, "max_length=20 is no multiple of 8; take 16 or 24"),
        ({"buckets": (0, 8)}, "1 or more"),
    ],
)
def test_options_that_contradict_are_refused(options: dict, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        LLMDataCollator(PAD, **options)


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        ([], "no samples"),
        ([[1], {"labels": [1]}], r"sample 1 has \{'labels'"),
        ([{"text": "a"}], "sample 0 has no input_ids"),
        ([[[1, 2]]], r"\(1, 2\)"),
        ([{"input_ids": [1, 2], "labels": [1]}], r"sample 0 is out of step: .*\(2,\).*\(1,\)"),
        ([["a", "b"]], "not ids; tokenize it first"),
        ([[0.5]], "float64"),
    ],
)
def test_samples_that_cannot_be_collated_are_named(samples: list, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        LLMDataCollator(PAD)(samples)


@pytest.mark.filterwarnings("ignore:a batch of")
@given(
    samples=st.lists(st.lists(st.integers(0, 50), max_size=40), min_size=1, max_size=6),
    side=st.sampled_from(["left", "right"]),
    labels=st.sampled_from(["model", "shifted"]),
    width=st.sampled_from([{}, {"multiple_of": 16}, {"buckets": (8, 64)}]),
)
def test_nothing_is_lost_and_nothing_out_of_step(samples, side, labels, width) -> None:
    batch = LLMDataCollator(PAD, padding_side=side, labels=labels, **width)(samples)
    assert len({tensor.shape for tensor in batch.values()}) == 1
    for row, sample in enumerate(samples):
        used = batch["attention_mask"][row].bool()
        assert batch["input_ids"][row][used].tolist() == sample
        assert batch["position_ids"][row][used].tolist() == list(range(len(sample)))
        target = ([-100, *sample[1:]] if labels == "model" else [*sample[1:], -100])[: len(sample)]
        assert batch["labels"][row][used].tolist() == target
        assert (batch["labels"][row][~used] == -100).all()
        assert (batch["position_ids"][row][~used] == 1).all()
        edge = used if side == "left" else used.flip(0)
        assert used.all() or not sample or (not edge[0] and edge[-1])


class Absolute(torch.nn.Module):
    """Positions are places in a table: what rotary ones forgive, all of them shifted alike, changes its logits."""

    def __init__(self) -> None:
        super().__init__()
        self.of_ids, self.of_places = torch.nn.Embedding(50, 16), torch.nn.Embedding(32, 16)

    def forward(self, ids, positions=None, mask=None):
        positions = torch.arange(ids.shape[1]).expand(ids.shape) if positions is None else positions
        seen = torch.ones(ids.shape[1], ids.shape[1]).tril().bool() if mask is None else mask[:, 0]
        return seen.float() @ (self.of_ids(ids) + self.of_places(positions))


@pytest.mark.parametrize("made", [lambda: GPT(50, layers=2, heads=2, width=16), Absolute])
def test_logits_do_not_depend_on_padding(made) -> None:
    """Failure 25: left, right and alone give a sample the same logits."""
    torch.manual_seed(0)
    model = made().eval()
    samples = [[5, 6, 7, 8, 9], [10, 11]]
    alone = [model(torch.tensor([sample])) for sample in samples]
    for side in ("left", "right"):
        batch = LLMDataCollator(PAD, padding_side=side, multiple_of=8)(samples)
        seen = batch["attention_mask"].bool()
        mask = attention_mask(2 * seen.long())
        assert mask.any(3).all(), "a row of the softmax would be empty"
        logits = model(batch["input_ids"], batch["position_ids"], mask)
        for row, expected in enumerate(alone):
            assert torch.allclose(logits[row][seen[row]], expected[0], atol=1e-5)


def lengths_of(count: int) -> np.ndarray:
    return np.random.default_rng(3).lognormal(5, 1, count).astype(int) + 1


def test_each_sample_comes_once_an_epoch_and_epochs_differ() -> None:
    batches = LengthGroupedBatches(lengths_of(103), 10, seed=1, window=4)
    epochs = [list(batches) for _ in range(3)]
    assert [len(epoch) for epoch in epochs] == [11, 11, 11] and batches.epoch == 3
    for epoch in epochs:
        assert sorted(number for batch in epoch for number in batch) == list(range(103))
        assert [len(batch) for batch in epoch] == [10] * 10 + [3]
    assert epochs[0] != epochs[1] != epochs[2]
    again = LengthGroupedBatches(lengths_of(103), 10, seed=1, window=4)
    assert [list(again) for _ in range(3)] == epochs
    other = LengthGroupedBatches(lengths_of(103), 10, seed=2, window=4)
    assert list(other) != epochs[0]


def test_the_order_is_the_same_on_every_machine() -> None:
    """The batches by hand: lengths 6 5, 4 3, 2 1. Their turn is written down: another shuffle would be seen."""
    assert list(LengthGroupedBatches([3, 1, 2, 5, 4, 6], 2, seed=7, window=3)) == [[2, 1], [5, 3], [4, 0]]


def test_grouping_saves_padding() -> None:
    lengths = lengths_of(5000)

    def share_of_ids(batches) -> float:
        return lengths.sum() / sum(lengths[batch].max() * len(batch) for batch in batches)

    grouped = share_of_ids(LengthGroupedBatches(lengths, 16, seed=1))
    alone = share_of_ids(LengthGroupedBatches(lengths, 16, seed=1, window=1))
    assert grouped > 0.8 > 0.3 > alone


def test_resume_within_an_epoch_then_whole_epochs() -> None:
    """Failures 3 and 12: after a resumed epoch comes a whole one, in another order."""
    whole = LengthGroupedBatches(lengths_of(50), 5, seed=1, window=3)
    epochs = [list(whole) for _ in range(3)]
    for first in range(11):
        one = LengthGroupedBatches(lengths_of(50), 5, seed=1, window=3)
        one.set_epoch(1, first)
        assert len(one) == 10 - first
        assert list(one) == epochs[1][first:]
        assert len(one) == 10 and list(one) == epochs[2]


def test_a_pass_that_was_broken_off_is_begun_again() -> None:
    batches = LengthGroupedBatches(lengths_of(50), 5, seed=1)
    first = next(iter(batches))
    assert next(iter(batches)) == first and batches.epoch == 0


def test_ranks_share_each_global_batch() -> None:
    whole = list(LengthGroupedBatches(lengths_of(60), 12, seed=1))
    for world in (2, 3, 4):
        ranks = [list(LengthGroupedBatches(lengths_of(60), 12, seed=1, rank=r, world=world)) for r in range(world)]
        assert [sorted(number for share in step for number in share) for step in zip(*ranks, strict=True)] == [
            sorted(batch) for batch in whole
        ]


def test_grouping_refuses_what_cannot_be() -> None:
    with pytest.raises(ValueError, match="3 samples make no batch of 4"):
        LengthGroupedBatches([1, 2, 3], 4, seed=1, drop_last=True)
    with pytest.raises(ValueError, match="last batch would hold 2 of 4 samples, no equal share for 2 ranks"):
        LengthGroupedBatches([1] * 10, 4, seed=1, world=2)
    with pytest.raises(ValueError, match="cannot be shared by 3 ranks"):
        LengthGroupedBatches([1] * 12, 4, seed=1, world=3)
    with pytest.raises(ValueError, match="window is 0"):
        LengthGroupedBatches([1] * 12, 4, seed=1, window=0)
    with pytest.raises(ValueError, match="epoch 0, batch 4 is not there; an epoch has 3"):
        LengthGroupedBatches([1] * 12, 4, seed=1).set_epoch(0, 4)


def test_both_under_a_dataloader_with_workers() -> None:
    samples = [[number % 40 + 3] * int(length) for number, length in enumerate(lengths_of(40) % 30 + 1)]
    batches = LengthGroupedBatches([len(sample) for sample in samples], 8, seed=1)
    loader = DataLoader(samples, batch_sampler=batches, collate_fn=LLMDataCollator(PAD), num_workers=2)
    seen = [row[mask.bool()].tolist() for batch in loader for row, mask in zip(batch["input_ids"],
            batch["attention_mask"], strict=True)]  # fmt: skip
    assert sorted(seen) == sorted(samples)
