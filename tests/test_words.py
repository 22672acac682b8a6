"""The kernel of tasks.text.words against a plain-Python reading of its definition."""

import sys
import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.text.words import ALONE, LETTER, MARK, WHITE, character_tables, split_words, word_room

NO_SPACE_NAMES = (
    "CJK UNIFIED IDEOGRAPH", "CJK COMPATIBILITY IDEOGRAPH", "HIRAGANA", "KATAKANA", "HALFWIDTH KATAKANA",
    "HENTAIGANA", "IDEOGRAPHIC ITERATION", "IDEOGRAPHIC CLOSING", "IDEOGRAPHIC NUMBER", "IDEOGRAPHIC ANNOTA",
    "VERTICAL KANA", "VERTICAL IDEO", "MASU", "HANGZHOU", "BOPOMOFO", "YI SYLLABLE", "TANGUT", "NUSHU",
    "KHITAN", "OLD CHINESE", "THAI ", "LAO ", "KHMER ", "MYANMAR ", "TAI ", "NEW TAI ",
    "JAVANESE", "BALINESE", "AHOM",
)  # fmt: skip
MASK = (1 << 64) - 1


def no_spaces(character):
    if "\U00017000" <= character <= "\U00018d7f":  # Tangut and Khitan: Python has no names for all of them
        return True
    return unicodedata.name(character, "").startswith(NO_SPACE_NAMES)


def class_of(character):
    major = unicodedata.category(character)[0]
    if major == "M":
        return "mark"
    if major in "LN":
        return "alone" if no_spaces(character) else "letter"
    return "white" if character.isspace() else "symbol"


def oracle_words(text):
    """[(start, stop)] in characters."""
    words, last = [], None  # last: class of the open word
    for at, character in enumerate(text):
        kind = class_of(character)
        if last and (kind == "mark" or (kind == "letter" and last == "letter")):
            words[-1][1] = at + 1
        elif kind in ("letter", "alone", "mark"):
            words.append([at, at + 1])
            last = "alone" if kind == "alone" else "letter"
        else:
            last = None
    return [tuple(word) for word in words]


def oracle_hash(word):
    state, lower = 0, word.lower().replace("ς", "σ").encode()
    for at in range(0, len(lower), 8):
        state ^= int.from_bytes(lower[at : at + 8], "little")
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            state = (state ^ state >> 33) * factor & MASK
        state ^= state >> 33
    return state


def oracle(text):
    words = oracle_words(text)
    size = [len(text[:n].encode()) for n in range(len(text) + 1)]
    return (
        [oracle_hash(text[a:b]) for a, b in words],
        [size[a] for a, _ in words],
        [size[b] for _, b in words],
    )


def check(texts):
    got = split_words(pa.array(texts, pa.large_string()))
    assert len(got.offsets_D1) == len(texts) + 1 and got.offsets_D1[0] == 0
    for row, text in enumerate(texts):
        a, b = got.offsets_D1[row : row + 2]
        expected = oracle(text)
        assert (got.hashes_W[a:b].tolist(), got.starts_W[a:b].tolist(), got.stops_W[a:b].tolist()) == expected
        kinds = [class_of(character) for character in text]
        assert got.characters_D[row] == len(text)
        assert got.symbols_D[row] == kinds.count("symbol")
        assert got.white_D[row] == kinds.count("white")
    return got


HARD = [
    "", " ", "\n", "\n\n a \n\t\nb\n", "a", "A B", "don't stop", "x_y-z", "3.14 1,000 ½ Ⅷ ²",
    "İstanbul DİYARBAKIR ıI", "ΟΔΟΣ οδος Σ ς σ", "ẞ ß SS", "K k Å å Ω", "Ⱥ ⱥ Ꭰ ꭰ",
    "\u0301", " \u0301\u0301 ", "a\u0301b", "\u0301a", "か\u3099き", "中\u0301文", "\u0301中a中b",
    "我爱北京天安门", "日本語テキスト、カタカナ。", "ภาษาไทยกำลังดี ๑๒๓", "ພາສາລາວ", "ភាសាខ្មែរ",
    "မြန်မာဘာသာ", "བོད་སྐད་", "한국어 문장", "안녕하세요", "Ｆｕｌｌ １２３", "ﾊﾝｶｸ", "中English文", "3月5日",
    "a\u2028b\u2029c\u0085d\x1ce", "a\x00b\x00", "\ufeffbom", "zero\u200bwidth soft\u00adhyphen",
    "می\u200cخواهم",
    "שלום עולם", "\u202eabc\u202c مرحبا", "हिन्दी में क्षत्रिय", "𝐀𝐁 𐐀𐐨 𠀀𠀁 😀👨\u200d👩\u200d👧",
    "\U000e0100a\U0010ffff",
    "々〇〡ー〆ㄅㆠ", "ꀀꀁ", "\ud7ff\ue000", "🇩🇪 e\u20e3 1\ufe0f\u20e3",
]  # fmt: skip


def test_hard_cases_equal_the_oracle():
    check(HARD)


@settings(max_examples=300)
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=40), max_size=8))
def test_any_text_equals_the_oracle(texts):
    check(texts)


@settings(max_examples=300)
@given(st.lists(st.text("aAbİςΣé中かไำ\u0301\u3099 \n-😀ß한1\u2028", max_size=40), max_size=5))
def test_mixed_scripts_equal_the_oracle(texts):
    check(texts)


PIECES = st.lists(
    st.tuples(
        st.sampled_from(["a", "Zz9", "word", "é", "中", "\u0301", " ", "\n", "_", "\x1f", "\x7f", "𠀀"]),
        st.integers(1, 70),
    ),
    max_size=9,
).map(lambda pieces: "".join(piece * times for piece, times in pieces))


@settings(max_examples=150)
@given(st.lists(PIECES, max_size=3))
def test_words_that_blocks_of_64_bytes_cut_equal_the_oracle(texts):
    check(texts)


def test_words_of_every_length_at_every_place_of_a_block_equal_the_oracle():
    check(
        [
            "." * before + ("Ab1cDefg" * 20)[:length] + after
            for before in range(0, 66, 3)
            for length in (1, 7, 8, 9, 16, 17, 63, 64, 65, 129)
            for after in ("", " x", "é", "中", "\u0301.")
        ]
    )


def test_every_code_point_has_the_class_of_its_category():
    classes, lowers = character_tables()
    names = {LETTER: "letter", ALONE: "alone", MARK: "mark", WHITE: "white"}
    wrong = []
    for code in range(sys.maxunicode + 1):
        found = names.get(int(classes[code]), "symbol")
        if found != class_of(chr(code)):
            wrong.append((hex(code), unicodedata.name(chr(code), "?"), found))
        lower = chr(code).lower()
        assert lower in ("i\u0307",) or len(lower) == 1
        assert lower == chr(code) or code < len(lowers)
        assert classes[code] != ALONE or lower == chr(code), "characters by themselves have one case"
    assert wrong == []


def test_every_code_point_hashes_as_its_lower_case():
    texts = [chr(code) for code in range(0x20000) if not 0xD800 <= code < 0xE000]
    got = split_words(pa.array(texts))
    with_word = np.flatnonzero(np.diff(got.offsets_D1))
    assert len(with_word) == len(got.hashes_W)
    for at, row in enumerate(with_word):
        assert got.hashes_W[at] == oracle_hash(texts[row]), hex(ord(texts[row]))


def test_known_hash_values_do_not_move():
    # Every key and sketch of the house rests on these numbers.
    got = split_words(pa.array(["", "a", "The", "中文"]))
    assert got.hashes_W.tolist() == [oracle_hash(word) for word in ("a", "the", "中", "文")]
    assert f"{int(got.hashes_W[0]):016x}" == "685fdf50e51fa977"


def test_case_and_sigma_do_not_matter():
    got = split_words(pa.array(["ΟΔΟΣ οδος οδοσ STRASSE strasse"]))
    hashes = got.hashes_W.tolist()
    assert hashes[0] == hashes[1] == hashes[2] and hashes[3] == hashes[4] != hashes[0]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_types_chunks_slices_and_nulls_give_the_same_words(kind):
    texts = ["erste Zeile", None, "", "中文 text", "last"]
    whole = split_words(pa.array(["" if t is None else t for t in texts]))
    chunked = pa.chunked_array([pa.array(texts[:2], kind), pa.array([], kind), pa.array(texts[2:], kind)])
    sliced = pa.array(["before", *texts, "after"], kind).slice(1, 5)
    for other in (pa.array(texts, kind), chunked, sliced, pa.chunked_array([sliced])):
        for left, right in zip(whole, split_words(other), strict=True):
            assert np.array_equal(left, right)


@pytest.mark.parametrize(
    "empty", [pa.array([], pa.string()), pa.chunked_array([], pa.large_string()), pa.array([], pa.null())]
)
def test_zero_rows(empty):
    got = split_words(empty)
    assert got.offsets_D1.tolist() == [0] and len(got.hashes_W) == len(got.characters_D) == 0


def test_only_nulls():
    got = split_words(pa.nulls(3))
    assert got.offsets_D1.tolist() == [0, 0, 0, 0] and got.characters_D.tolist() == [0, 0, 0]


def test_a_null_whose_slot_covers_bytes_has_no_words():
    offsets = pa.py_buffer(np.array([0, 3, 6], np.int64).tobytes())
    buffers = [pa.py_buffer(b"\x01"), offsets, pa.py_buffer(b"onetwo")]
    column = pa.Array.from_buffers(pa.large_string(), 2, buffers)
    assert split_words(column).offsets_D1.tolist() == [0, 1, 1]


def test_one_word_of_a_megabyte():
    got = split_words(pa.array(["x" * (1 << 20)]))
    assert (got.starts_W.tolist(), got.stops_W.tolist()) == ([0], [1 << 20])


def test_reserved_room_suffices_for_the_densest_texts():
    check(["a b c d e", "a", "中a中a", "中" * 50, "ก" * 9] * 20)


@pytest.mark.parametrize("texts", [["a"], ["a b " * 40 + "c"], ["a b c", "", "é"] * 30, ["x" * 70 + " y"]])
def test_nothing_is_written_beyond_the_room_and_what_lies_in_it_does_not_matter(texts):
    column = pa.array(texts, pa.large_string())
    sizes = [len(array) for array in word_room(column.buffers()[2].size, len(texts))]
    room = [np.full(size + 99, -5).view(dtype) for size, dtype in zip(sizes, ("u8", "i8", "i8"), strict=True)]
    for left, right in zip(split_words(column, tuple(room)), check(texts), strict=True):
        assert np.array_equal(left, right)
    assert all((array.view("i8")[size:] == -5).all() for array, size in zip(room, sizes, strict=True))


@settings(max_examples=300)
@given(st.binary(max_size=30))
def test_damaged_utf8_is_read_within_its_bounds(damaged):
    offsets = pa.py_buffer(np.array([0, len(damaged)], np.int64).tobytes())
    column = pa.Array.from_buffers(pa.large_string(), 1, [None, offsets, pa.py_buffer(damaged)])
    got = split_words(column)
    assert np.all(got.stops_W <= len(damaged)) and np.all(got.starts_W < got.stops_W)
