"""Words of ASCII by 64 bytes at once: those that one gets character by character."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks import byte_words
from tasks.character_kinds import CharacterKinds
from tasks.text.ascii_words import LONG, ascii_words
from tasks.text.byte_level_words import word_stops
from tasks.text.seams import WORD_SEAMS
from tasks.text.starts import cut_out, put_back, starts_of
from tests.test_segments import split_by

ANY = np.ones((128, 128), bool)
ATOMS = [
    *"ab'sStTrReEvVlLdDmM \t\n\r019.,()",
    "'re",
    "'LL",
    "'t't",
    "  ",
    "\n\n",
    " \n\t\n",
    " " * 50,
    "x" * 40,
    "12345",
]
FOREIGN = ["é", "日本", "\x00", "\x7f", "\u00a0", "’s"]
TEXTS = st.lists(st.lists(st.sampled_from(ATOMS), max_size=90).map("".join), min_size=1, max_size=4)
MIXED = st.lists(st.lists(st.sampled_from(ATOMS + FOREIGN), max_size=60).map("".join), min_size=1, max_size=4)
HOW = {"gpt2": (byte_words.GPT2, False, 0), "llama3": (byte_words.LLAMA3, True, 3), "qwen": (byte_words.QWEN, True, 1)}


@pytest.fixture(scope="module")
def kinds():
    return {name: CharacterKinds(split_by(found), *rest) for name, (found, *rest) in HOW.items()}


def laid(texts):
    spelled = [text.encode() for text in texts if text]
    return np.frombuffer(b"".join(spelled), np.uint8), np.cumsum([0, *map(len, spelled)])


def one_by_one(kinds, data, borders, modern, digits):
    """Where words begin, character by character, by the code that the expressions themselves are held against."""
    chosen = np.ones(len(borders) - 1, bool)
    ends, _ = word_stops(data, kinds.of(data)[0], borders[1:], chosen, modern, digits)
    return np.concatenate([[0], ends[:-1]]) if len(ends) else ends


@pytest.mark.parametrize("name", HOW)
@settings(max_examples=300)
@given(texts=TEXTS)
def test_words_of_ascii_are_those_found_one_by_one(kinds, name, texts):
    (data, borders), (_, *how) = laid(texts), HOW[name]
    bits, stretches = ascii_words(data, borders[:-1], *how, ANY)
    assert len(stretches) == 0
    assert starts_of(bits).tolist() == one_by_one(kinds[name], data, borders, *how).tolist()


@pytest.mark.parametrize("name", HOW)
@settings(max_examples=300)
@given(texts=MIXED)
def test_what_is_no_ascii_is_left_in_stretches_from_seam_to_seam(kinds, name, texts):
    (data, borders), (_, *how) = laid(texts), HOW[name]
    bits, stretches = ascii_words(data, borders[:-1], *how, ANY)
    wanted = one_by_one(kinds[name], data, borders, *how)
    left = np.zeros(len(data) + 1, bool)
    for begin, end in stretches.tolist():
        left[begin:end] = True
        seams = WORD_SEAMS.starts(data, borders[:-1])
        assert begin in seams and (end == len(data) or end in seams)
    assert left[:-1][(data > 0x7E) | (data == 0)].all()
    found = starts_of(bits)
    assert found[~left[found]].tolist() == wanted[~left[wanted]].tolist()
    own, begins = cut_out(data, stretches)
    assert own.tolist() == data[left[:-1]].tolist() and len(begins) == len(stretches)
    put_back(bits, stretches, begins, np.flatnonzero(np.isin(np.flatnonzero(left[:-1]), wanted)))
    assert starts_of(bits).tolist() == wanted.tolist()


@settings(max_examples=60)
@given(st.integers(1, 200), st.integers(0, 130))
def test_a_long_word_is_cut_beyond_its_beginning_where_nothing_joins(size, before):
    data, borders = laid([" " * before + "ab" * size])
    joined = ANY.copy()
    joined[ord("b"), ord("a")] = False
    starts = starts_of(ascii_words(data, borders[:-1], False, 0, joined)[0])
    word = max(before - 1, 0)  # a space goes with it
    parts = [at for at in range(before, before + 2 * size, 2) if at - word >= LONG]
    assert starts.tolist() == sorted({0, word, *parts})
