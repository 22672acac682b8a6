"""Seams, segments, merges, and the encoders that rest on them: other roads, the same ids."""

import io
import json
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
import tiktoken
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tasks import byte_words, encoder, engines, segmented
from tasks.character_kinds import CharacterKinds
from tasks.encoder import PROBE, SentencePiece
from tasks.engines import HuggingFace, Tiktoken
from tasks.errors import TokenizerError
from tasks.sentencepiece_model import BPE, read_model
from tasks.text.byte_level_words import OTHER, simple, word_stops
from tasks.text.merging import Merges
from tasks.text.seams import WORD_SEAMS, BytePairSeams, PairSeams
from tasks.text.segments import SegmentMemory
from tests.tokenizer_kit import lay, texts
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

FOREIGN = Path(__file__).parent.parent.parent / "shared/corpora/tokenizers"
LETTERS = "ab \n\té日▁▅\x00\u3000'’sT1239.,(_-|<>\r"
ODD = st.text(LETTERS, max_size=40) | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
STRETCHES = st.lists(
    st.sampled_from(
        ["the miller", "don't", "I'LL", "'s", " ", "  ", "        ", "\n", "\r\n", "\n\n", "\t", "x1234567",
         "foo(bar,", "...", "日本語", "é", "e\u0301", "\u212a", "\u00a0", "\u2028", "ﬁ", "<|end|>", "|||A_B|||",
         "a▁b", "▁▁", "_x", "=" * 40]
    ),
    max_size=20,
).map("".join)  # fmt: skip
CALM = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


def cut(seams, *own):
    spelled = [text.encode() for text in own]
    data = np.frombuffer(b"".join(spelled), np.uint8)
    borders = np.cumsum([0, *map(len, spelled)])
    starts = seams.starts(data, borders)
    ends = [*starts[1:], len(data)]
    return data, starts, [data[a:b].tobytes().decode() for a, b in zip(starts, ends, strict=False)]


def test_pair_seams_lie_where_no_piece_joins_two_neighbours():
    seams = PairSeams(["ab", "b ", " c", "日本", "é"])
    assert cut(seams, "abc b cab", "日本日é", "", "b")[2] == ["ab", "c", " ", "b c", "ab", "日本", "日", "é", "b"]
    assert cut(PairSeams([]), "ab", "")[2] == ["a", "b"]
    assert cut(seams)[2] == []


def test_byte_pair_seams_heed_parts_of_characters():
    """日 is e6 97 a5, 本 e6 9c ac, é c3 a9."""
    pieces = ["日本".encode(), "é".encode()]
    assert cut(BytePairSeams(pieces), "日本é日é本本")[2] == ["日本", "é", "日", "é", "本", "本"]
    assert cut(BytePairSeams([*pieces, b"\xa9" + "日".encode()]), "日本é日日é本")[2] == ["日本", "é日日", "é", "本"]
    assert cut(BytePairSeams([*pieces, "é".encode() + b"\xe6\x97"]), "éa é本a日é")[2] == [
        "éa",
        " ",
        "é本",
        "a",
        "日",
        "é",
    ]
    assert cut(BytePairSeams([*pieces, b"\xa9\xe6"]), "é日é本aé")[2] == ["é日", "é本", "a", "é"]
    assert cut(BytePairSeams([*pieces, b"\xff\xa9", b"\xa9", b"\xe6\x97", b""]), "é日")[2] == ["é", "日"]


def test_word_seams_worked_out_by_hand():
    found = cut(WORD_SEAMS, "two  words\n\n\tx y's (ab) 1 2é é", "a日 b\u00a0 c\u3000 d")[2]
    assert found == ["two", "  words", "\n\n\tx", " y's", " (ab", ")", " 1", " 2é", " é", "a日", " b\u00a0 c\u3000 d"]
    assert cut(WORD_SEAMS, "", "")[2] == []


@given(st.lists(st.lists(ODD, max_size=8), max_size=4))
def test_equal_bytes_get_one_number_for_as_long_as_they_are_remembered(batches):
    memory, seen = SegmentMemory(), []
    for own in batches:
        data, starts, spelled = cut(WORD_SEAMS, *own)
        assert "".join(spelled) == "".join(own)
        which = memory.numbers_of(data, starts)
        fresh, stops = memory.unlearned()
        seen += [fresh[a:b].tobytes().decode() for a, b in pairwise([0, *stops.tolist()])]
        assert [seen[number if number >= 0 else ~number] for number in which] == spelled
        memory.learn(np.arange(len(seen) - len(stops), len(seen)), np.ones(len(stops), np.int64))
    assert len(set(seen)) == len(seen) == memory.known
    assert memory.bytes == sum(len(text.encode()) for text in seen)


def test_many_segments_make_the_tables_grow():
    memory = SegmentMemory()
    for part in range(6):
        words = " ".join(f"{number:x}" * 3 for number in range(part * 20_000, part * 20_000 + 30_000))
        data, starts, spelled = cut(PairSeams([*"0123456789abcdef"] + [a + b for a in LETTERS for b in "a1"]), words)
        which = memory.numbers_of(data, starts)
        assert len(set(which.tolist())) == len(set(spelled))
        memory.learn(which[:0], np.zeros(len(memory.unlearned()[1]), np.int64))


def test_segments_made_to_collide_are_told_apart_at_worst(monkeypatch):
    """A full table: nothing is found, nothing is wrong, and no search goes on for ever."""
    memory = SegmentMemory()
    monkeypatch.setattr(memory, "_slots", np.full((1 << 12, 2), (1 << 32) + 1, np.uint64))
    data, starts, spelled = cut(WORD_SEAMS, "a b a b c c")
    which = memory.numbers_of(data, starts)
    fresh, stops = memory.unlearned()
    seen = [fresh[a:b].tobytes().decode() for a, b in pairwise([0, *stops.tolist()])]
    assert [seen[number] for number in which] == spelled
    assert memory.known == 6


def test_ids_are_gathered_in_turn():
    memory = SegmentMemory()
    which = memory.numbers_of(*cut(WORD_SEAMS, "a b a")[:2])
    memory.learn(np.array([7, 8, 9], np.int32), np.array([1, 2, 0]))
    ids, ends = memory.ids_of(which, np.arange(4))
    assert (which.tolist(), ids.tolist(), ends.tolist()) == ([0, 1, 2], [7, 8, 9], [0, 1, 3, 3])
    ids, ends = memory.ids_of(np.array([1, 0, 2, 1], np.int32), np.array([0, 0, 2, 4, 4]))
    assert (ids.tolist(), ends.tolist()) == ([8, 9, 7, 8, 9], [0, 0, 3, 5, 5])
    known = memory.numbers_of(*cut(WORD_SEAMS, "a a b a")[:2])  # an only id in the place of the number
    assert known.tolist() == [~7, 2, 1, 2]
    ids, ends = memory.ids_of(known, np.arange(5))
    assert (ids.tolist(), ends.tolist()) == ([7, 8, 9], [0, 1, 1, 3, 3])
    many = np.ones(1000, np.int32)  # of more ids than it makes room for
    ids, ends = memory.ids_of(many, np.array([999, 1000]))
    assert (ids.tolist(), ends.tolist()) == ([8, 9] * 1000, [1998, 2000])


def test_an_only_id_of_a_long_segment_or_above_27_bits_is_remembered_by_number():
    memory = SegmentMemory()
    data, starts, found = cut(WORD_SEAMS, "a thirteenbyte b elevenbytes")
    assert list(map(len, found)) == [1, 13, 2, 12]
    ids = np.array([1 << 27, 5, 0, (1 << 27) - 1], np.int32)
    assert memory.numbers_of(data, starts).tolist() == [0, 1, 2, 3]
    memory.learn(ids, np.ones(4, np.int64))
    again = memory.numbers_of(data, starts)
    assert again.tolist() == [0, 1, ~0, ~((1 << 27) - 1)]
    assert memory.ids_of(again, np.array([4]))[0].tolist() == ids.tolist()


def test_the_best_pair_merges_first_and_of_equals_the_leftmost():
    merges = Merges(*np.array([[1, 1, 5], [5, 1, 6], [1, 2, 7]]).T, np.array([1, 2, 0], np.int32))
    symbols, stops = np.array([1, 1, 1, 1, 1, 2, 3], np.int32), np.array([3, 3, 6, 7])
    ids, sizes = merges.merged(symbols, stops)
    assert (ids.tolist(), sizes.tolist()) == ([6, 1, 7, 3], [1, 0, 2, 1])
    assert merges.merged(symbols[:0], stops[:0])[0].tolist() == []


def test_a_model_file_is_read_as_the_library_reads_it(small):
    model = read_model(small._model)
    assert model.kind == BPE
    assert [piece.text for piece in model.pieces] == [small.piece(number) for number in range(small.vocab_size)]
    assert model.pieces[small.control["</s>"]].kind == 3
    for damaged in (small._model[:-3], b"\x0b", b"\xff" * 20):
        with pytest.raises(ValueError, match="byte"):
            read_model(damaged)


# --- SentencePiece ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return lay(tmp_path_factory.mktemp("small"))


def whole(tokenizer, own):
    return [tokenizer._whole(text).tolist() for text in own]


def in_segments(tokenizer, own):
    """By segments, however short; each text's ids."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (encoder, engines):
            patch.setattr(module, "WORTH_CUTTING", 0)
        ids, lengths = tokenizer.encode_batch(own)
    assert tokenizer._segmented is not None
    return [each.tolist() for each in np.split(ids, np.cumsum(lengths)[:-1])] if own else []


@CALM
@given(own=st.lists(ODD | STRETCHES, max_size=8))
def test_segments_give_the_ids_of_whole_texts(small, own):
    assert in_segments(small, own) == whole(small, own)


def trained(**changes):
    model = io.BytesIO()
    plain = {"model_type": "bpe", "byte_fallback": True, "normalization_rule_name": "identity"}
    plain |= {"remove_extra_whitespaces": False, "add_dummy_prefix": False, "vocab_size": 400}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(line for text in texts() for line in text.replace("\t", " ").split("\n")),
        model_writer=model,
        hard_vocab_limit=False,
        minloglevel=2,
        **(plain | changes),
    )
    return SentencePiece("other", model.getvalue())


OWN = [*texts(30), PROBE, "", " ", "▁", "a▁b", "the miller  grinds\n\n\tcorn", "x" * 900, "the miller" * 60, "a\nbé\nb"]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"add_dummy_prefix": True},
        {"split_by_whitespace": False},
        {"split_digits": True},
        {"user_defined_symbols": ["the miller", "\n", "a\nb"]},
        {"user_defined_symbols": ["\n", "\t"]},
        {"treat_whitespace_as_suffix": True},
        {"treat_whitespace_as_suffix": True, "add_dummy_prefix": True},
        {"allow_whitespace_only_pieces": True},
    ],
)
def test_models_of_many_kinds_are_encoded_by_segments(changes):
    tokenizer = trained(**changes)
    if tokenizer._segmented is None:
        assert "treat_whitespace_as_suffix" in changes and "add_dummy_prefix" in changes
        return
    assert in_segments(tokenizer, OWN) == whole(tokenizer, OWN)


@pytest.mark.parametrize(
    "changes",
    [
        {"remove_extra_whitespaces": True},
        {"normalization_rule_name": "nmt_nfkc"},
        {"byte_fallback": False},
        {"model_type": "unigram"},
        {"user_defined_symbols": [f"symbol{number}" for number in range(80)]},
    ],
)
def test_models_that_it_does_not_hold_for_are_encoded_whole(changes):
    assert trained(**changes)._segmented is None


def test_memory_that_is_full_begins_anew(small, monkeypatch):
    monkeypatch.setattr(segmented, "BATCH_BYTES", 300)
    monkeypatch.setattr(segmented, "MEMORY_BYTES", 200)
    own = texts(60)
    assert in_segments(small, own) == whole(small, own)
    assert small._segmented._memory.bytes < 2000


@pytest.mark.parametrize("limit", [40, 64, 1 << 21])
def test_a_text_longer_than_a_batch_is_cut_at_seams(small, monkeypatch, limit):
    monkeypatch.setattr(segmented, "BATCH_BYTES", limit)
    own = ["", " ".join(texts(20)), "日本" * 50, "x" * 300, "short", "é" * 101, ""]
    assert in_segments(small, own) == whole(small, own)


def test_threads_share_one_memory(small, monkeypatch):
    own = texts(100)
    plain = small.encode_batch(own)[0].tolist()
    monkeypatch.setattr(encoder, "WORTH_CUTTING", 1)
    monkeypatch.setattr(segmented, "MEMORY_BYTES", 500)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: small.encode_batch(own)[0].tolist(), range(40)))
    assert all(ids == plain for ids in found)


def test_a_wrong_belief_is_found_out(monkeypatch):
    tokenizer = trained()
    monkeypatch.setattr(tokenizer._segmented, "_seams", PairSeams([]))
    with pytest.raises(TokenizerError, match="other ids in segments than whole"):
        in_segments(tokenizer, [texts()[0]])


# --- tokenizer.json and tiktoken ----------------------------------------------------------------------------


def split_by(pattern):
    before = pre_tokenizers.Split(Regex(pattern), "isolated")
    return pre_tokenizers.Sequence([before, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def byte_level(before, normalizer=None, added=(), ignore_merges=False, more=()):
    """A tokenizer.json trained on the kit's texts and more."""
    built = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    built.pre_tokenizer, built.decoder = before, decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=["<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    built.train_from_iterator([*texts(), *more, "x1234567", "foo(bar) don't I'LL  ...\n\n    return"], trainer)
    if normalizer:
        built.normalizer = normalizer
    built.add_tokens([AddedToken(text, normalized=normalizer is not None) for text in added])
    return HuggingFace("own", built.to_str().encode(), {"roles": {"eos": "<|end|>"}})


HAN = "一倀怀瀀耀退丁偁恁灁聁遁䁁並偶恶灶聶遶"
"""Of three bytes, of which the last, or the last two, are often the same: many pieces begin or end within one."""
KINDS = {
    "gpt2": lambda: byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False)),
    "neo": lambda: byte_level(
        pre_tokenizers.ByteLevel(add_prefix_space=False), normalizers.NFC(), ["  ", "    ", "        ", "|||A_B|||"]
    ),
    "llama3": lambda: byte_level(split_by(byte_words.LLAMA3), ignore_merges=True),
    "qwen": lambda: byte_level(split_by(byte_words.QWEN), normalizers.NFC(), ["..."]),
    "modern": lambda: byte_level(split_by(byte_words.LLAMA3), added=["    "]),
    "nfc": lambda: byte_level(split_by(byte_words.QWEN), normalizers.NFC()),
    "nfkd": lambda: byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False), normalizers.NFKD()),
    "han": lambda: byte_level(split_by(byte_words.LLAMA3), more=[f"{a}{b}" for a in HAN for b in HAN[-6:]] * 9),
}


@pytest.fixture(scope="module")
def kinds():
    return {name: make() for name, make in KINDS.items()}


def test_pieces_of_parts_of_characters_are_there(kinds):
    parts = kinds["han"]._segmented._seams._pairs._parts
    assert parts.before.sum() > 3 and parts.after.sum() + parts.bytes.sum() > 0


@pytest.mark.parametrize("kind", KINDS)
@CALM
@given(own=st.lists(ODD | STRETCHES | st.text(HAN + "，a 丣\u0301한ᄒ", max_size=20), max_size=6))
def test_a_tokenizer_json_gives_its_librarys_ids(kinds, kind, own):
    assert in_segments(kinds[kind], own) == whole(kinds[kind], own)


@pytest.mark.parametrize("kind", ["gpt2", "nfc", "han"])
@CALM
@given(ids=st.lists(st.integers(0, 590), max_size=30))
def test_ids_of_a_tokenizer_json_come_back_as_its_library_has_it(kinds, kind, ids):
    """Those of parts of characters too, and the special one, which is no text."""
    tokenizer = kinds[kind]
    assert tokenizer._spelled is not None or kind == "nfc"
    known = np.array([number % tokenizer.vocab_size for number in ids], np.int32)
    assert tokenizer.decode(known) == tokenizer._tokenizer.decode(known.tolist(), skip_special_tokens=True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_tokenizer_json_on_odd_texts(kinds, kind):
    own = [*OWN, "K|||A_B||| \u212a", "<|end|>", "e\u0301 x  \n  y", "=" * 2000, "w" * 1500]
    assert in_segments(kinds[kind], own) == whole(kinds[kind], own)


@pytest.mark.parametrize(
    "before",
    [
        pre_tokenizers.ByteLevel(add_prefix_space=True),
        pre_tokenizers.Sequence([pre_tokenizers.Digits(), pre_tokenizers.ByteLevel(add_prefix_space=False)]),
        split_by(r"\S+|\s+"),
    ],
)
def test_another_expression_goes_through_the_library(before):
    assert byte_level(before)._segmented is None


def test_added_tokens_that_take_white_space_with_them_go_through_the_library():
    content = json.loads(byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False))._tokenizer.to_str())
    content["added_tokens"].append(
        content["added_tokens"][0] | {"content": "zz", "id": 599, "special": False, "rstrip": True}
    )
    assert byte_words.byte_words(None, content) is None


@pytest.fixture(scope="module")
def expressions():
    """Each expression as the library's own pre-tokenizer, with what we know of its characters."""
    own = ((byte_words.GPT2, False, 0), (byte_words.LLAMA3, True, 3), (byte_words.QWEN, True, 1))
    return [(split_by(found), CharacterKinds(split_by(found), *rest), *rest) for found, *rest in own]


@settings(max_examples=400)
@given(
    st.text("ab'sStTrReEvVlLdDmM \t\n\r019.,()", max_size=30)
    | st.text("a'sS1. \n\u3000\u00a0\u2028\x0b\x85é日本ſＡ٣²½\u0301👩\u200d", max_size=20)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
)
def test_words_are_those_of_the_expressions(expressions, text):
    data = np.frombuffer(text.encode(), np.uint8)
    stops = np.array([len(data)] if text else [], np.int64)
    for before, known, modern, digits in expressions:
        kinds, _ = known.of(data)
        flags = simple(kinds, stops)
        ends, counts = word_stops(data, kinds, stops, flags, modern, digits)
        if flags.all():
            wanted = np.cumsum([len(word) for word, _ in before.pre_tokenize_str(text)]).tolist()
            assert ends.tolist() == wanted
            assert counts.sum() == len(wanted)
        else:
            assert "ſ" in text and modern


def test_kinds_of_all_characters_but_one_are_known(expressions):
    """Every assigned character of the first planes, each beside others; the long s alone is an s to the expressions
    that fold case."""
    text = "".join(chr(point) for point in (*range(0x3000), *range(0xAC00, 0xAE00), *range(0xFE00, 0x10400)))
    for _, known, modern, _ in expressions:
        kinds, _ = known.of(np.frombuffer(text.encode(), np.uint8))
        others = np.frombuffer(text.encode(), np.uint8)[kinds == OTHER].tobytes().decode()
        assert others == ("ſ" if modern else "")


@pytest.mark.parametrize("pattern", sorted(byte_words.KNOWN))
def test_tiktoken_gives_its_librarys_ids(pattern):
    ranks = {bytes([byte]): byte for byte in range(256)}
    joined = [
        " t",
        "th",
        " th",
        " the",
        "in",
        "er",
        "12",
        "ab",
        "'s",
        "\n\n",
        "  ",
        "日".encode()[:2].decode("latin-1"),
    ]
    ranks |= {text.encode("latin-1"): 256 + at for at, text in enumerate(joined)}
    tokenizer = Tiktoken.__new__(Tiktoken)
    tokenizer.name, tokenizer.options, tokenizer.vocab_size = "own", {"pattern": pattern}, 300
    tokenizer._encoding = tiktoken.Encoding("own", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    assert in_segments(tokenizer, OWN) == whole(tokenizer, OWN)


def test_foreign_models_by_segments():
    """The models of others that lie beside the corpora, on real text."""
    if not FOREIGN.is_dir():
        pytest.skip("the shared corpora are not here")
    golden = json.loads((FOREIGN / "golden.json").read_text())
    tale = (FOREIGN.parent / "text-unicode/blns.txt").read_text(encoding="utf-8")
    own = [*golden["texts"], tale, tale[:1000].replace(" ", "  "), "[REFERENCE_DOC_3] and [REFERENCE_DOC_1]", PROBE]
    for name in golden["tokenizers"]:
        if name.startswith("mistral"):
            tokenizer = SentencePiece("foreign", (FOREIGN / name).read_bytes())
        elif name.startswith("hf"):
            options = {"roles": {"eos": "<|endoftext|>"}}
            tokenizer = HuggingFace("foreign", (FOREIGN / name).read_bytes(), options)
        else:
            continue
        assert in_segments(tokenizer, own) == whole(tokenizer, own), name
