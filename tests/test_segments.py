"""tasks.text.segments and the encoder that rests on it: other roads, the same ids."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tasks import encoder
from tasks.encoder import SentencePiece
from tasks.errors import TokenizerError
from tasks.text.segments import SegmentMemory, segment_starts
from tests.tokenizer_kit import lay, texts

ODD = st.text("ab \n\té日▁▅\x00\u3000", max_size=30) | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def cut(*own):
    spelled = [text.encode() for text in own]
    data = np.frombuffer(b"".join(spelled), np.uint8)
    borders = np.cumsum([0, *map(len, spelled)])
    starts = segment_starts(data, borders)
    return (
        data,
        starts,
        [data[a:b].tobytes().decode() for a, b in zip(starts, [*starts[1:], len(data)], strict=False)],
    )


def test_segments_worked_out_by_hand():
    assert cut("  two  words\n\n\tx y", "", "next")[2] == [
        "  two",
        "  words",
        "\n",
        "\n",
        "\t",
        "x",
        " y",
        "next",
    ]
    assert cut("a ")[2] == ["a", " "]
    assert cut("", "")[2] == []
    assert cut()[2] == []


@settings(deadline=None)
@given(st.lists(st.lists(ODD, max_size=8), max_size=4))
def test_equal_bytes_get_one_number_for_as_long_as_they_are_remembered(batches):
    memory, seen = SegmentMemory(), []
    for own in batches:
        data, starts, spelled = cut(*own)
        assert "".join(spelled) == "".join(own)
        which = memory.numbers_of(data, starts)
        fresh, stops = memory.unlearned()
        seen += [fresh[a:b].tobytes().decode() for a, b in pairwise([0, *stops.tolist()])]
        assert [seen[number] for number in which] == spelled
        memory.learn(np.zeros(len(stops), np.int32), np.ones(len(stops), np.int64))
    assert len(set(seen)) == len(seen) == memory.known
    assert memory.bytes == sum(len(text.encode()) for text in seen)


def test_many_segments_make_the_table_grow():
    memory = SegmentMemory()
    for part in range(6):
        data, starts, spelled = cut(" ".join(str(number) for number in range(part * 20_000, part * 20_000 + 30_000)))
        which = memory.numbers_of(data, starts)
        assert len(set(which.tolist())) == len(set(spelled))
        memory.learn(which[:0].astype(np.int32), np.zeros(memory.known - len(memory._borders) + 1, np.int64))
    assert memory.known <= 130_000 + 6  # the first of each part has no space before it


def test_segments_made_to_collide_are_told_apart_at_worst(monkeypatch):
    """A full table: nothing is found, nothing is wrong, and no search goes on for ever."""
    memory = SegmentMemory()
    monkeypatch.setattr(memory, "_table", np.zeros(64, np.int64))
    monkeypatch.setattr(memory, "_make_room", lambda *_: None)
    data, starts, spelled = cut("a b a b c c")
    which = memory.numbers_of(data, starts)
    fresh, stops = memory.unlearned()
    seen = [fresh[a:b].tobytes().decode() for a, b in pairwise([0, *stops.tolist()])]
    assert [seen[number] for number in which] == spelled
    assert memory.known == 6


def test_ids_are_gathered_in_turn():
    memory = SegmentMemory()
    which = memory.numbers_of(*cut("a b a")[:2])
    memory.learn(np.array([7, 8, 9], np.int32), np.array([1, 2, 0]))
    ids, stops = memory.ids_of(which)
    assert (which.tolist(), ids.tolist(), stops.tolist()) == ([0, 1, 2], [7, 8, 9], [1, 3, 3])
    ids, stops = memory.ids_of(np.array([1, 0, 2, 1]))
    assert (ids.tolist(), stops.tolist()) == ([8, 9, 7, 8, 9], [2, 3, 3, 5])


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return lay(tmp_path_factory.mktemp("small"))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(own=st.lists(ODD, min_size=1, max_size=8))
def test_segments_give_the_ids_of_whole_texts(small, own):
    assert small.segmented
    whole, lengths = encoder._joined(small._encode(own))
    ids, found = small._by_segment(own)
    assert ids.tolist() == whole.tolist()
    assert found.tolist() == lengths.tolist()


def test_encode_batch_takes_either_road(small, monkeypatch):
    own = [*texts(100), "", "a▁b", encoder.PROBE]
    plain = small.encode_batch(own)
    monkeypatch.setattr(encoder, "WORTH_CUTTING", 1)
    monkeypatch.setattr(encoder, "BATCH_CHARACTERS", 400)
    for _ in range(2):
        ids, lengths = small.encode_batch(own)
        assert ids.tolist() == plain[0].tolist()
        assert lengths.tolist() == plain[1].tolist()


def trained(**changes):
    import io

    import sentencepiece

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


@pytest.mark.parametrize(
    "changes",
    [
        {"add_dummy_prefix": True},
        {"remove_extra_whitespaces": True},
        {"normalization_rule_name": "nmt_nfkc"},
        {"byte_fallback": False},
        {"model_type": "unigram"},
        {"user_defined_symbols": ["the miller"]},
        {"user_defined_symbols": ["a\nb"]},
        {"split_by_whitespace": False},
        {"treat_whitespace_as_suffix": True},
    ],
)
def test_models_that_reach_across_are_encoded_whole(changes):
    assert trained().segmented
    assert not trained(**changes).segmented


def test_memory_that_is_full_begins_anew(small, monkeypatch):
    own = texts(60)
    plain = small.encode_batch(own)
    monkeypatch.setattr(encoder, "WORTH_CUTTING", 1)
    monkeypatch.setattr(encoder, "BATCH_CHARACTERS", 300)
    monkeypatch.setattr(encoder, "MEMORY_BYTES", 200)
    monkeypatch.setattr(encoder, "CHUNK_BYTES", 50)
    monkeypatch.setattr(small, "_memory", None)
    ids, lengths = small.encode_batch(own)
    assert ids.tolist() == plain[0].tolist()
    assert lengths.tolist() == plain[1].tolist()
    assert small._memory.bytes < 2000


def test_threads_share_one_memory(small, monkeypatch):
    own = texts(100)
    plain = small.encode_batch(own)[0].tolist()
    monkeypatch.setattr(encoder, "WORTH_CUTTING", 1)
    monkeypatch.setattr(encoder, "MEMORY_BYTES", 500)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: small.encode_batch(own)[0].tolist(), range(40)))
    assert all(ids == plain for ids in found)


def test_a_wrong_belief_is_found_out(monkeypatch):
    tokenizer = trained(split_by_whitespace=False)
    tokenizer.__dict__["segmented"] = True
    monkeypatch.setattr(encoder, "WORTH_CUTTING", 1)
    with pytest.raises(TokenizerError, match="other ids in segments than whole"):
        tokenizer.encode_batch([texts()[0]])
