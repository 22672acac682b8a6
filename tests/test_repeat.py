"""A run can be repeated, interrupted, cut into pieces and watched, and its losses stay what they were."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import types
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.pin_maker import lay_pin
from tests.test_training import PARAMS, SECTION, structured_documents
from training.batch import Batch
from training.loader import DirectLoader
from training.logs import log_to
from training.params import TrainParams, micro_batch
from training.pin import Pin, open_pin
from training.rank import Rank
from training.record import like
from training.stall import StallMeter
from training.train import Training, main, train

ROOT = Path(__file__).parents[1]
SHORT = replace(PARAMS, steps=12, log_every=5, checkpoint_every=4)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    documents = structured_documents(400, 200, 1)
    held = {"validation": [structured_documents(20, 200, 3)]}
    lay_pin(root, {"a": {"train": [documents], **held}, "b": {"train": [documents[:90]], **held}}, width=32,
            vocab_size=200, name="v1")  # fmt: skip
    return root


@pytest.fixture(scope="module")
def pin(project: Path) -> Pin:
    return open_pin("v1", project)


@pytest.fixture(scope="module")
def whole(pin: Pin, tmp_path_factory: pytest.TempPathFactory) -> dict:
    return train(pin, replace(SHORT, steps=40), root=tmp_path_factory.mktemp("whole"), run="whole")


def figures(record: dict) -> list:
    return json.loads(json.dumps([record["loss"], record["validation"], record["validation_of"]]))


def test_the_same_run_twice_gives_the_same_losses(pin: Pin, whole: dict, tmp_path: Path) -> None:
    again = train(pin, replace(SHORT, steps=40), root=tmp_path)
    assert figures(again) == figures(whole)
    assert figures(train(pin, replace(SHORT, steps=40, seed=2), root=tmp_path)) != figures(whole)


def test_run_json_is_enough_to_repeat_a_run(project: Path, whole: dict, tmp_path: Path, capsys) -> None:
    """Bit for bit on an equal CPU, by its own command; the number of threads is that of the run."""
    (tmp_path / "run.json").write_text(json.dumps(whole))
    assert {"fingerprint", "params", "world", "threads", "versions", "cpu", "git"} <= set(whole)
    main(["--like", str(tmp_path / "run.json"), "--root", str(project), "--run", "again"])
    again = json.loads((project / "runs" / "again" / "run.json").read_bytes())
    assert figures(again) == figures(whole)
    assert like({**whole, "threads": 7})[1]["threads"] == 7
    with pytest.raises(SystemExit):
        main(["--params", "x.json"])


def test_killed_in_mid_epoch_a_run_goes_on_as_if_nothing_had_been(project: Path, whole: dict) -> None:
    (project / "train.json").write_text(json.dumps({**SECTION, "steps": 40, "log_every": 5, "checkpoint_every": 4}))
    command = [sys.executable, "-m", "training.train", "v1", "--params", "train.json", "--run", "killed"]
    known = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    folder = project / "runs" / "killed"
    with subprocess.Popen(command, cwd=project, env=known, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if json.loads(line)["step"] >= 10 and (folder / "checkpoint.pt").is_file():
                process.send_signal(signal.SIGKILL)
                break
    assert process.returncode == -signal.SIGKILL
    record = train(open_pin("v1", project), replace(SHORT, steps=40), root=project, run="killed", resume=True)
    assert 0 < record["resumed_at"] < 40 * 8 and record["resumed_at"] % 8 == 0
    assert figures(record) == figures(whole)


@pytest.mark.parametrize("pieces", [2, 4, 8])
@pytest.mark.parametrize("labels", ["shifted", "model"])
def test_pieces_of_a_batch_weigh_by_their_targets(pin: Pin, pieces: int, labels: str, tmp_path: Path) -> None:
    """Rows with unlike numbers of targets: a mean of means would differ in the first digits."""
    params = replace(SHORT, steps=6, log_every=1, labels=labels)
    one = train(pin, params, root=tmp_path, run="one")
    cut = train(pin, replace(params, accumulate=pieces), root=tmp_path, run="cut")
    assert [loss for _, loss in cut["loss"]] == pytest.approx([loss for _, loss in one["loss"]], abs=1e-5)


def test_a_batch_that_cannot_be_cut_into_equal_pieces_is_refused() -> None:
    assert micro_batch(replace(PARAMS, accumulate=4), 2) == 1
    with pytest.raises(ValueError, match=r"8 sequences of a batch cannot be worked in 3 equal pieces; set train"):
        micro_batch(replace(PARAMS, accumulate=3), 1)
    with pytest.raises(ValueError, match="batch of 8 cannot be shared by 3 ranks"):
        micro_batch(PARAMS, 3)
    with pytest.raises(ValueError, match=r"train.accumulate is 0, below 1"):
        TrainParams.of({**SECTION, "accumulate": 0})
    with pytest.raises(ValueError, match="shuffle is 'local'"):
        TrainParams.of({**SECTION, "shuffle": "local"})


def test_a_batch_without_targets_changes_no_weight_to_nan(pin: Pin, tmp_path: Path) -> None:
    training = Training(pin, SHORT, tmp_path, None, None)
    batch = next(iter(training.loader))
    rows = len(batch.input_ids)
    empty = Batch(batch.tokens_BT1, torch.zeros(rows, dtype=torch.int32).numpy(), None, "shifted", 8)
    assert training._step(empty, 1).tolist() == [0, 0]
    assert all(torch.isfinite(weight).all() for weight in training.model.parameters())


def test_validation_tells_sources_apart(whole: dict) -> None:
    [[_, mean]], of = whole["validation"][-1:], whole["validation_of"]
    assert set(of) == {"source/a", "source/b"}  # shards without classes: the source is all that is known
    a, b = of["source/a"][-1][1], of["source/b"][-1][1]
    assert min(a, b) <= mean <= max(a, b)


def test_waiting_for_data_is_measured(pin: Pin, whole: dict, tmp_path: Path) -> None:
    assert set(whole["stall"]) == {"first_batch_ms", "share", "wait_ms", "gpu_idle_ms"}
    assert 0 <= whole["stall"]["wait_ms"]["p50"] <= whole["stall"]["wait_ms"]["p99"] <= whole["stall"]["wait_ms"]["max"]
    assert whole["stall"]["gpu_idle_ms"] is None and 0 < whole["stall"]["share"] < 0.5

    def slow():
        for turn in range(5):
            time.sleep(0.03 if turn != 2 else 0.12)
            yield turn

    meter = StallMeter(torch.device("cpu"))
    for _ in meter.batches(slow()):
        time.sleep(0.01)
        meter.done()
        time.sleep(0.05)
    found = meter.figures(Rank(0, 1, torch.device("cpu")))
    assert 30 <= found["wait_ms"]["p50"] < 60 and 120 <= found["wait_ms"]["max"] < 200
    assert 0.7 < found["share"] < 0.95 and meter.seconds < 0.5
    assert StallMeter(torch.device("cpu")).figures(Rank(0, 1, torch.device("cpu"))) == {}


def test_the_control_repeats_one_batch(pin: Pin, tmp_path: Path, monkeypatch) -> None:
    """Steps of a twentieth of a second at least: the share of waiting then says nothing of a busy machine."""
    logits = Training._logits
    monkeypatch.setattr(Training, "_logits", lambda *given: time.sleep(0.05) or logits(*given))
    seen: list[dict] = []
    record = train(pin, SHORT, root=tmp_path, log=lambda figures: seen.append(dict(figures)), control_steps=6)
    assert record["control"]["steps"] == 6 and record["control"]["tokens_per_second"] > 0
    assert record["control"]["stall"] < 0.5
    assert set(seen[-1]) == {"step", "control_tokens_per_second", "control_stall"}
    assert seen[0]["step"] == 5 and seen[0]["stage"] == 0
    made = DirectLoader._made
    monkeypatch.setattr(DirectLoader, "_made", lambda own: (time.sleep(0.15) or batch for batch in made(own)))
    training = Training(pin, replace(SHORT, steps=4), tmp_path, "slow", None)
    assert training.control(99)["steps"] == 4 and 0.3 < training.record["control"]["stall"] < 0.8


def test_one_hook_serves_every_service(tmp_path: Path, monkeypatch, capsys) -> None:
    calls: list[tuple] = []

    def noted(name: str):
        return lambda *words, **named: calls.append((name, words, named)) or types.SimpleNamespace(log=noted("log"))

    writer = types.SimpleNamespace(add_text=noted("text"), add_scalar=noted("scalar"), flush=noted("flush"))
    modules = {
        "torch.utils.tensorboard": types.SimpleNamespace(SummaryWriter=lambda folder: writer),
        "wandb": types.SimpleNamespace(init=noted("init")),
        "mlflow": types.SimpleNamespace(
            set_tracking_uri=noted("uri"),
            start_run=noted("start"),
            log_params=noted("params"),
            log_metrics=noted("metrics"),
        ),
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    for service, last in (("tensorboard", "scalar"), ("wandb", "log"), ("mlflow", "metrics"), ("lines", None)):
        log_to(service, tmp_path, {"fingerprint": "ab"})({"step": 3, "loss": 1.5})
        if last:
            called = next(call for call in reversed(calls) if call[0] == last)
            assert "1.5" in str(called) and "3" in str(called)
    assert json.loads(capsys.readouterr().out) == {"step": 3, "loss": 1.5}
    with pytest.raises(ValueError, match="log is 'paper'; use one of lines, tensorboard, wandb, mlflow"):
        log_to("paper", tmp_path, {})
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ImportError, match="pip install wandb"):
        log_to("wandb", tmp_path, {})
