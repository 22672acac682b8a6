"""build_corpus on a house of cards: Prefect is real, the nine steps are fakes that only write manifests.

What a step does is tested elsewhere; here: when Prefect's cache is believed, what is retried and committed.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from flows import building, corpus
from flows.versioning import DvcError
from tasks.artifacts.canonical import digest
from tasks.artifacts.manifest import Manifest
from tasks.errors import GristmillError, ParamsError
from tasks.locks import holder
from tasks.perform import Report
from tasks.pipeline import STEPS
from tasks.project import Project

# Prefect's own warnings about its server and sockets are not ours to mend.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:prefect"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module", autouse=True)
def server(tmp_path_factory):
    """One embedded Prefect for the module, with its results in a folder of its own."""
    from prefect.settings import PREFECT_HOME, PREFECT_LOCAL_STORAGE_PATH, temporary_settings
    from prefect.testing.utilities import prefect_test_harness

    home = tmp_path_factory.mktemp("prefect")
    places = {PREFECT_HOME: home, PREFECT_LOCAL_STORAGE_PATH: home / "storage"}
    with temporary_settings(places), prefect_test_harness(server_startup_timeout=240):
        yield


@dataclass
class House:
    """Nine steps whose recipe is one value each. fails: step -> errors still to raise, in order."""

    root: Path
    values: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STEPS, 0))
    limits: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STEPS, 0))
    judged: dict[str, int] = field(default_factory=dict)
    fails: dict[str, list[Exception]] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)
    commits: list[list[str]] = field(default_factory=list)
    refuse_commit: bool = False

    def recipe(self, step: str) -> dict:
        inputs = {name: self.fingerprint(name) for name in STEPS[step].inputs}
        return {"value": self.values[step], "inputs": inputs, "run": str(self.root)}

    def fingerprint(self, step: str) -> str | None:
        manifest = Manifest.read(Project(self.root).artifact(step))
        return manifest.fingerprint if manifest else None

    def recipe_key(self, step, project):
        return digest(self.recipe(step.name))

    def stands(self, step, project):
        manifest = Manifest.read(project.artifact(step))
        return bool(manifest and manifest.recipe == self.recipe(step) and self.judged.get(step) == self.limits[step])

    def perform(self, step, project, *, workers, cluster, force, progress):
        assert holder(project.state)["pid"] == os.getpid()
        self.ran.append(step.name)
        if self.fails.get(step.name):
            raise self.fails[step.name].pop(0)
        progress(1, 2, "folder")
        home = project.artifact(step.name)
        home.mkdir(parents=True, exist_ok=True)
        manifest = Manifest(step.name, self.recipe(step.name), {})
        manifest.write(home)
        self.judged[step.name] = self.limits[step.name]
        return Report(step.name, manifest.fingerprint, manifest.content, "built", counts={"documents_in": 3})

    def commit(self, root, stages):
        if self.refuse_commit:
            raise DvcError("dvc commit failed: busy")
        self.commits.append(list(stages))

    def build(self, **asked):
        self.ran.clear()
        built = corpus.build_corpus(str(self.root), **asked)
        return SimpleNamespace(**built, cached=[step["step"] for step in built["steps"] if step["cached"]])


@pytest.fixture
def house(tmp_path, monkeypatch):
    (tmp_path / "params.yaml").write_text("mix: {stages: []}\nrun: {workers: 1}\n")
    house = House(tmp_path)
    monkeypatch.setattr(building, "perform", house.perform)
    monkeypatch.setattr(building, "recipe_key", house.recipe_key)
    monkeypatch.setattr(building, "stands", house.stands)
    monkeypatch.setattr(building, "write_sources", lambda project: None)
    monkeypatch.setattr(Project, "params", lambda project, step: None)
    monkeypatch.setattr(building, "make_step", building.make_step.with_options(retry_delay_seconds=0))
    monkeypatch.setattr(building.versioning, "has_dvc", lambda root: True)
    monkeypatch.setattr(building.versioning, "commit_outs", house.commit)
    return house


def test_a_second_build_finds_nine_cached(house):
    first = house.build()
    assert house.ran == list(STEPS) and first.cached == []
    second = house.build()
    assert house.ran == [] and second.cached == list(STEPS)
    assert second.fingerprint == first.fingerprint == house.fingerprint("mix")
    assert house.commits == [["sources", *STEPS]] * 2


def test_what_stands_is_always_that_of_the_params(house):
    prints = []
    for value in (12, 13, 12):
        house.values["filter"] = value
        prints.append(house.build().fingerprint)
        assert prints[-1] == house.fingerprint("mix")
        assert Manifest.read(house.root / "data" / "filter").recipe["value"] == value
    assert prints[0] == prints[2] != prints[1]


def test_a_deleted_artifact_is_made_anew_not_cached(house):
    first = house.build()
    shutil.rmtree(house.root / "data" / "dedup")
    again = house.build()
    assert house.ran == ["dedup"]
    assert "dedup" not in again.cached and again.fingerprint == first.fingerprint


def test_a_changed_limit_judges_the_standing_artifact_again(house):
    house.build()
    house.limits["filter"] = 1
    house.build()
    assert house.ran == ["filter"]


def test_an_artifact_made_without_prefect_is_found_done(house):
    house.build()
    house.values["mix"] = 5
    Manifest("mix", house.recipe("mix"), {}).write(house.root / "data" / "mix")
    house.judged["mix"] = 0
    assert house.build().fingerprint == house.fingerprint("mix")


def test_a_step_is_retried_for_the_systems_faults_alone(house):
    house.fails["normalize"] = [ConnectionResetError("a disk that stutters")]
    house.build()
    assert house.ran.count("normalize") == 2

    house.values["ingest"] = 1
    house.fails["ingest"] = [ParamsError("ingest.part_bytes is -1", "make it positive")]
    with pytest.raises(ParamsError, match="part_bytes is -1"):
        house.build()
    assert house.ran == ["ingest"]


def test_a_failure_is_never_cached_and_commits_nothing(house):
    house.fails["dedup"] = [GristmillError("a bad row")]
    with pytest.raises(GristmillError, match="a bad row"):
        house.build()
    assert house.ran == ["ingest", "normalize", "filter", "dedup"] and house.commits == []
    good = house.build()
    assert good.cached == ["ingest", "normalize", "filter"] and house.ran[0] == "dedup"


def test_until_stops_there_and_commits_what_was_done(house):
    stopped = house.build(until="filter")
    assert house.ran == ["ingest", "normalize", "filter"] and stopped.fingerprint is None
    assert house.commits == [["sources", "ingest", "normalize", "filter"]]
    assert house.build().cached == ["ingest", "normalize", "filter"]


def test_force_makes_a_step_anew(house):
    house.build()
    assert house.build(force=["mix"]).cached == list(STEPS)[:-1]
    assert house.ran == ["mix"]


@pytest.mark.parametrize("asked", [{"until": "nonsense"}, {"force": ["nonsense"]}])
def test_a_name_that_is_no_step_is_refused_with_those_that_are(house, asked):
    with pytest.raises(ParamsError, match=r"nonsense is no step; the steps are: ingest, .*mix"):
        house.build(**asked)


def test_params_that_changed_during_the_build_are_not_committed(house, monkeypatch):
    said = []
    monkeypatch.setattr(building, "watch", lambda: SimpleNamespace(**_silent(said)))
    make = house.perform

    def edited(step, project, **how):
        (project.root / "params.yaml").write_text("mix: {stages: []}\nrun: {workers: 2}\n")
        return make(step, project, **how)

    monkeypatch.setattr(building, "perform", edited)
    assert house.build().committed is False
    assert house.commits == [] and "params.yaml changed" in said[0]


def test_a_refused_commit_is_a_warning_and_the_next_build_commits(house):
    house.refuse_commit = True
    assert house.build().committed is False
    house.refuse_commit = False
    assert house.build().committed is True


def test_a_key_knows_neither_paths_nor_workers(house, monkeypatch):
    monkeypatch.chdir(house.root.parent)
    spelled = [
        {"step": "filter", "project": project, "hands": {"workers": workers, "cluster": None}, "inputs": inputs}
        for project, workers, inputs in ((str(house.root), 1, []), (house.root.name, 2, [{"step": "ingest"}]))
    ]
    assert len({building.by_recipe(None, parameters) for parameters in spelled}) == 1


def test_a_schedule_below_a_release_may_not_change(house):
    releases = house.root / "releases"
    releases.mkdir()
    mix = {
        "seed": 1,
        "period": 4,
        "stages": [{"start": 0, "weights": {"a": 1}}, {"start": 8, "weights": {"a": 2}}],
    }
    record = {"name": "one", "fingerprint": "0" * 64, "created": "2026-01-01T00:00:00+00:00", "mix": mix}
    (releases / "one.json").write_text(json.dumps(record))
    with pytest.raises(ParamsError, match="positions below 8, the last stage of release one"):
        house.build()


def _silent(said: list[str]) -> dict:
    def nothing(*_):
        return None

    return {"began": nothing, "moved": nothing, "ended": nothing, "said": said.append}
