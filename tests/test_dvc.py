"""DVC's view of the corpus.

Ten stages of one form, one name through the house, dvc.lock no staler than the recipe.
"""

from __future__ import annotations

import configparser
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from flows import environment
from tasks.pipeline import STEPS

HOUSE = Path(__file__).parent.parent
STAGES = yaml.safe_load((HOUSE / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
READ_SOURCES = {"ingest", "filter", "dedup", "decontaminate", "tokenize"}


def test_the_stages_are_sources_and_the_nine_steps():
    assert list(STAGES) == ["sources", *STEPS]
    assert STAGES["sources"]["always_changed"] is True
    assert STAGES["sources"]["outs"] == [
        {"data/sources.json": {"cache": False}},
        {"data/code.json": {"cache": False}},
    ]


@pytest.mark.parametrize("step", STEPS)
def test_a_stage_reads_what_its_step_reads(step):
    stage = {key: value for key, value in STAGES[step].items() if key != "desc"}
    sources = ["data/sources.json"] if step in READ_SOURCES else []
    inputs = [f"data/{name}" for name in STEPS[step].inputs]
    assert stage == {
        "cmd": f"python -m tasks {step}",
        "deps": [f"expectations/{step}.json", *inputs, *sources],
        "params": [step, {"data/code.json": [step]}],
        "outs": [{f"data/{step}": {"persist": True}}],
        "metrics": [{f"reports/{step}.json": {"cache": False}}],
    }
    assert bool(sources) == bool(STEPS[step].outside)


def test_dvc_is_set_to_keep_still_and_never_to_hardlink():
    config = configparser.ConfigParser()
    config.read(HOUSE / ".dvc" / "config")
    assert config["core"]["analytics"] == config["core"]["check_update"] == "false"
    assert config["cache"]["type"].strip('"') == "reflink,copy"
    assert not Path(config["'remote \"local\"'"]["url"]).is_absolute()
    assert {"/data", "/pins"} <= set((HOUSE / ".gitignore").read_text(encoding="utf-8").split())


def test_importing_flows_turns_every_analytics_off():
    clean = {name: value for name, value in os.environ.items() if name not in environment.SWITCHES}
    script = "import os, json, flows; print(json.dumps({n: os.environ[n] for n in flows.environment.SWITCHES}))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=HOUSE, env=clean, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == environment.SWITCHES


def unset(monkeypatch, *names: str) -> None:
    """Remove variables so that they are restored afterwards even where they were not set before."""
    for name in names:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


def test_settling_keeps_what_is_set_and_puts_this_interpreter_first(tmp_path, monkeypatch):
    unset(monkeypatch, "PREFECT_API_URL", "PREFECT_HOME")
    monkeypatch.setenv("PATH", "/usr/bin")
    environment.settle(tmp_path)
    assert os.environ["PREFECT_HOME"] == str(tmp_path / ".prefect")
    assert os.environ["PATH"].split(os.pathsep) == [str(Path(sys.executable).parent), "/usr/bin"]
    monkeypatch.setenv("PREFECT_HOME", "/elsewhere")
    environment.settle(tmp_path)
    assert os.environ["PREFECT_HOME"] == "/elsewhere"


def test_a_server_that_is_named_keeps_its_own_home(tmp_path, monkeypatch):
    unset(monkeypatch, "PREFECT_HOME")
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:4200/api")
    environment.settle(tmp_path)
    assert "PREFECT_HOME" not in os.environ


def test_dvc_lock_is_no_staler_than_params_and_code():
    """The mend of a failure: `make lock` in the repository (seconds), then commit dvc.lock and reports/."""
    if not (HOUSE / "dvc.lock").is_file():
        pytest.skip("the repository's own corpus was never built: run dvc repro")
    from tasks.sourcing import code_digests

    lock = yaml.safe_load((HOUSE / "dvc.lock").read_text(encoding="utf-8"))["stages"]
    params = yaml.safe_load((HOUSE / "params.yaml").read_text(encoding="utf-8"))
    code = code_digests()
    for step in STEPS:
        assert lock[step]["params"]["params.yaml"] == {step: params[step]}, (
            f"{step}: run make lock, commit dvc.lock and reports/"
        )
        assert lock[step]["params"]["data/code.json"] == {step: code[step]}, (
            f"{step}: run make lock, commit dvc.lock and reports/"
        )


def test_deployments_are_two_in_utc_without_any_path_of_a_machine():
    from importlib import import_module

    text = (HOUSE / "prefect.yaml").read_text(encoding="utf-8")
    deployments = yaml.safe_load(text)["deployments"]
    assert [deployment["name"] for deployment in deployments] == ["nightly", "weekly"]
    for deployment in deployments:
        module, _, function = deployment["entrypoint"].rpartition(".")
        assert module in {"flows.corpus", "flows.train"}
        assert hasattr(import_module(module), function)
        assert [schedule["timezone"] for schedule in deployment["schedules"]] == ["UTC"]
    assert "{{ $PWD }}" in text and "/home" not in text and "/work" not in text
