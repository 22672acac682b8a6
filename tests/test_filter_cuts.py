"""Lines that rules cut and personal data that is masked: the spans, what tokenize makes of them, and conservation."""

import json

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.artifacts.verdicts import FILTER_CUTS, SIGNALS
from tasks.filter import FilterParams
from tasks.filter.cuts import make
from tasks.text.cutting import lines_of, masked
from tasks.text.excision import Cut, excise
from tasks.text.rules import CUTTABLE
from tests.memory_reads import MemoryReads
from tests.test_filter import UNIT, params, run, text_table, verdicts_of

SCRIPTS = {"name": "scripts", "signal": "javascript_lines", "max": 0, "action": "cut"}
POLICIES = {"name": "policies", "signal": "policy_lines", "max": 0, "action": "cut"}
SHORT = {"name": "short", "signal": "words", "min": 3}


def cuts_of(texts, kinds, chosen):
    """(rows of filter/cuts, counts)."""
    signals, _ = run(texts, kinds, chosen)
    tables = {
        "normalize/text": text_table(texts, kinds),
        "filter/signals": signals.files[".parquet"].cast(SIGNALS),
    }
    made = make(MemoryReads(UNIT, tables), chosen)
    assert made.files[".parquet"].schema.equals(FILTER_CUTS)
    return made.files[".parquet"].to_pylist(), made.counts


def left(text, cuts, row=0):
    return excise(text, [Cut(cut["start"], cut["stop"], cut["put"]) for cut in cuts if cut["row"] == row]).text


PAGE = "First line.\nEnable javascript now.\nSecond line.\n\nWe use cookies.\nJavaScript and a cookie policy"


def test_lines_go_and_their_neighbours_stay_together():
    cuts, counts = cuts_of([PAGE, "Plain text here."], ["web", "web"], params(SCRIPTS, POLICIES))
    assert left(PAGE, cuts) == "First line.\nSecond line."
    assert {cut["row"] for cut in cuts} == {0} and cuts == sorted(cuts, key=lambda cut: (cut["row"], cut["start"]))
    assert counts == {"cuts": 3, "cuts|rule=scripts": 2, "cuts|rule=policies": 1}
    chosen = params(SCRIPTS, POLICIES)
    assert verdicts_of([PAGE, "Plain text here."], ["web", "web"], chosen) == [("cut", "scripts"), ("keep", None)]


def test_what_is_dropped_or_a_chat_is_never_cut():
    texts = ["javascript", "a b c javascript", "a b c javascript"]
    cuts, _ = cuts_of(texts, ["web", "chat", "code"], params(SCRIPTS, SHORT))
    assert cuts == []


@pytest.mark.parametrize(
    ("signal", "text", "stays"),
    [
        ("unterminated_lines", "One.\nTwo\nThree!\n“Four”\n\nFive:", "One.\nThree!\n“Four”"),
        ("brief_lines", "one two\none two three\n一二\n一二三\n\nx", "one two three\n一二三"),
        ("duplicate_line_share", "a\nb\na\n\n a \nc", "a\nb\n\nc"),
        ("duplicate_line_character_share", "a\na", "a"),
        ("javascript_lines", "x\njavascript", "x"),
        ("javascript_lines", "javascript\nx", "x"),
        ("javascript_lines", "javascript", ""),
        ("javascript_lines", "a\n\njavascript\n\nb", "a\n\nb"),
        ("javascript_lines", "javascript\n\nb\njavascript\n\njavascript", "b"),
        ("policy_lines", "é\nwe use cookies é\n中", "é\n中"),
    ],
)
def test_each_signal_cuts_its_own_lines(signal, text, stays):
    assert signal in CUTTABLE
    spans = [Cut(*span, "") for span in lines_of(text, signal)]
    got = excise(text, spans)
    assert got.text == stays and got.separators == 0 and got.characters_cut == len(text) - len(stays)


@pytest.mark.parametrize("signal", sorted(CUTTABLE - {"duplicate_line_share", "duplicate_line_character_share"}))
@settings(max_examples=60)
@given(
    lines=st.lists(
        st.sampled_from(["a b c.", "javascript", "a", "", "use cookies.", "b c d e", "中。", "é 7 x"]), max_size=8
    )
)
def test_the_lines_cut_are_the_lines_counted(signal, lines):
    text = "\n".join(lines)
    signals, _ = run([text], ["web"], params())
    stays = excise(text, [Cut(*span, "") for span in lines_of(text, signal)]).text
    gone = sum(bool(line.strip()) for line in lines) - sum(bool(line.strip()) for line in stays.split("\n"))
    assert gone == signals.files[".parquet"][signal][0].as_py()


EMAILS = [
    ("write to a.b+c@mail.example.org, or", "a.b+c@mail.example.org"),
    ("x@y.zz", "x@y.zz"),
    ("(x_1@sub-d.example.com)", "x_1@sub-d.example.com"),
    ("no@domain", None),
    ("@handle and a @ b.com", None),
    ("é a@b.co。", "a@b.co"),
    ("mailto:a@b.co?subject=x", "a@b.co"),
    ("http://user:pass@host.example.com/path", None),
    ("https://user@host.example.com", None),
    ("//u:p@example.com/path", None),
    ("https://host.example.com/list/a@b.co/thread", "a@b.co"),
    ("see https://host.example.com then a@b.co", "a@b.co"),
    ("git@github.com:owner/name.git", None),
    ("@decorator.name", None),
    ("a@b", None),
    ("icon@2x.png", "icon@2x.png"),  # a file's name that looks like an address
]
ADDRESSES = [
    ("at 192.168.0.1.", "192.168.0.1"),
    ("255.255.255.255", "255.255.255.255"),
    ("256.1.1.1", None),
    ("version 1.2.3.4 of it", None),
    ('__version__ = "1.2.3.4"', None),
    ("see section 19.6.1.1 there", None),
    ("rfc7231#section-7.1.1.1", None),
    ("Chrome/120.0.6099.129 Safari", None),
    ("v4.0.30.100", None),
    ("version: 4.0.30.100", None),
    ("8.1.2.29 Pipelining", None),
    ("8.1.2.30", "8.1.2.30"),
    ("10.0.0.0/8", None),
    ("http://203.0.113.9:8080/x", "203.0.113.9"),
    ('"192.168.0.1"', "192.168.0.1"),
    ("0x1.2.3.4", None),
    ("2024.12.31.255", None),
    ("[2001:db8::ff00:42:8329]:443", "2001:db8::ff00:42:8329"),
    ("00:1b:63:84:45:e6", None),
    ("std::add::face", None),
    ("2024-01-01T12:30:45", None),
    ("1.2.3.4.5", None),
    ("version 1.2.3", None),
    ("2001:db8:0:0:8:800:200c:417a end", "2001:db8:0:0:8:800:200c:417a"),
    ("fe80:1:2::9 end", "fe80:1:2::9"),
    ("12:30:45", None),
]
PHONES = [
    ("call +49 (30) 123-4567 now", "+49 (30) 123-4567"),
    ("+14155552671", "+14155552671"),
    ("(415) 555-2671", "(415) 555-2671"),
    ("415-555-2671", "415-555-2671"),
    ("1-415-555-2671", "1-415-555-2671"),
    ("+123456789", "+123456789"),
    ("+12345678", None),
    ("+1234567890123456", None),
    ("+02014101000", None),
    ("(+86) 138 1234 5678", "+86) 138 1234 5678"),
    ("+86 138 1234 5678", "+86 138 1234 5678"),
    ("tel:+4930123456", "+4930123456"),
    ("415.555.2671", "415.555.2671"),
    ("115-555-2671", None),
    ("415-155-2671", None),
    ("100 200 3000", None),
    ("978-0-306-40615-7", None),
    ("ISBN 0-306-40615-2", None),
    ("$1,234,567.8900", None),
    ("2024-01-02 03:04:05", None),
    ("x = a+1234567890", None),
    ("3.14159265358979", None),
    ("415-555-26711", None),
    ("0415-555-2671", None),
    ("4155552671", None),
    ("2001-02-03", None),
    ("1234.5678", None),
    ("isbn 978-415-555-2671", None),
]


@pytest.mark.parametrize(
    ("kind", "text", "found"),
    [(kind, *case) for kind, cases in (("email", EMAILS), ("ip", ADDRESSES), ("phone", PHONES)) for case in cases],
)
def test_what_is_taken_for_personal_data(kind, text, found):
    data = text.encode()
    assert [data[start:stop].decode() for start, stop in masked(text, kind)] == ([found] if found else [])


def test_masks_put_a_word_in_place_and_are_counted_by_kind():
    texts = ["Mail é@x a@b.co or c@d.co at 10.0.0.77 now.", "ab", "Nothing to mask here."]
    chosen = params(SHORT, mask={"email": "<email>", "ip": "<ip>"})
    cuts, counts = cuts_of(texts, ["chat", "web", "code"], chosen)
    assert left(texts[0], cuts) == "Mail é@x <email> or <email> at <ip> now."
    assert counts == {"cuts": 3, "masked|mask=email": 2, "masked|mask=ip": 1}
    assert {cut["reason"] for cut in cuts} == {"mask:email", "mask:ip"}
    assert verdicts_of(texts, ["chat", "web", "code"], chosen)[0] == ("keep", None)


def test_nothing_is_read_where_nothing_is_cut_or_masked():
    without_text = {"normalize/text": pa.table({"kind": ["web"]})}
    assert make(MemoryReads(UNIT, without_text), params(SHORT)).counts == {"cuts": 0}


def test_an_unknown_mask_is_refused():
    section = {
        "language_characters": 1,
        "language_letters_min": 0,
        "segmentation": {},
        "signals": [],
        "metadata": [],
        "rules": [],
        "blocklists": [],
    }
    with pytest.raises(ValueError, match="'email', 'ip' or 'phone'"):
        FilterParams.model_validate_json(json.dumps({**section, "mask": {"name": "x"}}))


@pytest.mark.parametrize(
    ("text", "cuts", "stays"),
    [
        ("one two three", [(4, 7, "2")], "one 2 three"),
        ("one two three", [(4, 7, "2"), (8, 13, "3")], "one 2 3"),
        ("a\nb\nc", [(2, 4, ""), (3, 3, "x")], "a\nc"),
        ("one two three", [(0, 7, "x"), (4, 9, "y")], "xhree"),
        ("one two three", [(0, 7, ""), (4, 9, "y")], "hree"),
        ("one two three", [(0, 7, "x"), (4, 9, "")], "hree"),
        ("one\n\ntwo\n\nthree", [(5, 8, None), (5, 6, "x")], "one\n\nthree"),
        ("one\n\ntwo\n\nthree", [(5, 8, None), (10, 12, "x")], "one\n\nxree"),
        ("one\n\ntwo", [(0, 3, "x"), (5, 8, None)], "x"),
        ("one two", [(0, 4, None), (4, 7, "x")], "x"),
        ("one two", [(0, 3, ""), (3, 7, None)], ""),
        ("ab\ncd\nef", [(3, 6, ""), (4, 5, None)], "ab\n\nef"),
    ],
)
def test_passages_lines_and_masks_meet(text, cuts, stays):
    got = excise(text, cuts)
    assert got.text == stays == excise(text, list(reversed(cuts))).text
    assert len(text) + got.separators == len(stays) + got.characters_cut


@settings(max_examples=300)
@given(st.data())
def test_characters_are_conserved_whatever_meets(data):
    text = data.draw(st.text("ab\n中é", max_size=20))
    borders = [len(text[:n].encode()) for n in range(len(text) + 1)]
    place = st.integers(0, len(text))
    drawn = data.draw(st.lists(st.tuples(place, place, st.sampled_from([None, "", "<x>"])), max_size=5))
    cuts = [(borders[min(a, b)], borders[max(a, b)], put) for a, b, put in drawn]
    got = excise(text, cuts)
    assert len(text) + got.separators == len(got.text) + got.characters_cut
    covered = {byte for start, stop, _ in cuts for byte in range(start, stop)}
    kept = bytes(byte for at, byte in enumerate(text.encode()) if at not in covered).decode()
    assert [c for c in got.text.replace("<x>", "") if c != "\n"] == [c for c in kept if c != "\n"]


def test_a_text_of_laughter_is_dropped_and_its_value_shown():
    text = "哈" * 80 + "这是一篇关于磨坊的文章，讲述了它的故事。"
    (row,) = run([text], ["web"], params({"set": "gopher-1"}))[1].files[".parquet"].to_pylist()
    assert (row["verdict"], row["rule"], row["limit"]) == ("drop", "gopher.top_2gram", 0.2)
    assert row["value"] == 80 / len(text)
