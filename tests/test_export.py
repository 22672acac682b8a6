"""Exports: other readers find the ids, bounds and losses of the pin; documents only of the corpus that it is."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from flows.export import export
from tasks.artifacts.shards import ShardIndex
from tasks.errors import IntegrityError, ParamsError
from tests.pin_maker import FINGERPRINT, lay_pin

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


def test_datatrove_has_the_ids_and_where_documents_end(root: Path) -> None:
    assert export(root, FINGERPRINT, "datatrove", root / "ds").rows == 1 + 1 + 2 + 2
    assert np.fromfile(root / "ds/book_test_shard_00000.ds", "<u2").tolist() == [*BOOK[0], *BOOK[1]]
    assert np.fromfile(root / "ds/book_test_shard_00000.ds.index", "<u8").tolist() == [4, 8]
    assert np.fromfile(root / "ds/chat_train_shard_00000.ds.loss", "u1").tolist() == LEARNT
    assert (root / "ds/chat_train_shard_00000.ds.metadata").read_text().splitlines()[:2] == ["gristmill|2", "9"]


def test_mds_has_a_stream_of_each_source_with_the_shards_one_after_another(root: Path, monkeypatch) -> None:
    monkeypatch.setattr("flows.export_forms.MDS_BYTES", 1)
    export(root, FINGERPRINT, "mds", root / "mds")
    index = json.loads((root / "mds/train/book/index.json").read_text())
    assert [(shard["raw_data"]["basename"], shard["samples"]) for shard in index["shards"]] == [
        ("shard.00000.mds", 1), ("shard.00001.mds", 1),
    ]  # fmt: skip
    content = (root / "mds/train/chat/shard.00000.mds").read_bytes()
    number, first, second, end = np.frombuffer(content, "<u4", 4).tolist()
    assert (number, end) == (2, len(content))
    assert json.loads(content[16:first])["column_names"] == ["labels", "tokens"]
    sizes = np.frombuffer(content[first : first + 8], "<u4").tolist()
    assert sizes == [25, 25] and second == first + 8 + 50
    labels, tokens = content[first + 8 : first + 33], content[first + 33 : second]
    assert labels[:5] == tokens[:5] == bytes([6, 5, 0, 0, 0])
    assert np.frombuffer(labels[5:], "<i4").tolist() == [-100, -100, -100, 13, 14]
    assert np.frombuffer(tokens[5:], "<i4").tolist() == CHAT[0][:5]


def test_what_cannot_be_exported_is_refused_and_leaves_nothing(root: Path) -> None:
    for form, kind in (("tfrecord", "jsonl"), ("documents", "csv")):
        with pytest.raises(ParamsError, match="export has no form"):
            export(root, FINGERPRINT, form, root / "out", kind)
    with pytest.raises(ParamsError, match="is there already"):
        export(root, FINGERPRINT, "npy", root)
    with pytest.raises(IntegrityError, match="data/ holds no mixture, the pin is abababababab"):
        export(root, FINGERPRINT, "documents", root / "out")
    assert not list(root.glob("*out*"))
