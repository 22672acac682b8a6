"""From Parquet through ingest, normalize and filter to stored verdicts, all costs in.

In: a corpus of benchmarks.text_corpus and ten times as much (GRISTMILL_MEGABYTES of text, 20 by default; 200 for a
real run). Out: megabytes of text a CPU second of all processes, how much faster two workers are, memory, and how time
grows.
Each run is a process of its own that has built a small project before, so that imports and compiled kernels are there.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.figures import figure
from benchmarks.text_corpus import ROOT, lay_project
from tasks.perform import perform
from tasks.pipeline import STEPS
from tasks.project import Project
from tasks.workers import pool

TIMES = 3
CHAIN = ("ingest", "normalize", "filter")


def main() -> None:
    """Print the figures; about a minute by default, ten with 200 MB."""
    megabytes = float(os.environ.get("GRISTMILL_MEGABYTES", "20"))
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "small", Path(folder) / "large"
        sizes = {root: lay_project(root, size) for root, size in ((small, megabytes), (large, 10 * megabytes))}
        lay_project(Path(folder) / "warm", 1)
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


def _cpu() -> float:
    """CPU seconds of this process, and of its workers that have ended."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def _peak() -> int:
    """KiB that this process held at most; its ru_maxrss begins with that of the process which started it."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii", errors="replace"))
    return int(found[1]) if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _build(root: Path, workers: int) -> dict[str, float]:
    """CPU seconds of this process, by step."""
    seconds = {}
    for step in CHAIN:
        began = _cpu()
        perform(STEPS[step], Project(root), workers=workers, force=True)
        seconds[step] = _cpu() - began
    return seconds


def run(root: Path, workers: int) -> None:
    """Build `root` and print what it cost; in a process of its own, whose workers' costs are known when they end."""
    _build(root.parent / "warm", workers)
    began, spent = time.monotonic(), _cpu()
    steps = _build(root, workers)
    wall = time.monotonic() - began
    memory = max(_peak(), *(pool(workers).submit(_peak).result() for _ in range(4 * workers)))
    pool(workers).shutdown()
    print(json.dumps({"cpu": _cpu() - spent, "wall": wall, "steps": steps, "memory": memory / 1e3}))


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]))
