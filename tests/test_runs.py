"""Runs, small runs and the funnel: what they are called, when they are complete, what they project."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from flows import demo, runs, show, small
from flows.funnel import Row, funnel
from flows.releases import path_of
from tasks.artifacts.canonical import pretty
from tasks.artifacts.manifest import Entry, Manifest
from tasks.errors import ParamsError, SourceError
from tasks.project import Project

PIN = SimpleNamespace(name="corpus-1", fingerprint="f" * 64)


@pytest.fixture
def project(tmp_path):
    section = {"steps": 50, "batch_size": 4, "learning_rate": 0.1}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump({"train": section}))
    return Project(tmp_path)


def finish(plan: runs.Plan, position: int) -> None:
    plan.folder.mkdir(parents=True, exist_ok=True)
    (plan.folder / "run.json").write_text(json.dumps({"position": position}))


def test_a_run_is_named_by_data_and_params_and_complete_at_its_last_step(project):
    plan = runs.plan_run(project, PIN, None, again=False)
    assert plan.name.startswith("corpus-1-") and not plan.complete and not plan.begun
    assert runs.plan_run(project, PIN, 60, again=False).name != plan.name
    assert runs.plan_run(project, PIN, 50, again=False).name == plan.name
    other = SimpleNamespace(name="corpus-1", fingerprint="e" * 64)
    assert runs.plan_run(project, other, None, again=False).name != plan.name
    finish(plan, 199)
    (plan.folder / "checkpoint.pt").write_bytes(b"")
    assert not plan.complete and plan.begun
    finish(plan, 200)
    assert plan.complete and not plan.begun


def test_again_takes_a_name_that_no_run_has(project):
    plan = runs.plan_run(project, PIN, None, again=False)
    assert runs.plan_run(project, PIN, None, again=True).name == plan.name
    finish(plan, 200)
    second = runs.plan_run(project, PIN, None, again=True)
    assert second.name == f"{plan.name}-2"
    finish(second, 200)
    assert runs.plan_run(project, PIN, None, again=True).name == f"{plan.name}-3"


def test_losses_are_shown_first_to_last():
    points = [[step, 9 - step / 10] for step in range(10, 60, 10)]
    assert show.losses(points, 3) == "8.000 (step 10) → 6.000 (step 30) → 4.000 (step 50)"
    assert show.losses(points[:1]) == "8.000 (step 10)"
    assert show.losses([]) == ""


def stand(project: Project, step: str, folders: dict[str, dict[str, int]]) -> None:
    home = project.artifact(step)
    home.mkdir(parents=True)
    entries = {
        folder: {
            "a-0": Entry("0" * 64, "0" * 64, {f"{folder}/a": {"sha256": "0" * 64, "bytes": 10}}, 1, counts, ("a", 0))
        }
        for folder, counts in folders.items()
    }
    Manifest(step, {"inputs": {}}, entries).write(home)


def test_the_funnel_conserves_and_stops_where_nothing_stands(tmp_path):
    project = Project(tmp_path)
    stand(
        project,
        "ingest",
        {"documents": {"documents_out": 9}, "rejects": {"rejected": 1, "rejected|reason=json": 1}},
    )
    stand(project, "normalize", {"text": {"documents_in": 9, "documents_out": 9}})
    rules = {"dropped|rule=a": 1, "dropped|rule=b": 2, "dropped|rule=never": 0}
    stand(project, "filter", {"verdicts": {"documents_in": 9, "documents_kept": 6} | rules})
    stand(project, "tokenize", {"tokens": {"documents_kept": 1}})
    assert funnel(project) == [
        Row("ingest", "documents", 10, 9, 1, {"json": 1}),
        Row("normalize", "documents", 9, 9, 0, {}),
        Row("filter", "documents", 9, 6, 3, {"b": 2, "a": 1}),
    ]


def test_tokenize_is_shown_what_came_to_it_and_dropped_itself(tmp_path):
    project = Project(tmp_path)
    for step, folder in (("normalize", "text"), ("filter", "verdicts"), ("dedup", "verdicts")):
        stand(project, step, {folder: {"documents_in": 5, "documents_out": 5, "documents_kept": 5}})
    stand(project, "ingest", {"documents": {"documents_out": 5}})
    stand(project, "decontaminate", {"verdicts": {"documents_in": 5, "documents_kept": 4, "dropped|rule=qa": 1}})
    own = {"dropped|rule=decontaminate:qa": 1, "dropped|rule=cut_short": 1}
    stand(project, "tokenize", {"tokens": {"documents_in": 5, "documents_kept": 3} | own})
    assert funnel(project)[-1] == Row("tokenize", "documents", 4, 3, 1, {"cut_short": 1})


def test_a_small_run_projects_in_proportion_to_raw_bytes(tmp_path):
    project = small.small_project(tmp_path, 3, None)
    assert project.tree == "small/limit-3" and project.small
    assert small.small_project(tmp_path, None, 0.5).tree == "small/fraction-0.5"
    stand(project, "ingest", {"documents": {"bytes_out": 10}})
    sources = {"sources": {"a": {"files": {"x": {"sha256": "0", "bytes": 200}}}}}
    (project.data / "sources.json").write_text(json.dumps(sources))
    steps = [
        {"outcome": "built", "seconds": 1.5, "bytes": 30},
        {"outcome": "built", "seconds": 0.5, "bytes": 20},
    ]
    assert small.projection(project, steps) == {
        "raw_bytes": 200,
        "read_bytes": 10,
        "bytes": 1000,
        "seconds": 40.0,
    }
    steps[0]["outcome"] = "up_to_date"
    assert small.projection(project, steps)["seconds"] is None


def test_a_small_run_without_text_says_so(tmp_path):
    project = small.small_project(tmp_path, 1, None)
    stand(project, "ingest", {"documents": {}})
    (project.data / "sources.json").write_text('{"sources": {}}')
    with pytest.raises(SourceError, match="holds no text; take a larger limit"):
        small.projection(project, [])


def test_a_small_run_never_writes_into_data(tmp_path):
    with pytest.raises(ParamsError, match="would replace data/"):
        Project(tmp_path, limit=3)


def test_the_demo_names_its_release_by_what_it_holds(tmp_path):
    assert demo._name(tmp_path, "a" * 64) == "demo-1"
    for name, fingerprint in (("demo-1", "a" * 64), ("mine", "b" * 64)):
        path = path_of(tmp_path, name)
        path.parent.mkdir(exist_ok=True)
        path.write_text(pretty({"name": name, "fingerprint": fingerprint, "created": "2026"}))
    assert demo._name(tmp_path, "a" * 64) == "demo-1"
    assert demo._name(tmp_path, "b" * 64) == "mine"
    assert demo._name(tmp_path, "c" * 64) == "demo-2"
    assert demo._here(Path.cwd() / "demo") == "demo"
