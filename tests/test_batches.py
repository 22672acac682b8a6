"""Batches: documents told apart by position, in every form that a model may ask for."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional
from torch.utils.data import DataLoader

from tasks.artifacts.shards import ShardReader
from tests.pin_maker import EOS, FINGERPRINT, lay_pin, small_pin
from training.batch import Batch
from training.dataset import PackedDataset, PositionBatches
from training.examples import AsMapping, ExampleDataset
from training.gather import Room
from training.kernels import COMPILED
from training.loader import build_dataloader
from training.masks import IGNORED, attention_mask, create_combined_attention_mask, document_ids
from training.pin import Pin, open_pin


@pytest.fixture(scope="module")
def pin(tmp_path_factory: pytest.TempPathFactory) -> Pin:
    return small_pin(tmp_path_factory.mktemp("project"), stages=[(0, {"a": 1, "b": 2})])


def made(sizes: list[list[int]], width: int, labels: str = "shifted") -> Batch:
    """Rows of documents of so many tokens, the rest padding; ids count from 10."""
    tokens = torch.arange(10, 10 + len(sizes) * (width + 1)).view(len(sizes), width + 1)
    lengths = np.array([sum(row) for row in sizes], np.int32)
    begins = [
        row * (width + 1) + at
        for row, documents in enumerate(sizes)
        for at in sorted({0, *np.cumsum([0, *documents])[:-1].tolist()})
    ]
    short = lengths if (lengths <= width).any() else None
    return Batch(tokens, short, np.array(begins, np.int64), labels, 0)


def test_document_ids_count_from_one_and_padding_is_nought() -> None:
    assert document_ids([[4, 3, 3]], 12).tolist() == [[1, 1, 1, 1, 2, 2, 2, 3, 3, 3, 0, 0]]
    assert made([[4, 3, 3]], 12).document_ids.tolist() == [[1, 1, 1, 1, 2, 2, 2, 3, 3, 3, 0, 0]]
    assert document_ids([[2, 0, 1], [], [5]], 5).tolist() == [[1, 1, 2, 0, 0], [0] * 5, [1] * 5]
    with pytest.raises(ValueError, match=r"documents of \[3, 3\] tokens do not fit in a row of 5"):
        document_ids([[3, 3]], 5)


@pytest.mark.parametrize("labels", ["shifted", "model"])
@pytest.mark.parametrize(
    "sizes",
    [
        [[4, 3, 3], [13], [5, 8], [1, 1, 1]],
        [[13], [13]],
        [[12, 1], [6, 6, 1]],
        [[], [2], []],
        [[]],
        [[1] * 13, [2] * 6],
    ],
)
def test_every_form_says_the_same(sizes: list[list[int]], labels: str) -> None:
    """Against a plain loop: rows of one document, of pads, of single tokens, a document that begins at the last."""
    batch = made(sizes, 12, labels)
    rows, width = batch.input_ids.shape
    expected = torch.zeros(rows, width, dtype=torch.int64)
    borders, longest = [0], 0
    for row, documents in enumerate(sizes):
        at = 0
        for number, size in enumerate(documents, 1):
            held = max(0, min(at + size, width) - at)
            expected[row, at : at + held] = number
            borders += [borders[-1] + held] * (held > 0)
            longest, at = max(longest, held), at + size
    assert torch.equal(batch.document_ids, expected)
    assert torch.equal(batch.attention_mask, expected > 0)
    assert (batch.cu_seqlens.tolist(), batch.max_seqlen) == (borders, longest)
    assert batch.cu_seqlens.dtype == torch.int32
    real = batch.attention_mask
    restarts = torch.cat([torch.arange(stop - start) for start, stop in itertools.pairwise(borders)] or [real])
    assert batch.position_ids[real].tolist() == (restarts.tolist() if real.any() else [])
    assert int(batch.position_ids.max()) < width
    mask = batch.combined_mask()
    assert mask.shape == (rows, 1, width, width) and mask.any(-1).all()
    for row, query, key in np.ndindex(rows, width, width):
        same = expected[row, query] == expected[row, key] > 0
        assert mask[row, 0, query, key] == bool((same and key <= query) or key == query)


def test_labels_leave_out_padding_and_what_nothing_foretells() -> None:
    assert made([[4, 3, 3]], 12).labels.tolist() == [[11, 12, 13, -100, 15, 16, -100, 18, 19, -100, -100, -100]]
    model = made([[4, 3]], 8, "model")
    assert model.labels.tolist() == [[-100, 11, 12, 13, -100, 15, 16, -100, -100]]
    assert model.input_ids.tolist() == [[*range(10, 19)]]
    assert (made([[], []], 8).labels == IGNORED).all()


def test_the_combined_mask_in_its_forms() -> None:
    real = torch.tensor([[1, 1, 1, 1, 0, 0], [0, 0, 1, 1, 1, 1], [0] * 6])
    numbers = torch.tensor([[1, 1, 2, 2, 0, 0], [0, 0, 1, 2, 2, 2], [0] * 6])
    mask = create_combined_attention_mask(real, numbers)
    assert mask.shape == (3, 1, 6, 6) and mask.dtype == torch.bool
    assert torch.equal(mask, attention_mask(numbers))
    assert mask[0, 0].int().tolist()[2:] == [[0, 0, 1, 0, 0, 0], [0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 0], [0] * 5 + [1]]
    one = create_combined_attention_mask(real)
    assert one[0, 0, 3].tolist() == [True] * 4 + [False] * 2
    assert one[1, 0, 3].tolist() == [False, False, True, True, False, False]
    for dtype in (torch.float32, torch.bfloat16):
        additive = create_combined_attention_mask(real, numbers, additive=dtype)
        assert additive.dtype == dtype and torch.equal(additive == 0, mask)
        scores = torch.randn(3, 1, 6, 6, dtype=dtype) + additive
        assert torch.isfinite(scores.softmax(-1)).all()
    q = torch.randn(3, 2, 6, 4)
    whole = functional.scaled_dot_product_attention(q, q, q, attn_mask=mask)
    added = create_combined_attention_mask(real, numbers, additive=torch.float32)
    assert torch.allclose(whole, functional.scaled_dot_product_attention(q, q, q, attn_mask=added), atol=1e-6)
    assert torch.isfinite(whole).all()


def test_the_block_mask_sees_what_the_dense_one_sees() -> None:
    from torch.nn.attention.flex_attention import create_mask

    batch = made([[200, 30, 26], [100], [256]], 256)
    blocks = batch.block_mask()
    dense = create_mask(blocks.mask_mod, 3, None, 256, 256, device="cpu")
    assert torch.equal(dense.bool(), batch.combined_mask())
    assert blocks.sparsity() > 0


def test_a_part_of_a_batch_is_what_its_rows_are() -> None:
    batch = made([[4, 3, 3], [13], [5, 8], [1, 1, 1]], 12)
    parts = [batch.part(slice(0, 1)), batch.part(slice(1, 4))]
    for name in ("input_ids", "labels", "document_ids", "attention_mask", "position_ids"):
        assert torch.equal(torch.cat([getattr(part, name) for part in parts]), getattr(batch, name)), name


@pytest.mark.parametrize("isolate", [False, True])
def test_a_batch_tells_the_documents_of_its_rows(pin: Pin, isolate: bool) -> None:
    """Document numbers are those of the shard's index, so that `gristmill trace` finds what they were made of."""
    shards = {(s, p.name): ShardReader(p.parent, p.name) for s in "ab" for p in pin.shards(s, "train")}
    for batch in build_dataloader(pin, batch_size=4, steps=20, isolate_documents=isolate, labels="model"):
        for row, origin in zip(batch.input_ids.tolist(), batch.origins(), strict=True):
            shard = shards[origin.source, origin.shard]
            start, stop = origin.ids
            assert row[: stop - start] == shard.tokens[start:stop].tolist()
            begins = (shard.index.pointers // 2).tolist()
            ends = [*begins[1:], len(shard.tokens)]
            assert list(origin.documents) == [n for n in range(len(begins)) if begins[n] < stop and ends[n] > start]
        if isolate:
            expected = [max(1, len(origin.documents)) for origin in batch.origins()]
            assert batch.document_ids.max(1).values.tolist() == expected


def test_rows_with_many_documents_are_found_whole(tmp_path: Path) -> None:
    """One shard of long documents with a stretch of the shortest in it: windows that do not suffice are widened."""
    random = np.random.default_rng(3)
    lengths = [*random.integers(200, 900, 40), *[2] * 500, 1, 1, *random.integers(1, 5, 300), 3000]
    documents = [[10] * (int(length) - 1) + [EOS] for length in lengths]
    lay_pin(tmp_path, {"a": {"train": [documents, documents[::-1]]}}, width=256)
    pin = open_pin(FINGERPRINT, tmp_path)
    dataset = PackedDataset(pin, isolate_documents=True)
    block = dataset.locate(np.arange(len(dataset)))
    shards = [ShardReader(path.parent, path.name) for path in pin.shards("a", "train")]
    numbers, places = dataset.shards.split(dataset._numbers(np.arange(len(dataset))))
    for row, (number, place) in enumerate(zip(numbers, places, strict=True)):
        shard = shards[number]
        start, stop = int(shard.starts[place]), int(shard.stops[place])
        begins = shard.index.pointers // 2
        expected = [0, *(begins[(begins > start) & (begins < stop)] - start)]
        found = block.begins[block.of_row[row] : block.of_row[row + 1]] - row * dataset.width
        assert found.tolist() == expected


@pytest.mark.parametrize("labels", ["shifted", "model"])
@pytest.mark.parametrize("corpus", ["books", "chats"])
def test_what_is_written_with_the_tokens_is_what_follows_from_them(
    pin: Pin, tmp_path: Path, labels: str, corpus: str
) -> None:
    """The loader's batches on a CPU, written in one pass, against those made of the same rows part by part: short rows,
    documents that begin at a row's last id, ids without loss, rows that fill up the last batch."""
    if corpus == "chats":
        chat = [[10, 11, 12, 13, 14, 2], [20, 21, 2], [22, 23, 2]]
        learnt = [0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 0, 1]
        lay_pin(tmp_path, {"a": {"train": [[[*range(30, 37), 2], [40, 2]]]}, "chat": {"train": [chat]}},
                losses={"chat": learnt})  # fmt: skip
        pin = open_pin(FINGERPRINT, tmp_path)
    whole = build_dataloader(pin, batch_size=3, labels=labels, isolate_documents=True, steps=200)
    fixed = [] if corpus == "chats" else build_dataloader(
        pin, batch_size=3, labels=labels, isolate_documents=True, split="validation"
    )  # fmt: skip
    late = 0
    for loader in (whole, fixed):
        for batch in loader:
            rows = loader.dataset.__getitems__([*range(batch.position - 3, batch.position)])
            tokens, *rest = rows[:4]
            lengths, begins, unlearnt = (None if part is None else part.numpy() for part in rest)
            single = Batch(tokens.long(), lengths, begins, labels, batch.position, unlearnt=unlearnt)
            late += int((begins % 9 == 8).sum())
            room = Room(np.empty((3, 9), "<u2"), int(labels == "shifted") if COMPILED else None)
            held = loader.dataset.rows(batch.position - 3, 3, room)
            sent = Batch(torch.from_numpy(held.tokens).long(), held.lengths, held.begins, labels, batch.position,
                         unlearnt=held.unlearnt, borders=held.borders)  # fmt: skip
            for name in ("input_ids", "labels", "position_ids", "document_ids", "cu_seqlens"):
                own, other = getattr(batch, name), getattr(single, name)
                assert own.dtype == other.dtype and torch.equal(own, other), name
                assert torch.equal(getattr(sent, name), other), name
            assert batch.max_seqlen == single.max_seqlen and batch.position_ids.is_contiguous()
            for name in ("labels", "position_ids", "cu_seqlens"):
                assert torch.equal(getattr(batch.part(slice(1, 3)), name), getattr(single.part(slice(1, 3)), name))
    assert late


@pytest.mark.parametrize("isolate", [False, True])
@pytest.mark.parametrize("labels", ["shifted", "model"])
def test_examples_for_other_trainers_are_the_same_rows(pin: Pin, labels: str, isolate: bool) -> None:
    own = next(iter(build_dataloader(pin, batch_size=8, labels=labels, isolate_documents=isolate)))
    examples = ExampleDataset(pin, labels=labels, isolate_documents=isolate)
    by_default = next(iter(DataLoader(examples, batch_size=8)))
    packed = PackedDataset(pin, isolate_documents=isolate)
    collate = AsMapping(labels, isolate)
    at_once = next(iter(DataLoader(packed, batch_sampler=PositionBatches(8, 8), collate_fn=collate)))
    other = "position_ids" if isolate else "attention_mask"
    for fields in (by_default, at_once):
        assert set(fields) == {"input_ids", "labels", other}
        for name, value in fields.items():
            assert value.dtype == torch.int64 and torch.equal(value, getattr(own, name).long()), name
    assert len(examples) == len(packed) and torch.equal(examples[3]["labels"], own.labels[3])
    inputs = own.model_inputs()
    assert set(inputs) == {"input_ids", "labels", "attention_mask", *(["position_ids"] if isolate else [])}
