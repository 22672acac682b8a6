"""The nine suites of this repository: sound data passes, an accident does not, no limit is idle."""

import copy
from pathlib import Path

import pyarrow as pa
import pytest

from tasks.findings import title
from tasks.suites import NULL_LIMIT, TABLES, VISIBLE, load
from tasks.validate import validate
from tests.fakes import FakeArtifact, fake_step
from tests.sound import SOUND

HOUSE = Path(__file__).parent.parent
SUITES = sorted((HOUSE / "expectations").glob("*.json"))
STEPS = ["decontaminate", "dedup", "filter", "ingest", "mix", "normalize", "pack", "shard", "tokenize"]
ROW_MINIMUM = "expect_table_row_count_to_be_between"


def hold(step, change=None):
    """Validation of the sound artifact of `step`, after change(rows by unit, counts by folder)."""
    folders, params, rows, counts = copy.deepcopy(SOUND[step])
    if change:
        change(rows, counts)
    name = f"{step}/{folders[-1]}"
    tables = {name: {unit: pa.Table.from_pylist(table) for unit, table in rows.items()}}
    counted = {f"{step}/{folder}": units for folder, units in counts.items()}
    artifact = FakeArtifact(tables, counted, **params)
    return validate(fake_step(step, folders), artifact, HOUSE / "expectations" / f"{step}.json", None)


def test_there_is_one_suite_a_step():
    assert [path.stem for path in SUITES] == STEPS


@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.stem)
@pytest.mark.parametrize("table", TABLES)
def test_every_table_has_a_row_minimum_that_stops(path, table):
    first = load(path).of(table)[0]
    assert (first.type, first.severity) == (ROW_MINIMUM, "critical") and first.kwargs["min_value"] >= 1


@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.stem)
@pytest.mark.parametrize("table", TABLES)
def test_every_value_limit_stands_beside_a_null_limit(path, table):
    suite = load(path)
    limited = {(item.columns[0], item.condition) for item in suite.of(table) if item.type == NULL_LIMIT}
    for item in suite.of(table):
        for column in item.columns:
            name = column.removesuffix(VISIBLE)
            assert {(name, None), (name, item.condition)} & limited, f"{title(item)} skips nulls"


@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.stem)
def test_every_suite_limits_the_losses_of_each_source(path):
    """mix loses nothing: it orders what shard wrote, and shard writes what pack chose."""
    limits = [item for item in load(path).profile if item.condition == 'dimension == "source"']
    assert limits
    if path.stem in ("filter", "dedup", "decontaminate", "tokenize", "pack"):
        shares = [item for item in limits if item.columns == ["drop_share"] and "max_value" in item.limits]
        assert any(item.severity == "critical" for item in shares)


@pytest.mark.parametrize("step", STEPS)
def test_sound_data_passes(step):
    found = hold(step)
    assert found.failures == [] and found.warnings == []


def set_counts(**changed):
    """A change of the first unit's counts in the last folder that has them."""

    def change(rows, counts):
        for folder in reversed(counts):
            unit = next(iter(counts[folder]))
            if set(changed) & set(counts[folder][unit]):
                counts[folder][unit] |= changed
                return
        raise AssertionError(f"no folder counts {sorted(changed)}")

    return change


def set_row(**changed):
    """A change of the first row."""

    def change(rows, counts):
        next(iter(rows.values()))[0].update(changed)

    return change


def no_rows(rows, counts):
    rows.clear()


ACCIDENTS = {
    "ingest": (set_counts(rejected=1000), "rejected_share"),
    "normalize": (set_counts(characters_out=10), "characters_share"),
    "filter": (set_counts(documents_in=100, documents_dropped=99), "drop_share"),
    "dedup": (set_counts(documents_in=100, documents_dropped=99), "drop_share"),
    "decontaminate": (set_counts(documents_in=100, documents_dropped=60), "drop_share"),
    "tokenize": (set_counts(documents_in=1000, documents_dropped=999), "drop_share"),
    "pack": (set_counts(tokens_in=1000, tokens_dropped=900), "drop_share"),
    "shard": (set_counts(bytes=7), "bytes_per_token"),
    "mix": (set_row(quota=0), "quota"),
}


@pytest.mark.parametrize("step", STEPS)
def test_an_accident_stops_the_step(step):
    change, column = ACCIDENTS[step]
    found = hold(step, change)
    assert not found.success
    broken = [sentence for sentence in found.failures if "is broken" in sentence]
    assert any(f" of {column}" in sentence for sentence in broken), found.failures
    assert all(f"loosen expectations/{step}.json" in sentence for sentence in found.failures)


@pytest.mark.parametrize("step", ["filter", "mix"])
def test_a_step_without_rows_stops(step):
    assert any("rows has no rows" in sentence for sentence in hold(step, no_rows).failures)


@pytest.mark.parametrize("blank", ["", " \n", "\u200b", None])
def test_a_blank_language_stops_filter(blank):
    found = hold("filter", set_row(language=blank))
    assert len(found.failures) == 1 and " of language" in found.failures[0]


def test_a_dropped_document_without_its_rule_stops_filter():
    found = hold("filter", set_row(verdict="drop", rule=None, value=1.0, limit=2.0))
    assert len(found.failures) == 1 and 'of rule where verdict == "drop"' in found.failures[0]


def test_a_source_that_gives_nothing_stops_ingest():
    def change(rows, counts):
        for units in counts.values():
            for unit in [unit for unit in units if unit.startswith("web")]:
                del units[unit]

    found = hold("ingest", change)
    assert any("documents_out" in sentence and "source web: 0" in sentence for sentence in found.failures)
