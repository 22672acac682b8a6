"""Other projects' own readers find in an export the ids, boundaries and labels that the pin holds.

They run in an environment of their own (benchmarks/loader-requirements.txt), which GRISTMILL_PEERS names; without it
these tests skip and say so. `make test-long`.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flows.export import export
from tests.pin_maker import EOS, FINGERPRINT, lay_pin
from training.pin import Pin, open_pin

PEERS = Path(os.environ.get("GRISTMILL_PEERS", ".venv-peers-loader"))
READER = Path(__file__).parent / "foreign_reader.py"
WIDTH = 8

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not (PEERS / "bin" / "python").is_file(),
        reason=f"no environment with benchmarks/loader-requirements.txt at {PEERS}; GRISTMILL_PEERS names one",
    ),
]


@pytest.fixture(scope="module")
def pin(tmp_path_factory) -> Pin:
    """3,000 documents of 1 to 60 ids over two shards, a chat whose loss is masked, and validation."""
    root, chance = tmp_path_factory.mktemp("pin"), random.Random(3)

    def documents(number: int) -> list[list[int]]:
        return [[chance.randrange(10, 60_000) for _ in range(chance.randrange(60))] + [EOS] for _ in range(number)]

    chats = documents(200)
    learnt = [chance.randrange(2) for _ in range(sum(map(len, chats)))]
    web = {"train": [documents(2500), documents(500)], "validation": [documents(90)]}
    corpus = {"web": web, "chat": {"train": [chats]}}
    lay_pin(root, corpus, width=WIDTH, vocab_size=60_000, losses={"chat": learnt})
    return open_pin(FINGERPRINT, root)


def found(pin: Pin, tmp_path: Path, form: str, place: str) -> Any:
    """What the reader of `form` finds at `place` of the export."""
    export(pin.folder.parents[1], FINGERPRINT, form, tmp_path / form)
    own = PEERS.with_name(f"{PEERS.name}-mosaicml-streaming")  # which does not install beside the others
    home = own if form == "mds" and own.is_dir() else PEERS
    command = [str(home / "bin" / "python"), str(READER), form, str(tmp_path / form / place)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False)
    if "ModuleNotFoundError" in done.stderr:
        pytest.skip(f"the environment at {home} has no reader of {form}: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def held(pin: Pin, source: str, split: str) -> tuple[list[np.ndarray], np.ndarray, list[np.ndarray], list[np.ndarray]]:
    """(documents, flat ids, sequences, their labels), from the files of the pin alone and by hand."""
    documents, flats, sequences, labels = [], [], [], []
    for path in pin.shards(source, split):
        flat = np.fromfile(f"{path}.bin", "<u2").astype(int)
        ends = np.flatnonzero(flat == EOS) + 1
        documents += np.split(flat, ends[:-1])
        loss = Path(f"{path}.loss")
        masked = np.where(np.fromfile(loss, "u1") == 1, flat, -100) if loss.exists() else flat
        for start in range(0, len(flat) - 1, WIDTH):
            sequences.append(flat[start : start + WIDTH + 1])
            labels.append(masked[start : start + WIDTH + 1])
        flats.append(flat)
    return documents, np.concatenate(flats), sequences, labels


def same(these: list[list[int]], those: list[np.ndarray]) -> bool:
    return these == [each.tolist() for each in those] and len(these) > 0


def test_megatron_finds_every_document(pin: Pin, tmp_path: Path) -> None:
    documents = found(pin, tmp_path, "megatron", "web_train_shard_00001")
    assert same(documents, held(pin, "web", "train")[0][-500:])


def test_datatrove_finds_every_id_and_the_place_of_each_in_its_document(pin: Pin, tmp_path: Path) -> None:
    rows = found(pin, tmp_path, "datatrove", "web_validation_shard_00000.ds")
    documents, flat, *_ = held(pin, "web", "validation")
    whole = len(flat) // 8 * 8
    assert np.concatenate(rows["input_ids"]).tolist() == flat[:whole].tolist()
    places = np.concatenate([np.arange(len(document)) for document in documents])[:whole].reshape(-1, 8)
    ours = places - np.maximum(places[:, :1], 0)  # their positions begin at 0 with each window
    begins = np.array(rows["positions"]) == 0
    assert (begins[:, 1:] == (places[:, 1:] == 0)).all() and (ours[:, 0] == 0).all()


@pytest.mark.parametrize(("source", "split"), [("web", "train"), ("chat", "train"), ("web", "validation")])
def test_streaming_finds_every_sequence_and_label(pin: Pin, tmp_path: Path, source: str, split: str) -> None:
    rows = found(pin, tmp_path, "mds", f"{split}/{source}")
    _, _, sequences, labels = held(pin, source, split)
    assert same(rows["tokens"], sequences) and same(rows["labels"], labels)


@pytest.mark.parametrize("split", ["train", "validation"])
def test_datasets_finds_every_sequence_and_label(pin: Pin, tmp_path: Path, split: str) -> None:
    rows = found(pin, tmp_path, "huggingface", split)
    both = [held(pin, source, split) for source in ("chat", "web") if pin.shards(source, split)]
    assert same(rows["input_ids"], [each for _, _, sequences, _ in both for each in sequences])
    assert same(rows["labels"], [each for *_, labels in both for each in labels])
