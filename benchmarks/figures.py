"""Figures as benchmarks print them: a JSON line on standard output, a line for people on standard error.

In: measured values. Out: text. It measures CPU seconds of this process and nothing else.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any


def cpu_seconds(work: Callable[[], Any]) -> float:
    """CPU seconds of this process that `work` takes."""
    began = time.process_time()
    work()
    return time.process_time() - began


def heading() -> None:
    """Say on standard error what the figures below were measured on, and when."""
    known = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").is_file() else ""
    models = [line.partition(":")[2].strip() for line in known.splitlines() if line.startswith("model name")]
    versions = " ".join(f"{name} {metadata.version(name)}" for name in ("numpy", "numba", "pyarrow"))
    when = time.strftime("%Y-%m-%d")
    print(f"{when}, {os.cpu_count()} cores, {(models or [platform.machine()])[0]}", file=sys.stderr)
    print(f"Python {platform.python_version()} {versions}; others at work: {os.getloadavg()[0]:.1f}", file=sys.stderr)


def figure(
    name: str, values: Sequence[float], goal: float | None, unit: str, against: str = "", better: str = "higher"
) -> None:
    """Print the median of `values` with its spread; no values for a peer that is not there, a goal if one is set."""
    value = round(statistics.median(values), 2) if values else None
    spread = [round(min(values), 2), round(max(values), 2)] if values else None
    line = {"figure": name, "value": value, "goal": goal, "better": better, "unit": unit, "against": against}
    print(json.dumps(line | {"n": len(values), "spread": spread}), flush=True)
    met = value is not None and goal is not None and (value >= goal if better == "higher" else value <= goal)
    shown = "absent" if value is None else f"{value:g} {unit}"
    judged = "" if goal is None else f"goal {goal:g}  {'ok' if met else '--'}"
    print(f"{name:44} {shown:>16}  {judged:14} {against}".rstrip(), file=sys.stderr)


def peer(script: str, *arguments: str) -> dict[str, Any] | None:
    """What a peers' script prints as JSON, run in the peers' environment; None where that or the peer is not there."""
    home = Path(os.environ.get("GRISTMILL_PEERS", ".venv-peers"))
    python = home / "bin" / "python"
    if not python.is_file():
        return None
    done = subprocess.run(
        [str(python), "-E", str(Path(__file__).parent / script), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print(done.stderr.strip().splitlines()[-1:], file=sys.stderr)
        return None
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer
