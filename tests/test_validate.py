"""Validation: what is tested, what is said, and that nothing passes untested."""

import json
import re
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

import tasks.tables_tested
import tasks.validate
from tasks.errors import ParamsError
from tasks.profile import sample_rows, visible, with_visible
from tasks.suites import load
from tasks.validate import suite_digest, validate
from tests.fakes import DROP_SHARE, NOT_EMPTY, FakeArtifact, check, expect, fake_step, lay, of_units, the_only

CASE = Path(__file__).parent.parent.parent / "shared" / "cases" / "57-gx-all-null-and-blank"
SOURCES = 'dimension == "source"'


@pytest.fixture
def all_forms():
    """answers(): what Great Expectations says of one of each form in the suites of the house, on columns whose values
    break some of them."""
    suites = [load(path) for path in sorted((Path(__file__).parent.parent / "expectations").glob("*.json"))]
    forms = {(item.type, *item.kwargs): item for suite in suites for item in (*suite.profile, *suite.rows)}
    known = dict(enumerate(forms.values()))
    columns = {column for item in known.values() for column in item.columns}
    for item in known.values():
        columns |= set(re.findall(r"[a-z_]+(?= [=<>!])", item.condition or ""))
    values = {"text": ["a", "b", None, "a"], "number": [1.0, None, 3.5, -2.0]}
    cells = {column: values["text" if n % 2 else "number"] for n, column in enumerate(sorted(columns))}

    def answers():
        with tasks.validate._quiet():
            return tasks.validate._run("rows", pa.table(cells).to_pandas(), known, "all").to_json_dict()["results"]

    return answers


def test_an_expectation_written_out_once_gives_what_it_gives_written_out_each_time(all_forms, monkeypatch):
    once = all_forms()
    monkeypatch.setattr(tasks.validate, "_written_once", nullcontext)
    assert once == all_forms() and len(once) > 10


def test_places_asked_for_where_something_is_broken_are_those_asked_for_everywhere(all_forms, monkeypatch):
    of_broken = all_forms()
    monkeypatch.setattr(tasks.validate, "COUNTS", tasks.validate.PLACES)
    everywhere = all_forms()
    held = [item["success"] for item in everywhere]
    assert [item["success"] for item in of_broken] == held and {True, False} == set(held)
    for ours, theirs in zip(of_broken, everywhere, strict=True):
        if theirs["success"]:
            assert ours["result"].items() <= theirs["result"].items()
        else:
            assert ours["result"] == theirs["result"]


# What Great Expectations passes without having looked


@pytest.mark.parametrize(
    "expectation",
    [
        expect("column_value_lengths_to_be_between", column="text", min_value=10),
        expect("column_values_to_be_in_set", column="text", value_set=["en"]),
        expect("column_values_to_be_between", column="text", min_value=5, severity="warning"),
        expect("column_values_to_match_regex", column="text", regex="x"),
        expect("column_distinct_values_to_be_in_set", column="text", value_set=["en"]),
        expect("column_values_to_be_unique", column="text"),
        expect("column_values_to_be_in_set", column="text", value_set=["en"], mostly=0),
    ],
    ids=lambda expectation: expectation["type"],
)
def test_a_column_of_nulls_tests_nothing(tmp_path, expectation):
    table = {"id": [0, 1, 2, 3], "text": pa.array([None] * 4, pa.string())}
    result = check(tmp_path, table, expectation)
    assert not result.success
    sentence = the_only(result.failures)
    assert expectation["type"] in sentence and "tested nothing: all 4 values are null" in sentence


def test_no_rows_no_units_and_conditions_without_rows_test_nothing(tmp_path):
    empty = {"text": pa.array([], pa.string())}
    result = check(tmp_path, empty, expect("column_values_to_not_be_null", column="text"))
    assert "rows has no rows: 1 expectations tested nothing" in the_only(result.failures)
    artifact = FakeArtifact(counts={"filter/verdicts": {"a-0": {"documents_in": 1}}})
    result = validate(fake_step(), artifact, lay(tmp_path), None)
    assert "rows has no rows" in the_only(result.failures)
    nobody = expect("column_values_to_not_be_null", column="text", where='text == "nobody"')
    result = check(tmp_path, {"text": ["a", "b"]}, nobody)
    assert "none of 2 rows fulfils its condition" in the_only(result.failures)


def test_empty_is_allowed_only_while_the_named_measure_is_zero(tmp_path):
    expectation = expect(
        "column_values_to_be_between",
        column="value",
        min_value=0,
        where='verdict == "drop"',
        empty="documents_dropped",
    )
    table = {"verdict": ["keep"], "value": pa.array([None], pa.float64())}
    none = {"a-0": {"documents_in": 1, "documents_dropped": 0}}
    assert check(tmp_path, table, expectation, counts=none).success
    some = {"a-0": {"documents_in": 1, "documents_dropped": 1}}
    assert "tested nothing" in the_only(check(tmp_path, table, expectation, counts=some).failures)


def test_a_column_that_nobody_made_and_a_rule_whose_signal_nobody_computes(tmp_path):
    result = check(tmp_path, {"words": [1]}, expect("column_max_to_be_between", column="wrods", severity="warning"))
    assert "no column wrods (there are: words)" in the_only(result.failures)
    rules = [
        SimpleNamespace(name="too_short", signal="words"),
        SimpleNamespace(name="odd", signal="perplexity"),
    ]
    result = check(tmp_path, {"words": [1]}, params={"rules": rules}, members={"dropped|rule": "rules"})
    assert "rule odd judges the signal perplexity, which nobody computes" in the_only(result.failures)


def test_a_rule_that_never_fires_is_named(tmp_path):
    rules = [SimpleNamespace(name=name, signal="words") for name in ("too_short", "never_a", "never_b")]
    fires = expect(
        "column_values_to_be_between",
        column="dropped",
        min_value=1,
        where='dimension == "rule"',
        severity="warning",
    )
    counts = {"a-0": {"documents_in": 9, "dropped|rule=too_short": 2}}
    result = check(
        tmp_path,
        {"words": [1]},
        counts=counts,
        params={"rules": rules},
        members={"dropped|rule": "rules"},
        profile=[fires],
    )
    assert result.success
    sentence = the_only(result.warnings)
    assert "2 of 3 tested (rule never_a: 0, rule never_b: 0)" in sentence


# Case 57 and mostly


def test_blank_is_not_visible(tmp_path):
    assert [visible(text) for text in ("", "  \n", "\u200b\u2060", "\0", "\u3164", "a b", "日本", "é", "!")] == [
        *[0] * 5,
        2,
        2,
        1,
        1,
    ]


def test_visible_characters_of_a_column_are_those_of_its_values():
    texts = ["", "  \n", "a b", None, "\u200b", "日本 x", "\x7f\x80", "é", "web-0123", "\tz\x00"]
    table = with_visible(pa.table({"text": pa.chunked_array([texts[:4], texts[4:]], pa.string())}), ["text"])
    assert table["text_visible"].to_pylist() == [None if text is None else visible(text) for text in texts]
    assert with_visible(table.slice(2, 5), ["text"])["text_visible"].to_pylist() == [2, None, 0, 3, 0]
    assert with_visible(pa.table({"n": pa.array([7, -12])}), ["n"])["n_visible"].to_pylist() == [1, 3]


@pytest.mark.parametrize("name", ["all_null", "blank", "mixed"])
def test_case_57(tmp_path, name):
    if not CASE.is_dir():
        pytest.skip("the shared cases are not here")
    rows = [json.loads(line) for line in (CASE / f"{name}.jsonl").read_text().split("\n") if line]
    table = {"id": [row["id"] for row in rows], "text": pa.array([row["text"] for row in rows], pa.string())}
    nulls = expect("column_values_to_not_be_null", column="text")
    shown = expect("column_values_to_be_between", column="text_visible", min_value=1)
    result = check(tmp_path, table, nulls, shown)
    assert not result.success
    if name == "all_null":
        assert "4 of 4 tested" in result.failures[0] and "tested nothing: all 4 values are null" in result.failures[1]
    elif name == "blank":
        assert "text_visible" in the_only(result.failures) and "4 of 4 tested" in result.failures[0]
    else:
        assert "4 of 10 tested (a-0000000000000000 row 0: null" in the_only(result.failures)


def test_mostly_zero_and_one(tmp_path):
    table = {"text": ["a", None, None, None]}
    limits = {most: expect("column_values_to_not_be_null", column="text", mostly=most) for most in (0, 0.25, 0.26, 1)}
    found = {most: check(tmp_path, table, limit) for most, limit in limits.items()}
    assert [found[most].success for most in (0, 0.25, 0.26, 1)] == [True, True, False, False]
    assert "can never be broken, since mostly is 0" in the_only(found[0].warnings)
    values = expect("column_values_to_be_in_set", column="text", value_set=["b"], mostly=0)
    result = check(tmp_path, table, values)
    assert result.success and len(result.warnings) == 2
    assert "skipped 3 nulls of 4 values" in result.warnings[1]


# What is said


def test_a_broken_expectation_says_what_where_and_how_to_mend_it(tmp_path):
    counts = {
        "a-0": {"documents_in": 100, "documents_dropped": 99},
        "b-1": {"documents_in": 100, "documents_dropped": 10},
    }
    limit = expect(
        "column_values_to_be_between", "rules too strict.", column="drop_share", max_value=0.95, where=SOURCES
    )
    ones = expect("column_values_to_be_between", column="words", min_value=1, severity="warning")
    result = check(tmp_path, {"words": [0] * 9}, ones, profile=[limit], ratios=DROP_SHARE, counts=counts)
    assert the_only(result.failures) == (
        "expectations/filter.json: profile[0] expect_column_values_to_be_between of drop_share where "
        'dimension == "source" (max_value 0.95) is broken: 1 of 2 tested (source a: 0.99); rules too strict; '
        "correct the data or loosen expectations/filter.json"
    )
    unit = "a-0000000000000000"
    shown = f"9 of 9 tested ({unit} row 0: 0, {unit} row 1: 0, {unit} row 2: 0 and 6 more)"
    assert shown in the_only(result.warnings)
    assert result.tested == {"profile": 5, "rows": 9, "rows_total": 9, "sampled": False, "expectations": 2}


def test_what_is_not_counted_is_tested_on_a_sample_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(tasks.tables_tested, "sample_rows", lambda *given: sample_rows(*given, 5))
    median = expect("column_median_to_be_between", column="words", min_value=1)
    least = expect("column_values_to_be_between", column="words", min_value=1)
    result = check(tmp_path, {"words": [0] * 9}, median, least, docs=tmp_path / "docs")
    sampled, counted = result.failures
    assert "rows[0] (a sample of 5 of 9 rows) expect_column_median" in sampled and "observed 0" in sampled
    assert "rows[1] expect_column_values" in counted and "9 of 9 tested" in counted
    assert result.tested["sampled"] and (result.tested["rows"], result.tested["rows_total"]) == (5, 9)
    assert "a sample of 5 of 9 rows" in (tmp_path / "docs" / "filter" / "rows.html").read_text()


def test_what_looks_at_the_whole_table_sees_all_of_its_columns_and_rows(tmp_path):
    table = {"words": [1, 2, 3], "text": ["a", "b", None]}
    alike = expect("table_columns_to_match_set", column_set=["words", "text"])
    count = expect("table_row_count_to_equal", value=3)
    assert check(tmp_path, table, alike, count).success
    alike["kwargs"]["column_set"], count["kwargs"]["value"] = ["words"], 4
    columns, rows = check(tmp_path, table, alike, count).failures
    assert "expect_table_columns_to_match_set" in columns and "observed 3" in rows


def test_a_place_in_the_sample_is_named_as_the_row_that_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(tasks.tables_tested, "sample_rows", lambda *given: sample_rows(*given, 6))
    texts = ["short"] * 40 + ["much longer"] + ["short"] * 40
    units = of_units(("a", {"text": texts[:30]}), ("a", {"text": []}), ("b", {"text": texts[30:]}))
    artifact = FakeArtifact({"filter/verdicts": units}, {"filter/verdicts": {unit: {"n": 1} for unit in units}})
    limit = expect("column_value_lengths_to_be_between", column="text", min_value=9)
    sentence = the_only(validate(fake_step(), artifact, lay(tmp_path, rows=[limit]), None).failures)
    sample = sample_rows(fake_step(), artifact, {"text"}, 6)
    wrong = [n for n, text in enumerate(sample.rows["text"].to_pylist()) if text == "short"]
    assert all(f"{sample.units[n]} row {sample.numbers[n]}: 'short'" in sentence for n in wrong[:3])


@pytest.mark.parametrize(
    ("suite", "fault"),
    [
        ({"rows": [expect("column_values_to_be_nice", column="words")]}, "expect_column_values_to_be_nice"),
        ({"rows": [expect("column_values_to_not_be_null", colunm="a")]}, "colunm"),
        (
            {"rows": [expect("column_values_to_not_be_null", severity="fatal", column="a")]},
            "'critical' or 'warning'",
        ),
        ({"rows": [expect("column_values_to_not_be_null", column="words", where="nobody == 1")]}, "nobody"),
        (
            {"rows": [expect("column_values_to_not_be_null", column="a", where="@os.abort()")]},
            "may hold names",
        ),
        ({"rows": []}, "at least 1 item"),
        ({"rows": [NOT_EMPTY | {"meta": {}}]}, "why"),
        ({"more": 1}, "Extra inputs"),
        ({"members": {"rule": "rules"}}, "measure|dimension"),
    ],
)
def test_a_faulty_suite_is_named(tmp_path, suite, fault):
    suite = {"profile": [NOT_EMPTY], "rows": [NOT_EMPTY], **suite}
    artifact = FakeArtifact({"filter/verdicts": of_units(("a", {"words": [1]}))})
    with pytest.raises(ParamsError, match=r"expectations/filter\.json") as caught:
        validate(fake_step(), artifact, lay(tmp_path, **suite), None)
    assert fault in str(caught.value)


def test_a_condition_for_the_other_parser_is_refused(tmp_path):
    expectation = expect("column_values_to_not_be_null", column="a", where='a == "b"')
    expectation["kwargs"]["condition_parser"] = "great_expectations"
    with pytest.raises(ParamsError, match=r'needs "condition_parser": "pandas"'):
        load(lay(tmp_path, rows=[expectation]))


def test_an_absent_or_broken_file_is_named(tmp_path):
    with pytest.raises(ParamsError, match="is not there"):
        suite_digest(tmp_path / "none.json")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(ParamsError, match="is not JSON"):
        suite_digest(tmp_path / "bad.json")


def test_the_digest_is_of_what_a_suite_says(tmp_path):
    path = lay(tmp_path)
    before = suite_digest(path)
    path.write_text(json.dumps(json.loads(path.read_text()), indent=4, sort_keys=True))
    assert suite_digest(path) == before
    lay(tmp_path, rows=[expect("table_row_count_to_be_between", min_value=2)])
    assert suite_digest(path) != before
