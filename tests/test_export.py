"""Exports: other readers find the ids, bounds and losses of the pin; documents only of the corpus that it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from pin_maker import FINGERPRINT, lay_pin

from flows.export import export
from tasks.artifacts.shards import ShardIndex
from tasks.errors import IntegrityError, ParamsError

BOOK, CHAT = [[30, 31, 32, 2], [40, 41, 2, 2]], [[10, 11, 12, 13, 14, 15, 16, 17, 2]]
LEARNT = [0, 0, 0, 1, 1, 0, 1, 1, 1]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    lay_pin(tmp_path, {"book": {"train": [BOOK[:1], BOOK[1:]], "test": [BOOK]}, "chat": {"train": [CHAT]}}, width=4,
            losses={"chat": LEARNT})  # fmt: skip
    return tmp_path


def test_megatron_has_every_shard_with_its_boundaries(root: Path) -> None:
    made = export(root, FINGERPRINT, "megatron", root / "out")
    assert (made.files, made.rows) == (8, 1 + 1 + 2 + 2)
    assert sorted(path.name for path in (root / "out").glob("*.idx"))[0] == "book_test_shard_00000.idx"
    index = ShardIndex.open(root / "out/book_test_shard_00000.idx")
    assert index.sizes.tolist() == [4, 4]
    assert np.fromfile(root / "out/book_test_shard_00000.bin", "<u2").tolist() == [*BOOK[0], *BOOK[1]]


def test_npy_and_parquet_have_ids_bounds_and_losses(root: Path) -> None:
    export(root, FINGERPRINT, "npy", root / "npy")
    held = {path.name: np.load(path) for path in (root / "npy").glob("chat*")}
    assert held["chat_train_shard_00000.ids.npy"].tolist() == CHAT[0]
    assert held["chat_train_shard_00000.loss.npy"].tolist() == LEARNT
    assert not list((root / "npy").glob("book*loss*"))
    export(root, FINGERPRINT, "huggingface", root / "hf")
    table = pq.read_table(root / "hf/train/chat_shard_00000.parquet").to_pylist()
    assert [row["input_ids"] for row in table] == [CHAT[0][:5], CHAT[0][4:]]
    assert [row["labels"] for row in table] == [[-100, -100, -100, 13, 14], [14, -100, 16, 17, 2]]
    assert {path.parent.name for path in (root / "hf").rglob("*.parquet")} == {"train", "test"}


def test_what_cannot_be_exported_is_refused_and_leaves_nothing(root: Path) -> None:
    for form, kind in (("tfrecord", "jsonl"), ("documents", "csv")):
        with pytest.raises(ParamsError, match="export has no form"):
            export(root, FINGERPRINT, form, root / "out", kind)
    with pytest.raises(ParamsError, match="is there already"):
        export(root, FINGERPRINT, "npy", root)
    with pytest.raises(IntegrityError, match="data/ holds no mixture, the pin is abababababab"):
        export(root, FINGERPRINT, "documents", root / "out")
    assert not list(root.glob("*out*"))
