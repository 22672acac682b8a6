"""Columns as JSON objects: the bytes are those that orjson and json write."""

import json

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.text.encodings import mended
from tasks.text.mojibake import may_be_mended
from tasks.text.objects import ABSENT, NULL, THERE, Column, objects, written_sizes

LETTERS = "".join(map(chr, range(130))) + '""\\\\\n\n é漢😀\u2028'
TEXTS = st.text(LETTERS, max_size=9) | st.builds(
    lambda a, n, b: a + "x" * n + b,
    *[st.text(LETTERS, max_size=3), st.integers(20, 130), st.text(LETTERS, max_size=40)],
)
NAMES = ["a", 'b"', "text", "url", "é"]
"""Sorted by their UTF-8, as orjson sorts them."""


def buffers(values):
    held = [value.encode() for value in values]
    return np.frombuffer(b"".join(held), np.uint8), np.cumsum([0, *map(len, held)], dtype=np.int64)


def column(name, values, quoted=True):
    data, offsets = buffers(["" if value in (None, ...) else value for value in values])
    states = [ABSENT if value is ... else NULL if value is None else THERE for value in values]
    return Column(orjson.dumps(name), data, offsets, quoted, np.array(states, np.uint8))


@given(
    st.lists(
        st.tuples(*[st.none() | st.just(...) | TEXTS for _ in NAMES], st.integers(-(2**63), 2**64 - 1)), max_size=6
    ),
)
@settings(max_examples=200)
def test_objects_are_those_of_orjson_and_json(rows):
    columns = [column(name, [row[place] for row in rows]) for place, name in enumerate(NAMES)]
    columns.insert(2, column("n", [str(row[-1]) for row in rows], quoted=False))
    data, offsets = objects(columns, len(rows))
    assert offsets[-1] == len(data)
    for number, row in enumerate(rows):
        said = {name: value for name, value in zip(NAMES, row, strict=False) if value is not ...} | {"n": row[-1]}
        line = data[offsets[number] : offsets[number + 1]].tobytes()
        assert line == json.dumps(said, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()
        assert line == orjson.dumps(said, option=orjson.OPT_SORT_KEYS)


def test_every_byte_at_every_place_of_a_block():
    texts = ["y" * before + chr(code) + "z" * 40 for before in (0, 1, 30, 31, 32, 33, 47, 48) for code in range(128)]
    data, offsets = buffers(texts)
    wanted = [orjson.dumps(text) for text in texts]
    assert written_sizes(data, offsets).tolist() == [len(text) for text in wanted]
    out, places = objects([column("t", texts)], len(texts))
    assert out.tobytes() == b"".join(b'{"t":' + text + b"}" for text in wanted) and len(places) == len(texts) + 1


def test_nothing_at_all():
    assert objects([], 2)[0].tobytes() == b"{}{}"
    assert objects([column("a", [])], 0)[1].tolist() == [0]


# Which texts mended must look at


@pytest.mark.parametrize("text", ["é and è, £", "Ünïcødé", "漢字", "plain", "", "Ã", "ÃÃ", "x" * 70 + "â€™", "ä"])
def test_texts_whose_first_letter_beyond_ascii_has_one_behind_it_are_looked_at(text):
    found = may_be_mended(*buffers([text, "a", text]))
    assert found.tolist() == [wanted := text in ("ÃÃ", "x" * 70 + "â€™"), False, wanted]


@pytest.mark.parametrize("text", ["“Ã©", "ä Ã©Ã©Ã©", "Ã\u0080", "Ã©ä", "Ã©"])
def test_a_text_is_passed_over_only_where_its_beginning_says_that_none_of_it_is_mended(text):
    assert may_be_mended(*buffers([text])).tolist() == [text.startswith("Ã")]


@given(st.lists(st.text("aé’“漢😀ÃâÂÐåäã£€Â©", max_size=30), max_size=5), st.sampled_from(["cp1252", "latin-1"]))
def test_no_text_that_is_mended_is_passed_over(texts, codec):
    spoilt = [text.encode().decode(codec, "ignore") for text in texts]
    for text, found in zip(spoilt, may_be_mended(*buffers(spoilt)), strict=True):
        assert found or mended(text) is None
