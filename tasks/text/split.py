"""Which documents train a model, which steer it and which judge it: train, validation or test, by their text
alone.

In: the text_sha of a document, a seed, two shares. Out: a word. A document keeps its split whatever stands
around it, equal texts share one, and a share that grows only takes documents from train: validation is cut
from the low end of the line of draws and test from the high end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

TRAIN, VALIDATION, TEST = "train", "validation", "test"
SPLIT_NAMES = (TRAIN, VALIDATION, TEST)
DRAWS = 1 << 32


def draws(share: float) -> int:
    """How many of the 2^32 equally likely draws a share stands for: the nearest integer; 0.25 is 2^30."""
    if not 0 <= share <= 1:
        raise ValueError(f"a share is {share}; it must lie between 0 and 1")
    return round(share * DRAWS)


def draw(text_sha: str, seed: int) -> int:
    """0 to 2^32 - 1: the first four bytes, big-endian, of SHA-256 over "<seed>:<text_sha>" in UTF-8."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{text_sha}".encode()).digest()[:4], "big")


def splits(text_shas: Iterable[str], seed: int, validation_share: float, test_share: float) -> list[str]:
    """The split of each document, in order. About 1.5 million a CPU second.

    validation_share, test_share: of the documents, 0 to 1, together at most 1; raises ValueError beyond that.
    """
    low, high = draws(validation_share), DRAWS - draws(test_share)
    if low > high:
        raise ValueError(f"validation_share {validation_share} and test_share {test_share} are more than 1 together")
    return [_name(draw(sha, seed), low, high) for sha in text_shas]


def _name(number: int, low: int, high: int) -> str:
    if number < low:
        return VALIDATION
    return TEST if number >= high else TRAIN
