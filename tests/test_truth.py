"""The first five steps find in samples/ what samples/truth.json says is there, and drop nothing else."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tasks.artifacts.tables import read_table
from tasks.perform import perform
from tasks.pipeline import STEPS
from tasks.project import Project
from tasks.sourcing import write_sources

ROOT = Path(__file__).parent.parent
TRUTH = json.loads((ROOT / "samples" / "truth.json").read_text(encoding="utf-8"))
DROPPING = ("filter", "dedup", "decontaminate")
RULES = {
    "symbols": "symbols",
    "too_short": "too_short",
    "repeated_lines": "repetition",
    "long_words": "word_length",
    "digests": "word_length",
    "repeated_words": "repetition",
    "navigation": "symbols",
    "too_short_chat": "too_short_chat",
    "too_short_code": "too_short_code",
    "no_language": "unclear_language",
}
Place = tuple[str, str, int]


def place(item: dict[str, Any]) -> Place:
    return item["source"], item["file"], item["record"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """data/ of a project with the repository's recipe, as far as decontaminate."""
    root = tmp_path_factory.mktemp("samples")
    for name in ("samples", "expectations"):
        shutil.copytree(ROOT / name, root / name)
    shutil.copyfile(ROOT / "params.yaml", root / "params.yaml")
    project = Project(root)
    write_sources(project)
    for name in ("ingest", "normalize", *DROPPING):
        perform(STEPS[name], project, workers=1)
    return project.data


@pytest.fixture(scope="module")
def verdicts(data: Path) -> dict[Place, dict[str, dict[str, Any]]]:
    """place -> step -> the row of its verdicts, with a survivor told by its place."""
    rows: dict[Place, dict[str, dict[str, Any]]] = {}
    places = {
        (path.stem, row): (path.stem.partition("-")[0], item["file"], item["record"])
        for path in sorted((data / "ingest" / "places").glob("*.parquet"))
        for row, item in enumerate(read_table(path).to_pylist())
    }
    for step in DROPPING:
        for path in sorted((data / step / "verdicts").glob("*.parquet")):
            for row, verdict in enumerate(read_table(path).to_pylist()):
                if verdict.get("survivor_part"):
                    verdict["survivor"] = places[verdict["survivor_part"], verdict["survivor_row"]]
                rows.setdefault(places[path.stem, row], {})[step] = verdict
    return rows


def test_the_broken_records_are_rejected_and_no_others(data: Path) -> None:
    found = {
        (path.stem.partition("-")[0], item["file"], item["record"]): item["reason"]
        for path in (data / "ingest" / "rejects").glob("*.parquet")
        for item in read_table(path).to_pylist()
    }
    assert found == {place(item["place"]): item["why"] for item in TRUTH["rejects"]}


def test_junk_breaks_its_rule(verdicts: dict) -> None:
    found = {item["why"]: verdicts[place(item["place"])]["filter"]["rule"] for item in TRUTH["junk"]}
    assert found == RULES


def test_one_of_each_pair_survives_and_is_named(verdicts: dict) -> None:
    exact = [(group, 1.0, "exact") for group in TRUTH["exact_duplicates"]]
    near = [(item["pair"], item["similarity"], "near") for item in TRUTH["near_duplicates"]]
    for group, similarity, rule in exact + near:
        rows = {place(item): verdicts[place(item)]["dedup"] for item in group}
        (kept,) = [where for where, row in rows.items() if row["verdict"] == "keep"]
        for row in (row for where, row in rows.items() if where != kept):
            assert (row["verdict"], row["rule"], row["survivor"]) == ("drop", rule, kept)
            assert row["similarity"] == pytest.approx(similarity, abs=0.0006)


def test_near_misses_are_kept(verdicts: dict) -> None:
    for item in TRUTH["near_misses"]:
        assert [verdicts[place(one)]["dedup"]["verdict"] for one in item["pair"]] == ["keep", "keep"]


def test_of_the_chain_no_document_goes_without_a_kept_neighbour(verdicts: dict) -> None:
    places = [place(item) for item in TRUTH["chain"]["places"]]
    dropped = [where for where in places if verdicts[where]["dedup"]["verdict"] == "drop"]
    assert dropped
    for where in dropped:
        assert verdicts[verdicts[where]["dedup"]["survivor"]]["dedup"]["verdict"] == "keep"
        assert verdicts[where]["dedup"]["similarity"] >= 0.8


def test_every_leak_is_dropped_and_the_control_is_not(verdicts: dict) -> None:
    found = {where for where, row in verdicts.items() if row["decontaminate"]["rule"] == "qa"}
    assert found == {place(item["place"]) for item in TRUTH["contaminated"]}


def test_nothing_else_is_dropped(verdicts: dict) -> None:
    named = {place(item["place"]) for name in ("contaminated", "junk") for item in TRUTH[name]}
    named |= {place(one) for item in TRUTH["near_duplicates"] for one in item["pair"]}
    named |= {place(one) for group in [*TRUTH["exact_duplicates"], TRUTH["chain"]["places"]] for one in group}
    dropped = {where for where, steps in verdicts.items() for row in steps.values() if row["verdict"] == "drop"}
    assert dropped - named == set()
