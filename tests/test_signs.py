"""What stands in texts, found 64 bytes at a time, is what plain expressions find."""

import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.text.columns import text_buffers
from tasks.text.signs import CONTROL, LINES_3, LINES_4, RUN, TRAILING, WIDE, signs

PLAIN = {
    WIDE: r"[^\x00-\x7f]",
    CONTROL: r"[\x00-\x08\x0b-\x1f\x7f]",
    TRAILING: r"[ \t]\n",
    RUN: r"\t|  ",
    LINES_3: r"\n\n\n",
    LINES_4: r"\n\n\n\n",
}


def found(texts):
    return signs(*reversed(text_buffers(pa.array(texts, pa.large_string())))).tolist()


def plain(text):
    return sum(bit for bit, pattern in PLAIN.items() if re.search(pattern, text))


SPOTS = ["\n", "\n\n", "\n\n\n", "\n\n\n\n", " \n", "\t", "  ", " ", "é", "\x7f", "\x00", "~", "\x1f"]


@pytest.mark.parametrize("spot", SPOTS, ids=[f"spot{number}" for number in range(len(SPOTS))])
def test_at_every_place_of_a_block_and_at_the_borders_of_texts(spot):
    texts = ["x" * before + spot + "x" * behind for before in range(58, 70) for behind in (0, 1, 3, 70)]
    assert found(texts) == [plain(spot)] * len(texts)
    halves = [piece for text in texts for piece in (text[:64], text[64:])]
    assert found(halves) == [plain(piece) for piece in halves]


def test_what_a_text_holds_is_not_told_of_its_neighbours():
    assert found(["a\n\n", "\n\nb", "", "a ", "\nb", "é", "a"]) == [0, 0, 0, 0, 0, WIDE, 0]
    assert found([]) == []


@given(st.lists(st.text("ab \n\t\x01é漢", max_size=200), max_size=6))
def test_texts_of_every_kind(texts):
    assert found(texts) == [plain(text) for text in texts]


def test_part_of_a_column():
    texts = pa.array(["a\t", "b", "c  d", "é"], pa.large_string()).slice(1, 2)
    offsets_D1, data = text_buffers(texts)
    assert signs(np.asarray(data), offsets_D1).tolist() == [0, RUN]
