"""`gristmill inspect PIN`: batches held against the files, lengths with a picture, vocabulary; 4 for a fault."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from flows import cli
from tests.pin_maker import FINGERPRINT, lay_pin, write_pin_json
from training.loader import build_dataloader


@pytest.fixture(autouse=True)
def settled(monkeypatch):
    monkeypatch.setattr(cli.environment, "settle", lambda root, quiet=False: None)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    documents = [[(7 * n + k) % 90 + 3 for k in range(5 + n % 20)] + [2] for n in range(200)]
    lay_pin(tmp_path, {"a": {"train": [documents[:90], documents[90:]]}}, width=16, vocab_size=100, name="v1")
    return tmp_path


def test_a_sound_pin(project: Path, capsys) -> None:
    assert cli.main(["-C", str(project), "inspect", "v1", "--batches", "5"]) == 0
    said = capsys.readouterr().out
    assert "5 batches of 8 x 16: 100.0% ids" in said
    assert "200 samples of 6 to 25 ids, 3,100 together: mean 15.5, median 15.5, p95 24" in said
    assert "8-15 ████" in said
    assert "0 out of range" in said
    picture = project / "reports" / "docs" / f"inspect-{FINGERPRINT[:12]}.svg"
    assert picture.read_text().startswith("<svg") and picture.name in said.replace("\n", "")


def test_as_json_and_a_picture_elsewhere(project: Path, capsys) -> None:
    words = ["-C", str(project), "inspect", "v1", "--json", "--picture", "lengths.svg", "--samples", "20"]
    assert cli.main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["fingerprint"] == FINGERPRINT
    assert found["batches"]["faults"] == [] and found["vocabulary"]["samples"] == 20
    assert found["documents"]["count"] == 200
    assert (project / "lengths.svg").is_file()


def test_unknown_ids_are_counted_by_the_tokenizers_card(project: Path, capsys) -> None:
    card = {"sha256": "0", "special": {"unk": {"id": 3, "piece": "<unk>"}}}
    (project / "tokenizers" / "t").mkdir(parents=True)
    (project / "tokenizers" / "t" / "card.json").write_text(json.dumps(card))
    assert cli.main(["-C", str(project), "inspect", "v1"]) == 0
    assert "of the ids are unknown, above 0.1%" in capsys.readouterr().out
    (project / "tokenizers" / "t" / "card.json").write_text(json.dumps(card | {"sha256": "1"}))
    assert cli.main(["-C", str(project), "inspect", "v1"]) == 0
    assert ", 0 ids are unknown" in capsys.readouterr().out


def test_ids_beyond_the_vocabulary_end_with_4(tmp_path: Path, capsys) -> None:
    lay_pin(tmp_path, {"a": {"train": [[[5, 6, 70, 8, 2] * 5]]}}, vocab_size=50, name="v1")
    assert cli.main(["-C", str(tmp_path), "inspect", "v1", "--batches", "1"]) == 4
    told = capsys.readouterr()
    assert "vocabulary: id 70 is not within 0 to 49" in told.out
    assert "do not train on it" in told.err


def test_a_batch_that_is_not_what_the_files_hold_ends_with_4(project: Path, capsys, monkeypatch) -> None:
    def off_by_one(*arguments, **options):
        loader = build_dataloader(*arguments, **options)
        loader.position = 1
        return loader

    monkeypatch.setattr("training.loader.build_dataloader", off_by_one)
    assert cli.main(["-C", str(project), "inspect", "v1"]) == 4
    assert "batch 0, row 0, position 0: source: id" in capsys.readouterr().out


def test_a_pin_that_is_absent_or_damaged(project: Path, capsys) -> None:
    assert cli.main(["-C", str(project), "inspect", "v2"]) == 6
    assert "is named v2; there are: v1" in capsys.readouterr().err
    ids = next(project.rglob("shard_00000.bin"))
    ids.write_bytes(np.fromfile(ids, "<u2")[::-1].tobytes())
    assert cli.main(["-C", str(project), "inspect", "v1"]) == 6
    write_pin_json(project / "pins" / FINGERPRINT, "v1")
    assert cli.main(["-C", str(project), "inspect", "v1"]) == 6
