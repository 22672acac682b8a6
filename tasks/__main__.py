"""`python -m tasks STEP`: the command of every DVC stage; `python -m tasks sources` writes what lies at the sources.

Run in a project's folder. The build lock is taken without waiting: exit status 75 where another build holds it.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from tasks.errors import GristmillError, ParamsError
from tasks.locks import build_lock
from tasks.perform import Report, perform
from tasks.pipeline import STEPS
from tasks.project import Project
from tasks.sourcing import write_sources


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit status: 0, or the code of the GristmillError that was met (tasks.errors)."""
    asked = _parser().parse_args(arguments)
    project = Project(Path.cwd())
    try:
        with build_lock(project.state, wait=False):
            if asked.step == "sources":
                write_sources(project)
            else:
                workers = asked.workers or workers_of(project)
                _say(perform(STEPS[asked.step], project, workers=workers, force=asked.force))
    except GristmillError as error:
        print(f"gristmill: {error}", file=sys.stderr)
        return error.code
    return 0


def workers_of(project: Project) -> int:
    """Worker processes by params.yaml's `run.workers`; 0 there means as many as there are cores."""
    wanted = project.section("run").get("workers", 0)
    if not isinstance(wanted, int) or isinstance(wanted, bool) or wanted < 0:
        raise ParamsError(f"params.yaml: run.workers is {wanted!r}, no whole number from 0", "0 is one for each core")
    return wanted or len(os.sched_getaffinity(0))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tasks", description=__doc__)
    parser.add_argument("step", choices=["sources", *STEPS])
    parser.add_argument("--workers", type=int, default=0, help="worker processes; 0: as params.yaml says")
    parser.add_argument("--force", action="store_true", help="make every part anew")
    return parser


def _say(report: Report) -> None:
    made = ", ".join(f"{folder} {count}" for folder, count in report.made.items() if count)
    carried = sum(report.carried.values())
    print(
        f"{report.step}: {report.outcome}; made {made or 'nothing'}; carried over {carried}; {report.fingerprint[:16]}"
    )
    for warning in report.warnings:
        print(f"{report.step}: warning: {warning}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
