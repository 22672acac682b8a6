"""Validation told apart by source, kind and language: every target counted for its own document, once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tasks.artifacts.canonical import file_digest
from tasks.artifacts.schedule import Schedule, Split, folder_content
from tasks.artifacts.shards import CLASSES, ShardError
from tasks.errors import InvariantError
from tasks.shard.classes import _fitting
from tests.pin_maker import EOS, FINGERPRINT, lay_pin, write_pin_json
from training.classes import Classes, classes_of
from training.dataset import PackedDataset
from training.params import TrainParams
from training.pin import Pin, open_pin
from training.train import train

SIZES = {"a": [3, 30, 9, 2], "b": [17, 1, 8]}
WORDS = {
    "a": [("web", "en"), ("web", "zh"), ("book", "en"), ("web", "und")],
    "b": [("code", "en"), ("chat", "fr"), ("code", "zh")],
}
SECTION = {
    "seed": 1, "batch_size": 4, "steps": 2, "learning_rate": 0.01, "warmup_steps": 1, "weight_decay": 0.1, "layers": 1,
    "heads": 2, "width": 16, "labels": "shifted", "isolate_documents": False, "threads": 1, "device": "cpu",
    "log_every": 2, "validate_every": 0, "checkpoint_every": 0, "max_epochs": 9.0,
}  # fmt: skip


@pytest.fixture
def pin(tmp_path: Path) -> Pin:
    """Two sources; each document of validation holds one id of its own, and its classes lie beside the shards."""
    ids, corpus = iter(range(10, 99)), {}
    for source, sizes in SIZES.items():
        documents = [[next(ids)] * (size - 1) + [EOS] for size in sizes]
        corpus[source] = {"train": [documents * 3], "validation": [documents]}
    folder = lay_pin(tmp_path, corpus, vocab_size=100)
    with_classes(folder)
    return open_pin(FINGERPRINT, tmp_path)


def with_classes(folder: Path) -> None:
    for source, words in WORDS.items():
        np.save(folder / "shard" / source / "validation" / "shard_00000.classes.npy", np.array(words, CLASSES))
    schedule = Schedule.read(folder / "mix" / "mixture.json")
    for source, splits in schedule.sources.items():
        digests = {path.name: file_digest(path) for path in (folder / "shard" / source / "validation").iterdir()}
        before = splits["validation"]
        splits["validation"] = Split(folder_content(digests), before.sequences, before.tokens, before.shards)
    (folder / "mix" / "mixture.json").write_bytes(schedule.to_bytes())
    write_pin_json(folder)


def test_each_target_is_counted_for_its_document(pin: Pin) -> None:
    dataset = PackedDataset(pin, "validation")
    classes = Classes(dataset)
    codes = classes.of(range(len(dataset)))
    targets = np.asarray(dataset.rows(0, len(dataset)).tokens)[:, 1:]
    lengths = [origin.ids[1] - origin.ids[0] - 1 for origin in dataset.origins(range(len(dataset)))]
    owner = {10 + at: (source, *words) for at, (source, words) in enumerate(
        (source, words) for source in SIZES for words in WORDS[source]
    )}  # fmt: skip
    for row, length in enumerate(lengths):
        for at in range(length):
            if targets[row, at] != EOS:
                assert [classes.names[code][1] for code in codes[:, row, at]] == list(owner[targets[row, at]])
        assert (codes[:, row, length:] == 0).all()
    counted = np.bincount(codes[2].ravel(), minlength=len(classes.names))
    of_english = counted[classes.names.index(("language", "en"))]
    assert of_english == 2 + 9 + 16  # the first id of each stream is no target: those of a and of b's first document


def test_positions_beyond_the_split_have_no_class(pin: Pin) -> None:
    dataset = PackedDataset(pin, "validation")
    beyond = Classes(dataset).of(range(len(dataset), len(dataset) + 3))
    assert beyond.shape == (3, 3, dataset.width - 1) and not beyond.any()


def test_a_run_says_its_losses_by_source_kind_and_language(pin: Pin, tmp_path: Path) -> None:
    record = train(pin, TrainParams.of(SECTION), root=tmp_path)
    of = {name: points[-1][1] for name, points in record["validation_of"].items()}
    words = {"source": "a b", "kind": "book chat code web", "language": "en fr und zh"}
    assert set(of) == {f"{dimension}/{name}" for dimension, names in words.items() for name in names.split()}
    [[_, mean]] = record["validation"]
    counts = {"source/a": 43, "source/b": 25, "kind/book": 9, "kind/web": 34, "kind/chat": 1, "kind/code": 24}
    for dimension in ("source", "kind"):
        own = {name: count for name, count in counts.items() if name.startswith(dimension)}
        assert sum(of[name] * count for name, count in own.items()) / 68 == pytest.approx(mean, rel=1e-5)


@pytest.mark.parametrize("rows", [3, 5])
def test_classes_of_other_length_than_the_documents_are_refused(pin: Pin, rows: int) -> None:
    path = pin.shards("a", "validation")[0]
    np.save(path.with_name("shard_00000.classes.npy"), np.zeros(rows, CLASSES))
    classes_of.cache_clear()
    with pytest.raises(ShardError, match=r"shard_00000.classes.npy: expected .* \[4\], found"):
        Classes(PackedDataset(pin, "validation"))


def test_a_pin_whose_classes_were_changed_does_not_open(pin: Pin, tmp_path: Path) -> None:
    path = pin.shards("b", "validation")[0].with_name("shard_00000.classes.npy")
    path.write_bytes(path.read_bytes().replace(b"fr", b"de"))
    with pytest.raises(Exception, match=r"shard_00000.classes.npy is not the file that was released"):
        open_pin(FINGERPRINT, tmp_path)


@pytest.mark.parametrize("word", ["cmn_Hans_CN", "português"])
def test_a_name_that_has_no_room_is_told_with_its_part_and_the_mend(word: str) -> None:
    """numpy would cut it, and two languages might become one."""
    words = np.array(["en", "zh", word], object)
    said = rf"pack/splits, part-1: the language '{word}' is not within 8 ASCII letters.*build --force pack.*CLASSES"
    with pytest.raises(InvariantError, match=said):
        _fitting("part-1", "language", words)
    assert _fitting("part-1", "language", words[:2]).tolist() == [b"en", b"zh"]
