"""Characters and visible ones are those that Python counts, wherever a text lies in its column."""

import numpy as np
import pyarrow as pa
import pytest

from tasks.text.byte_counts import character_counts, visible_ascii

TEXTS = [
    "",
    "a",
    " \t\n",
    "é",
    "日本語",
    "x" * 63 + "é",
    "é" * 64,
    "ab " * 100,
    "\x7f\x80~!",
    "😀" * 33,
    "z" * 64,
    None,
    "end",
]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
@pytest.mark.parametrize("cut", range(0, len(TEXTS), 3))
def test_counts_are_those_of_python(kind, cut):
    column = pa.chunked_array([TEXTS[:cut], TEXTS[cut:]], kind)
    for texts, known in ((column, TEXTS), (column.slice(2, 7), TEXTS[2:9]), (pa.array(TEXTS, kind)[1:], TEXTS[1:])):
        assert character_counts(texts).to_pylist() == [None if text is None else len(text) for text in known]
        visible, wide = visible_ascii(texts)
        assert visible.tolist() == [sum("!" <= letter <= "~" for letter in text or "") for text in known]
        assert wide.tolist() == [not (text or "").isascii() for text in known]


def test_random_texts_of_every_length():
    draw = np.random.default_rng(3)
    letters = np.array(list("a Z\n~é日😀\x00"))
    texts = ["".join(draw.choice(letters, size)) for size in range(200)]
    assert character_counts(pa.array(texts)).to_pylist() == [len(text) for text in texts]
    assert visible_ascii(pa.array(texts))[0].tolist() == [
        sum("!" <= letter <= "~" for letter in text) for text in texts
    ]
