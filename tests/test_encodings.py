"""Encodings: real files and their truth; nothing is replaced, what is unsure is refused."""

import codecs
import csv
import hashlib
import json
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.reading_corpus import legacy_samples, outcome
from tasks.ingest.fields import Reject, read_fields
from tasks.text import encodings
from tasks.text.encodings import Decoded, Undecodable, codec_of, declared_in, decode, mended
from tests.corpora import SHARED, shared

DAMAGED = {
    "tutor.zh.big5",  # the truth says: not clean Big5
    "Hungarian_Magyar-Unicode", "Japanese_Nihongo-JIS",  # cut off within a character
    "Abkhaz-Cyrillic+Abkh",  # typed in a font of its own: 6 and 0 stand for letters
    "Vietnamese-TCVN", "Vietnamese-VIQR", "Vietnamese-VPS",  # letters were lost: "th? gi?i v? nhân quy?n"
}  # fmt: skip
"""What the truth itself says has no codec or does not decode: to refuse it is right."""

REFUSED = {
    "Hungarian_Magyar-Latin1",  # typed with ô and û for ő and ű: ordinary Hungarian in no encoding
    "Latvian-Latin1",  # in cp1257, as the truth has it, VISPĀRČJĀ CILVČKA TIESĢBU for VISPĀRĒJĀ CILVĒKA TIESĪBU
}
"""What has a true encoding by the truth and is refused."""

EUC_TW = "21dc7f119f3902dc"
"""The first bytes of the SHA-256 of what the GNU C library's converter makes of the one file in EUC-TW."""

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
    assert wrong == set() and refused == DAMAGED | REFUSED and right == 95


def test_euc_tw_as_another_converter_reads_it():
    raw = shared("corpora/web/encodings/chardet/EUC-TW/_ude_euc-tw1.txt").read_bytes()
    found = decode(raw)
    assert found.encoding == "euc-tw" and found.text.startswith("維基大典（Wikipedia）者，網路為礎；集天下知")
    assert hashlib.sha256(found.text.encode()).hexdigest().startswith(EUC_TW)
    decoder, text = codecs.getincrementaldecoder("euc-tw")(), ""
    for at in range(len(raw)):
        text += decoder.decode(raw[at : at + 1], at == len(raw) - 1)
    assert text == found.text
    for bad in (b"\xa1", b"\x8e\xa2\xa1", b"\x8e\xa9\xa1\xa1", b"\xff\xff"):
        with pytest.raises(UnicodeDecodeError):
            bad.decode("euc-tw")


def test_texts_of_many_languages_by_their_length():
    """Limits beside what `python -m benchmarks reading` measured over all samples: docs/reading.md."""
    for size, right_min, wrong_max in ((60, 0.75, 0.02), (300, 0.95, 0.01), (3000, 0.93, 0.0)):
        outcomes = Counter(outcome(sample) for sample in legacy_samples(shared("corpora/web/langid/udhr2"), size, 3))
        total = outcomes.total()
        assert total > 100 and outcomes["right"] >= right_min * total and outcomes["wrong"] <= wrong_max * total, (
            outcomes
        )


def test_letters_that_were_lost_are_no_guess():
    text = "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền lợi. " * 5
    lossy = text.encode("cp1252", "replace")
    with pytest.raises(Undecodable, match="question marks stand within its words"):
        decode(lossy)


def test_two_encodings_that_fit_are_no_guess():
    with pytest.raises(Undecodable, match="8 letters"):
        decode("мама".encode("cp1251"))
    with pytest.raises(Undecodable):
        decode(bytes(range(0x80, 0x100)) * 4)


def test_nul_in_a_text_of_ascii_is_no_utf_16():
    text = "\0" * 400 + "a" + "\0" * 301 + "<title>not UTF-16</title>"
    assert decode(text.encode()) == Decoded(text)
    assert decode("A text in Latin letters.".encode("utf-16-le")).encoding == "utf-16-le"


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


@pytest.mark.parametrize("raw", [b"a\0b", b"\x1b$B", b"\x1b(B", b"a\x1b[0m", b"\x1b", b"plain $( text"], ids=str)
def test_nul_and_escapes_to_other_sets_are_odd(raw):
    """Colours of a terminal are not, nor the letters that follow such an escape."""
    assert encodings._is_odd(raw) == bool(re.search(rb"\0|\x1b[$(]", raw))
