"""What a run leaves behind in runs/<run>/: run.json for people and checkpoint.pt to go on from.

In: facts of the run, and the state of model, optimizer and loader. Out: both files, each replaced whole. A
checkpoint is read with weights_only, so that it can hold tensors and plain data and run nothing.
"""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tasks.artifacts.canonical import pretty

FORMAT = 1
"""run.json: format, run, fingerprint, release, git, params, device, world, threads, versions {library: version}, cpu
(torch's instruction set), position (of the last step), resumed_at, tokens (targets and inputs that carry none, of all
ranks), seconds, tokens_per_second, epochs {source: passes}, loss [[step, nat per target]], validation [[step, nat per
target]], validation_of {"source/<name>", "kind/<name>", "language/<name>": the same}, stall (see training.stall),
control {steps, tokens_per_second, stall} or null. fingerprint, params, world, threads, versions and cpu decide every
loss on a CPU: see `like`."""


def like(record: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """(fingerprint, section train of params.yaml) that repeat the run of a run.json, bit for bit on an equal CPU."""
    return record["fingerprint"], {**record["params"], "threads": record["threads"]}


def surroundings() -> dict[str, Any]:
    """What of this machine decides how sums are rounded."""
    versions = {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__}
    return {"threads": torch.get_num_threads(), "versions": versions, "cpu": torch.backends.cpu.get_cpu_capability()}


def write_record(folder: Path, record: dict[str, Any]) -> None:
    """runs/<run>/run.json."""
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / "run.json.partial"
    partial.write_text(pretty({"format": FORMAT, **record}), encoding="utf-8")
    partial.replace(folder / "run.json")


def read_record(folder: Path) -> dict[str, Any]:
    """runs/<run>/run.json as it stands; {} where there is none."""
    path = folder / "run.json"
    return dict(json.loads(path.read_bytes())) if path.is_file() else {}


def save_checkpoint(folder: Path, state: dict[str, Any]) -> None:
    """runs/<run>/checkpoint.pt: {"loader": position, fingerprint and order, "model", "optimizer", "losses": summed
    since the last line of the log}."""
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / "checkpoint.pt.partial"
    torch.save(state, partial)
    partial.replace(folder / "checkpoint.pt")


def load_checkpoint(folder: Path, device: torch.device) -> dict[str, Any]:
    """The newest checkpoint of a run; raises FileNotFoundError saying where none is."""
    path = folder / "checkpoint.pt"
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there; start the run without --resume")
    return dict(torch.load(path, map_location=device, weights_only=True))


def git_revision(root: Path) -> str | None:
    """The commit that `root` stands at, with "+changes" where files differ from it; None outside of git."""
    try:
        revision = _git(root, "rev-parse", "HEAD")
        return revision + ("+changes" if _git(root, "status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()
