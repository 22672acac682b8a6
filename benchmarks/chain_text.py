"""From Parquet through ingest, normalize and filter to stored verdicts, all costs in.

In: a corpus of benchmarks.text_corpus and ten times as much (GRISTMILL_MEGABYTES of text, 20 by default; 200 for a
real run). Out: megabytes of text a CPU second of all processes, how much faster two workers are, memory, and how time
grows.
Each run is a process of its own that has built a small project before, so that imports and compiled kernels are there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.figures import figure
from benchmarks.measured_build import measured_build
from benchmarks.text_corpus import ROOT, lay_project

TIMES = 3
CHAIN = ("ingest", "normalize", "filter")
WARM_MEGABYTES = 80
"""Four parts: a single one is made in the main process and leaves both workers without their imports and kernels."""


def main() -> None:
    """Print the figures; about a minute by default, ten with 200 MB."""
    megabytes = float(os.environ.get("GRISTMILL_MEGABYTES", "20"))
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "small", Path(folder) / "large"
        sizes = {root: lay_project(root, size) for root, size in ((small, megabytes), (large, 10 * megabytes))}
        lay_project(Path(folder) / "warm", WARM_MEGABYTES)
        alone = [_run(small, 1) for _ in range(TIMES)]
        whole, two = _run(large, 1), _run(large, 2)
    each = [sizes[small] / run["cpu"] for run in alone]
    figure("Parquet to verdicts, all costs in", [*each, sizes[large] / whole["cpu"]], 30, "MB/cpu-s")
    for step in CHAIN:
        figure(f"  of it {step}", [sizes[large] / whole["steps"][step]], None, "MB/cpu-s")
    figure("two workers, wall", [whole["wall"] / two["wall"]], 1.7, "x", "one worker")
    grown = sizes[large] / sizes[small]
    figure(
        "ten times the corpus, CPU", [whole["cpu"] / run["cpu"] * 10 / grown for run in alone], 11, "x", better="lower"
    )
    figure("memory of a worker", [max(whole["memory"], two["memory"])], 1000, "MB", better="lower")
    figure("memory, ten times the corpus", [whole["memory"] / run["memory"] for run in alone], 1.1, "x", better="lower")


def _run(root: Path, workers: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.chain_text", str(root), str(workers)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


if __name__ == "__main__":
    print(json.dumps(measured_build(Path(sys.argv[1]), CHAIN, int(sys.argv[2]))))
