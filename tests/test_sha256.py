"""SHA-256 of many texts: each is hashlib's, at every length, in every company, with and without the instructions."""

import hashlib
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.text import sha256

SIZES = st.integers(0, 200) | st.integers(200, 5000)


def both(texts, ahead=b"", gap=0):
    """Digests of texts that lie `gap` bytes apart."""
    starts = np.cumsum([0, *(len(text) + gap for text in texts)], dtype=np.int64)[:-1]
    ends = starts + np.array([len(text) for text in texts], np.int64)
    data = np.frombuffer(b"".join(text + b"-" * gap for text in texts), np.uint8)
    assert sha256.digests(data, starts, ends, ahead) == b"".join(
        hashlib.sha256(ahead + text).digest() for text in texts
    )


@pytest.mark.parametrize("ahead", [b"", b"web\0", b"x" * 55, b"x" * 56, b"x" * 63, b"x" * 64, b"y" * 200], ids=len)
def test_every_length(ahead):
    chance = random.Random(1)
    both([chance.randbytes(size) for size in range(200)], ahead)
    both([chance.randbytes(size) for size in (0, 63, 64, 10_000)], ahead, gap=3)


@given(st.lists(SIZES, max_size=12), st.binary(max_size=80), st.integers(0, 5))
@settings(max_examples=100)
def test_any_texts_in_any_order(sizes, ahead, gap):
    chance = random.Random(2)
    both([chance.randbytes(size) for size in sizes], ahead, gap)


def test_without_the_instructions(monkeypatch):
    monkeypatch.setattr(sha256, "HAS_INSTRUCTIONS", False)
    both([b"", b"a", b"b" * 1000], b"s\0", gap=1)
    both([])


def test_a_length_beyond_32_bits_of_bits():
    """2^29 bytes and more: the length in the last block takes more than 32 bits."""
    data = np.zeros((1 << 29) + 7, np.uint8)
    digest = sha256.digests(data, np.array([0, 7]), np.array([len(data), 8]))
    assert digest[:32] == hashlib.sha256(data).digest() and digest[32:] == hashlib.sha256(b"\0").digest()
