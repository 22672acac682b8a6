"""Cases 13, 15, 17, 41 and 43 of a collection of accidents of such pipelines, and where those beside them are held.

13, ids that do not fit: test_shard.py (dtype, writing, reading), test_bad_pins.py (before the first batch); here the
special ids. 15, another tokenizer's EOS: test_tokenize.py (exactly one a document, also of an empty one; counts),
test_shard.py (a split one); here what is configured. 17, a tokenizer that drifts: test_tokenize.py and
test_text_to_shards.py (the key); here both values in the error. 27, tokens that vanish: test_pack.py (every strategy);
all ranks together read every sequence in test_ranks.py. 38, offsets beyond 2 GiB: test_shard.py, test_ingest_scale.py.
42, a source repeated too often: test_mix.py, test_order.py (passes differ and are whole), test_training.py.
A weight of zero is refused by name, and leave_out is how one says it: so nothing can wait for it.
"""

import json
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest

from tasks.artifacts.schedule import ScheduleError, lay_quotas
from tasks.artifacts.tokens import token_dtype
from tasks.encoder import PROBE, probe_ids
from tasks.engines import HuggingFace
from tasks.errors import ParamsError, TokenizerError
from tasks.mix.emptied import emptied_by
from tasks.tokenize.tokenizer import facts
from tasks.tokenizers import adopt, load
from tests.corpora import shared
from tests.test_mix import SECTIONS, mixture, params
from tests.test_segments import byte_level
from tokenizers import pre_tokenizers
from training.order import Order

__all__ = ["mixture"]


@pytest.fixture(scope="module")
def plain():
    return byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False))


def test_13_special_ids_count_for_the_dtype_as_well(plain):
    library = plain._tokenizer
    assert plain.eos_id in plain.control.values()
    assert plain.vocab_size == max(library.get_vocab(with_added_tokens=True).values()) + 1
    sizes = (65_535, 65_536, 65_537, 128_256)
    assert [token_dtype(size).str for size in sizes] == ["<u2", "<u2", "<i4", "<i4"]


def test_15_the_eos_of_another_tokenizer_is_refused_and_its_own_is_named(plain, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(plain._tokenizer.to_str())
    with pytest.raises(TokenizerError, match=r"has no control token <eos>; name roles by its own: <\|end\|>"):
        adopt("b", path, tmp_path, "tokenizers", {"roles": {"eos": "<eos>"}})
    with pytest.raises(TokenizerError, match="named for the role eos"):
        adopt("b", path, tmp_path, "tokenizers", {})
    assert not (tmp_path / "tokenizers" / "b").exists()


def drifted(change):
    """A tokenizer of the same name whose file was changed."""
    content = json.loads(byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False))._tokenizer.to_str())
    change(content)
    return json.dumps(content)


def without_a_merge(content):
    """The first one that the probe needs."""
    merges = content["model"]["merges"]
    merges.remove(next(pair for pair in merges if "".join(pair) in PROBE))


def lower(content):
    content["normalizer"] = {"type": "Lowercase"}


@pytest.mark.parametrize("change", [without_a_merge, lower])
def test_17_a_file_that_drifted_has_another_maker_and_is_refused_with_both_values(plain, tmp_path, change):
    (tmp_path / "first.json").write_text(plain._tokenizer.to_str())
    other = HuggingFace("own", drifted(change).encode(), {"roles": {"eos": "<|end|>"}})
    assert facts(other)["maker"] != facts(plain)["maker"]
    probes = [
        json.loads(line)["text"] for line in shared("cases/17-tokenizer-drift/probe.jsonl").read_text().splitlines()
    ]
    ids = [tokenizer.encode_batch(probes)[0].tolist() for tokenizer in (plain, other)]
    assert ids[0] != ids[1] and probe_ids(plain) != probe_ids(other)
    card = adopt("own", tmp_path / "first.json", tmp_path, "tokenizers", {"roles": {"eos": "<|end|>"}})
    model = tmp_path / "tokenizers" / "own" / "tokenizer.json"
    model.write_text(drifted(change))
    with pytest.raises(TokenizerError, match=f"expected {card['sha256']}, found {other.sha256}"):
        load(model.parent)
    path = model.parent / "card.json"
    path.write_text(json.dumps(card | {"sha256": other.sha256}))
    with pytest.raises(TokenizerError, match=r"the probe's ids is .* in its card, but .* in its model"):
        load(model.parent)


def case_41():
    given = json.loads(shared("cases/41-mix-rounds-to-zero/mix.json").read_text())
    return given["totals"], given["weights"]


def test_41_a_weight_that_rounds_to_nothing_is_refused_by_name():
    totals, weights = case_41()
    for period in (*totals[:2], 65_536):
        with pytest.raises(ScheduleError, match=r"source 'rare' has weight 1e-06 .* rounds to none; raise it to"):
            lay_quotas(weights, period)


@pytest.mark.parametrize("at", range(3))
def test_41_counts_add_up_and_no_source_is_a_sequence_away_from_its_weight(mixture, at):
    """The case's three totals as lengths of a stage; tiny has one sequence, and half of a weight."""
    totals, weights = case_41()
    kept = {name: weight for name, weight in weights.items() if name != "rare"}
    shards = {f"{name}/train/shard_00000": 1 if name == "tiny" else 1000 for name in kept}
    made = mixture(params({"weights": kept, "tokens": 8 * totals[at]}, period=1000), shards)
    order = Order(made.schedule)
    drawn = np.bincount(order.at(np.arange(totals[at])).source, minlength=len(kept))
    assert drawn.sum() == totals[at] and drawn.min() > 0
    (stage,) = made.schedule.stages
    assert sum(stage.quotas.values()) == 1000 and min(stage.quotas.values()) > 0
    for name, count in zip(order.sources, drawn.tolist(), strict=True):
        assert abs(count - stage.achieved[name] * totals[at]) < 1
        assert abs(stage.achieved[name] - kept[name] / sum(kept.values())) < 1 / 1000
    assert stage.planned == pytest.approx({name: weight / sum(kept.values()) for name, weight in kept.items()})


SHARDS_43 = {"a/train/shard_00000": 2, "e/validation/shard_00000": 4, "b/train/shard_00000": 1}
WEIGHTS_43 = {"a": 2, "e": 5, "b": 1}


def test_43_a_weight_of_zero_is_refused_and_leaving_out_says_it(mixture):
    shards = {"a/train/shard_00000": 2, "b/train/shard_00000": 1}
    with pytest.raises(ParamsError, match=r"'b' has weight 0.0; .*leave it out"):
        mixture(params({"weights": {"a": 1, "b": 0}}), shards)
    schedule = mixture(params({"weights": {"a": 1}, "leave_out": ["b"]}), shards).schedule
    assert schedule.stages[0].quotas == {"a": 64}


def test_43_an_emptied_source_is_refused_by_the_step_that_left_nothing_of_it(mixture):
    kept = {"ingest": ("documents", "documents_out", 9), "normalize": ("text", "documents_out", 9)}
    standing = manifests(kept | {"filter": ("verdicts", "documents_kept", 0)})
    with pytest.raises(
        ParamsError, match=r"weigh 'e', which has no .*: filter left none of its 9 documents .*: a, b\)"
    ):
        mixture(params({"weights": WEIGHTS_43}), SHARDS_43, standing)


def manifests(counts):
    """step -> what its manifest says of one part of source e."""
    return {
        step: SimpleNamespace(folders={folder: {"e-0123456789abcdef": SimpleNamespace(counts={measure: count})}})
        for step, (folder, measure, count) in counts.items()
    }


def test_43_what_is_said_of_an_emptied_source():
    every = {"ingest": ("documents", "documents_out", 5), "normalize": ("text", "documents_out", 5)}
    every |= dict.fromkeys(("filter", "dedup", "decontaminate"), ("verdicts", "documents_kept", 4))
    every["tokenize"] = ("tokens", "documents_kept", 3)
    said = [
        (every, "pack laid none of its 3 documents into the train split"),
        (every | {"dedup": ("verdicts", "documents_kept", 0)}, "dedup left none of its 4 documents"),
        (every | {"ingest": ("documents", "documents_out", 0)}, "ingest read no document of it"),
        ({}, "no part of that name was read"),
    ]
    for own, words in said:
        assert emptied_by("e", manifests(own).get) == words
    assert emptied_by("other", manifests(every).get) == "no part of that name was read"


def test_43_an_empty_source_may_be_allowed_and_then_the_others_are_read_in_any_order(mixture):
    """Three positions: a's two sequences and b's one, whatever the order of the three; the empty one is counted."""
    own, made = params({"weights": WEIGHTS_43, "allow_empty": True}, period=3), set()
    for shards in permutations(SHARDS_43.items()):
        found = mixture(own, dict(shards))
        places = Order(found.schedule).at(np.arange(3))
        read = {(source, index) for source, index in zip(places.source.tolist(), places[3].tolist(), strict=True)}
        assert read == {(0, 0), (0, 1), (1, 0)}
        assert found.counts["empty|source=e"] == 1
        made.add(found.path.read_bytes())
    assert len(made) == 1
    alone = mixture(params({"weights": {"a": 2, "b": 1}}, period=3), SHARDS_43)
    assert made == {alone.path.read_bytes()}


def test_43_a_domain_that_selects_nothing_is_told(mixture, monkeypatch):
    monkeypatch.setitem(SECTIONS, "pack", SECTIONS["pack"] | {"domains": [{"name": "e2"}]})
    with pytest.raises(ParamsError, match=r"weigh 'e2'.*no row that is kept for training is of that domain"):
        mixture(params({"weights": {"a": 2, "b": 1, "e2": 1}}), SHARDS_43)


def test_43_what_nobody_named_and_a_stage_of_empty_sources_alone_are_refused_all_the_same(mixture):
    with pytest.raises(ParamsError, match=r"weigh 'books'.*do not name it"):
        mixture(params({"weights": WEIGHTS_43 | {"books": 1}, "allow_empty": True}), SHARDS_43)
    with pytest.raises(ParamsError, match="no weights"):
        mixture(params({"weights": {"e": 1}, "leave_out": ["a", "b"], "allow_empty": True}), SHARDS_43)
