"""Signals against a plain-Python reading of their definitions, languages offline, rules in their order."""

import json
import socket
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tasks.artifacts.verdicts import SIGNALS
from tasks.text import signals as signals_module
from tasks.text.languages import detect_languages
from tasks.text.rules import LANGUAGE, NUMBERS, Rule, check_names, judge
from tasks.text.signals import measure_texts
from tasks.text.words import split_words

LANGID = Path(__file__).parents[1] / "../shared/corpora/web/langid/udhr2"


def oracle(text):
    words = split_words(pa.array([text]))  # tested by itself in test_words
    spans = list(zip(words.starts_W.tolist(), words.stops_W.tolist(), strict=True))
    forms = [text.encode()[a:b].decode() for a, b in spans]
    keys = [form.lower().replace("ς", "σ") for form in forms]
    white = sum(character.isspace() for character in text)
    in_words = sum(map(len, forms))
    grams = list(zip(keys, keys[1:], keys[2:], strict=False))
    return {
        "characters": len(text),
        "bytes": len(text.encode()),
        "words": len(forms),
        "lines": sum(bool(line.strip()) for line in text.split("\n")),
        "mean_word_length": in_words / len(forms) if forms else 0.0,
        "symbol_share": (len(text) - white - in_words) / (len(text) - white) if len(text) > white else 0.0,
        "duplicate_3gram_share": (len(grams) - len(set(grams))) / len(grams) if grams else 0.0,
    }


def check(texts):
    got = measure_texts(pa.array(texts, pa.large_string()))
    for row, text in enumerate(texts):
        assert {name: column[row] for name, column in got.items()} == oracle(text)


HARD = [
    "", " \n\t ", "a", "a b", "a b c", "a b c a b c", "A b C a B c", "la la la la la", "\u0301\u0301",
    "one\n\n two\u2028three\n\r\n", "!?!? ...", "nul\x00byte", "x" * 100_000, "ab " * 30_000,
    "我爱北京我爱北京", "😀😀 👩\u200d👧", "שלום עולם שלום",
    "ΟΔΟΣ οδος οδοσ a ΟΔΟΣ οδος οδοσ", "\ufeff", "\U0010ffff",
]  # fmt: skip


def test_hard_cases_equal_the_oracle():
    check(HARD)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text("abAB 中か\u0301.!\n\u2028😀Σς", max_size=60), max_size=6))
def test_any_text_equals_the_oracle(texts):
    check(texts)


def test_slices_do_not_show(monkeypatch):
    texts = pa.array([*HARD, *(f"text number {n} of many, many words" * (n % 7) for n in range(500))])
    whole = measure_texts(texts)
    for size in (1, 100, 5000):
        monkeypatch.setattr(signals_module, "SLICE_BYTES", size)
        for name, column in measure_texts(texts).items():
            assert np.array_equal(column, whole[name]) and column.dtype == whole[name].dtype


def test_nulls_chunks_and_zero_rows():
    chunked = pa.chunked_array([pa.array(["a b", None]), pa.array([], pa.string()), pa.array(["c"])])
    assert measure_texts(chunked)["words"].tolist() == [2, 0, 1]
    empty = measure_texts(pa.chunked_array([], pa.large_string()))
    assert {name: len(column) for name, column in empty.items()} == dict.fromkeys(empty, 0)
    assert detect_languages(pa.chunked_array([], pa.large_string()), 10)[0].to_pylist() == []


def test_columns_are_those_of_the_schema():
    columns = measure_texts(pa.array(["a"]))
    assert [*columns, "language", "language_score"] == SIGNALS.names
    assert {*NUMBERS, LANGUAGE} == set(SIGNALS.names)
    for name, column in columns.items():
        assert pa.array(column).type == SIGNALS.field(name).type


TEXTS = {
    "en": "The miller opened the sluice and the wheel began to turn, slowly at first.",
    "de": "Der Müller öffnete die Schleuse, und das Rad begann sich langsam zu drehen.",
    "fr": "Le meunier ouvrit l'écluse et la roue se mit à tourner, lentement d'abord.",
    "es": "El molinero abrió la compuerta y la rueda empezó a girar despacio.",
    "zh": "磨坊主打开了水闸，水轮开始慢慢转动，面粉落进了袋子里。",
    "ja": "粉屋は水門を開け、水車はゆっくりと回り始めました。",
    "ru": "Мельник открыл шлюз, и колесо начало медленно вращаться.",
}


def test_languages_without_the_network(monkeypatch, capfd, caplog):
    def refuse(*_args, **_kwargs):
        raise AssertionError("the network was touched")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    caplog.set_level("DEBUG")
    codes, scores = detect_languages(pa.array([text + "\n" + text * 50 for text in TEXTS.values()]), 300)
    assert codes.to_pylist() == list(TEXTS)
    assert np.all((scores > 0.5) & (scores <= 1)) and np.array_equal(scores, np.round(scores, 2))
    assert capfd.readouterr() == ("", "") and not caplog.records


def test_texts_without_letters_are_undetermined():
    texts = ["", " \n ", "123 456", "!?.", "\x00\x00", "😀", "\u0301", "٣٤", None]
    codes, scores = detect_languages(pa.array(texts), 100)
    assert set(codes.to_pylist()) == {"und"} and not scores.any()


def test_only_the_beginning_tells_the_language():
    text = TEXTS["en"] + TEXTS["ru"] * 30
    assert detect_languages(pa.array([text]), len(TEXTS["en"]))[0].to_pylist() == ["en"]
    assert detect_languages(pa.array([text]), 10_000)[0].to_pylist() == ["ru"]
    assert detect_languages(pa.array(["\n" * 5 + TEXTS["de"]]), 300)[0].to_pylist() == ["de"]


def test_odd_texts_have_some_language():
    texts = [
        "</s>",
        "</s> " + TEXTS["en"],
        "a",
        "a\x00b",
        "\u2028x\u2029",
        "ab" * 100_000,
        "__label__de hello",
    ]
    codes, scores = detect_languages(pa.array(texts), 1000)
    assert codes[1].as_py() == "en" and len(codes) == len(scores) == len(texts)
    assert codes.null_count == 0 and np.all((scores >= 0) & (scores <= 1))


def test_languages_of_real_texts():
    if not LANGID.is_dir():
        pytest.skip("the shared corpora are not here")
    wanted = {"deu_1901": "de", "spa": "es", "ita": "it", "pol": "pl", "tha": "th", "ukr": "uk"}
    texts = {code: (LANGID / f"{code}.txt").read_text("utf-8")[1000:2000] for code in wanted}
    assert detect_languages(pa.array(list(texts.values())), 300)[0].to_pylist() == list(wanted.values())


def signals_table(**columns):
    rows = len(next(iter(columns.values())))
    defaults = {name: [0.0] * rows for name in NUMBERS} | {"language": ["en"] * rows}
    return pa.table({**defaults, **columns})


def rule(**fields):
    return Rule.model_validate_json(json.dumps(fields))


def test_the_first_rule_broken_wins_and_limits_pass():
    rules = [rule(name="short", signal="words", min=5), rule(name="symbols", signal="symbol_share", max=0.5)]
    table = signals_table(words=[4, 5, 6, 4], symbol_share=[0.1, 0.5, 0.6, 0.9])
    got = judge(rules, table, pa.array(["web"] * 4))
    assert got.rule_D.tolist() == [0, -1, 1, 0]
    assert got.value_D.tolist()[2:] == [0.6, 4.0] and got.limit_D.tolist()[2:] == [0.5, 5.0]
    assert np.isnan(got.value_D[1]) and np.isnan(got.limit_D[1])
    reversed_ = judge(rules[::-1], table, pa.array(["web"] * 4))
    assert reversed_.rule_D.tolist() == [1, -1, 0, 0]


def test_both_limits_name_the_one_broken():
    both = rule(name="length", signal="mean_word_length", min=3, max=10)
    got = judge([both], signals_table(mean_word_length=[2.0, 3.0, 10.0, 11.0]), pa.array(["web"] * 4))
    assert got.rule_D.tolist() == [0, -1, -1, 0] and got.limit_D[[0, 3]].tolist() == [3.0, 10.0]


def test_kinds_and_languages_narrow_a_rule():
    rules = [rule(name="short", signal="words", min=5, kinds=["web", "book"], languages=["en", "de"])]
    table = signals_table(words=[1, 1, 1, 1], language=["en", "zh", "de", "en"])
    assert judge(rules, table, pa.array(["web", "web", "book", "code"])).rule_D.tolist() == [0, -1, 0, -1]


def test_a_list_of_languages():
    rules = [rule(name="language", signal="language", languages=["en", "de"], kinds=["web"])]
    table = signals_table(language=["en", "fr", "und", "fr"])
    got = judge(rules, table, pa.array(["web", "web", "web", "code"]))
    assert got.rule_D.tolist() == [-1, 0, 0, -1]
    assert got.value_D[[1, 2]].tolist() == [0, 0] and got.limit_D[[1, 2]].tolist() == [1, 1]


def test_no_rules_and_no_rows():
    assert judge([], signals_table(words=[0, 1]), pa.array(["web", "web"])).rule_D.tolist() == [-1, -1]
    short = rule(name="short", signal="words", min=5, kinds=["web"], languages=["en"])
    got = judge([short], SIGNALS.empty_table(), pa.array([], pa.string()))
    assert len(got.rule_D) == 0


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_judging_equals_a_loop(data):
    names = st.sampled_from(["web", "code", "chat"]), st.sampled_from(["en", "zh", "und"])
    docs = data.draw(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), *names), min_size=1, max_size=12))
    limits = st.tuples(
        st.sampled_from(["words", "lines"]), st.integers(0, 5), st.integers(5, 9),
        *(st.one_of(st.none(), st.lists(drawn, min_size=1)) for drawn in names),
    )  # fmt: skip
    drawn = data.draw(st.lists(limits, max_size=4))
    rules = [
        rule(name=f"r{n}", signal=s, min=a, max=b, kinds=k, languages=g) for n, (s, a, b, k, g) in enumerate(drawn)
    ]
    words, lines, kinds, languages = zip(*docs, strict=True)
    table = signals_table(words=words, lines=lines, language=languages)
    got = judge(rules, table, pa.array(kinds))
    for row, (word, line, kind, language) in enumerate(docs):
        expected = -1
        for place, (signal, low, high, of_kinds, of_languages) in enumerate(drawn):
            value = word if signal == "words" else line
            concerned = (not of_kinds or kind in of_kinds) and (not of_languages or language in of_languages)
            if concerned and not low <= value <= high:
                expected = place
                break
        assert got.rule_D[row] == expected


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": "x", "signal": "wrods", "min": 1}, "no such signal; there are characters, bytes, words"),
        ({"name": "x", "signal": "words"}, "neither min nor max"),
        ({"name": "x", "signal": "words", "min": 2, "max": 1}, "min 2.0 is above max 1.0"),
        ({"name": "X y", "signal": "words", "min": 1}, "pattern"),
        ({"name": "x", "signal": "words", "min": "1"}, "valid number"),
        (
            {"name": "x", "signal": "words", "min": 1, "kinds": ["wbe"]},
            "'web', 'book', 'code', 'paper' or 'chat'",
        ),
        ({"name": "x", "signal": "words", "min": 1, "kinds": []}, "at least 1 item"),
        ({"name": "x", "signal": "words", "min": 1, "maxi": 1}, "Extra inputs"),
        ({"name": "x", "signal": "words", "min": float("nan")}, "finite number"),
        ({"name": "x", "signal": "language", "min": 1}, "takes languages"),
        ({"name": "x", "signal": "language"}, "takes languages"),
    ],
)
def test_a_faulty_rule_says_what_is_wrong(fields, said):
    with pytest.raises(ValidationError, match=said):
        rule(**fields)


def test_names_are_unique():
    with pytest.raises(ValueError, match="more than one rule is named a;"):
        check_names([rule(name="a", signal="words", min=1), rule(name="a", signal="bytes", max=1)])
