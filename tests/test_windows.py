"""Windows on a text's longest lines, against a plain reading of what the module says."""

import re

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.text.windows import WINDOWS, window_texts
from tasks.text.words import text_buffers


def windows(texts, characters):
    offsets, data = window_texts(*text_buffers(pa.array(texts, pa.large_string())), characters)
    return [
        bytes(data[start:stop]).decode() for start, stop in zip(offsets.tolist(), offsets[1:].tolist(), strict=False)
    ]


def oracle(text, characters):
    """ASCII alone, where bytes are characters."""
    if len(text) <= characters:
        return text
    size = max(1, characters // WINDOWS)
    full, rests, at = [], [], 0
    for line in text.split("\n"):
        stop = at + len(line)
        for place in range(len(line) // size):
            start = at + place * size
            blank = text.find(" ", start - 1, min(start + 40, start + size - 1)) if place else -1
            full.append((start if blank < 0 else blank + 1, start + size))
        rests.append((at + len(line) // size * size, stop))
        at = stop + 1
    many = len(full)
    chosen = full if many <= WINDOWS else [full[(2 * n + 1) * many // (2 * WINDOWS)] for n in range(WINDOWS)]
    room = (WINDOWS - len(chosen)) * size
    for start, stop in sorted(rests, key=lambda span: (span[0] - span[1], span[0])):
        if stop - start > 0 and room > 0 and room >= stop - start:
            chosen.append((start, stop))
            room -= stop - start
        elif room > 0 and stop - start > 0:
            break
    return "".join(text[start:stop] + "\n" for start, stop in sorted(chosen) if stop > start)


LINES = st.one_of(
    st.integers(0, 40).map(lambda n: "x" * n),
    st.lists(st.sampled_from(["ab", "c", "defg", "hijklmnop"]), max_size=30).map(" ".join),
)


@settings(max_examples=400)
@given(st.lists(LINES, max_size=12).map("\n".join), st.integers(4, 120))
def test_windows_are_those_of_the_longest_lines(text, characters):
    assert windows([text], characters) == [oracle(text, characters)]


@settings(max_examples=200)
@given(st.lists(st.text("a é中😀\n", max_size=200), max_size=4), st.integers(4, 60))
def test_any_text_stays_within_the_bound_and_whole_characters(texts, characters):
    for text, found in zip(texts, windows(texts, characters), strict=True):
        assert len(text) > characters or found == text
        assert len(found.encode()) <= 5 * characters + 2 * WINDOWS
        for piece in filter(None, re.split("\n", found)):
            assert piece in text


@pytest.mark.parametrize("letter", ["a", "é", "中", "😀"])
def test_about_as_many_characters_as_asked_for(letter):
    text = ("\n".join([letter * 700] * 20)) + "\nmenu" * 50
    (found,) = windows([text], 400)
    assert 380 <= len(found.replace("\n", "")) <= 400 and "menu" not in found


def test_the_four_are_spread_over_the_text():
    text = "\n".join(f"{n:02d}" + "x" * 98 for n in range(80))
    assert [line[:2] for line in windows([text], 400)[0].split("\n")[:-1]] == ["10", "30", "50", "70"]


def test_no_texts():
    assert windows([], 10) == [] and windows(["", "a" * 50], 10)[0] == ""
