"""Tokenizers for tests: a small trained one, and one whose vocabulary is as large as a test wants."""

from __future__ import annotations

import numpy as np

from tasks.tokenizer_training import Recipe
from tasks.tokenizers import load, train

WORDS = ["the", "miller", "grinds", "corn", "into", "flour", "and", "river", "turns", "wheel", "all", "day"]


def texts(number: int = 200) -> list[str]:
    """Deterministic prose, code and other scripts."""
    prose = [" ".join(WORDS[(i * 7 + j * j) % len(WORDS)] for j in range(5 + i % 20)) for i in range(number)]
    code = [f"def f{i}(x):\n    if x > {i}:\n        return x\n\treturn {i}\n" for i in range(number // 4)]
    return [*prose, *code, "日本語のテスト。", "Ещё одна строка", "naïve café"]


def recipe(**changes) -> Recipe:
    plain = {
        "model": "bpe",
        "vocab_size": 500,
        "character_coverage": 1.0,
        "line_bytes_max": 4192,
        "sample_bytes": 1 << 20,
        "threads": 1,
    }
    return Recipe(**(plain | changes))


def lay(root, name="small", **changes):
    """tokenizers/<name> under `root`, trained; the loaded tokenizer."""
    train(name, texts(), recipe(**changes), root)
    return load(root / "tokenizers" / name)


class Letters:
    """A tokenizer of code points shifted by 4: unk 0, bos 1, eos 2, pad 3; whatever vocabulary is wanted."""

    name, sha256, unk_id, bos_id, eos_id, pad_id = "letters", "0" * 64, 0, 1, 2, 3

    def __init__(self, vocab_size: int) -> None:
        self.vocab_size, self.control = vocab_size, {}

    def encode_batch(self, texts):
        each = [np.array([ord(letter) + 4 for letter in text], np.int64) for text in texts]
        lengths = np.array([len(ids) for ids in each], np.int64)
        return np.concatenate([np.empty(0, np.int64), *each]), lengths

    def decode(self, ids):
        return "".join(chr(int(number) - 4) for number in ids)

    def exact_on(self, text):
        return True
