"""What is counted part by part is what Great Expectations counts in a frame, and one bad row of many is found."""

import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tasks.validate
from tasks.findings import Subject
from tasks.suites import Expected, Suite, load
from tasks.tables_tested import Table
from tasks.tallies import DISTINCT_MOST, add_rows, new_tallies
from tasks.validate import validate
from tests.fakes import NOT_EMPTY, FakeArtifact, expect, fake_step, lay, of_units, the_only

SUITES = sorted((Path(__file__).parent.parent / "expectations").glob("*.json"))
WHERE = 'verdict == "drop"'
FORMS = [
    NOT_EMPTY,
    expect("table_row_count_to_be_between", min_value=1, max_value=7),
    *(expect("column_values_to_not_be_null", column=name, mostly=most)
      for name in ("n", "x", "word") for most in (0.5, 1)),
    *(expect("column_values_to_be_between", column=name, **limits) for name in ("n", "x") for limits in (
        {"min_value": 0}, {"max_value": 2}, {"min_value": 1, "max_value": 2, "strict_min": True},
        {"min_value": 0, "max_value": 2, "strict_max": True}, {"min_value": -1, "max_value": 3, "mostly": 0.6},
    )),
    expect("column_values_to_be_between", column="n", min_value=0, where=WHERE),
    expect("column_values_to_not_be_null", column="word", where='verdict != "drop"'),
    expect("column_values_to_not_be_null", column="word", where="n > 0"),
    expect("column_values_to_not_be_null", column="word", where='x <= 1 and not verdict == "drop"'),
    expect("column_values_to_be_in_set", column="word", value_set=["a", "b"]),
    expect("column_values_to_be_in_set", column="n", value_set=[0, 1]),
    expect("column_values_to_match_regex", column="word", regex="^[ab]$"),
    expect("column_values_to_match_regex", column="word", regex="^[ab]$", mostly=0.5),
    *(expect("column_pair_values_a_to_be_greater_than_b", column_A="n", column_B="x", or_equal=same)
      for same in (True, False)),
    expect("column_pair_values_a_to_be_greater_than_b", column_A="n", column_B="x", or_equal=True, where=WHERE),
    expect("column_pair_values_to_be_equal", column_A="n", column_B="x"),
    expect("column_unique_value_count_to_be_between", column="word", min_value=2),
    expect("column_unique_value_count_to_be_between", column="n", max_value=2, where=WHERE),
]  # fmt: skip
SCHEMA = pa.schema({"verdict": pa.string(), "word": pa.string(), "n": pa.int64(), "x": pa.float64()})
VALUES = {
    "verdict": ["keep", "drop", None],
    "word": ["a", "b", "ab", "a\n", "", None],
    "n": [-2, 0, 1, 2, 3, None],
    "x": [-1.5, 0.0, 1.0, 2.0, 2.5, float("nan"), None],
}


def rows_by(seed, count):
    """Rows drawn from VALUES; the first has one of each column, since pandas has another type for a column of nulls."""
    draw = random.Random(seed)
    rows = [{name: draw.choice(values) for name, values in VALUES.items()} for _ in range(count)]
    return pa.Table.from_pylist([{"verdict": "drop", "word": "a", "n": 2, "x": 2.0}, *rows], SCHEMA)


def counted(tables, forms=FORMS):
    """The answers of Great Expectations to `forms` by what was counted of the tables, one after another."""
    suite = Suite.model_validate({"profile": forms, "rows": forms})
    tallies, first = new_tallies(suite.rows), 0
    for table in tables:
        add_rows(tallies, suite.rows, table, first)
        first += table.num_rows
    assert all(tally.counted for tally in tallies)
    subject = Subject("rows", SCHEMA.names, first, str, suite, {}, tallies)
    with tasks.validate._quiet():
        return tasks.validate._answers("rows", Table(subject, pa.table({}), []), "suite")


def in_a_frame(table, forms=FORMS):
    expected = {number: Expected.model_validate(form) for number, form in enumerate(forms)}
    with tasks.validate._quiet():
        return {
            tasks.validate._number(answer): answer
            for answer in tasks.validate._run("rows", table.to_pandas(), expected, "suite").results
        }


def said(answer):
    """What an answer says, NaN as None; how often each value is found where none is NaN, which equals nothing."""
    plain = answer.to_json_dict()
    result = without_nan(plain["result"])
    if "None" in str(result.get("partial_unexpected_list")):
        result.pop("partial_unexpected_counts", None)
    return {"success": plain["success"], "result": result, "fault": plain["exception_info"]}


def without_nan(value):
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_nan(item) for item in value]
    return None if value != value else value


@pytest.mark.parametrize(("seed", "count"), [(1, 0), (2, 3), (3, 9), (4, 40), (5, 200)])
def test_what_is_counted_part_by_part_is_what_is_counted_in_a_frame(seed, count):
    table = rows_by(seed, count)
    ends = sorted({0, count + 1, *random.Random(seed).choices(range(count + 1), k=3)})
    ours, theirs = counted([table.slice(at, stop - at) for at, stop in pairwise(ends)]), in_a_frame(table)
    for number, form in enumerate(FORMS):
        assert said(ours[number]) == said(theirs[number]), form


def test_every_form_of_the_suites_of_the_house_is_counted():
    suites = [load(path) for path in SUITES]
    assert len(suites) == 9
    assert all(
        tally.counted for suite in suites for name in ("profile", "rows") for tally in new_tallies(suite.of(name))
    )


@pytest.mark.parametrize(
    "form",
    [
        expect("column_values_to_be_between", column="word", min_value="a"),
        expect("column_values_to_be_between", column="n", min_value=2, max_value=1),
        expect("column_values_to_be_in_set", column="n", value_set=["a", 1]),
        expect("column_values_to_match_regex", column="word", regex="("),
        expect("column_values_to_match_regex", column="n", regex="1"),
        expect("column_values_to_be_unique", column="n"),
        expect("column_pair_values_to_be_equal", column_A="n", column_B="x", ignore_row_if="either_value_is_missing"),
    ],
    ids=["text", "no_room", "mixed", "no_regex", "numbers", "unique", "ignoring"],
)
def test_what_is_not_counted_is_left_to_great_expectations(form):
    expected = [Expected.model_validate(form)]
    tallies = new_tallies(expected)
    add_rows(tallies, expected, rows_by(1, 5), 0)
    assert not tallies[0].counted and tallies[0].rows == 6


@pytest.mark.parametrize("hands", [1, 2, 4])
def test_one_bad_row_of_many_parts_is_found_and_named(tmp_path, hands):
    """More rows than Great Expectations is ever shown at once, and the only bad one among the last of them."""
    good = np.ones(100_000)
    bad = good.copy()
    bad[77_777] = -1
    units = of_units(*[("a", {"share": good, "word": pa.repeat("x", len(good))})] * 5, ("b", {"share": bad}))
    artifact = FakeArtifact({"filter/verdicts": units}, {"filter/verdicts": {unit: {"n": 1} for unit in units}})
    limits = [expect("column_values_to_be_between", column="share", min_value=0), *FORMS[:1]]
    limits.append(expect("column_values_to_not_be_null", column="word", mostly=0.8))
    result = validate(fake_step(), artifact, lay(tmp_path, rows=limits), None, hands)
    unit = list(units)[-1]
    assert f"1 of 600000 tested ({unit} row 77777: -1)" in the_only(result.failures)
    assert result.tested["rows"] == result.tested["rows_total"] == 600_000 and not result.tested["sampled"]
    limits[-1]["kwargs"]["mostly"] = 0.84
    assert "100000 of 600000 tested" in validate(fake_step(), artifact, lay(tmp_path, rows=limits), None).failures[1]


def test_more_different_values_than_are_told_apart_are_not_counted():
    expected = [Expected.model_validate(expect("column_unique_value_count_to_be_between", column="n", min_value=2))]
    for most, told in ((DISTINCT_MOST, True), (DISTINCT_MOST + 1, False)):
        tallies = new_tallies(expected)
        for at in range(0, most, 100_000):
            add_rows(tallies, expected, pa.table({"n": np.arange(at, min(most, at + 100_000))}), at)
        assert tallies[0].counted is told
