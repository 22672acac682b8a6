"""pack: splits, groups, and sequences that lose nothing unnamed."""

import hashlib
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tasks.artifacts.manifest import Entry
from tasks.artifacts.tokens import SEQUENCES
from tasks.errors import InvariantError, ParamsError
from tasks.pack import STEP, DomainParams, PackParams, invariants, rows
from tasks.pack import pieces as pieces_folder
from tasks.pack import sequences as sequences_folder
from tasks.pack import splits as splits_folder
from tasks.pack.best_fit import best_fit, scrambled
from tasks.pack.planning import group, plan_groups
from tasks.pack.sequences import concat, windows
from tests.memory_reads import MemoryReads

CASES = Path(__file__).parent.parent.parent / "shared/cases"
PLAIN = {
    "tokens_per_sequence": 8,
    "strategy": "concat",
    "tail": "keep",
    "stride": 4,
    "long": "split",
    "long_of": {},
    "domains": (),
    "seed": 1,
    "split_seed": 1,
    "validation_share": 0.1,
    "test_share": 0.1,
    "group_bytes": 1000,
}


def params(**changes):
    return PackParams(**(PLAIN | changes))


def sha(number):
    return hashlib.sha256(str(number).encode()).hexdigest()


# --- sequences ------------------------------------------------------------------------------------------


def test_a_million_tokens_at_512():
    """floor(999,999 / 512) = 1953 full windows of 513 ids, to id 999,936; 63 more are left."""
    starts, stops = concat(1_000_000, 512, keep_tail=True)
    assert len(starts) == 1954
    assert (stops[:-1] - starts[:-1] == 513).all()
    assert (starts[-1], stops[-1]) == (999_936, 1_000_000)
    starts, stops = concat(1_000_000, 512, keep_tail=False)
    assert len(starts) == 1953
    assert stops[-1] == 999_937


@pytest.mark.parametrize(
    ("tokens", "tail", "expected"),
    [
        (0, "keep", []),
        (1, "keep", []),
        (2, "keep", [(0, 2)]),
        (2, "drop", []),
        (8, "keep", [(0, 8)]),
        (9, "keep", [(0, 9)]),
        (9, "drop", [(0, 9)]),
        (10, "keep", [(0, 9), (8, 10)]),
        (10, "drop", [(0, 9)]),
        (17, "keep", [(0, 9), (8, 17)]),
        (17, "drop", [(0, 9), (8, 17)]),
    ],
)
def test_streams_around_a_border(tokens, tail, expected):
    starts, stops = concat(tokens, 8, keep_tail=tail == "keep")
    assert list(zip(starts.tolist(), stops.tolist(), strict=True)) == expected


def packed(sizes, bos=None, **changes):
    """(pieces, sequences): what the two folders make of one part with documents of `sizes` ids."""
    given = params(**changes)
    tables = {
        "tokenize/tokens": pa.table({"tokens": pa.array(sizes, pa.int64())}),
        "pack/splits": pa.table({"split": ["train"] * len(sizes), "domain": ["web"] * len(sizes)}),
    }
    where = {} if bos is None else {"bos": bos}
    spec = {"domain": "web", "split": "train", "parts": ["web-1"]} | where
    if given.strategy in ("best_fit", "document") or bos == "sequence":
        spec |= {"strategy": given.strategy, "tokens_per_sequence": given.tokens_per_sequence}
    pieces = pieces_folder.make(MemoryReads("web-train-1", tables, spec=spec), given)
    spec = {"counts": pieces.counts} | where
    reads = MemoryReads("web-train-1", {"pack/pieces": pieces.files[".parquet"]}, spec=spec)
    return pieces, sequences_folder.make(reads, given)


def sequences_of(sizes, **changes):
    return packed(sizes, **changes)[1]


def breaches(pieces, sequences, **changes):
    named = {
        "tokenize/tokens": {"p": {"tokens": pieces.counts["tokens_in"]}},
        "pack/pieces": {"web-train-1": pieces.counts},
        "pack/sequences": {"web-train-1": sequences.counts},
    }
    table = sequences.files[".parquet"]
    artifact = SimpleNamespace(params=params(**changes), counts=named.get, table=lambda folder, columns, unit: table)
    return list(invariants(artifact))


@given(st.lists(st.integers(1, 40), max_size=30), st.integers(1, 20), st.sampled_from(["keep", "drop"]))
def test_every_id_but_the_first_is_a_target_once(sizes, length, tail):
    result = sequences_of(np.array(sizes, np.int64), tokens_per_sequence=length, tail=tail)
    table, counts = result.files[".parquet"], result.counts
    assert table.schema == SEQUENCES
    starts, stops = (table[name].to_numpy() for name in ("start", "stop"))
    targets = np.concatenate([np.empty(0, int), *(np.arange(a + 1, b) for a, b in zip(starts, stops, strict=True))])
    assert targets.tolist() == list(range(1, counts["tokens_packed"])) if len(starts) else not counts["tokens_packed"]
    assert counts["tokens_in"] == sum(sizes) == counts["tokens_packed"] + counts["tokens_dropped"]
    assert counts.get("tokens_dropped|reason=tail", 0) == counts["tokens_dropped"]
    assert counts["tokens_dropped"] <= (int(sum(sizes) == 1) if tail == "keep" else length)
    assert counts["places"] - counts["padding"] == int((stops - starts).sum())


# --- strategies -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("stride", "expected"), [(512, 1953), (256, 3905), (128, 7809)])
def test_windows_over_a_million_tokens(stride, expected):
    """Windows are views: nothing is stored twice, and no target is lost between two."""
    starts, stops = windows(1_000_000, 512, stride, keep_tail=False)
    assert len(starts) == expected
    assert (stops - starts == 513).all() and (np.diff(starts) == stride).all()
    kept, ends = windows(1_000_000, 512, stride, keep_tail=True)
    assert (len(kept), ends[-1]) == (expected + 1, 1_000_000)


@given(st.integers(0, 60), st.integers(1, 12), st.booleans())
def test_a_stride_of_a_whole_sequence_is_concat(tokens, length, keep):
    one, other = windows(tokens, length, length, keep_tail=keep), concat(tokens, length, keep_tail=keep)
    assert [bounds.tolist() for bounds in one] == [bounds.tolist() for bounds in other]


STRATEGIES = st.sampled_from(["concat", "stride", "best_fit", "document"])


@settings(max_examples=300)
@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=40), st.integers(1, 12), st.data(), STRATEGIES,
    st.sampled_from(["keep", "drop"]), st.sampled_from(["split", "cut", "leave_out"]),
)  # fmt: skip
def test_every_strategy_accounts_for_every_token(sizes, length, data, strategy, tail, long):
    changes = {"strategy": strategy, "tail": tail, "long": long, "tokens_per_sequence": length}
    changes["stride"] = data.draw(st.integers(1, length))
    pieces, sequences = packed(sizes, **changes)
    assert breaches(pieces, sequences, **changes) == []
    table, counts = pieces.files[".parquet"], sequences.counts
    flat = [np.arange(a, b) for a, b in zip(table["start"].to_pylist(), table["stop"].to_pylist(), strict=True)]
    stream = np.concatenate([np.empty(0, int), *flat])
    bounds = zip(*(sequences.files[".parquet"][name].to_pylist() for name in ("start", "stop")), strict=True)
    held = [stream[start:stop] for start, stop in bounds]
    assert len(np.unique(np.concatenate([np.empty(0, int), *held]))) == counts["tokens_packed"]
    assert counts["tokens_packed"] + counts["tokens_dropped"] == sum(sizes)
    if strategy in ("best_fit", "document") and long == "split":
        assert counts["tokens_dropped"] == sum(size for size in sizes if size < 2)
        assert counts["padding"] == counts["places"] - counts["tokens_packed"] - counts["tokens_repeated"]
    if strategy == "document":
        ends = np.cumsum(sizes)
        assert all(
            (np.searchsorted(ends, own, "right") == np.searchsorted(ends, own[0], "right")).all() for own in held
        )


PLACES_OF_BOS = st.sampled_from(
    [("first", "concat"), *(("sequence", strategy) for strategy in ("concat", "best_fit", "document"))]
)


@settings(max_examples=300)
@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=40), st.integers(2, 12), PLACES_OF_BOS,
    st.sampled_from(["keep", "drop"]), st.sampled_from(["split", "cut", "leave_out"]),
)  # fmt: skip
def test_bos_stands_where_it_is_wanted_and_nothing_else_changes(sizes, length, place, tail, long):
    """The stream as shard writes it, BOS as -1: which ids are held, and which are targets."""
    (bos, strategy), unchanged = place, {"tail": tail, "long": long, "tokens_per_sequence": length}
    changes = unchanged | {"strategy": strategy}
    pieces, sequences = packed(sizes, bos, **changes)
    assert breaches(pieces, sequences, **changes) == []
    stream = list[int]()
    for row in pieces.files[".parquet"].to_pylist():
        stream += [-1] * row["bos"] + list(range(row["start"], row["stop"]))
    assert pieces.counts["tokens_stream"] == len(stream)
    bounds = zip(*(sequences.files[".parquet"][name].to_pylist() for name in ("start", "stop")), strict=True)
    held = [stream[start:stop] for start, stop in bounds]
    counts = sequences.counts
    assert all(2 <= len(own) <= length + 1 for own in held)
    assert len({number for own in held for number in own} - {-1}) == counts["tokens_packed"]
    assert counts["tokens_packed"] + counts["tokens_dropped"] == sum(sizes)
    begins = [at for own in held for at, number in enumerate(own) if number == -1]
    if bos == "sequence":
        assert begins == [0] * len(held)
        assert counts.get("tokens_added", 0) == len(held)
    else:
        assert begins == [0] * bool(held) and stream[0] == -1
    if strategy == "concat":  # every id that is packed is a target, just once: the very first too
        targets = [number for own in held for number in own[1:]]
        assert targets == list(range(counts["tokens_packed"]))


def test_bos_worked_out():
    """T = 4. Documents of 6 and 3 ids: with concat BOS 0 1 2 3 | BOS 4 5 6 7 | BOS 8."""
    pieces, sequences = packed([6, 3], "sequence", tokens_per_sequence=4)
    assert [tuple(row.values())[2:] for row in pieces.files[".parquet"].to_pylist()] == [
        (0, 4, True, False, True), (4, 6, True, True, True), (6, 8, False, False, False), (8, 9, True, True, True),
    ]  # fmt: skip
    assert sequences.files[".parquet"].to_pylist() == [
        {"start": 0, "stop": 5}, {"start": 5, "stop": 10}, {"start": 10, "stop": 12},
    ]  # fmt: skip
    dropped = packed([6, 3], "sequence", tokens_per_sequence=4, tail="drop")[1]
    found = {name: dropped.counts.get(name) for name in ("tokens_packed", "tokens_added", "tokens_dropped|reason=tail")}
    assert found == {"tokens_packed": 8, "tokens_added": 2, "tokens_dropped|reason=tail": 1}
    first = packed([6, 3], "first", tokens_per_sequence=4)[1]
    assert first.files[".parquet"].to_pylist() == [
        {"start": 0, "stop": 5},
        {"start": 4, "stop": 9},
        {"start": 8, "stop": 10},
    ]


@pytest.mark.parametrize(
    ("bos", "strategy", "fits"),
    [
        ("none", "stride", True), ("document", "stride", True), ("document", "best_fit", True),
        ("first", "concat", True), ("first", "stride", False), ("first", "best_fit", False),
        ("first", "document", False), ("sequence", "concat", True), ("sequence", "stride", False),
        ("sequence", "best_fit", True), ("sequence", "document", True),
    ],
)  # fmt: skip
def test_bos_where_a_strategy_has_no_place_for_it_is_refused(bos, strategy, fits):
    plan = plan_of({"web-1": {"train": 3}}, strategy=strategy, bos=bos)
    if not fits:
        with pytest.raises(ParamsError, match=f"tokenize.bos is {bos}, but pack.strategy {strategy} has no place"):
            plan_groups(plan, STEP.folders[1])
        return
    spec = plan_groups(plan, STEP.folders[1])[0].spec
    assert spec.get("bos") == (bos if bos in ("first", "sequence") else None)
    assert ("tokens_per_sequence" in spec) == (bos == "sequence" or strategy == "best_fit")


def plain_best_fit(lengths, room):
    """Free ids of each bin, by the rule in words: longest first, each into the fullest bin that has room."""
    free = []
    for length in sorted(lengths, reverse=True):
        fits = [at for at, left in enumerate(free) if left >= length]
        if not fits:
            fits = [len(free)]
            free.append(room)
        at = min(fits, key=lambda at: free[at])
        free[at] -= length
    return sorted(free)


@settings(max_examples=200)
@given(st.lists(st.integers(1, 20), max_size=60), st.integers(20, 40), st.integers(0, 1 << 70))
def test_best_fit_is_the_plain_algorithm(lengths, room, seed):
    order, bins = best_fit(np.array(lengths, np.int64), room, seed)
    assert sorted(order.tolist()) == list(range(len(lengths)))
    firsts = np.flatnonzero(np.diff(bins, prepend=-1))
    assert len(set(bins.tolist())) == len(firsts)
    used = np.add.reduceat(np.array(lengths)[order], firsts) if len(firsts) else np.empty(0, int)
    assert sorted((room - used).tolist()) == plain_best_fit(lengths, room)


def test_best_fit_leaves_hardly_a_place_empty_and_mixes_lengths():
    """2,048 ids a row, log-normal lengths of median 400: at 30,000 documents 0.2 % at most."""
    draws = scrambled(60_000, 5).astype(np.float64) / 2**64
    normal = np.sqrt(-2 * np.log(draws[::2])) * np.cos(2 * np.pi * draws[1::2])
    lengths = np.clip(np.exp(np.log(400) + 0.9 * normal), 2, 2048).astype(np.int64)
    order, bins = best_fit(lengths, 2048, 1)
    rows = int(bins.max()) + 1
    assert (rows * 2048 - lengths.sum()) / (rows * 2048) < 0.002
    means = [own.mean() for own in np.array_split(lengths[order], 10)]
    assert max(means) < 1.2 * min(means)
    assert best_fit(lengths, 2048, 1)[0].tolist() == order.tolist() != best_fit(lengths, 2048, 2)[0].tolist()


def test_long_documents_are_split_cut_or_left_out_by_source():
    """T = 8, so a sequence has 9 ids: 20 ids are [0, 9), [8, 17), [16, 20)."""
    for long, spans, dropped in (
        ("split", [(0, 9, False), (8, 17, False), (16, 20, True), (20, 25, True)], {}),
        ("cut", [(0, 9, False), (20, 25, True)], {"tokens_dropped|reason=long": 11}),
        ("leave_out", [(20, 25, True)], {"tokens_dropped|reason=long": 20}),
    ):
        pieces, sequences = packed([20, 5, 1], strategy="document", long="cut", long_of={"web": long})
        table = pieces.files[".parquet"].select(["start", "stop", "closes"])
        assert [tuple(row.values()) for row in table.to_pylist()] == spans
        found = {key: count for key, count in sequences.counts.items() if "|" in key}
        assert found == dropped | {"tokens_dropped|reason=short": 1}
        assert sequences.counts["tokens_repeated"] == 2 * (long == "split")


def test_a_stride_that_loses_tokens_is_refused():
    with pytest.raises(ValidationError, match="stride is 9, above tokens_per_sequence 8"):
        params(strategy="stride", stride=9)
    assert params(stride=9).stride == 9


def test_a_policy_for_no_source_is_refused():
    plan = plan_of({"web-1": {"train": 3}})
    plan.params = params(long_of={"wbe": "cut"})
    with pytest.raises(ParamsError, match="long_of names 'wbe', which is no source of these: web"):
        plan_groups(plan, STEP.folders[1])


@pytest.mark.parametrize("length", [16, 17, 32, 33])
def test_case_27_nothing_is_lost_unreported(length):
    path = CASES / "27-token-conservation"
    if not path.is_dir():
        pytest.skip("the shared cases are not here")
    lens = json.loads((path / "lens.json").read_text())["lens"]
    wanted = json.loads((path / "expect.json").read_text())
    for tail in ("keep", "drop"):
        counts = sequences_of(np.array(lens), tokens_per_sequence=length, tail=tail).counts
        assert counts["tokens_in"] == wanted["tokens_in"]
        reported = counts.get("tokens_dropped|reason=tail", 0)
        assert counts["tokens_in"] - counts["tokens_packed"] - reported == wanted["dropped_unreported"]
        assert counts["sequences"] >= (counts["tokens_in"] - 1) // length


@pytest.mark.parametrize("length", [16, 17, 32, 33])
def test_case_27_by_best_fit(length):
    """Lengths 1 to 40 and 4097: nothing is lost but one id, which has no target; no length packs badly."""
    lens = np.array([*range(1, 41), 4097])
    piece, _ = packed(lens, strategy="best_fit", tokens_per_sequence=length)
    reasons = {key: count for key, count in piece.counts.items() if key.startswith("tokens_dropped")}
    assert (piece.counts["tokens_in"], reasons) == (int(lens.sum()), {"tokens_dropped|reason=short": 1})
    half = np.repeat(np.arange(2, length // 2 + 1), 20)
    order, bins = best_fit(half, length + 1, 1)
    assert half.sum() / ((bins.max() + 1) * (length + 1)) > 0.9
    assert sorted(order) == list(range(len(half)))


# --- splits and pieces ----------------------------------------------------------------------------------


def part_of(tokens, first=0):
    return pa.table(
        {"text_sha": [sha(first + at) for at in range(len(tokens))], "tokens": pa.array(tokens, pa.int64())}
    )


def split_part(tokens, kinds=("web",), languages=("en",), name="web-1", **changes):
    """The folder splits made of a part whose kinds and languages follow one another in turn."""
    size = len(tokens)
    tables = {
        "tokenize/tokens": part_of(tokens),
        "normalize/text": pa.table({"kind": pa.array((kinds * size)[:size], pa.string())}),
        "filter/signals": pa.table({"language": pa.array((languages * size)[:size], pa.string())}),
    }
    return splits_folder.make(MemoryReads(name, tables), params(**changes))


def test_splits_count_kept_documents_and_their_tokens():
    result = split_part([3, 0, 4] * 100)
    names = result.files[".parquet"]["split"].to_pylist()
    assert len(names) == 300
    words = ("train", "validation", "test")
    assert sum(result.counts[f"documents|split={word}"] for word in words) == 200
    assert sum(result.counts[f"tokens|split={word}"] for word in words) == 700
    assert split_part([]).counts == {}


ENGLISH = DomainParams(name="english", languages=("en",), kinds=("web", "book"))
CHINESE = DomainParams(name="chinese", sources=("web",), languages=("zh",))


def test_a_row_belongs_to_the_first_domain_that_selects_it_and_else_to_its_source():
    kinds, languages = ("web", "web", "code", "book"), ("en", "zh", "en", "de")
    made = split_part([2] * 8, kinds, languages, domains=(ENGLISH, CHINESE), validation_share=0.0, test_share=0.0)
    assert made.files[".parquet"]["domain"].to_pylist() == ["english", "chinese", "web", "web"] * 2
    assert made.files[".parquet"].select(["kind", "language"]).to_pylist()[3] == {"kind": "book", "language": "de"}
    found = {key.partition("|")[2]: count for key, count in made.counts.items() if key.startswith("tokens")}
    assert found == {
        "source=english": 4, "source=chinese": 4, "source=web": 8, "split=train": 16,
        "stream=english/train": 4, "stream=chinese/train": 4, "stream=web/train": 8,
    }  # fmt: skip
    of_code = split_part([2] * 4, kinds, languages, name="code-1", domains=(CHINESE,))
    assert of_code.files[".parquet"]["domain"].to_pylist() == ["code"] * 4
    both = (ENGLISH.model_copy(update={"name": "first"}), ENGLISH)
    assert set(split_part([2] * 4, domains=both).files[".parquet"]["domain"].to_pylist()) == {"first"}


def test_domains_are_grouped_apart_across_sources():
    plan = plan_of({"code-1": {"train": 10}, "web-1": {"train": 7}, "web-2": {"train": 3}}, domains=(ENGLISH,))
    for part, tokens in (("code-1", 6), ("web-1", 2)):
        plan.entries("pack/splits")[part].counts["tokens|stream=english/train"] = tokens
    units = plan_groups(plan, STEP.folders[1])
    assert [(unit.name.split("-")[0], unit.spec["domain"], unit.spec["parts"]) for unit in units] == [
        ("code", "code", ["code-1"]),
        ("web", "web", ["web-1", "web-2"]),
        ("english", "english", ["code-1", "web-1"]),
    ]


@pytest.mark.parametrize(
    ("domains", "words"),
    [
        ((DomainParams(name="x", sources=("wbe",)),), "'x' names 'wbe', which is no source of these: web"),
        ((DomainParams(name="web", languages=("en",)),), "'web' is the name of a source"),
        ((DomainParams(name="x", languages=("xx",)),), "'x' selects no document that was kept; there are: web"),
    ],
)
def test_a_domain_that_says_nothing_is_refused(domains, words):
    with pytest.raises(ParamsError, match=words):
        plan_groups(plan_of({"web-1": {"train": 3}}, domains=domains), STEP.folders[1])


def test_a_domain_named_twice_is_refused():
    with pytest.raises(ValidationError, match="'english' stands there twice"):
        params(domains=(ENGLISH, ENGLISH))


def test_rows_of_other_length_than_their_kinds_are_refused():
    tables = {
        "tokenize/tokens": part_of([1, 2]),
        "normalize/text": pa.table({"kind": ["web"]}),
        "filter/signals": pa.table({"language": ["en", "en"]}),
    }
    with pytest.raises(InvariantError, match="2 rows in tokenize/tokens, 1 in normalize/text, 2 in filter/signals"):
        splits_folder.make(MemoryReads("web-1", tables), params())


def test_pieces_are_the_kept_rows_of_a_split_in_order():
    tables = {
        ("tokenize/tokens", "web-1"): part_of([3, 0, 4, 1]),
        ("pack/splits", "web-1"): pa.table({"split": ["train", "train", "test", "train"], "domain": ["web"] * 4}),
        ("tokenize/tokens", "web-2"): part_of([2, 5]),
        ("pack/splits", "web-2"): pa.table({"split": ["train", "test"], "domain": ["web"] * 2}),
    }
    reads = MemoryReads("web-train-x", tables, spec={"domain": "web", "split": "train", "parts": ["web-2", "web-1"]})
    result = pieces_folder.make(reads, params())
    assert [tuple(row.values()) for row in result.files[".parquet"].to_pylist()] == [
        ("web-2", 0, 0, 2, False, True, False),
        ("web-1", 0, 0, 3, False, True, False),
        ("web-1", 3, 7, 8, False, True, False),
    ]
    assert result.counts == {"tokens_in": 6, "documents_in": 3, "parts": 2, "tokens_stream": 6}
    tables["pack/splits", "web-1"] = pa.table({"split": ["train"], "domain": ["web"]})
    with pytest.raises(InvariantError, match="4 rows in tokenize/tokens, 1 in pack/splits"):
        pieces_folder.make(reads, params())


# --- groups ---------------------------------------------------------------------------------------------


def plan_of(parts, group_bytes=1000, bos="none", **changes):
    """parts: name -> {split: tokens}; ids of two bytes."""
    tokens, split = {}, {}
    for at, (name, by_split) in enumerate(parts.items()):
        total = sum(by_split.values())
        flat = {
            f"tokens/{name}.bin": {"sha256": "", "bytes": 2 * total},
            f"tokens/{name}.parquet": {"bytes": 99},
        }
        tokens[name] = Entry("k", "s", flat, 1, {"tokens": total}, ("o", at))
        counts = {f"tokens|stream={name.split('-')[0]}/{word}": n for word, n in by_split.items()}
        split[name] = Entry("k", "s", {}, 1, counts, ("o", at))
    entries = {"tokenize/tokens": tokens, "pack/splits": split}
    given = params(group_bytes=group_bytes, **changes)
    return SimpleNamespace(params=given, entries=entries.__getitem__, section={"tokenize": {"bos": bos}}.__getitem__)


def test_groups_are_runs_of_parts_of_one_source_and_split():
    parts = {
        "code-1": {"train": 10, "test": 2},
        "code-2": {"train": 10},
        "web-1": {"train": 10, "validation": 0},
        "web-2": {},
    }
    units = plan_groups(plan_of(parts), STEP.folders[1])
    assert [(unit.spec["split"], unit.spec["parts"]) for unit in units] == [
        ("train", ["code-1", "code-2"]),
        ("test", ["code-1"]),
        ("train", ["web-1"]),
    ]
    digest = hashlib.sha256(b"code-1\ncode-2").hexdigest()[:16]
    assert units[0].name == f"code-train-{digest}"
    assert set(units[0].reads) == {
        (folder, part) for folder in ("tokenize/tokens", "pack/splits") for part in ("code-1", "code-2")
    }


def test_a_part_that_comes_or_goes_changes_the_groups_near_it():
    names = [f"web-{sha(number)[:16]}" for number in range(400)]
    before = {tuple(own) for own in group(names, [200] * 400, 2000)}
    assert 20 < len(before) < 80  # 80,000 bytes in groups of 2,000 in the mean
    worst = 0
    for gone in range(0, 400, 20):
        after = {tuple(own) for own in group(names[:gone] + names[gone + 1 :], [200] * 399, 2000)}
        worst = max(worst, len(after - before))
    assert worst <= 3


@given(st.lists(st.integers(1, 900), max_size=60), st.integers(2, 2000))
def test_groups_hold_every_part_once_in_order(sizes, group_bytes):
    names = [f"web-{number}" for number in range(len(sizes))]
    groups = group(names, sizes, group_bytes)
    assert [name for own in groups for name in own] == names
    known = dict(zip(names, sizes, strict=True))
    assert all(len(own) == 1 or sum(known[name] for name in own) <= 2 * group_bytes for own in groups)
    assert all(own for own in groups)


def test_names_of_four_byte_ids_weigh_twice():
    parts = {f"web-{number}": {"train": 100} for number in range(40)}
    plan = plan_of(parts)
    small = len(plan_groups(plan, STEP.folders[1]))
    for name, entry in plan.entries("tokenize/tokens").items():
        entry.files[f"tokens/{name}.bin"]["bytes"] *= 4
    assert len(plan_groups(plan, STEP.folders[1])) > small


# --- wiring ---------------------------------------------------------------------------------------------


def test_shares_above_one_are_refused():
    with pytest.raises(ValidationError, match=r"validation_share and test_share are 1\.2 together"):
        params(validation_share=0.6, test_share=0.6)


def test_rows_name_group_source_and_split():
    table = pa.table({"start": [0, 8], "stop": [9, 11]}, schema=SEQUENCES)
    artifact = SimpleNamespace(table=lambda folder, columns, unit: table)
    assert rows(artifact, "web-train-0123").to_pylist()[1] == {
        "group": "web-train-0123", "source": "web", "split": "train", "start": 8, "stop": 11, "tokens": 3,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("starts", "stops", "said"),
    [
        ([0, 8], [9, 18], "allowed are 2 to 9"),
        ([0, 9], [9, 17], "do not share"),
        ([0, 8], [9, 9], "sequences of 1 to 9"),
        ([1, 9], [10, 17], "cover ids 1 to 17 of 17"),
        ([0, 8], [9, 17], "its stream has 17 ids, packed, repeated, added, in its tail are 16"),
    ],
)
def test_invariants_name_what_is_off(starts, stops, said):
    table = pa.table({"start": starts, "stop": stops}, schema=SEQUENCES)
    counts = {"tokens_in": 17, "tokens_packed": 16, "tokens_dropped": 0, "tokens_repeated": 0}
    named = {
        "tokenize/tokens": {"p": {"tokens": 20}},
        "pack/pieces": {"g": {"tokens_in": 17, "tokens_stream": 17}},
        "pack/sequences": {"g": counts},
    }
    artifact = SimpleNamespace(params=params(), counts=named.get, table=lambda folder, columns, unit: table)
    found = list(invariants(artifact))
    assert any(said in sentence for sentence in found)
    assert "tokenize kept 20 tokens, but the groups hold 17" in found
