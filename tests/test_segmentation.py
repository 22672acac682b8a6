"""Words by a library in scripts without spaces: what is joined, what stays, the key, and what a missing one says."""

import importlib
import importlib.util
import json
import sys
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tasks.errors import ParamsError
from tasks.filter.planning import plan_measured
from tasks.text import segmentation as segmentation_module
from tasks.text.segmentation import join_words, library_version
from tasks.text.signals import measure_texts
from tasks.text.words import ALONE, character_tables, split_words, text_buffers
from tests.test_filter import params, run


def needs(library):
    return pytest.mark.skipif(
        importlib.util.find_spec(library) is None, reason=f"{library} is not installed: pip install .[segmentation]"
    )


def forms(texts, languages, chosen):
    """The words of each text, as they stand in it."""
    column = pa.array(texts, pa.large_string())
    words = join_words(split_words(column), *text_buffers(column), pa.array(languages), chosen)
    spans = list(zip(words.starts_W.tolist(), words.stops_W.tolist(), strict=True))
    offsets = words.offsets_D1.tolist()
    return [
        [text.encode()[start:stop].decode() for start, stop in spans[offsets[row] : offsets[row + 1]]]
        for row, text in enumerate(texts)
    ]


@needs("rjieba")
def test_chinese_words_are_those_of_jieba():
    texts = ["磨坊主打开了水闸，水轮开始慢慢转动。", "我爱北京天安门 and iPhone 15手机", "plain English", "", "中"]
    found = forms(texts, ["zh", "zh", "en", "zh", "zh"], {"zh": "rjieba"})
    assert found == [
        ["磨坊主", "打开", "了", "水闸", "水轮", "开始", "慢慢", "转动"],
        ["我", "爱", "北京", "天安门", "and", "iPhone", "15", "手机"],
        ["plain", "English"],
        [],
        ["中"],
    ]


@needs("icu")
@pytest.mark.parametrize(
    ("language", "text", "words"),
    [
        ("th", "โรงสีเปิดประตูน้ำ", ["โรง", "สี", "เปิด", "ประตู", "น้ำ"]),
        (
            "ja",
            "水車はゆっくりと回り始めました。😀粉",
            ["水車", "は", "ゆっくりと", "回り", "始め", "ま", "した", "粉"],
        ),
        ("lo", "ທຸກຄົນເກີດມາ", ["ທຸກຄົນ", "ເກີດ", "ມາ"]),
    ],
)
def test_words_of_icus_dictionaries(language, text, words):
    assert forms([text], [language], {language: "icu"}) == [words]


@needs("icu")
@pytest.mark.parametrize(("language", "text"), [("km", "មនុស្សទាំងអស់កើតមក"), ("my", "လူတိုင်းသည်")])
def test_words_of_khmer_and_burmese_are_longer_than_characters(language, text):
    (found,) = forms([text], [language], {language: "icu"})
    (alone,) = forms([text], [language], {})
    assert "".join(found) == text and 1 < len(found) < len(alone)


class Fake:
    """A library that ends a word behind every b and every 丙."""

    @staticmethod
    def cut(text):
        words = [""]
        for letter in text:
            words[-1] += letter
            if letter in "b丙":
                words.append("")
        return [word for word in words if word]


def oracle(text):
    classes = character_tables()[0]
    found, behind = [], False
    for word in forms([text], ["xx"], {})[0]:
        found.append((word, classes[ord(word[0])] == ALONE))
    joined, at = [], 0
    for word, alone in found:
        at = text.index(word, at)
        together = alone and behind and text[:at].endswith(joined[-1]) and text[at - 1] not in "b丙"
        joined[-1:] = [joined[-1] + word] if together else [*joined[-1:], word]
        behind, at = alone, at + len(word)
    return joined


@settings(max_examples=300)
@given(st.lists(st.text("甲乙丙ab 。\u0e01\u0e31😀é", max_size=20), max_size=4))
def test_joining_equals_a_plain_reading(texts):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segmentation_module, "_borders", lambda library, language: borders)
        assert forms(texts, ["zh"] * len(texts), {"zh": "rjieba"}) == [oracle(text) for text in texts]
        assert forms(texts, ["en"] * len(texts), {"zh": "rjieba"}) == forms(texts, ["en"] * len(texts), {})


def borders(text):
    return segmentation_module._jieba_borders(Fake, text)


@needs("rjieba")
def test_signals_count_the_librarys_words():
    text = "我爱北京天安门，" * 30
    alone = measure_texts(pa.array([text]), pa.array(["zh"]))
    words = measure_texts(pa.array([text]), pa.array(["zh"]), {"zh": "rjieba"})
    assert (alone["words"][0], words["words"][0]) == (210, 120)
    assert words["mean_word_length"][0] == 210 / 120 and words["max_word_length"][0] == 3
    assert words["duplicate_3gram_share"][0] == (118 - 4) / 118 and alone["duplicate_3gram_share"][0] == (208 - 7) / 208
    same = [name for name in alone if np.array_equal(alone[name], words[name])]
    assert {"characters", "bytes", "letters", "symbol_share", "sentences", "lines"} <= set(same)
    other = measure_texts(pa.array([text]), pa.array(["ja"]), {"zh": "rjieba"})
    assert all(np.array_equal(alone[name], other[name]) for name in alone if "stop" not in name)


@needs("rjieba")
def test_equal_words_have_equal_hashes_wherever_they_stand():
    column = pa.array(["北京天安门", "我爱北京", "北京"], pa.large_string())
    words = join_words(split_words(column), *text_buffers(column), pa.array(["zh"] * 3), {"zh": "rjieba"})
    assert words.offsets_D1.tolist() == [0, 2, 5, 6]
    assert words.hashes_W[0] == words.hashes_W[4] == words.hashes_W[5]
    assert len(set(words.hashes_W.tolist())) == 4


@needs("rjieba")
def test_slices_of_a_column_are_taken_as_they_are():
    whole = pa.array(["x", "北京天安门", "我爱北京"], pa.large_string())
    sliced = whole.slice(1)
    words = join_words(split_words(sliced), *text_buffers(sliced), pa.array(["zh"] * 2), {"zh": "rjieba"})
    assert words.offsets_D1.tolist() == [0, 2, 5]


def plan(chosen):
    entries = {"web-1": SimpleNamespace(origin=("", 0))}
    asked = SimpleNamespace(params=params(segmentation=chosen), entries=lambda folder: entries)
    return plan_measured(asked, SimpleNamespace(reads=("normalize/text",)))[0].spec


@needs("rjieba")
def test_the_librarys_version_is_in_the_key(monkeypatch):
    assert plan({}) == {}
    assert plan({"zh": "rjieba"}) == {"segmentation": {"rjieba": library_version("rjieba")}}
    monkeypatch.setattr(segmentation_module.metadata, "version", lambda name: "9.9")
    assert plan({"zh": "rjieba"}) == {"segmentation": {"rjieba": "9.9"}}


@pytest.mark.parametrize(("library", "package"), [("icu", "pyicu-wheels"), ("rjieba", "rjieba")])
def test_a_library_that_is_not_there_is_named_with_its_mend(monkeypatch, library, package):
    monkeypatch.setitem(sys.modules, library, None)
    real = importlib.import_module

    def missing(name, *rest):
        if name == library:
            raise ModuleNotFoundError(f"No module named {name}", name=name)
        return real(name, *rest)

    monkeypatch.setattr(segmentation_module.importlib, "import_module", missing)
    with pytest.raises(ParamsError, match=rf"asks for {library}, which is not installed") as raised:
        plan({"zh": library})
    assert raised.value.mend == f"pip install {package}, or take it out"


@pytest.mark.parametrize(
    ("chosen", "said"),
    [({"th": "rjieba"}, "rjieba tells no words of th, but of zh"), ({"en": "icu"}, "icu tells no words of en"),
     ({"zh": "jieba"}, "'icu' or 'rjieba'")],
)  # fmt: skip
def test_a_language_that_a_library_does_not_know_is_refused(chosen, said):
    with pytest.raises(ValidationError, match=said):
        params(segmentation=chosen)


def test_the_order_of_languages_does_not_matter():
    one, other = ({"zh": "rjieba", "ja": "icu"}, {"ja": "icu", "zh": "rjieba"})
    assert json.dumps(params(segmentation=one).segmentation) == json.dumps(params(segmentation=other).segmentation)


@needs("rjieba")
def test_a_text_of_laughter_is_dropped_with_a_librarys_words_too():
    text = "哈" * 80 + "这是一篇关于磨坊的文章，讲述了它的故事。"
    chosen = params({"set": "gopher-1", "leave_out": ["words"]}, segmentation={"zh": "rjieba"})
    (row,) = run([text], ["web"], chosen)[1].files[".parquet"].to_pylist()
    assert (row["verdict"], row["rule"]) == ("drop", "gopher.top_2gram") and row["value"] > 0.7
