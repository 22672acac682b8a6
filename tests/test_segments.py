"""tasks.text.segments and the encoder that rests on it: other roads, the same ids."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tasks import encoder
from tasks.encoder import SentencePiece
from tasks.errors import TokenizerError
from tasks.text import segments
from tasks.text.segments import distinct, gathered, segment_starts
from tests.tokenizer_kit import lay, texts

ODD = st.text("ab \n\té日▁▅\x00\u3000", max_size=30) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=20
)


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


@given(st.lists(ODD, max_size=8))
def test_equal_bytes_get_one_number(own):
    data, starts, spelled = cut(*own)
    assert "".join(spelled) == "".join(own)
    which, firsts = distinct(data, starts)
    assert [spelled[firsts[number]] for number in which] == spelled
    assert len(set(spelled)) == len(firsts)


def test_crowded_tables_tell_equal_segments_apart_at_worst():
    own = " ".join(str(number % 500) for number in range(3000))
    data, starts, spelled = cut(own)
    which, firsts, found = segments._distinct(data, starts, np.full(64, -1, np.int64))
    assert [spelled[firsts[number]] for number in which] == spelled
    assert 500 <= found <= 3000


def test_a_gather_worked_out_by_hand():
    ids, stops = gathered(np.array([7, 8, 9], np.int32), np.array([0, 1, 1, 3]), np.array([2, 0, 1, 2]))
    assert (ids.tolist(), stops.tolist()) == ([8, 9, 7, 8, 9], [2, 3, 3, 5])


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return lay(tmp_path_factory.mktemp("small"))


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
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


def test_a_wrong_belief_is_found_out(monkeypatch):
    tokenizer = trained(split_by_whitespace=False)
    tokenizer.__dict__["segmented"] = True
    monkeypatch.setattr(encoder, "WORTH_CUTTING", 1)
    with pytest.raises(TokenizerError, match="other ids in segments than whole"):
        tokenizer.encode_batch([texts()[0]])
