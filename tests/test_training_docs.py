"""The code of docs/training.md runs as it stands there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
from torch.nn.functional import cross_entropy

from tests.pin_maker import FINGERPRINT, lay_pin
from training.model import GPT

PAGE = (Path(__file__).parents[1] / "docs" / "training.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
FOREIGN = ("transformers.Trainer", "gristmill_training")


class Tokenizer:
    eos_id, pad_id = 2, 2

    def encode(self, text: str) -> list[int]:
        return [ord(letter) % 90 + 3 for letter in text]


def test_every_block_is_run_or_known_as_foreign() -> None:
    assert len(BLOCKS) == 7
    assert sum(any(word in block for word in FOREIGN) for block in BLOCKS) == 2


def test_the_blocks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    documents = [[(7 * n + k) % 90 + 3 for k in range(5 + n % 20)] + [2] for n in range(200)]
    lay_pin(tmp_path, {"a": {"train": [documents]}}, width=16, vocab_size=100, name="corpus-1")
    (tmp_path / "corpus.jsonl").write_text(json.dumps({"text": "the miller grinds corn " * 90}))
    known = {
        "Path": Path, "torch": torch, "cross_entropy": cross_entropy, "model": GPT(100, 1, 2, 16),
        "tokenizer": Tokenizer(), "samples": [{"input_ids": ids} for ids in documents],
    }  # fmt: skip
    order = sorted(BLOCKS, key=lambda block: "verify_pipeline" in block)
    for block in order:
        if any(word in block for word in FOREIGN):
            continue
        code = block.replace('device="cuda"', 'device="cpu"').replace("10_000", "2").replace("32_000", "100")
        exec(compile(code, "docs/training.md", "exec"), known)
    assert known["state"] == {"position": 64, "fingerprint": FINGERPRINT, "order": "global"}
    assert len(known["dataset"]) > 1 and known["found"].batches == 3
    assert "200 samples of 6 to 25 ids" in capsys.readouterr().out and (tmp_path / "lengths.svg").is_file()
