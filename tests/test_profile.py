"""The tables that suites see: exact counts, and rows or a sample of them."""

from types import SimpleNamespace

import pyarrow as pa

from tasks.profile import profile_table, sample_rows
from tasks.suites import Suite
from tests.fakes import DROP_SHARE, NOT_EMPTY, FakeArtifact, fake_step


def measures(table):
    return {(row["dimension"], row["member"]): row for row in table.to_pylist()}


def suite_of(**more):
    return Suite.model_validate({"profile": [NOT_EMPTY], "rows": [NOT_EMPTY], **more})


def test_the_profile_counts_everything_once():
    counts = {
        "filter/signals": {"a-0": {"documents_in": 7}, "a-1": {"documents_in": 5}},
        "filter/verdicts": {
            "a-0": {"documents_in": 6, "documents_dropped": 2, "dropped|rule=x": 2, "kept|language=en": 4},
            "a-1": {"documents_in": 4, "documents_dropped": 0, "kept|language=de": 3, "kept|language=en": 1},
            "b-2": {"documents_in": 0, "documents_dropped": 0},
        },
    }
    rules = [SimpleNamespace(name="x", signal="s"), SimpleNamespace(name="y", signal="s")]
    artifact = FakeArtifact(counts=counts, rules=rules)
    suite = suite_of(members={"dropped|rule": "rules"}, ratios=DROP_SHARE)
    table = profile_table(fake_step(folders=("signals", "verdicts")), artifact, suite)
    cells = measures(table)
    assert table["dimension"].to_pylist()[:3] == ["total", "source", "source"]
    assert cells["total", "all"]["documents_in"] == 10 and cells["source", "a"]["drop_share"] == 0.2
    assert cells["source", "b"]["drop_share"] is None and cells["total", "all"]["kept"] == 8
    assert cells["rule", "x"]["dropped"] == 2 and cells["rule", "y"]["dropped"] == 0
    assert cells["language", "en"]["kept"] == 5 and cells["language", "en"]["documents_in"] is None
    assert cells["part", "a-1"]["dropped"] == 0


def test_counts_by_source_and_groups_and_folders_written_along():
    counts = {"mix/mixture": {"mixture": {"sequences|source=a": 3, "sequences|source=b": 4}}}
    cells = measures(profile_table(fake_step("mix", ("mixture",)), FakeArtifact(counts=counts), suite_of()))
    assert {key: row["sequences"] for key, row in cells.items()} == {
        ("total", "all"): 7,
        ("source", "a"): 3,
        ("source", "b"): 4,
        ("part", "mixture"): 7,
    }
    counts = {
        "pack/x": {"a-train-01": {"tokens": 5}, "b/test": {"tokens": 1}},
        "pack/y": {"a-0": {"spans": 2}},
    }
    cells = measures(profile_table(fake_step("pack", ("x",), also=("y",)), FakeArtifact(counts=counts), suite_of()))
    assert cells["source", "a"] == {"dimension": "source", "member": "a", "tokens": 5, "spans": 2}
    assert cells["source", "b"]["tokens"] == 1 and cells["source", "b"]["spans"] == 0


def test_the_sample_is_seeded_by_names_and_the_same_in_any_order():
    tables = {f"a-{n:016x}": pa.table({"value": range(100 * n, 100 * n + 100)}) for n in range(8)}
    step = fake_step()
    whole = sample_rows(step, FakeArtifact({"filter/verdicts": tables}), {"value"}, 800)
    assert whole.rows["value"].to_pylist() == list(range(800)) and whole.total == 800
    first = sample_rows(step, FakeArtifact({"filter/verdicts": tables}), {"value"}, 90)
    other = sample_rows(step, FakeArtifact({"filter/verdicts": dict(reversed(tables.items()))}), {"value"}, 90)
    assert first.total == 800 and first.rows.num_rows == 90
    assert sorted(first.rows["value"].to_pylist()) == sorted(other.rows["value"].to_pylist())
    assert first.rows["value"].to_pylist() == sorted(first.rows["value"].to_pylist())
    at = [100 * int(unit[2:], 16) + number for unit, number in zip(first.units, first.numbers, strict=True)]
    assert at == first.rows["value"].to_pylist()
    assert len(set(first.units)) == 8


def test_the_whole_does_not_hide_the_parts():
    """decontaminate's certificate repeats by set and in total what its verdicts count by part."""
    counts = {
        "decontaminate/verdicts": {"a-0": {"documents_in": 10, "documents_dropped": 9}},
        "decontaminate/certificate": {
            "certificate": {"documents_dropped": 9, "documents_dropped|set=exam": 9, "items": 4}
        },
    }
    step = fake_step("decontaminate", ("verdicts", "certificate"))
    cells = measures(profile_table(step, FakeArtifact(counts=counts), suite_of(ratios=DROP_SHARE)))
    assert cells["source", "a"]["drop_share"] == 0.9 and cells["total", "all"]["documents_dropped"] == 9
    assert cells["set", "exam"]["documents_dropped"] == 9
    assert cells["source", "a"]["items"] is None and cells["total", "all"]["items"] == 4
