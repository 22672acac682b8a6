"""Clean text: right values worked out by hand, the plain chain of substitutions as oracle, idempotence, no blow-up."""

import json
import sys
import time
import unicodedata
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tasks.text.chats import joined
from tasks.text.forms import MARK, UNSURE, form_of
from tasks.text.whitespace import FORMS, WHITESPACE, normalize_texts
from tests.corpora import shared
from tests.plain_text import is_mark, plain_text

SHARED = Path(__file__).parents[2] / "shared"
TRICKY = (
    "ab \t\n\r\x00\x0b\x0c\x1f\x7f\x85\u00a0\u00ad\u00a8\u2028\u2029\u200b\u200c\u200d\u200e\ufeff"
    "\u3000\u2003"
    "e\u0301\u0316\u0344\u0958\u1e14\uff9e\u1100\u1161\u11a8\u0338=\u2024\u33c2\ufdfa\U0001d15e\U000e0041x²½ﬁ"
    "\u0f73\u09c7\u09be"
)
TEXTS = st.text(st.sampled_from(TRICKY), max_size=60) | st.text(max_size=60)


def clean(text, whitespace="inside", form="NFC", marks=30):
    return normalize(text, form, whitespace, marks)


def normalize(text, form, whitespace, marks):
    return normalize_texts(pa.array([text]), form, whitespace, marks).to_pylist()[0]


def assert_plain(texts, form, whitespace, marks=30):
    """Every text as the oracle makes it, alone and behind others."""
    found = normalize_texts(pa.array(texts, pa.large_string()), form, whitespace, marks)
    found.validate(full=True)
    for text, result in zip(texts, found.to_pylist(), strict=True):
        assert result == plain_text(text, form, whitespace, marks), ascii(text[:200])


@pytest.mark.parametrize(
    ("text", "collapse", "inside", "keep"),
    [
        ("a\r\nb\rc\nd", "a\nb\nc\nd", "a\nb\nc\nd", "a\nb\nc\nd"),
        ("a  b\t\tc", "a b c", "a b c", "a  b\t\tc"),
        ("a\n    b  c", "a\n b c", "a\n    b c", "a\n    b  c"),
        ("a \t\nb  ", "a\nb", "a\nb", "a\nb"),
        ("a\n\n\n\n\nb", "a\n\nb", "a\n\nb", "a\n\n\nb"),
        ("a\n \n\t\n\u3000\nb", "a\n\nb", "a\n\nb", "a\n\n\nb"),
        ("  a", "a", "a", "  a"),
        ("\n\n\ta\n\n", "a", "a", "\ta"),
        ("a\u00a0\u3000b", "a b", "a b", "a\u00a0\u3000b"),
        ("a\u2028b\x85c\x0cd", "a\nb\nc\nd", "a\nb\nc\nd", "a\nb\nc\nd"),
        ("a\x00\x07b\u200b\ufeffc\u00add", "abcd", "abcd", "abcd"),
        (" \n\u200b\t\u00a0\u2029", "", "", ""),
        ("", "", "", ""),
    ],
)
def test_blanks_and_controls(text, collapse, inside, keep):
    assert [clean(text, way) for way in ("collapse", "inside", "keep")] == [collapse, inside, keep]


def test_forms():
    assert clean("e\u0301 x² ½ ﬁ ①", form="NFC") == "é x² ½ ﬁ ①"
    assert clean("e\u0301 x² ½ ﬁ ①", form="NFKC") == "é x2 1⁄2 fi 1"
    assert clean("e\u0301 ﬁ", form="none") == "e\u0301 ﬁ"


def test_joiners_stay_inside_words_and_emoji():
    persian, family = "می\u200cخواهم", "👨\u200d👩\u200d👧"
    assert clean(f"{persian} {family}") == f"{persian} {family}"
    assert clean("\u200da \u200db\u200c c\u200d") == "a b c"
    assert clean("\u200d\u200d") == ""


def test_marks_in_a_row_are_bounded():
    assert clean("a" + "\u0301" * 50, marks=3) == "á" + "\u0301" * 2
    assert (
        clean("a" + "\u0316\u0301" * 3 + "b" + "\u0316" * 9, form="none", marks=4)
        == "a\u0316\u0301\u0316\u0301b" + "\u0316" * 4
    )
    decomposed = clean("q" + "\u0344" * 40)
    assert len(decomposed) == 31  # one U+0344 is two marks: bounded again after the form
    assert clean("देवनागरी ขั้น Việt") == "देवनागरी ขั้น Việt"


def test_marks_cost_no_quadratic_time():
    begin = time.process_time()
    clean("a" + "\u0301\u0316" * 500_000)
    assert time.process_time() - begin < 3  # unbounded: 200 kB took 27 s


@pytest.mark.parametrize("form", FORMS)
def test_every_character_that_reordering_moves_is_a_mark(form):
    classes = form_of(form).classes
    for code in range(sys.maxunicode + 1):
        if 0xD800 <= code < 0xE000:
            continue
        assert is_mark(chr(code)) <= bool(classes[code] & (MARK | UNSURE)), hex(code)
    assert not classes[ord("a")] and not classes[0xFE0F] and not classes[ord("中")]


@given(TEXTS, st.sampled_from(FORMS), st.sampled_from(WHITESPACE), st.integers(1, 4))
@example("a\u200d\u00a8", "NFKC", "collapse", 1)
@example("\u00a8\u0301\u0316", "NFKC", "keep", 2)
def test_normalizing_twice_is_normalizing_once(text, form, whitespace, marks):
    once = normalize(text, form, whitespace, marks)
    assert normalize(once, form, whitespace, marks) == once
    if form != "none":
        assert unicodedata.is_normalized(form, once)
    assert not any(letter in once for letter in "\r\x00\x0b\x0c\x1f\x7f\x85\u200b\ufeff\u2028\u00ad")
    assert "\n\n\n\n" not in once and " \n" not in once and once == once.strip("\n")
    if whitespace == "collapse":
        assert "  " not in once and "\t" not in once and "\n\n\n" not in once


EVERY = [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) not in ("Cs", "Cn", "Co")]
"""Every character there is but, of the ideographs and syllables of Hangul, one in sixteen."""
CODES = [
    letter
    for letter in EVERY
    if ord(letter) % 16 == 3 or unicodedata.name(letter, "").split(" ")[0] not in ("CJK", "HANGUL")
]
CODES += [
    letter for letter in EVERY if unicodedata.name(letter, "").startswith(("CJK COMPAT", "HANGUL JUNG", "HANGUL JONG"))
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("whitespace", WHITESPACE)
def test_every_character_in_every_form_is_as_the_plain_way_makes_it(form, whitespace):
    around = ("e{}\u0301 ", "\u1100\u1161{}\u11a8\u0316", " {}\n{} ", "{}{}")
    texts = [around[at % 4].replace("{}", letter) for at, letter in enumerate(CODES)]
    texts += [around[(at + 2) % 4].replace("{}", letter) for at, letter in enumerate(CODES)]
    found = normalize_texts(pa.array(texts, pa.large_string()), form, whitespace, 30).to_pylist()
    expected = (plain_text(text, form, whitespace, 30) for text in texts)
    assert [ascii(text) for text, result, plain in zip(texts, found, expected, strict=True) if result != plain] == []


PIECES = (
    "word ",
    "a b\n",
    "x" * 61,
    "  ",
    "\t",
    "\n",
    "\n\n",
    " \n",
    "中文，",
    "\u3000",
    "e\u0301",
    "\u200d",
    "ﬁ",
    "\r\n",
)


@given(
    st.lists(st.lists(st.sampled_from(PIECES) | st.text(st.sampled_from(TRICKY), max_size=3), max_size=30), max_size=4),
    st.sampled_from(FORMS),
    st.sampled_from(WHITESPACE),
    st.sampled_from((1, 2, 30)),
)
@example([["x" * 61, "\n", "\n", "\n", "word "]], "NFC", "collapse", 30)
@example([["x" * 64, "\n\n", "\n", "\n", "x" * 64, "\u0301"]], "NFC", "keep", 30)
@example([["e"], ["\u0301"], []], "NFC", "inside", 30)
def test_every_text_is_as_the_plain_way_makes_it(texts, form, whitespace, marks):
    """Blocks of 64 bytes are passed over whole: what is to be done stands on every side of their borders."""
    assert_plain(["".join(pieces) for pieces in texts], form, whitespace, marks)


@pytest.mark.parametrize("shift", range(0, 70, 3))
@pytest.mark.parametrize(
    "inner", ["  ", "\n\n\n", "\n\n\n\n", " \n", "\t", "\n  ", "e\u0301", "\x00", "\r\n", "\u2028", "ﬁ"]
)
def test_at_every_border_of_blocks(shift, inner):
    texts = ["x" * shift + inner + "y " * 40, "y " * 40 + "x" * shift + inner, "é" * shift + inner + "中" * 40]
    for form, whitespace in (("NFC", "inside"), ("NFKC", "collapse"), ("none", "keep")):
        assert_plain(texts, form, whitespace)


WAYS = [("NFC", "inside"), ("NFKC", "collapse"), ("none", "keep"), ("NFKC", "keep")]
TEXT_FOLDERS = ("books", "papers", "code", "text-unicode", "jsonl", "web/encodings", "web/langid", "web/html")


def real_texts(folder, most):
    """Every file below `folder` as one text, and each string of its JSON Lines; no more than `most` bytes of a file.
    What is no UTF-8 is read as latin-1, which is text of the oddest kind."""
    for path in sorted(path for path in shared(f"corpora/{folder}").rglob("*") if path.is_file()):
        if path.suffix == ".jsonl":
            lines = path.read_bytes()[:most].split(b"\n")[:-1]
            for record in (json.loads(line) for line in lines if line.strip()):
                yield from (
                    (value for value in record.values() if isinstance(value, str)) if isinstance(record, dict) else ()
                )
        elif path.suffix not in (".gz", ".lz4"):
            raw = path.read_bytes()[:most]
            try:
                yield raw.decode("utf-8")
            except UnicodeDecodeError:
                yield raw.decode("latin-1")


@pytest.mark.parametrize("folder", TEXT_FOLDERS)
def test_real_texts_are_as_the_plain_way_makes_them(folder):
    """Books, papers, code and pages of many languages and encodings: the beginning of each file; whole ones below."""
    texts = list(real_texts(folder, 30_000))
    assert texts
    for form, whitespace in WAYS[:2]:
        assert_plain(texts, form, whitespace)


@pytest.mark.long
@pytest.mark.parametrize("folder", TEXT_FOLDERS)
def test_all_real_texts_are_as_the_plain_way_makes_them(folder):
    texts = list(real_texts(folder, 1 << 30))
    for form, whitespace in WAYS:
        assert_plain(texts, form, whitespace)


@given(st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S")), max_size=40))
def test_visible_text_only_takes_its_form(text):
    expected = unicodedata.normalize("NFC", text)
    for way in WHITESPACE:
        assert normalize(text, "NFC", way, 30) == expected


def test_refuses_what_it_does_not_know():
    with pytest.raises(ValueError, match="NFD"):
        normalize("a", "NFD", "keep", 30)


def test_lossy_normalization_is_no_default():
    file = SHARED / "cases/12-lossy-normalise/in.jsonl"
    if not file.exists():
        pytest.skip("the shared cases are not here")
    texts = [json.loads(line)["text"] for line in file.read_text(encoding="utf-8").split("\n") if line]
    assert clean(texts[0]) == texts[0] and clean(texts[1]) == texts[1] and clean(texts[2]) == texts[2]
    assert clean(texts[3], "keep") == texts[3].rstrip("\n")
    assert clean(texts[3]) == "def f():\n    if x:\n        return 1"


@given(st.lists(st.text(max_size=8), max_size=6))
def test_a_chat_is_its_contents_joined(contents):
    text, offsets = joined(contents)
    raw = text.encode()
    assert len(offsets) == len(contents)
    for content, begin in zip(contents, offsets, strict=True):
        assert raw[begin : begin + len(content.encode())].decode() == content
    assert text == ("\n\n".join(contents) if any(contents) else "")
