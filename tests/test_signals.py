"""Signals against a plain-Python reading of their definitions, languages offline, rules in their order."""

import json
import random
import re
import socket
import unicodedata
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tasks.artifacts.verdicts import SIGNALS
from tasks.text import signals as signals_module
from tasks.text.characters import BULLETS, FULLS, QUOTES, TERMINALS, character_bits
from tasks.text.languages import detect_languages
from tasks.text.rules import CUTTABLE, Documents, Rule, check_rules, judge
from tasks.text.signals import NUMBERS, measure_texts
from tasks.text.stopwords import STOP_WORDS, stop_tables
from tasks.text.words import split_words

LANGID = Path(__file__).parents[1] / "../shared/corpora/web/langid/udhr2"
POLICIES = ("terms of use", "privacy policy", "cookie policy", "uses cookies", "use of cookies", "use cookies")
CLOSING = {chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) in ("Pe", "Pf")} | set(QUOTES)
LINK = re.compile(r"""(?<![A-Za-z0-9])(?:https?://|www\.)[!-~]*""", re.IGNORECASE | re.ASCII)
NO_LINK = re.compile(r"""[<>"`{}|\\^]""")


def share(over, under):
    return over / under if under else 0.0


def small(text):
    """ASCII alone in small letters."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in text)


def words_of(text):
    """(forms, lower-cased keys); splitting is tested by itself in test_words."""
    words = split_words(pa.array([text]))
    spans = zip(words.starts_W.tolist(), words.stops_W.tolist(), strict=True)
    forms = [text.encode()[a:b].decode() for a, b in spans]
    return forms, [form.lower().replace("ς", "σ") for form in forms]


def sentences_of(line):
    """Stretches of a line with a letter or digit."""
    stretches, start = [], 0
    for at, letter in enumerate(line):
        if letter not in TERMINALS:
            continue
        behind = at + 1
        while (
            behind < len(line) and (line[behind] in TERMINALS or line[behind] in CLOSING) and line[behind] not in FULLS
        ):
            behind += 1
        if letter in FULLS or behind == len(line) or line[behind].isspace():
            stretches.append(line[start : at + 1])
            start = at + 1
    stretches.append(line[start:])
    return sum(any(unicodedata.category(letter)[0] in "LMN" for letter in stretch) for stretch in stretches)


def link_characters(text):
    count, at = 0, 0
    while match := LINK.search(text, at):
        link = NO_LINK.split(match[0])[0]
        count += len(link)
        at = match.start() + len(link)
    return count


def top(keys, forms, n):
    """Of the n-grams that occur twice without overlap, the most characters that one covers."""
    free, times, size = {}, Counter(), {}
    for at in range(len(keys) - n + 1):
        gram = tuple(keys[at : at + n])
        size.setdefault(gram, sum(map(len, forms[at : at + n])))
        if at >= free.get(gram, 0):
            free[gram], times[gram] = at + n, times[gram] + 1
    return max((size[gram] * found for gram, found in times.items() if found > 1), default=0)


def passed_before(keys, forms, n):
    """DataTrove's find_all_duplicate, over words."""
    seen, at, repeated = {}, 0, 0
    while at <= len(keys) - n:
        gram = tuple(keys[at : at + n])
        if gram in seen:
            repeated += sum(map(len, forms[at : at + n]))
            at += n
        else:
            seen[gram] = at
            at += 1
    return repeated


def repeats(items):
    seen, found = set(), []
    for item in items:
        found += [item] if item in seen else []
        seen.add(item)
    return found


def oracle(text, language="en"):
    forms, keys = words_of(text)
    raw = text.split("\n")
    lines = [line.strip() for line in raw if line.strip()]
    paragraphs = ["\n".join(run) for run in blocks(line.strip() for line in raw)]
    majors = Counter(unicodedata.category(letter)[0] for letter in text)
    white = sum(letter.isspace() for letter in text)
    visible, in_words, size = len(text) - white, sum(map(len, forms)), sum(map(len, lines))
    grams = list(zip(keys, keys[1:], keys[2:], strict=False))
    stops = [key for key in keys if key in STOP_WORDS.get(language, "").split()]
    terminated = [line for line in lines if line[-1] in TERMINALS or line[-1] in QUOTES]
    return {
        "characters": len(text),
        "bytes": len(text.encode()),
        "words": len(forms),
        "letters": majors["L"] + majors["M"],
        "lines": len(lines),
        "paragraphs": len(paragraphs),
        "sentences": sum(map(sentences_of, raw)),
        "max_word_length": max(map(len, forms), default=0),
        "max_line_length": max(map(len, lines), default=0),
        "brief_lines": sum(len(words_of(line)[0]) < 3 for line in lines),
        "unterminated_lines": len(lines) - len(terminated),
        "javascript_lines": sum("javascript" in small(line) for line in raw),
        "policy_lines": sum(any(phrase in small(line) for phrase in POLICIES) for line in raw),
        "braces": text.count("{") + text.count("}"),
        "lorem_ipsum": small(text).count("lorem ipsum"),
        "stop_words": len(set(stops)),
        "mean_word_length": share(in_words, len(forms)),
        "mean_line_length": share(size, len(lines)),
        "letter_share": share(majors["L"] + majors["M"], visible),
        "digit_share": share(majors["N"], visible),
        "punctuation_share": share(majors["P"], visible),
        "symbol_share": share(visible - in_words, visible),
        "white_share": share(white, len(text)),
        "url_share": share(link_characters(text), visible),
        "replacement_share": share(text.count("\ufffd"), len(text)),
        "private_use_share": share(sum(unicodedata.category(letter) == "Co" for letter in text), len(text)),
        "letter_word_share": share(
            sum(any(unicodedata.category(c)[0] in "LM" for c in form) for form in forms), len(forms)
        ),
        "stop_word_share": share(len(stops), len(keys)),
        "hashes_per_word": share(text.count("#"), len(forms)),
        "ellipses_per_word": share(text.count("...") + text.count("…"), len(forms)),
        "newlines_per_word": share(text.count("\n"), len(forms)),
        "bullet_line_share": share(sum(line[0] in BULLETS for line in lines), len(lines)),
        "ellipsis_line_share": share(sum(line.endswith(("...", "…")) for line in lines), len(lines)),
        "terminated_line_share": share(len(terminated), len(lines)),
        "short_line_share": share(sum(len(line) <= 30 for line in lines), len(lines)),
        "duplicate_line_share": share(len(repeats(lines)), len(lines)),
        "duplicate_line_character_share": share(sum(map(len, repeats(lines))), size),
        "duplicate_paragraph_share": share(len(repeats(paragraphs)), len(paragraphs)),
        "duplicate_paragraph_character_share": share(
            sum(len(paragraph.replace("\n", "")) for paragraph in repeats(paragraphs)), size
        ),
        "duplicate_3gram_share": share(len(grams) - len(set(grams)), len(grams)),
        **{f"top_{n}gram_character_share": share(top(keys, forms, n), len(text)) for n in (2, 3, 4)},
        **{f"duplicate_{n}gram_character_share": share(passed_before(keys, forms, n), len(text)) for n in range(5, 11)},
    }


def blocks(lines):
    run = []
    for line in [*lines, ""]:
        if line:
            run.append(line)
        elif run:
            yield run
            run = []


def measure(texts, languages=None):
    return measure_texts(pa.array(texts, pa.large_string()), pa.array(languages or ["en"] * len(texts), pa.string()))


def check(texts):
    got = measure(texts)
    for row, text in enumerate(texts):
        assert {name: column[row] for name, column in got.items()} == oracle(text), repr(text)


HARD = [
    "", " \n\t ", "a", "a b", "a b c", "a b c a b c", "A b C a B c", "la la la la la", "\u0301\u0301",
    "one\n\n two\u2028three\n\r\n", "!?!? ...", "nul\x00byte", "x" * 100_000, "ab " * 30_000,
    "我爱北京我爱北京", "😀😀 👩\u200d👧", "שלום עולם שלום", "哈哈哈哈哈哈哈哈", "哈" * 80 + "这是一篇很好的文章。",
    "ΟΔΟΣ οδος οδοσ a ΟΔΟΣ οδος οδοσ", "\ufeff", "\U0010ffff", "\ue000\U000f0000\ufffd\ufffd",
    "One. Two! Three? 'Four.' (Five.) 6.5 e.g. this... and …that.", "好。不好！真的？\"真的。\"是",
    "a.b.c", "...", ".\n.\n.",
    "- a\n* b\n• c\n  • d\n-", "same\nsame\n same \n\nsame\nsame\nsame\n\nother", "p\nq\n\np\nq\n \np\nq",
    "Enable JavaScript.\njavascript javascript\nJava Script", "javascript",
    "xjavascrip", "JAVASCRIPT", "javas", "j", "ja", "xj",
    *(f"We {phrase} here.\n{phrase.upper()}\n{phrase[1:]}" for phrase in POLICIES), *POLICIES,
    "LOREM ipsum lorem  ipsum lorem ipsum", "lorem ipsum", "orem ipsum", "ipsum",
    "the looking privacy of use ookie rivac",
    "see http://a.b/c?d=e#f, https://x.y/(z) and www.q.r <http://s.t> xhttp://no HTTP://YES www. 1www.no http:/no",
    "http://www.a.b/www.c.d", "http://", "https://", "http:", "见http://a.cn。好", "\"www.a.b\"", "http://a|http://b",
    "#a ##b # {c} }{ …… .... ..... ......", "the the be of of of", "12 345 6a b7 八",
    *("x" * n for n in (29, 30, 31)), *("x" * n + "\n" + "字" * n for n in (29, 30, 31)),
    "one two\none two three\n一二\n一二三", "end.\nend\n“end.”\n'end'\nend:\nend…\nend)",
    "a b c d e f g h i j k l " * 3, "a b c d e x a b c d e y a b c d e", "a b c d e a b c d", "a a a a a a a a a a a",
    "one two three four five six seven eight nine ten. One two three four five six seven eight nine ten.",
]  # fmt: skip


def test_hard_cases_equal_the_oracle():
    check(HARD)


PIECES = st.sampled_from(
    [
        "a", "b", "A", "B", " ", "中", "か", "\u0301", ".", "!", "\n", "\n\n", "\u2028", "😀", "Σ", "ς",
        "...", "…", "。", "？", '"', ")",
        "- ", "• ", "#", "{", "7", "http://a.b/", "www.", "javascript", "JAVASCRIPT", "use cookies", "Privacy Policy",
        "lorem ipsum",
        "the ", "of ", "a b c d e ", "same line\n", "\ufffd", "\ue000", "\x00", "\u3000", "\u00a0", "i", "o", "ookie",
        "f use",
    ]
)  # fmt: skip


@settings(max_examples=400)
@given(st.lists(st.lists(PIECES, max_size=40).map("".join), max_size=5))
def test_any_text_equals_the_oracle(texts):
    check(texts)


@settings(max_examples=200)
@given(st.lists(st.text(max_size=60), max_size=5))
def test_any_characters_equal_the_oracle(texts):
    check([text.encode("utf-8", "replace").decode() for text in texts])


@settings(max_examples=200)
@given(st.lists(st.sampled_from("abcd"), max_size=200).map(" ".join))
def test_repetition_of_few_words_equals_the_oracle(text):
    check([text])


def test_repetition_of_many_words_equals_the_oracle():
    """So many different n-grams that some meet in the tables, and runs of any length that come again."""
    choose = random.Random(5)
    words = [f"w{choose.randrange(2000)}" for _ in range(6000)]
    for _ in range(40):
        at = choose.randrange(5000)
        words += words[at : at + choose.randrange(2, 30)]
    check([" ".join(words), "so " * 50 + " ".join(words[:500])])


def test_lines_that_differ_in_one_byte_are_not_the_same():
    """Whichever byte of a line of whatever length it is."""
    for size in range(1, 50):
        lines = ["a" * at + "b" + "a" * (size - 1 - at) for at in range(size)] + ["a" * size]
        got = measure(["\n".join(lines), "\n".join([*lines, lines[size // 2]])])
        assert got["duplicate_line_share"].tolist() == [0, 1 / (size + 2)], size


def test_the_corpora_equal_the_oracle():
    folder = LANGID.parents[2]
    files = sorted(folder.glob("text-unicode/**/*.txt"))[:20] + sorted(LANGID.glob("*.txt"))[::40]
    if not files:
        pytest.skip("the shared corpora are not here")
    check([file.read_bytes()[:20_000].decode("utf-8", "replace") for file in files])


def test_what_is_counted_stays_exact_beyond_a_million_characters():
    text = "a1." * 700_000 + "\n好。" * 10
    got = measure([text])
    assert got["letters"][0] == 700_010 and got["sentences"][0] == 11
    assert got["digit_share"][0] == 700_000 / (2_100_020) and got["punctuation_share"][0] == 700_010 / 2_100_020


def test_a_text_of_laughter_is_all_repetition_and_never_more():
    got = measure(["哈" * 80 + "这是一篇很好的文章，讲述了磨坊的故事。"])
    assert 0.7 < got["top_2gram_character_share"][0] <= 1
    assert got["duplicate_5gram_character_share"][0] > 0.7 and got["duplicate_3gram_share"][0] > 0.7


def test_stop_words_are_those_of_the_texts_language():
    got = measure(["the be of the", "the be of the", "der die und", "的年在", "the"], ["en", "de", "de", "zh", "xx"])
    assert got["stop_words"].tolist() == [3, 0, 3, 3, 0]
    assert got["stop_word_share"].tolist() == [1.0, 0.0, 1.0, 1.0, 0.0]


def test_every_list_of_stop_words_holds_words_as_they_are_split():
    codes, (keys, _, _) = stop_tables()
    for place, code in enumerate(codes):
        listed = STOP_WORDS[code].split()
        assert len(set(listed)) == len(listed) and len(listed) < 64, code
        assert len(split_words(pa.array([" ".join(listed)])).hashes_W) == len(listed), code
        assert np.count_nonzero(keys[place]) == len(listed), code


def test_the_bits_of_every_code_point():
    bits = character_bits()
    for code in range(0x110000):
        letter, found = chr(code), int(bits[code])
        major = unicodedata.category(letter)[0]
        wanted = {"L": 1, "M": 1, "N": 2, "P": 4}.get(major, 0) | 8 * letter.isspace()
        wanted |= (
            16 * (letter in TERMINALS) | 32 * (letter in FULLS) | 64 * (letter in CLOSING) | 128 * (letter in QUOTES)
        )
        wanted |= 256 * (letter in BULLETS) | 512 * (unicodedata.category(letter) == "Co") | 1024 * (code == 0xFFFD)
        assert found == wanted, hex(code)


def test_slices_do_not_show(monkeypatch):
    texts = [*HARD, *(f"text number {n} of many, many words" * (n % 7) for n in range(500))]
    languages = [("en", "de", "zh")[n % 3] for n in range(len(texts))]
    whole = measure(texts, languages)
    for size in (1, 100, 5000):
        monkeypatch.setattr(signals_module, "SLICE_BYTES", size)
        for name, column in measure(texts, languages).items():
            assert np.array_equal(column, whole[name]) and column.dtype == whole[name].dtype


def test_nulls_chunks_and_zero_rows():
    chunked = pa.chunked_array([pa.array(["a b", None]), pa.array([], pa.string()), pa.array(["c"])])
    assert measure_texts(chunked, pa.array(["en"] * 3))["words"].tolist() == [2, 0, 1]
    empty = measure_texts(pa.chunked_array([], pa.large_string()), pa.array([], pa.string()))
    assert {name: len(column) for name, column in empty.items()} == dict.fromkeys(empty, 0)
    assert detect_languages(pa.chunked_array([], pa.large_string()), 10)[0].to_pylist() == []


def test_columns_are_those_of_the_schema():
    columns = measure(["a"])
    assert [*columns, "language", "language_score"] == SIGNALS.names
    assert list(NUMBERS) == list(columns) and set(NUMBERS) > CUTTABLE
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
    detect_languages(pa.array(["a"]), 300)  # numba says much where it compiles
    caplog.set_level("DEBUG")
    codes, scores = detect_languages(pa.array([text + "\n" + text * 50 for text in TEXTS.values()]), 300)
    assert codes.to_pylist() == list(TEXTS)
    assert np.all((scores > 0.5) & (scores <= 1)) and np.array_equal(scores, np.round(scores, 2))
    assert capfd.readouterr() == ("", "") and not caplog.records


def test_texts_without_letters_are_undetermined():
    texts = ["", " \n ", "123 456", "!?.", "\x00\x00", "😀", "\u0301", "٣٤", None]
    codes, scores = detect_languages(pa.array(texts), 100)
    assert set(codes.to_pylist()) == {"und"} and not scores.any()


NAVIGATION = "Home\nAbout us\nProducts\nSign in\nMy account\nPrivacy policy\nRead more\nShare this page\n" * 8


def test_neither_head_nor_foot_of_a_long_text_decides():
    for code, text in TEXTS.items():
        page = NAVIGATION + "\n".join([text * 3] * 6) + "\n" + NAVIGATION
        assert detect_languages(pa.array([page]), 300)[0].to_pylist() == [code]
        assert detect_languages(pa.array([page[: len(NAVIGATION)]]), 300)[0].to_pylist() == ["en"]
    assert detect_languages(pa.array([TEXTS["en"] + "\n" + TEXTS["ru"] * 30]), 300)[0].to_pylist() == ["ru"]
    assert detect_languages(pa.array(["\n" * 5 + TEXTS["de"]]), 300)[0].to_pylist() == ["de"]


def test_capitals_are_read_as_small_letters():
    texts = [text.upper() for text in TEXTS.values()]
    assert detect_languages(pa.array(texts), 300)[0].to_pylist() == list(TEXTS)


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
    defaults = {name: [0.0] * rows for name in NUMBERS} | {"letters": [100] * rows, "language": ["en"] * rows}
    return pa.table({**defaults, "language_score": [0.0] * rows, **columns})


def rule(**fields):
    return Rule.model_validate_json(json.dumps(fields))


def judged(rules, table, kinds, source="a", letters_min=0):
    return judge(rules, Documents(table, pa.array(kinds, pa.string()), source), letters_min)


def test_the_first_rule_broken_wins_and_limits_pass():
    rules = [rule(name="short", signal="words", min=5), rule(name="symbols", signal="symbol_share", max=0.5)]
    table = signals_table(words=[4, 5, 6, 4], symbol_share=[0.1, 0.5, 0.6, 0.9])
    got = judged(rules, table, ["web"] * 4)
    assert got.rule_D.tolist() == [0, -1, 1, 0]
    assert got.value_D.tolist()[2:] == [0.6, 4.0] and got.limit_D.tolist()[2:] == [0.5, 5.0]
    assert np.isnan(got.value_D[1]) and np.isnan(got.limit_D[1])
    reversed_ = judged(rules[::-1], table, ["web"] * 4)
    assert reversed_.rule_D.tolist() == [1, -1, 0, 0]


def test_both_limits_name_the_one_broken():
    both = rule(name="length", signal="mean_word_length", min=3, max=10)
    got = judged([both], signals_table(mean_word_length=[2.0, 3.0, 10.0, 11.0]), ["web"] * 4)
    assert got.rule_D.tolist() == [0, -1, -1, 0] and got.limit_D[[0, 3]].tolist() == [3.0, 10.0]


def test_kinds_and_languages_narrow_a_rule():
    rules = [rule(name="short", signal="words", min=5, kinds=["web", "book"], languages=["en", "de"])]
    table = signals_table(words=[1, 1, 1, 1], language=["en", "zh", "de", "en"])
    assert judged(rules, table, ["web", "web", "book", "code"]).rule_D.tolist() == [0, -1, 0, -1]


def test_a_list_of_languages():
    rules = [rule(name="language", signal="language", languages=["en", "de"], kinds=["web"])]
    table = signals_table(language=["en", "fr", "und", "fr"])
    got = judged(rules, table, ["web", "web", "web", "code"])
    assert got.rule_D.tolist() == [-1, 0, 0, -1]
    assert got.value_D[[1, 2]].tolist() == [0, 0] and got.limit_D[[1, 2]].tolist() == [1, 1]


def test_no_rules_and_no_rows():
    assert judged([], signals_table(words=[0, 1]), ["web", "web"]).rule_D.tolist() == [-1, -1]
    short = rule(name="short", signal="words", min=5, kinds=["web"], languages=["en"])
    got = judged([short], SIGNALS.empty_table(), [])
    assert len(got.rule_D) == 0


@settings(max_examples=100)
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
    got = judged(rules, table, kinds)
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


def test_names_are_unique_and_signals_known():
    with pytest.raises(ValueError, match="more than one rule is named a;"):
        check_rules([rule(name="a", signal="words", min=1), rule(name="a", signal="bytes", max=1)], SIGNALS.names)
    with pytest.raises(ValueError, match="rule x: no such signal as wrods; there are characters, bytes, words"):
        check_rules([rule(name="x", signal="wrods", min=1)], SIGNALS.names)


def test_other_limits_for_some_and_the_first_that_means_a_document_decides():
    where = [
        {"languages": ["zh"], "max": 0.5},
        {"sources": ["poems"], "skip": True},
        {"kinds": ["book"], "max": 0.9},
        {"languages": ["de"], "min": 0.1},
    ]
    rules = [rule(name="r", signal="symbol_share", max=0.3, where=where)]
    values, languages = [0.3, 0.31, 0.5, 0.51, 0.05, 0.1, 0.31], ["en", "en", "zh", "zh", "de", "de", "de"]
    table = signals_table(symbol_share=values, language=languages)
    assert judged(rules, table, ["web"] * 7).rule_D.tolist() == [-1, 0, -1, 0, 0, -1, 0]
    assert judged(rules, table, ["web"] * 7).limit_D[[1, 3, 4]].tolist() == [0.3, 0.5, 0.1]
    assert judged(rules, table, ["web"] * 7, "poems").rule_D.tolist() == [-1, -1, -1, 0, -1, -1, -1]
    assert judged(rules, table, ["book"] * 7).rule_D.tolist() == [-1, -1, -1, 0, -1, -1, -1]


def test_sources_narrow_a_rule_and_a_list_of_languages_by_source():
    rules = [rule(name="language", signal="language", languages=["en"], sources=["web", "news"])]
    table = signals_table(language=["en", "fr"])
    assert judged(rules, table, ["web"] * 2, "news").rule_D.tolist() == [-1, 0]
    assert judged(rules, table, ["web"] * 2, "books").rule_D.tolist() == [-1, -1]


def test_languages_are_not_judged_of_texts_too_short_to_tell():
    rules = [
        rule(name="language", signal="language", languages=["en"]),
        rule(name="unclear", signal="language_score", min=0.5),
        rule(name="words", signal="words", min=1),
    ]
    table = signals_table(
        letters=[19, 20, 19, 20, 19],
        language=["fr", "fr", "en", "en", "en"],
        language_score=[0.1] * 5,
        words=[1, 1, 1, 1, 0],
    )
    assert judged(rules, table, ["web"] * 5, letters_min=20).rule_D.tolist() == [-1, 0, -1, 1, 2]


def test_an_absent_value_breaks_nothing():
    table = signals_table(words=[1, 1]).append_column("metadata.stars", pa.array([None, 1.0]))
    rules = [rule(name="stars", signal="metadata.stars", min=3), rule(name="few", signal="metadata.stars", max=0.5)]
    assert judged(rules, table, ["web"] * 2).rule_D.tolist() == [-1, 0]


def test_what_is_cut_is_kept_unless_another_rule_drops_it():
    rules = [
        rule(name="scripts", signal="javascript_lines", max=0, action="cut"),
        rule(name="short", signal="words", min=5),
        rule(name="policies", signal="policy_lines", max=0, action="cut"),
    ]
    table = signals_table(javascript_lines=[0, 1, 2, 1, 1], policy_lines=[0, 0, 1, 1, 1], words=[5, 5, 5, 4, 5])
    got = judged(rules, table, ["web", "web", "paper", "web", "code"])
    assert got.rule_D.tolist() == [-1, 0, 0, 1, -1] and got.dropped_D.tolist() == [False] * 3 + [True, False]
    assert got.value_D[[1, 2, 3]].tolist() == [1, 2, 4] and got.limit_D[[1, 2, 3]].tolist() == [0, 0, 5]
    assert {place: cut.tolist() for place, cut in got.cuts.items()} == {
        0: [False, True, True, False, False],
        2: [False, False, True, False, False],
    }


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"signal": "words", "min": 1, "action": "cut"}, "says nothing of single lines"),
        ({"signal": "brief_lines", "max": 1, "action": "cut", "kinds": ["web", "chat"]}, "never cut"),
        ({"signal": "words", "min": 5, "where": [{"languages": ["de"], "max": 4}]}, "min 5.0 is above max 4.0"),
        ({"signal": "words", "where": [{"languages": ["de"], "skip": True}]}, "neither min nor max"),
        ({"signal": "words", "min": 1, "where": [{"language": ["de"], "min": 4}]}, "Extra inputs"),
        ({"signal": "language", "languages": ["de"], "where": [{"kinds": ["web"], "skip": True}]}, "takes languages"),
        ({"signal": "words", "min": 1, "action": "keep"}, "'drop' or 'cut'"),
    ],
)
def test_a_faulty_exception_or_cut_says_what_is_wrong(fields, said):
    with pytest.raises(ValidationError, match=said):
        rule(name="x", **fields)
