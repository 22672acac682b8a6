"""Text without the pipeline: windows counted as pack counts them, documents where they are, memory bounded."""

from __future__ import annotations

import json
import pickle
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from tasks.pack.sequences import concat
from tests.tokenizer_kit import lay
from tests.tokenizer_kit import texts as kit_texts
from training import texts
from training.collate import LLMDataCollator
from training.encoders import encoder, end_id, pad_id, unknown_id, vocabulary_size
from training.online import LMTextDataset, LMTextStream, token_stream
from training.texts import TextsError, pieces
from training.windows import Window, Windows

EOS = 0


class Letters:
    """Ids are code points; 0 closes a document."""

    eos_id = EOS

    def encode(self, text: str) -> list[int]:
        return [ord(letter) for letter in text]


def lines(path: Path, *rows) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def texts_of(source) -> list[str]:
    """The documents of a source, their pieces joined."""
    found, held = [], ""
    for text, ends in pieces(source):
        held += text
        if ends:
            found.append(held)
            held = ""
    assert not held
    return found


@pytest.mark.parametrize(("stride", "count"), [(512, 1953), (256, 3905), (128, 7809)])
def test_windows_of_a_million_ids(stride: int, count: int) -> None:
    windows = Windows(512, stride)
    assert windows.count(1_000_000) == count
    assert windows.bounds(count - 1, 1_000_000) == ((count - 1) * stride, (count - 1) * stride + 513)


@pytest.mark.parametrize(
    ("tokens", "stride", "min_length", "count", "covered"),
    [
        (0, 4, 2, 0, 0),
        (1, 4, 2, 0, 0),  # no target
        (2, 4, 2, 1, 2),
        (2, 4, 3, 0, 0),
        (4, 4, None, 0, 0),
        (5, 4, None, 1, 5),  # four inputs and the last target
        (6, 4, None, 1, 5),
        (6, 4, 2, 2, 6),  # ids 4 and 5: one target
        (6, 4, 3, 1, 5),
        (7, 2, None, 2, 7),
        (8, 2, None, 2, 7),
        (8, 2, 4, 3, 8),  # ids 4 to 7: one target that no other has
        (8, 2, 5, 2, 7),
        (7, 2, 2, 2, 7),  # what would be left is in the second window wholly
    ],
)
def test_windows_by_hand(tokens: int, stride: int, min_length: int | None, count: int, covered: int) -> None:
    windows = Windows(4, stride, min_length)
    assert (windows.count(tokens), windows.covered(tokens)) == (count, covered)


@given(st.integers(0, 500), st.integers(1, 60), st.booleans())
def test_with_stride_t_the_windows_are_the_pack_steps(tokens: int, width: int, keep_tail: bool) -> None:
    windows = Windows(width, width, 2 if keep_tail else None)
    starts, stops = concat(tokens, width, keep_tail=keep_tail)
    found = [windows.bounds(number, tokens) for number in range(windows.count(tokens))]
    assert found == list(zip(starts.tolist(), stops.tolist(), strict=True))


@given(
    st.lists(st.integers(0, 40), max_size=12),
    st.integers(1, 20),
    st.integers(1, 20),
    st.one_of(st.none(), st.integers(2, 21)),
)
def test_a_stream_gives_the_windows_that_are_counted(sizes, width, stride, shortest) -> None:
    stride, shortest = min(stride, width), None if shortest is None else min(shortest, width + 1)
    windows = Windows(width, stride, shortest)
    flat = np.arange(sum(sizes))
    parts = np.split(flat, np.cumsum(sizes)[:-1]) if sizes else []
    found = list(windows.over(Window(part, part % 7 == 0) for part in parts))
    assert len(found) == windows.count(len(flat))
    for number, window in enumerate(found):
        start, stop = windows.bounds(number, len(flat))
        assert window.ids.tolist() == flat[start:stop].tolist()
        assert window.begins.tolist() == (flat[start:stop] % 7 == 0).tolist()
    covered = sorted({int(token) for window in found for token in window.ids})
    assert covered == list(range(windows.covered(len(flat))))


def test_windows_that_would_lose_targets_are_refused() -> None:
    with pytest.raises(ValueError, match="stride is 5; it must be 1 to max_seq_len=4"):
        Windows(4, 5)
    with pytest.raises(ValueError, match=r"min_length is 6; it must be 2 .* to 5"):
        Windows(4, 4, 6)
    with pytest.raises(ValueError, match="max_seq_len is 0"):
        Windows(0, 1)


def test_a_line_is_a_document_and_the_fields_go_in_their_order(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "a.jsonl",
        {"text": "one", "content": "not this"},
        {"text": None, "content": "two"},
        {"instruction": "three", "output": "3"},
        {"instruction": "four", "input": "2+2", "output": "4"},
        {"text": ""},
        {"instruction": "five", "input": "", "output": "5"},
    )
    assert texts_of(path) == ["one", "two", "three\n3", "four\n2+2\n4", "five\n5"]
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n\n  \n"))
    assert texts_of(path) == ["one", "two", "three\n3", "four\n2+2\n4", "five\n5"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"text": "a"', "a.jsonl:2 is no JSON in UTF-8"),
        (b'{"text": "\xff"}', "a.jsonl:2 is no JSON in UTF-8"),
        (b"[" * 100_000, "a.jsonl:2 is no JSON"),
        (b'["a"]', "a.jsonl:2 is a list, not an object"),
        (b'{"text": 3, "url": "u"}', r"a.jsonl:2 has no text, .* it has \{'text': 'int', 'url': 'str'\}"),
        (b'{"instruction": "a"}', "a.jsonl:2 has no text"),
        (b'{"text": "ab\\ud800"}', "a.jsonl:2 has half a surrogate pair at character 2"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, line: bytes, said: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "fine"}\n' + line + b"\n")
    with pytest.raises(TextsError, match=said):
        texts_of(path)


def test_a_huge_line_is_refused_before_it_is_held(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(texts, "LINE_BYTES_MAX", 100)
    with pytest.raises(TextsError, match=r":1 is longer than 100 bytes"):
        texts_of(lines(tmp_path / "a.jsonl", {"text": "x" * 200}))


def test_files_that_are_not_there_or_of_another_kind(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no\.txt is not there"):
        LMTextDataset(tmp_path / "no.txt", Letters())
    with pytest.raises(TextsError, match=r"a\.pdf is neither \.txt"):
        LMTextDataset(tmp_path / "a.pdf", Letters())


@given(
    st.lists(st.sampled_from(["a", "é", "日", "\n", " ", "🦀", "xy"]), max_size=60).map("".join),
    st.integers(1, 12),
)
def test_a_text_file_is_one_document_whatever_the_block(tmp_path_factory, text: str, block: int) -> None:
    path = tmp_path_factory.mktemp("t") / "a.txt"
    path.write_text(text, encoding="utf-8", newline="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts, "BLOCK_BYTES", block)
        assert texts_of(path) == ([text] if text else [])
        ids = [token for part in token_stream(path, Letters()) for token in part.ids.tolist()]
        begins = [bool(at) for part in token_stream(path, Letters()) for at in part.begins.tolist()]
    assert ids == ([*map(ord, text), EOS] if text else [])
    assert begins == ([True] + [False] * len(text) if text else [])


def test_blocks_end_at_line_ends(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(texts, "BLOCK_BYTES", 8)
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfone two\nthree four five\nsix")
    found = list(pieces(path))
    assert found[0][0] == "one two\n"
    assert "".join(text for text, _ in found) == "one two\nthree four five\nsix"
    assert [ends for _, ends in found] == [False] * (len(found) - 1) + [True]


def test_bytes_that_are_no_utf8_are_named_with_their_place(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(texts, "BLOCK_BYTES", 4)
    path = tmp_path / "a.txt"
    path.write_bytes("abcé\n".encode() * 3 + b"\xff")
    with pytest.raises(TextsError, match="no UTF-8 at byte 18"):
        texts_of(path)
    path.write_bytes("abc日".encode()[:-1])
    with pytest.raises(TextsError, match="no UTF-8 at byte 3"):
        texts_of(path)


def test_samples_by_hand(tmp_path: Path) -> None:
    """Ids 1 2 0 3 4 5 0: with T = 3, windows 1 2 0 3 and 3 4 5 0; case 29's borders."""
    rows = [{"text": "\x01\x02"}, {"text": "\x03\x04\x05"}]
    path = lines(tmp_path / "a.jsonl", *rows)
    one = LMTextDataset(path, Letters(), 3)
    assert (len(one), one.tokens, one.documents, one.tokens_dropped) == (2, 7, 2, 0)
    assert [sample["input_ids"].tolist() for sample in one] == [[1, 2, 0], [3, 4, 5]]
    assert [sample["labels"].tolist() for sample in one] == [[2, 0, 3], [4, 5, 0]]
    apart = LMTextDataset(rows, Letters(), 6, isolate_documents=True)[0]
    assert apart["labels"].tolist() == [2, 0, -100, 4, 5, 0]
    assert apart["position_ids"].tolist() == [0, 1, 2, 0, 1, 2]
    model = LMTextDataset(rows, Letters(), 6, isolate_documents=True, labels="model")[-1]
    assert model["input_ids"].tolist() == [1, 2, 0, 3, 4, 5, 0]
    assert model["labels"].tolist() == [-100, 2, 0, -100, 4, 5, 0]
    assert model["position_ids"].tolist() == [0, 1, 2, 0, 1, 2, 3]
    with pytest.raises(IndexError):
        one[2]


def test_the_tail_is_kept_or_counted() -> None:
    rows = ["\x01\x02\x03\x04"]
    assert LMTextDataset(rows, Letters(), 3).tokens_dropped == 1
    kept = LMTextDataset(rows, Letters(), 3, min_length=2)
    assert (kept.tokens_dropped, [sample["labels"].tolist() for sample in kept]) == (0, [[2, 3, 4], [0]])
    with pytest.raises(ValueError, match=r"the rows has 5 ids, no window of 6; lower max_seq_len, or pass min_length"):
        LMTextDataset(rows, Letters(), 5)
    with pytest.raises(ValueError, match="0 ids"):
        LMTextDataset([], Letters(), 5, min_length=2)


class Columns:
    """What a datasets.Dataset is to us: rows by iteration and by number."""

    column_names = ("content", "id")

    def __init__(self, rows: list[dict]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number: int) -> dict:
        return self.rows[number]


@pytest.mark.parametrize("isolate", [False, True])
@pytest.mark.parametrize("stride", [None, 5])
def test_the_stream_gives_what_the_dataset_gives(stride: int | None, isolate: bool) -> None:
    rows = Columns([{"content": "abcdefgh"[: n % 8 + 1] * 3, "id": n} for n in range(40)])
    options = {"max_seq_len": 16, "stride": stride, "min_length": 2, "isolate_documents": isolate}
    dataset, stream = LMTextDataset(rows, Letters(), **options), list(LMTextStream(rows, Letters(), **options))
    assert len(dataset) == len(stream) > 20
    for one, other in zip(dataset, stream, strict=True):
        assert {name: field.tolist() for name, field in one.items()} == {
            name: field.tolist() for name, field in other.items()
        }


def firsts(samples) -> list[tuple[int, ...]]:
    return [tuple(sample["input_ids"].tolist()) for sample in samples]


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_ranks_and_workers_of_a_stream_share_its_windows() -> None:
    """Failures 11 and 14: nothing twice, and no rank ends before another."""
    rows = ["".join(chr(10 + n + k) for k in range(9)) for n in range(0, 500, 9)]
    whole = firsts(LMTextStream(rows, Letters(), 8))
    for world in (1, 2, 3, 4):
        ranks = [firsts(LMTextStream(rows, Letters(), 8, rank=rank, world=world)) for rank in range(world)]
        assert [window for step in zip(*ranks, strict=True) for window in step] == whole[: len(whole) // world * world]
        assert firsts(LMTextStream(rows, Letters(), 8, rank=1 % world, world=world, skip=7)) == ranks[1 % world][7:]
    for workers in (2, 3):
        loader = DataLoader(LMTextStream(rows, Letters(), 8), batch_size=None, num_workers=workers)
        assert sorted(firsts(loader)) == sorted(whole)
    with pytest.raises(ValueError, match="rank 2 of 2"):
        LMTextStream(rows, Letters(), rank=2, world=2)


def test_a_standard_dataloader_with_workers_reads_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("the miller grinds the corn\n" * 200)
    dataset = LMTextDataset(path, Letters(), 64, min_length=2, folder=tmp_path)
    collate = LLMDataCollator(EOS, padding_side="right")
    alone, shared = (list(DataLoader(dataset, 4, collate_fn=collate, num_workers=workers)) for workers in (0, 2))
    for one, other in zip(alone, shared, strict=True):
        assert all(torch.equal(one[name], other[name]) for name in one)
    again = pickle.loads(pickle.dumps(dataset))  # noqa: S301
    assert firsts(again) == firsts(dataset)


def test_the_file_of_ids_goes_with_the_dataset(tmp_path: Path) -> None:
    dataset = LMTextDataset(["abc" * 50], Letters(), 8, folder=tmp_path)
    copy = pickle.loads(pickle.dumps(dataset))  # noqa: S301
    del copy
    assert len(list(tmp_path.iterdir())) == 1 and len(firsts(dataset)) == 18
    del dataset
    assert list(tmp_path.iterdir()) == []


class Words:
    """Cheap ids without a Python list: a letter is its byte."""

    eos_id = EOS

    def encode(self, text: str) -> np.ndarray:
        return np.frombuffer(text.encode(), np.uint8)


@pytest.mark.parametrize("suffix", ["txt", "jsonl"])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, suffix: str, monkeypatch) -> None:
    monkeypatch.setattr(texts, "BLOCK_BYTES", 1 << 16)
    path = tmp_path / f"a.{suffix}"
    line = "corn into flour " * 512 if suffix == "txt" else json.dumps({"text": "corn into flour " * 512})
    path.write_text((line + "\n") * 1200)
    assert path.stat().st_size > 9_000_000
    tracemalloc.start()
    dataset = LMTextDataset(path, Words(), 2048, folder=tmp_path)
    stream = sum(1 for _ in LMTextStream(path, Words(), 2048))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(dataset) == stream > 4700
    assert peak < 4_000_000, peak


class Called:
    def __call__(self, text: str, add_special_tokens: bool = True) -> dict:
        return {"input_ids": [[1] * add_special_tokens + [ord(letter) for letter in text]]}


class Encoding:
    ids = (7, 8)


class Rust:
    def encode(self, text: str, add_special_tokens: bool = True) -> Encoding:
        return Encoding()


class Careful:
    """transformers: a text that spells a control piece stays text."""

    eos_token_id, unk_token_id, pad_token_id, vocab_size = 2, 3, None, 10

    def __len__(self) -> int:
        return 12

    def encode(self, text, add_special_tokens=True, split_special_tokens=False, verbose=True) -> list[int]:
        return [int(add_special_tokens), int(split_special_tokens), int(verbose)]


class Ordinary:
    """tiktoken: encode raises for control pieces in a text, encode_ordinary does not."""

    eot_token, n_vocab = 5, 9

    def encode(self, text: str) -> list[int]:
        raise ValueError("disallowed special token")

    def encode_ordinary(self, text: str) -> list[int]:
        return [4]


class Pieces:
    def encode(self, text: str) -> list[str]:
        return ["▁a"]


@pytest.mark.parametrize(
    ("tokenizer", "ids"),
    [(Letters(), [97, 98]), (Called(), [97, 98]), (Rust(), [7, 8]), (Careful(), [0, 1, 0]), (Ordinary(), [4])],
)
def test_any_tokenizer_gives_ids_without_special_pieces(tokenizer, ids: list[int]) -> None:
    found = encoder(tokenizer)("ab")
    assert found.dtype == np.int64 and found.tolist() == ids


def test_what_is_no_tokenizer_is_refused() -> None:
    with pytest.raises(TypeError, match="int has neither encode nor __call__"):
        encoder(3)
    with pytest.raises(TypeError, match=r"Pieces gave <U2 of shape .* out_type=int"):
        encoder(Pieces())("a")


def test_special_ids_are_found_or_asked_for() -> None:
    assert (end_id(Letters()), end_id(Careful()), end_id(Ordinary()), end_id(Rust(), 9)) == (0, 2, 5, 9)
    assert (unknown_id(Careful()), unknown_id(Rust())) == (3, None)
    assert (vocabulary_size(Careful()), vocabulary_size(Ordinary())) == (12, 9)
    assert pad_id(np.int64(0)) == 0
    with pytest.raises(ValueError, match="end-of-document id is None; pass eos_id="):
        LMTextDataset(["a"], Rust())
    with pytest.raises(TypeError, match="does not tell the size"):
        vocabulary_size(Rust())


def test_ids_beyond_int32_are_refused() -> None:
    class Wide(Letters):
        def encode(self, text: str) -> list[int]:
            return [2**31]

    with pytest.raises(ValueError, match="ids 0 to 2147483648; they must fit int32"):
        LMTextDataset(["a"], Wide(), 1)


def test_our_own_tokenizer_gives_the_ids_of_the_pipeline(tmp_path: Path) -> None:
    """Shards of the same texts would hold this very stream, and these windows."""
    tokenizer, rows = lay(tmp_path), kit_texts(60)
    dataset = LMTextDataset(rows, tokenizer, 64, min_length=2)
    ids, lengths = tokenizer.encode_batch(rows)
    documents = np.split(ids, np.cumsum(lengths)[:-1])
    stream = [token for document in documents for token in [*document.tolist(), tokenizer.eos_id]]
    assert dataset.tokens == len(stream) and dataset.documents == len(rows)
    assert [one["input_ids"].tolist() for one in dataset] == [
        stream[start : min(start + 65, len(stream))][:-1] for start in range(0, len(stream) - 1, 64)
    ]
    assert pad_id(tokenizer) == 3 and unknown_id(tokenizer) == 0 and vocabulary_size(tokenizer) == 500


def test_sentencepiece_goes_as_it_is(tmp_path: Path) -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    words = [f"the miller grinds corn {n} times" for n in range(300)]
    (tmp_path / "words").write_text("\n".join(words))
    sentencepiece.SentencePieceTrainer.train(
        input=str(tmp_path / "words"), model_prefix=str(tmp_path / "m"), vocab_size=50, minloglevel=2
    )
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "m.model"))
    dataset = LMTextDataset(words, tokenizer, 32, min_length=2)
    assert tokenizer.decode(dataset[0]["input_ids"].tolist()).startswith("the miller grinds corn 0 times")
    assert dataset.documents == 300 and end_id(tokenizer) == 2 and vocabulary_size(tokenizer) == 50
    with pytest.raises(ValueError, match="pad id is -1"):
        LLMDataCollator(tokenizer)
