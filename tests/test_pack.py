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
from tasks.artifacts.tokens import PIECES, SEQUENCES
from tasks.errors import InvariantError
from tasks.pack import STEP, PackParams, invariants, rows
from tasks.pack import pieces as pieces_folder
from tasks.pack import sequences as sequences_folder
from tasks.pack import splits as splits_folder
from tasks.pack.planning import group, plan_groups
from tasks.pack.sequences import concat
from tests.memory_reads import MemoryReads

CASES = Path(__file__).parent.parent.parent / "shared/cases"
PLAIN = {
    "tokens_per_sequence": 8,
    "strategy": "concat",
    "tail": "keep",
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


def sequences_of(sizes, **changes):
    stops = np.cumsum(sizes, dtype=np.int64)
    table = pa.table({"part": ["p"] * len(sizes), "row": range(len(sizes)), "start": stops - sizes, "stop": stops})
    return sequences_folder.make(MemoryReads("web-train-1", {"pack/pieces": table.cast(PIECES)}), params(**changes))


@settings(deadline=None)
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
    named = {"tokenize/tokens": {}, "pack/pieces": {}, "pack/sequences": {"web-train-1": counts}}
    artifact = SimpleNamespace(
        params=params(tokens_per_sequence=length), counts=named.get, table=lambda folder, columns, unit: table
    )
    assert list(invariants(artifact)) == []


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


# --- splits and pieces ----------------------------------------------------------------------------------


def part_of(tokens, first=0):
    return pa.table(
        {"text_sha": [sha(first + at) for at in range(len(tokens))], "tokens": pa.array(tokens, pa.int64())}
    )


def test_splits_count_kept_documents_and_their_tokens():
    result = splits_folder.make(MemoryReads("web-1", {"tokenize/tokens": part_of([3, 0, 4] * 100)}), params())
    names = result.files[".parquet"]["split"].to_pylist()
    assert len(names) == 300
    words = ("train", "validation", "test")
    assert sum(result.counts[f"documents|split={word}"] for word in words) == 200
    assert sum(result.counts[f"tokens|split={word}"] for word in words) == 700
    assert splits_folder.make(MemoryReads("web-1", {"tokenize/tokens": part_of([])}), params()).counts == {}


def test_pieces_are_the_kept_rows_of_a_split_in_order():
    tables = {
        ("tokenize/tokens", "web-1"): part_of([3, 0, 4, 1]),
        ("pack/splits", "web-1"): pa.table({"split": ["train", "train", "test", "train"]}),
        ("tokenize/tokens", "web-2"): part_of([2, 5]),
        ("pack/splits", "web-2"): pa.table({"split": ["train", "test"]}),
    }
    reads = MemoryReads("web-train-x", tables, spec={"split": "train", "parts": ["web-2", "web-1"]})
    result = pieces_folder.make(reads, params())
    assert [tuple(row.values()) for row in result.files[".parquet"].to_pylist()] == [
        ("web-2", 0, 0, 2),
        ("web-1", 0, 0, 3),
        ("web-1", 3, 7, 8),
    ]
    assert result.counts == {"tokens_in": 6, "documents_in": 3, "parts": 2}
    tables["pack/splits", "web-1"] = pa.table({"split": ["train"]})
    with pytest.raises(InvariantError, match="4 rows in tokenize/tokens, 1 in pack/splits"):
        pieces_folder.make(reads, params())


# --- groups ---------------------------------------------------------------------------------------------


def plan_of(parts, group_bytes=1000):
    """parts: name -> {split: tokens}; ids of two bytes."""
    tokens, split = {}, {}
    for at, (name, by_split) in enumerate(parts.items()):
        total = sum(by_split.values())
        flat = {
            f"tokens/{name}.bin": {"sha256": "", "bytes": 2 * total},
            f"tokens/{name}.parquet": {"bytes": 99},
        }
        tokens[name] = Entry("k", "s", flat, 1, {"tokens": total}, ("o", at))
        split[name] = Entry("k", "s", {}, 1, {f"tokens|split={word}": n for word, n in by_split.items()}, ("o", at))
    entries = {"tokenize/tokens": tokens, "pack/splits": split}
    return SimpleNamespace(params=params(group_bytes=group_bytes), entries=entries.__getitem__)


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


@settings(deadline=None)
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
        ([1, 9], [10, 17], "cover ids 1 to 17"),
    ],
)
def test_invariants_name_what_is_off(starts, stops, said):
    table = pa.table({"start": starts, "stop": stops}, schema=SEQUENCES)
    counts = {"tokens_in": 17, "tokens_packed": 17, "tokens_dropped": 0}
    named = {
        "tokenize/tokens": {"p": {"tokens": 20}},
        "pack/pieces": {"g": {"tokens_in": 17}},
        "pack/sequences": {"g": counts},
    }
    artifact = SimpleNamespace(params=params(), counts=named.get, table=lambda folder, columns, unit: table)
    found = list(invariants(artifact))
    assert any(said in sentence for sentence in found)
    assert "tokenize kept 20 tokens, but the groups hold 17" in found
