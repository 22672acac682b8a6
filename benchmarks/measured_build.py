"""What building steps costs, every cost in: for a process of its own, whose workers' costs are known when they end."""

from __future__ import annotations

import re
import resource
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tasks.memory import at_work
from tasks.perform import perform
from tasks.pipeline import STEPS
from tasks.project import Project
from tasks.workers import pool


def measured_build(root: Path, steps: Iterable[str], workers: int) -> dict[str, Any]:
    """Build `root`, once the small project `warm` beside it has loaded imports and compiled kernels.

    cpu: seconds of this process and its workers; wall: seconds; steps: CPU seconds of this process by step; memory: MB
    that one of them held at most; fixed: CPU seconds of this process for the small project when all is loaded, most of
    which a build of any size costs.
    """
    names = tuple(steps)
    _build(root.parent / "warm", names, workers)
    fixed = sum(_build(root.parent / "warm", names, workers).values())
    began, spent = time.monotonic(), _cpu()
    seconds = _build(root, names, workers)
    wall = time.monotonic() - began
    memory = max(_peak(), *(pool(workers).submit(_peak).result() for _ in range(4 * workers)))
    pool(workers).shutdown()
    return {"cpu": _cpu() - spent, "wall": wall, "steps": seconds, "memory": memory / 1e3, "fixed": fixed}


@at_work()
def _build(root: Path, names: Iterable[str], workers: int) -> dict[str, float]:
    seconds = {}
    for name in names:
        began = _cpu()
        perform(STEPS[name], Project(root), workers=workers, force=True)
        seconds[name] = _cpu() - began
    return seconds


def _cpu() -> float:
    """CPU seconds of this process, and of its workers that have ended."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def _peak() -> int:
    """KiB that this process held at most; its ru_maxrss begins with that of the process which started it."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii", errors="replace"))
    return int(found[1]) if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
