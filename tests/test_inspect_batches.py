"""Inspection finds every fault that is planted, names batch and row, and finds nothing in what is sound."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import training
from tests.pin_maker import FINGERPRINT, lay_pin, small_pin
from training.collate import LLMDataCollator
from training.histogram import Bin, bins, terminal
from training.inspect_batches import check_vocab_coverage, verify_pipeline
from training.lengths import analyze_dataset_statistics, lengths_of, padding_shares
from training.loader import build_dataloader
from training.masks import attention_mask
from training.pin import Pin, open_pin
from training.pin_rows import batches_at, document_lengths, rows_at

V = 100


@pytest.fixture(scope="module")
def pin(tmp_path_factory: pytest.TempPathFactory) -> Pin:
    return small_pin(tmp_path_factory.mktemp("project"))


def sound() -> dict[str, torch.Tensor]:
    """Row 0: documents 5 6 2 and 7 8 2; row 1: 9 10 2, then padding. The next ids were 11 and none."""
    documents = torch.tensor([[1, 1, 1, 2, 2, 2], [1, 1, 1, 0, 0, 0]])
    return {
        "input_ids": torch.tensor([[5, 6, 2, 7, 8, 2], [9, 10, 2, 2, 2, 2]]),
        "labels": torch.tensor([[6, 2, -100, 8, 2, 11], [10, 2, -100, -100, -100, -100]]),
        "attention_mask": (documents > 0).long(),
        "position_ids": torch.tensor([[0, 1, 2, 0, 1, 2], [0, 1, 2, 3, 4, 5]]),
        "document_ids": documents,
        "combined_mask": attention_mask(2 * documents - 1),
    }


def model_convention() -> dict[str, torch.Tensor]:
    batch = sound()
    batch["labels"] = torch.tensor([[-100, 6, 2, -100, 8, 2], [9, 10, 2, -100, -100, -100]])
    return batch


def verified(batch, labels: str = "shifted", **options):
    return verify_pipeline([batch], 1, labels=labels, vocab_size=V, **options)


@pytest.mark.parametrize(("batch", "labels"), [(sound(), "shifted"), (model_convention(), "model")])
def test_a_sound_batch_has_no_fault_with_all_or_few_of_its_fields(batch: dict, labels: str) -> None:
    found = verified(batch, labels)
    assert list(found.lines()) == ["1 batches of 2 x 6: 75.0% ids, 58.3% with a label"]
    for left_out in ("document_ids", "attention_mask", "position_ids", "combined_mask"):
        assert verified({name: value for name, value in batch.items() if name != left_out}, labels).ok
    additive = torch.zeros(batch["combined_mask"].shape).masked_fill(~batch["combined_mask"], -3e38)
    for mask in (additive, additive.bfloat16()):
        assert verified({**batch, "combined_mask": mask}, labels).ok
    four = {name: value for name, value in batch.items() if name not in ("attention_mask", "combined_mask")}
    assert verified({**four, "attention_mask": batch["combined_mask"]}, labels).ok
    assert verified(SimpleNamespace(**batch), labels).ok


def put(name: str, row: int, at: int, value: int) -> Callable[[dict], None]:
    def change(batch: dict) -> None:
        batch[name] = batch[name].clone()
        batch[name][row, at] = value

    return change


def look(row: int, query: int, key: int, value: bool) -> Callable[[dict], None]:
    def change(batch: dict) -> None:
        batch["combined_mask"] = batch["combined_mask"].clone()
        batch["combined_mask"][row, 0, query, key] = value

    return change


def swap(name: str, value: Callable[[dict], torch.Tensor]) -> Callable[[dict], None]:
    return lambda batch: batch.update({name: value(batch)})


PLANTED = [
    (put("input_ids", 1, 3, V), "row 1, position 3: vocabulary: id 100 is not within 0 to 99"),
    (put("input_ids", 1, 5, -1), "row 1, position 5: vocabulary: id -1"),
    (put("labels", 0, 5, V), "row 0, position 5: vocabulary: label 100"),
    (put("labels", 0, 5, -1), "row 0, position 5: vocabulary: label -1"),
    (put("labels", 1, 0, 33), "row 1, position 0: labels: label 33, expected 10"),
    (put("labels", 0, 3, -100), "row 0, position 3: labels: label -100, expected 8"),
    (put("labels", 0, 2, 7), "row 0, position 2: labels: the next document's first id is a target"),
    (put("labels", 1, 4, 2), "row 1, position 4: labels: padding has label 2, not -100"),
    (
        swap("labels", lambda batch: batch["input_ids"]),
        "position 0: labels: label 5, expected 6; the labels are the in",
    ),
    (swap("labels", lambda batch: batch["labels"].roll(-1, 1)), "row 0, position 0: labels: label 2, expected 6"),
    (swap("labels", lambda batch: torch.full_like(batch["labels"], -100)), "batch 0: labels: no position has a label"),
    (put("attention_mask", 0, 1, 2), "row 0, position 1: padding: the mask is 2, not 0 or 1"),
    (put("attention_mask", 0, 2, 0), "row 0, position 3: padding: ids go on after padding"),
    (put("attention_mask", 1, 3, 1), "row 1, position 3: padding: the mask is 1, the document 0"),
    (put("position_ids", 0, 3, 3), "row 0, position 3: positions: a document begins at position id 3, others at 0"),
    (put("position_ids", 0, 4, 0), "row 0, position 4: positions: position id 0 follows 0 within a document"),
    (put("position_ids", 1, 0, -1), "a document begins at position id"),
    (look(0, 3, 2, True), "row 0, position 3: mask: it sees position 2"),
    (look(0, 1, 2, True), "row 0, position 1: mask: it sees position 2"),
    (look(0, 5, 3, False), "row 0, position 5: mask: it does not see position 3"),
    (look(1, 2, 4, True), "row 1, position 2: mask: it sees position 4"),
    (look(1, 4, 4, False), "row 1, position 4: mask: it sees nothing"),
    (swap("labels", lambda batch: batch["labels"][:, 1:]), "batch 0: shape: labels are (2, 5), inputs (2, 6)"),
    (swap("combined_mask", lambda batch: batch["combined_mask"][:, 0]), "batch 0: shape: mask are (2, 6, 6)"),
    (swap("input_ids", lambda batch: batch["input_ids"][0]), "batch 0: shape: inputs are (6,)"),
    (swap("input_ids", lambda batch: batch["input_ids"].int()), "batch 0: dtype: inputs are torch.int32"),
    (swap("labels", lambda batch: batch["labels"].float()), "batch 0: dtype: labels are torch.float32"),
]


@pytest.mark.parametrize(("fault", "said"), PLANTED)
def test_every_planted_fault_is_found_and_named(fault: Callable[[dict], None], said: str) -> None:
    batch = sound()
    fault(batch)
    found = verify_pipeline([sound(), batch], 2, labels="shifted", vocab_size=V)
    assert not found.ok
    assert any(said.replace("batch 0", "batch 1") in str(one) for one in found.faults), [*map(str, found.faults)]
    assert {one.batch for one in found.faults} == {1}


def test_labels_of_the_other_convention_are_told() -> None:
    """Failures 18 and 19: shifted twice, or not at all."""
    one = sound()
    one["labels"] = one["input_ids"].where(one["attention_mask"] > 0, -100)
    assert "nobody shifted them" in str(verified(one).faults[0])
    assert any("the labels are shifted already" in str(fault) for fault in verified(sound(), "model").faults)
    plain = {"input_ids": torch.arange(10, 20)[None], "labels": torch.arange(12, 22)[None]}
    assert "the labels are shifted twice" in str(verified(plain).faults[0])
    across = model_convention()
    across["labels"][0, 3] = 7
    assert "row 0, position 3: labels: a document's first id is a target" in str(verified(across, "model").faults[0])


def test_a_label_that_would_be_learnt_from_padding_is_found() -> None:
    """Left padding by the model's convention: what stands before the first id is no id."""
    batch = {"input_ids": [[2, 5, 6]], "attention_mask": [[0, 1, 1]], "labels": [[-100, -100, 6]]}
    one = {name: torch.tensor(rows) for name, rows in batch.items()}
    assert verified(one, "model").ok
    one["labels"][0, 1] = 5
    assert "row 0, position 1: labels: a document's first id is a target" in str(verified(one, "model").faults[0])


def test_positions_alone_tell_documents_too() -> None:
    """Failure 24: a batch whose positions do not restart is another one than one whose labels do."""
    batch = {name: value for name, value in sound().items() if name in ("input_ids", "labels", "position_ids")}
    assert verified(batch).ok
    batch["position_ids"] = torch.arange(6).expand(2, 6)
    assert "row 0, position 2: labels: label -100, expected 7" in str(verified(batch).faults[0])


def test_a_loss_mask_of_chats_may_leave_labels_out_and_nothing_else() -> None:
    """Failures 29 and 30."""
    batch = sound()
    batch["labels"][0, :4] = -100
    assert not verified(batch).ok and verified(batch, loss_masked=True).ok
    batch["labels"][0, 4] = 77
    assert "expected 2" in str(verified(batch, loss_masked=True).faults[0])
    batch["labels"][:] = -100
    assert "no position has a label" in str(verified(batch, loss_masked=True).faults[0])


def test_too_few_batches_are_a_fault() -> None:
    found = verify_pipeline([sound()], 3, labels="shifted", vocab_size=V)
    assert [str(one) for one in found.faults] == ["batch 1: batches: there are 1 batches, not 3"]
    assert not verify_pipeline([], 1, labels="shifted", vocab_size=V).ok


def test_what_is_no_batch_is_refused() -> None:
    with pytest.raises(TypeError, match="a dict without input_ids and labels"):
        verified({"text": "a"})


def test_more_of_a_fault_in_a_row_are_counted() -> None:
    batch = sound()
    batch["input_ids"][0, 1:4] = 500
    assert "(and 2 more in this row)" in str(verified(batch).faults[0])


@pytest.mark.parametrize("isolate", [False, True])
@pytest.mark.parametrize("labels", ["shifted", "model"])
def test_the_loaders_batches_are_sound_and_what_the_files_hold(pin: Pin, labels: str, isolate: bool) -> None:
    batches = build_dataloader(pin, batch_size=4, labels=labels, isolate_documents=isolate)
    found = verify_pipeline(
        batches, 30, labels=labels, vocab_size=pin.schedule.vocab_size * 100, expected=batches_at(pin, 4, 30)
    )
    assert found.ok, [*map(str, found.faults)][:3]
    assert found.rows == 120 and 0.7 < found.valid_share <= found.real_share


def test_a_row_of_other_data_is_found(pin: Pin) -> None:
    def off_by_one():
        for batch in batches_at(pin, 4, 3):
            yield np.roll(batch, 1, 0)

    batches = build_dataloader(pin, batch_size=4, labels="shifted", isolate_documents=False)
    found = verify_pipeline(batches, 3, labels="shifted", vocab_size=60_000, expected=off_by_one())
    assert "batch 0, row 0, position 0: source: id" in str(found.faults[0])


@given(st.lists(st.lists(st.integers(0, V - 1), min_size=1, max_size=20), min_size=1, max_size=5))
def test_the_collators_batches_are_sound(samples: list[list[int]]) -> None:
    samples = [*samples, [1, 2]]
    for side in ("left", "right"):
        for labels in ("shifted", "model"):
            found = verified(LLMDataCollator(2, padding_side=side, labels=labels)(samples), labels)
            assert found.ok, [*map(str, found.faults)]


def test_rows_read_the_plain_way(tmp_path: Path) -> None:
    lay_pin(tmp_path, {"a": {"train": [[[5, 6, 7, 2], [8, 2]], [[9, 10, 11, 2]]]}}, width=4)
    pin = open_pin(FINGERPRINT, tmp_path)
    rows = [ids.tolist() for ids in rows_at(pin, np.arange(3))]
    assert sorted(rows) == [[5, 6, 7, 2, 8], [8, 2], [9, 10, 11, 2]]
    assert [batch.shape for batch in batches_at(pin, 2, 3)] == [(2, 5)] * 3
    assert document_lengths(pin).tolist() == [4, 2, 4]
    assert document_lengths(pin, "test").tolist() == []


def test_figures_by_hand() -> None:
    """Lengths 1, 3, 4, 12 at 8: 16 of 32 positions are ids, 4 of 20 ids are cut."""
    found = analyze_dataset_statistics(np.array([3, 12, 1, 4]), 8)
    assert (found.count, found.tokens, found.min, found.max, found.mean, found.median) == (4, 20, 1, 12, 5.0, 3.5)
    assert (found.p95, found.utilisation, found.cut_share, found.over) == (12, 0.5, 0.2, 1)
    assert found.histogram == (Bin(1, 1, 1), Bin(2, 3, 1), Bin(4, 7, 1), Bin(8, 15, 1))
    assert analyze_dataset_statistics(np.arange(1, 101), 100).p95 == 95
    json.dumps(found.__dict__)


def test_bins_and_bars_by_hand() -> None:
    held = bins(np.array([0, 4, 5, 7, 16]))
    assert held == [Bin(0, 0, 1), Bin(1, 1, 0), Bin(2, 3, 0), Bin(4, 7, 3), Bin(8, 15, 0), Bin(16, 31, 1)]
    lines = list(terminal(held))
    assert lines[3].split() == ["4-7", "█" * 40, "3"]
    assert lines[1].split() == ["1", "0"]
    assert lines[0].split() == ["0", "█" * 13 + "▍", "1"]  # 40 / 3 in eighths: 13 and 3
    assert bins(np.array([], np.int64)) == [] and list(terminal([])) == []


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=200))
def test_bins_hold_every_length_once(lengths: list[int]) -> None:
    held = bins(np.array(lengths))
    assert sum(one.samples for one in held) == len(lengths)
    for one in held:
        assert one.samples == sum(one.low <= length <= one.high for length in lengths)
    assert held[0].samples and held[-1].samples


@pytest.mark.parametrize(
    ("lengths", "said"),
    [
        ([512] * 100, ["the lengths suit max_seq_len=512"]),
        ([512] * 99, ["only 99 samples, fewer than 100"]),
        ([512] * 95 + [1000] * 5, ["the lengths suit"]),  # 2440 of 53640 ids cut: 4.5 %
        ([512] * 94 + [1000] * 6, ["6 samples are longer than 512, and cutting them loses 5.4%"]),
        ([256] * 94 + [260] * 6, ["the lengths suit"]),  # 50.02 %
        ([255] * 94 + [257] * 6, ["only 49.8% of rows padded to 512 would be ids"]),
        ([256] * 95 + [512] * 5, ["95 of 100 samples have at most 256 ids: max_seq_len=256 would do"]),
        ([1] * 100, ["only 0.2% of rows", "at most 1 ids: max_seq_len=1 would do"]),
    ],
)
def test_advice_at_its_thresholds(lengths: list[int], said: list[str]) -> None:
    found = analyze_dataset_statistics(np.array(lengths), 512).advice
    assert len(found) == len(said)
    assert all(words in line for words, line in zip(said, found, strict=True)), found


def test_samples_of_any_kind_have_lengths() -> None:
    samples = [[1, 2], {"input_ids": [1, 2, 3]}, {"input_ids": [0, 5, 6], "attention_mask": torch.tensor([0, 1, 1])}]
    assert lengths_of(samples).tolist() == [2, 3, 2]
    assert analyze_dataset_statistics(samples, 4).tokens == 7
    with pytest.raises(ValueError, match="0 samples at max_seq_len=4 have no figures"):
        analyze_dataset_statistics([], 4)


def test_the_picture_is_svg_that_says_what_the_terminal_says(tmp_path: Path) -> None:
    path = tmp_path / "new" / "lengths.svg"
    found = analyze_dataset_statistics(np.array([3, 12, 1, 4]), 8, picture=path)
    root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    texts = [node.text for node in root.iter() if node.tag.endswith("text")]
    assert {"8-15", "Lengths of samples"} <= set(texts)
    assert all(advice in " ".join(texts) for advice in found.advice)
    assert max(map(len, texts)) <= 100
    assert len([node for node in root.iter() if node.tag.endswith("rect")]) == 1 + len(found.histogram)
    ElementTree.fromstring(found.picture('<b> & "quotes"'))


def test_padding_shares_by_hand() -> None:
    """Lengths 8 1 1 8 in batches of two at 8: fixed 18 of 32; dynamic 18 of 32; grouped 18 of 18."""
    shares = padding_shares(np.array([8, 1, 1, 8]), 8, 2, (4,))
    assert shares == {"fixed": 18 / 32, "dynamic": 18 / 32, "grouped": 1.0, "bucketed": 18 / 24, "packed": 18 / 24}


def test_vocabulary_by_hand() -> None:
    samples = [[1, 2, 3], {"input_ids": torch.tensor([3, 0, 0])}, [9, 10, -1], [11]]
    found = check_vocab_coverage(samples, 10, unknown_id=0, num_samples=3)
    assert (found.samples, found.ids, found.distinct, found.unknown, found.out_of_range) == (3, 9, 5, 2, 2)
    assert found.outside == ((2, 1, 10), (2, 2, -1)) and not found.ok
    assert "2 ids are not within 0 to 9" in found.advice[0] and "22.22% of the ids are unknown" in found.advice[1]
    assert "sample 2, position 1: id 10 is out of range" in list(found.lines())
    assert check_vocab_coverage([[1]], 10).ok


def test_unknown_ids_are_told_above_one_in_a_thousand() -> None:
    assert check_vocab_coverage([[1] * 999 + [0]], 10, unknown_id=0).advice == ()
    assert len(check_vocab_coverage([[1] * 998 + [0]], 10, unknown_id=0).advice) == 1
    assert check_vocab_coverage([[0] * 9], 10).advice == ()


def test_only_ten_ids_out_of_range_are_named() -> None:
    found = check_vocab_coverage([[50] * 8, [50] * 8], 10)
    assert (found.out_of_range, len(found.outside)) == (16, 10)


def test_the_names_are_importable_from_training() -> None:
    for name in training.__all__:
        assert getattr(training, name).__name__ == name
    with pytest.raises(AttributeError, match="no_such"):
        training.no_such  # noqa: B018
