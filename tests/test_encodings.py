"""Encodings: real files and their truth; nothing is replaced, what is unsure is refused."""

import csv
import json

import pytest
from corpora import SHARED, shared
from hypothesis import given
from hypothesis import strategies as st

from tasks.ingest.fields import Reject, read_fields
from tasks.text.encodings import Decoded, Undecodable, codec_of, declared_in, decode, mended

WRONG = {"Hungarian_Magyar-Latin1"}
"""Typed with õ and û for ő and ű: its truth is what the bytes are in cp1252, cp1250 gives the Hungarian letters."""

REFUSED = {
    "tutor.zh.big5",  # not clean Big5
    "Abkhaz-Cyrillic+Abkh", "Vietnamese-TCVN", "Vietnamese-VIQR", "Vietnamese-VPS", "_ude_euc-tw1.txt",  # no codec
    "Hungarian_Magyar-Unicode", "Japanese_Nihongo-JIS",  # cut off within a character
    "_mozilla_bug431054_text.html", "_mozilla_bug171813_text.html",  # a few words of EUC-JP and GB2312, undeclared
    "_mozilla_bug638318_text.html",  # ASCII with the escapes of ISO-2022 that are none
}  # fmt: skip

FAMILIES = ("czech", "hungarian", "polish", "slovak", "russian", "greek", "turkish", "slovene", "hebrew")


def truth():
    with shared("corpora/web/encodings/TRUTH.tsv").open() as file:
        for row in csv.DictReader(file, delimiter="\t"):
            true = row["true_encoding"].split(" ")[0]
            for family in FAMILIES:
                true = true.replace(f"-{family}", "")
            yield SHARED / "corpora" / row["path"], true


def wanted(raw, true):
    try:
        return raw.decode(true).removeprefix("\ufeff")
    except (UnicodeDecodeError, LookupError):
        return None


def test_real_files_are_read_right_or_refused():
    wrong, refused, right = set(), set(), 0
    for path, true in truth():
        raw = path.read_bytes()
        try:
            found = decode(raw, declared_in(raw) if path.suffix == ".html" else None)
        except Undecodable:
            refused.add(path.name)
            continue
        right += found.text == wanted(raw, true)
        if found.text != wanted(raw, true):
            wrong.add(path.name)
    assert wrong == WRONG and refused == REFUSED and right == 92


def test_what_was_done_is_recorded():
    for path, _ in truth():
        raw = path.read_bytes()
        try:
            fields = read_fields(raw, "text", "web")
        except Reject as reject:
            assert reject.reason == "encoding" and reject.detail
            continue
        plain = raw.removeprefix(b"\xef\xbb\xbf")
        assert (fields.metadata is None) == (fields.text.encode() == plain), path


def test_a_mark_decides_and_must_hold():
    text = "día\U0001f378"
    for codec in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"):
        assert decode(("\ufeff" + text).encode(codec)) == Decoded(text, codec)
        with pytest.raises(Undecodable, match="its mark says"):
            decode(("\ufeff" + text).encode(codec)[:-1])
    assert decode(b"\xef\xbb\xbfa") == Decoded("a")


def test_labels_mean_what_browsers_take_them_for():
    assert [codec_of(label) for label in ("GB2312", "gbk", "ISO-8859-1", "latin1", "no such", "base64", "UTF-8")] == [
        "gb18030", "gb18030", "cp1252", "cp1252", None, None, "utf-8",
    ]  # fmt: skip
    assert decode("“quoted” café".encode("cp1252"), "iso-8859-1") == Decoded("“quoted” café", "cp1252")
    assert decode(b"\xa1\xaa" * 3, "gb2312").text == "———"


def test_a_declaration_that_does_not_hold_is_not_believed():
    assert decode("día".encode(), "gbk") == Decoded("día")
    text = (
        "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и совестью и "
        "должны поступать в отношении друг друга в духе братства. Каждый человек имеет право на жизнь, на свободу "
        "и на личную неприкосновенность. Никто не должен содержаться в рабстве или в подневольном состоянии."
    )
    assert decode(text.encode("koi8-r"), "shift_jis") == Decoded(text, "koi8-r")
    assert declared_in(b'<meta charset="koi8-r">') == "koi8-r"
    assert declared_in(b'<?xml version="1.0" encoding="EUC-JP"?><p>') == "EUC-JP"
    assert declared_in(b"<p>charset=none</p>") is None


def test_foreign_lines():
    lines = [f"第{number}行，普通的中文文本。" for number in range(100)]
    mixed = b"\n".join(
        line.encode("gb18030" if number in (7, 50, 51) else "utf-8") for number, line in enumerate(lines)
    )
    assert decode(mixed) == Decoded("\n".join(lines), "gb18030", 3)
    with pytest.raises(Undecodable, match="line 3 is not UTF-8"):
        decode(b"\n".join([line.encode() for line in lines[:3]] + [b"\xff\xfe\xfa"] + [x.encode() for x in lines]))


@given(st.binary(max_size=300), st.sampled_from([None, "gbk", "latin1", "utf-16", "shift_jis", "no such"]))
def test_any_bytes_are_text_or_refused(raw, declared):
    try:
        found = decode(raw, declared)
    except Undecodable:
        return
    found.text.encode()
    assert "\ufffd" not in found.text or b"\xef\xbf\xbd" in raw or found.encoding is not None


@given(st.text(max_size=200))
def test_utf_8_is_never_taken_for_another(text):
    if not any(odd in text for odd in "\0\x1b") and not text.startswith("\ufeff"):
        assert decode(text.encode(), "gbk") == Decoded(text)


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        ("Un café, déjà vu, là-bas: élève.".replace("à", "ç"), "cp1252"),
        ("Quoted” – and – more…".replace("”", "“"), "cp1252"),
        ("Съешь же ещё булок", "latin-1"),
        ("红楼梦里的人", "latin-1"),
    ],
)
def test_utf_8_read_as_windows_1252_is_mended(text, codec):
    spoilt = text.encode().decode(codec)
    assert mended(spoilt) == text and mended(text) is None
    found = read_fields(json.dumps({"text": spoilt, "n": 1}).encode(), "jsonl", "web")
    assert (found.text, found.metadata) == (text, '{"mended":"cp1252","n":1}')
    assert read_fields(json.dumps({"text": spoilt}).encode(), "jsonl", "code").text == spoilt


@pytest.mark.parametrize(
    "text", ["Ã© is what é becomes, Ã¨ is è", "Ã©", "SÃO PAULO, AÇÃO, ÂNGULO", "Â§ 5", "ääkköset", "å"]
)
def test_what_is_not_surely_spoilt_is_left_alone(text):
    assert mended(text) is None


def test_no_real_text_is_mended():
    texts = sorted(shared("corpora/web/langid").rglob("*.txt"))
    assert len(texts) > 100
    for path in texts:
        assert mended(path.read_text(errors="replace")) is None, path
