"""Tokenizers: the same card twice, lossless ids, text that stays text, clear refusals."""

import base64
import hashlib
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import sentencepiece
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

import tokenizers
from flows.tokenizer import adopt_tokenizer
from tasks.artifacts.verdicts import FILTER_CUTS
from tasks.encoder import PROBE, SentencePiece, probe_ids
from tasks.engines import open_model
from tasks.errors import GristmillError, ParamsError, TokenizerError
from tasks.text.split import splits
from tasks.tokenizer_sample import training_texts
from tasks.tokenizers import adopt, load, read_card, train
from tests.tokenizer_kit import lay, recipe, texts

FOREIGN = Path(__file__).parent.parent.parent / "shared/corpora/tokenizers"
CONTROLS = ["<s>", "</s>", "<pad>", "<unk>", "<0x41>", "a</s>", "<s>\n</s>", "[INST]"]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return lay(tmp_path_factory.mktemp("small"))


def test_training_twice_gives_the_same_bytes(tmp_path):
    cards = [train("small", iter(texts()), recipe(), tmp_path / run) for run in ("one", "two")]
    assert cards[0] == cards[1]
    files = [(tmp_path / run / "tokenizers/small/tokenizer.model").read_bytes() for run in ("one", "two")]
    assert files[0] == files[1]
    assert hashlib.sha256(files[0]).hexdigest() == cards[0]["sha256"]


def test_threads_change_no_piece(tmp_path, small):
    other = lay(tmp_path, "threads", threads=2)
    assert probe_ids(other) == probe_ids(small)
    assert [other.piece(i) for i in range(other.vocab_size)] == [small.piece(i) for i in range(small.vocab_size)]


def test_the_card_says_what_was_seen(tmp_path):
    card = train("small", ["ab\ncd", "", "é"], recipe(), tmp_path)
    spelled = b"".join(len(t.encode()).to_bytes(8, "little") + t.encode() for t in ["ab\ncd", "", "é"])
    assert card["seen"] == {
        "texts": 3, "characters": 6, "bytes": 7, "lines": 3, "lines_cut": 0,
        "sha256": hashlib.sha256(spelled).hexdigest(),
    }  # fmt: skip
    assert card["special"]["eos"] == {"id": 2, "piece": "</s>"}
    assert [card["special"][word]["id"] for word in ("unk", "bos", "eos", "pad")] == [0, 1, 2, 3]
    assert card["library"] == {"sentencepiece": sentencepiece.__version__}
    assert card["recipe"]["vocab_size"] == 500


def test_long_lines_are_cut_and_counted(tmp_path):
    card = train("small", ["é" * 100, "short"], recipe(line_bytes_max=65), tmp_path)
    assert card["seen"]["lines_cut"] == 1
    assert card["seen"]["lines"] == 1 + 4  # 200 bytes at 64 a piece, since 65 would cut a letter in two


def test_the_trainers_own_marks_and_nul_do_not_lose_lines(tmp_path):
    train("small", ["ab▁cd▅ef\x00gh"] * 3, recipe(vocab_size=300), tmp_path)
    tokenizer = load(tmp_path / "tokenizers/small")
    pieces = {tokenizer.piece(number) for number in range(tokenizer.vocab_size)}
    assert set("abcdefgh") <= pieces


@pytest.mark.parametrize("text", CONTROLS)
def test_text_that_spells_a_control_token_stays_text(small, text):
    ids, lengths = small.encode_batch([text])
    assert not set(ids.tolist()) & {small.bos_id, small.eos_id, small.pad_id, small.unk_id}
    assert small.decode(ids) == text
    assert lengths.tolist() == [len(ids)]


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(exclude_categories=["Cs"])) | st.text("a \n\t\r▁▅\x00<s/>é日"))
def test_every_text_comes_back(small, text):
    ids, _ = small.encode_batch([text])
    assert small.exact_on(text)
    assert small.decode(ids) == text
    assert not set(ids.tolist()) & {0, 1, 2, 3}


def test_a_batch_is_its_texts_one_by_one(small, monkeypatch):
    sample = [*texts(40), "", PROBE, "▁", "x"]
    flat, lengths = small.encode_batch(sample)
    monkeypatch.setattr("tasks.encoder.BATCH_CHARACTERS", 50)
    again, _ = small.encode_batch(sample)
    alone = [small.encode_batch([text])[0] for text in sample]
    assert lengths.tolist() == [len(ids) for ids in alone]
    assert flat.tolist() == again.tolist() == np.concatenate(alone).tolist()
    assert small.encode_batch([])[1].tolist() == []


def test_absent_names_the_command(tmp_path):
    with pytest.raises(TokenizerError, match="gristmill tokenizer train demo"):
        load(tmp_path / "tokenizers/demo")


def test_an_existing_one_is_never_made_again(tmp_path):
    lay(tmp_path)
    with pytest.raises(TokenizerError, match="there already"):
        train("small", texts(), recipe(), tmp_path)
    with pytest.raises(ParamsError, match="no name"):
        train("../evil", texts(), recipe(), tmp_path)


@pytest.mark.parametrize("nothing", [[], [""], ["\n\n"]])
def test_no_text_is_refused(tmp_path, nothing):
    with pytest.raises(TokenizerError, match="no text to train"):
        train("small", nothing, recipe(), tmp_path)
    assert not (tmp_path / "tokenizers").exists()


def test_an_error_in_the_texts_is_that_error(tmp_path):
    def broken():
        yield "some text"
        raise GristmillError("a part is damaged")

    with pytest.raises(GristmillError, match="a part is damaged"):
        train("small", broken(), recipe(), tmp_path)
    assert not (tmp_path / "tokenizers").exists()


def test_a_vocabulary_too_small_for_the_text_is_refused_with_the_trainers_words(tmp_path):
    many = "".join(chr(0x4E00 + number) for number in range(400))
    with pytest.raises(TokenizerError, match="Vocabulary size"):
        train("small", [many], recipe(vocab_size=300), tmp_path)


def test_a_changed_model_is_refused_with_both_digests(tmp_path):
    lay(tmp_path)
    folder = tmp_path / "tokenizers/small"
    expected = read_card(folder)["sha256"]
    other = lay(tmp_path, "other", vocab_size=400)
    (folder / "tokenizer.model").write_bytes((tmp_path / "tokenizers/other/tokenizer.model").read_bytes())
    open_model.cache_clear()
    with pytest.raises(TokenizerError, match=f"expected {expected}, found {other.sha256}"):
        load(folder)


def edited(tmp_path, change):
    lay(tmp_path)
    folder = tmp_path / "tokenizers/small"
    card = json.loads((folder / "card.json").read_text())
    change(card)
    (folder / "card.json").write_text(json.dumps(card))
    return folder


def test_another_eos_in_the_card_is_refused_with_both(tmp_path):
    folder = edited(tmp_path, lambda card: card["special"]["eos"].update(piece="<eos>"))
    with pytest.raises(TokenizerError, match=r"eos is .*<eos>.* in its card, but .*</s>"):
        load(folder)


def test_a_drifted_tokenizer_is_refused(tmp_path):
    folder = edited(tmp_path, lambda card: card["probe"]["ids"].append(7))
    with pytest.raises(TokenizerError, match=r"the probe's ids is .* in its card, but .* in its model"):
        load(folder)


@pytest.mark.parametrize("broken", ["", "[]", "{}", "{", '{"format": 2}'])
def test_a_broken_card_is_refused(tmp_path, broken):
    lay(tmp_path)
    (tmp_path / "tokenizers/small/card.json").write_text(broken)
    with pytest.raises(TokenizerError, match="card"):
        load(tmp_path / "tokenizers/small")


def test_garbage_is_no_model(tmp_path):
    (tmp_path / "x.model").write_bytes(b"\x00garbage" * 10)
    with pytest.raises(TokenizerError, match="no SentencePiece model"):
        adopt("x", tmp_path / "x.model", tmp_path)
    with pytest.raises(TokenizerError, match="not there"):
        adopt("x", tmp_path / "none.model", tmp_path)


def test_a_model_without_eos_is_refused(tmp_path):
    path = tmp_path / "no_eos"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts()), model_prefix=str(path), vocab_size=100, eos_id=-1, minloglevel=2,
        hard_vocab_limit=False,
    )  # fmt: skip
    with pytest.raises(TokenizerError, match="no end-of-text id"):
        adopt("x", path.with_suffix(".model"), tmp_path)


def test_ids_out_of_the_vocabulary_are_named(small):
    with pytest.raises(TokenizerError, match=f"id 70000 .* ids 0 to {small.vocab_size - 1}"):
        small.piece(70_000)


def test_foreign_models_give_the_ids_of_their_reference():
    if not FOREIGN.is_dir():
        pytest.skip("the shared corpora are not here")
    golden = json.loads((FOREIGN / "golden.json").read_text())
    checked = 0
    for name, facts in golden["tokenizers"].items():
        if name.endswith(".model") or "sentencepiece" in facts["library"]:
            tokenizer = SentencePiece("foreign", (FOREIGN / name).read_bytes())
            flat, lengths = tokenizer.encode_batch(golden["texts"])
            each = np.split(flat, np.cumsum(lengths)[:-1])
            assert [ids.tolist() for ids in each] == facts["ids"], name
            checked += 1
    assert checked


ENDOFTEXT, QWEN = "<|endoftext|>", ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


def foreign(name, facts, root):
    """(folder laid by adopt, the same library's own ids of a text)."""
    path, options, engine = FOREIGN / name, {"roles": {"eos": ENDOFTEXT}}, "tokenizers"
    if name.startswith("gpt2"):
        library = tokenizers.ByteLevelBPETokenizer(str(path.parent / "encoder.json"), str(path.parent / "vocab.bpe"))
        library.add_special_tokens([ENDOFTEXT])
        path = root / "gpt2.json"
        library.save(str(path))
    elif name.endswith(".tiktoken"):
        control = {word: facts["vocab"] + at for at, word in enumerate(QWEN)}
        options |= {"pattern": facts["pat_str"], "control": control}
        engine = "tiktoken"
    adopt("own", path, root, engine, options)
    return load(root / "tokenizers/own")


@pytest.mark.parametrize(
    "name", ["gpt2/encoder.json+vocab.bpe", "hf/gpt-neo-test-tokenizer.json", "qwen/qwen.tiktoken"]
)
def test_other_engines_give_the_ids_of_their_libraries(name, tmp_path):
    """But where the text spells a control token: hf turns it into the token, we never do."""
    if not FOREIGN.is_dir():
        pytest.skip("the shared corpora are not here")
    golden = json.loads((FOREIGN / "golden.json").read_text())
    facts = golden["tokenizers"][name]
    tokenizer = foreign(name, facts, tmp_path)
    flat, lengths = tokenizer.encode_batch(golden["texts"])
    each = [ids.tolist() for ids in np.split(flat, np.cumsum(lengths)[:-1])]
    spelled = [at for at, text in enumerate(golden["texts"]) if ENDOFTEXT in text and name.startswith("hf")]
    assert [ids for at, ids in enumerate(each) if at not in spelled] == [
        ids for at, ids in enumerate(facts["ids"]) if at not in spelled
    ]
    for text, ids in zip(golden["texts"], each, strict=True):
        assert tokenizer.decode(np.array(ids, np.int32)) == text
        assert tokenizer.eos_id not in ids
        assert tokenizer.exact_on(text) != name.startswith("hf")  # which normalizes, to NFC
    assert tokenizer.eos_id == tokenizer.control[ENDOFTEXT] < tokenizer.vocab_size
    assert (tokenizer.bos_id, tokenizer.pad_id) == (-1, -1)
    assert tokenizer.decode(np.array([tokenizer.eos_id])) == ""
    with pytest.raises(TokenizerError, match="id 900000 is not in tokenizer own"):
        tokenizer.piece(900_000)


def test_an_engine_of_a_wrong_file_or_role_is_refused_by_name(tmp_path):
    (tmp_path / "x").write_text("{}")
    roles = {"roles": {"eos": "<end>"}}
    for engine, options, said in (
        ("tokenizers", roles, "no tokenizer.json"),
        ("tiktoken", roles, "no ranks of tiktoken"),
        ("other", {}, "wants engine 'other'"),
    ):
        with pytest.raises(TokenizerError, match=said):
            adopt("own", tmp_path / "x", tmp_path, engine, options)
    (tmp_path / "ranks").write_bytes(b"".join(base64.b64encode(bytes([b])) + b" %d\n" % b for b in range(256)))
    options = {"pattern": r"\S+|\s+", "control": {"<end>": 256}}
    with pytest.raises(TokenizerError, match="no control token <eos>; name roles by its own: <end>"):
        adopt("own", tmp_path / "ranks", tmp_path, "tiktoken", options | {"roles": {"eos": "<eos>"}})
    with pytest.raises(TokenizerError, match="named for the role eos"):
        adopt("own", tmp_path / "ranks", tmp_path, "tiktoken", options)
    card = adopt("own", tmp_path / "ranks", tmp_path, "tiktoken", options | roles)
    assert card["special"]["eos"] == {"id": 256, "piece": "<end>"}
    assert load(tmp_path / "tokenizers/own").encode_batch(["é<end>"])[0].tolist() == list("é<end>".encode())


def test_a_person_adopts_by_roles_and_numbers(tmp_path):
    lines = b"".join(base64.b64encode(bytes([b])) + b" %d\n" % b for b in range(256))
    (tmp_path / "own.tiktoken").write_bytes(lines)
    said = (["eos=<a=b>"], ["<a=b>=300"], r"\S+|\s+")
    card = adopt_tokenizer(tmp_path, "own", tmp_path / "own.tiktoken", *said)
    assert (card["special"]["eos"], card["vocab_size"]) == ({"id": 300, "piece": "<a=b>"}, 301)
    for roles, control in ((["eos"], []), (["eos=x"], ["x=y"])):
        with pytest.raises(ParamsError):
            adopt_tokenizer(tmp_path, "other", tmp_path / "own.tiktoken", roles, control, "x")


class Corpus:
    """Artifact-like tables in memory."""

    def __init__(self, parts):
        self.parts = parts

    def units(self, folder):
        return list(self.parts)

    def table(self, folder, columns=None, unit=None):
        table = self.parts[unit][folder]
        return table.select(list(columns)) if columns else table


def part(rows, cuts=()):
    """rows: (text, filter, dedup, decontaminate)."""
    shas = [hashlib.sha256(row[0].encode()).hexdigest() for row in rows]
    text = pa.table({"text_sha": shas, "text": pa.array([row[0] for row in rows], pa.large_string())})
    tables = {"normalize/text": text}
    for at, step in enumerate(("filter", "dedup", "decontaminate"), 1):
        verdict = [row[at] for row in rows]
        tables[f"{step}/verdicts"] = pa.table(
            {"verdict": verdict, "rule": ["r" if v == "drop" else None for v in verdict]}
        )
    empty = {
        "row": pa.array([], pa.int64()),
        "start": pa.array([], pa.int64()),
        "stop": pa.array([], pa.int64()),
    }
    tables["dedup/cuts"] = pa.table(empty)
    tables["filter/cuts"] = FILTER_CUTS.empty_table()
    columns = (
        [pa.array(list(column), pa.int64()) for column in zip(*cuts, strict=True)] if cuts else list(empty.values())
    )
    tables["decontaminate/cuts"] = pa.table(columns, names=list(empty))
    return tables


def test_training_sees_kept_rows_of_train_in_order_without_their_cuts():
    kept = [(f"text number {number}", "keep", "keep", "keep") for number in range(50)]
    bad = [
        ("bad a", "drop", "gone", "gone"),
        ("bad b", "keep", "drop", "gone"),
        ("bad c", "keep", "keep", "drop"),
    ]
    cut = ("good text\n\nLEAKED\n\nmore", "keep", "keep", "cut")
    corpus = Corpus({"web-1": part([*kept[:25], *bad, cut], [(28, 11, 17)]), "web-2": part(kept[25:])})
    found = list(training_texts(corpus, 1 << 20, 1, 0, 0))
    assert found == [row[0] for row in kept[:25]] + ["good text\n\nmore"] + [row[0] for row in kept[25:]]
    half = list(training_texts(corpus, 1 << 20, 1, 0.3, 0.3))
    assert 0 < len(half) < len(found)
    assert [text for text in found if text in half] == half


def test_a_sample_is_the_lowest_digests_whatever_the_order():
    rows = [(f"text number {number:03d}", "keep", "keep", "keep") for number in range(100)]
    size = len(rows[0][0])
    one = Corpus({"web-1": part(rows)})
    other = Corpus({"web-1": part(rows[60:]), "web-2": part(rows[:60])})
    found = list(training_texts(one, 10 * size, 1, 0, 0))
    lowest = sorted((row[0] for row in rows), key=lambda text: hashlib.sha256(text.encode()).hexdigest())[:10]
    assert sorted(found) == sorted(lowest)
    assert sorted(training_texts(other, 10 * size, 1, 0, 0)) == sorted(lowest)
    assert len(list(training_texts(one, 1, 1, 0, 0))) == 1
    assert list(training_texts(Corpus({}), 1, 1, 0, 0)) == []


@pytest.mark.parametrize("model", ["bpe", "unigram"])
def test_training_twice_gives_one_digest(model, tmp_path):
    """Also with lines above the limit, which are cut and counted, and with pieces that are reserved."""
    own = [*texts(), "a line without an end " * 60]
    changes = {"model": model, "vocab_size": 400, "line_bytes_max": 500, "reserved": ("<mask>", "<spare_0>")}
    cards = [train(name, own, recipe(**changes), tmp_path) for name in ("one", "two")]
    assert cards[0]["sha256"] == cards[1]["sha256"]
    assert cards[0]["seen"]["lines_cut"] == 1
    assert cards[0]["recipe"]["model"] == model
    first, second = ((tmp_path / f"tokenizers/{name}/tokenizer.model").read_bytes() for name in ("one", "two"))
    assert first == second and str(tmp_path).encode() not in first
    tokenizer = load(tmp_path / "tokenizers/one")
    assert {"<mask>", "<spare_0>"} <= set(tokenizer.control)
    for text in [*own, PROBE, "  two  spaces\n\n\tand <mask> \u2581 x² ﬁ é 👩‍🔬\r\n"]:
        ids, _ = tokenizer.encode_batch([text])
        assert tokenizer.decode(ids) == text
        assert not set(ids.tolist()) & set(tokenizer.control.values())


def test_a_unigram_model_wants_one_thread_and_a_reserved_piece_one_name():
    with pytest.raises(ValidationError, match="threads is 2, but the vocabulary of a unigram model depends on it"):
        recipe(model="unigram", threads=2)
    for reserved in (("<mask>", "<mask>"), ("</s>",)):
        with pytest.raises(ValidationError, match="is there already"):
            recipe(reserved=reserved)


def test_what_stands_in_validation_alone_is_no_piece(tmp_path):
    """A word planted in held-out rows, often enough to be learnt at once if it were seen."""
    rows = [(f"the miller number {number} grinds corn", "keep", "keep", "keep") for number in range(60)]
    shas = [hashlib.sha256(row[0].encode()).hexdigest() for row in rows]
    held = [split != "train" for split in splits(shas, 1, 0.3, 0.2)]
    assert any(held) and not all(held)
    planted = part(rows)
    text = [row[0] + " zyzzyva" * 50 if out else row[0] for row, out in zip(rows, held, strict=True)]
    planted["normalize/text"] = pa.table({"text_sha": shas, "text": pa.array(text, pa.large_string())})
    corpus = Corpus({"web-1": planted})
    for share, seen in ((0.3, False), (0.0, True)):
        sample = list(training_texts(corpus, 1 << 20, 1, share, 0.2 if share else 0.0))
        train(f"with{share}", sample, recipe(vocab_size=300), tmp_path)
        tokenizer = load(tmp_path / f"tokenizers/with{share}")
        pieces = [tokenizer.piece(number) for number in range(tokenizer.vocab_size)]
        assert any("zy" in piece for piece in pieces) is seen
