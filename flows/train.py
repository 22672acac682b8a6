"""A training run on a pin, as a flow: verified data in, runs/<run>/ with run.json and DVCLive's metrics out.

In: a release's name or fingerprint prefix. Out: the content of run.json, which names the fingerprint of the
data, the git revision, the params, the losses and the tokens per second. An equal run that is complete is not
repeated; one that was cut off goes on from its checkpoint. It builds no data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefect import flow

from flows.dashboard import show_losses, step_progress
from flows.fetch import fetch
from flows.releases import newest
from flows.runs import Plan, plan_run
from flows.watch import watch
from tasks.errors import GristmillError, ParamsError
from tasks.project import Project
from training.pin import open_pin

if TYPE_CHECKING:
    from dvclive import Live

Log = Callable[[Mapping[str, float]], None]


@flow(name="train_on", persist_result=False)
def train_on(pin: str, project: str = ".", steps: int | None = None, again: bool = False) -> dict[str, Any]:
    """Train on `pin` as the section train of params.yaml says; the content of run.json.

    steps: instead of train.steps. again: though an equal run is complete. Raises training.pin.PinError and
    GristmillError.
    """
    root = Path(project).resolve()
    held = open_pin(pin, root)
    plan = plan_run(Project(root), held, steps, again)
    if plan.complete:
        return plan.record
    from training.params import TrainParams
    from training.record import git_revision
    from training.train import train

    watch().began("train")
    try:
        facts = {"fingerprint": held.fingerprint, "release": held.name or "", "git": git_revision(root) or ""}
        with step_progress("train") as progress, _live(plan, facts) as live:
            log = _log(live, progress, plan.section["steps"])
            params = TrainParams.of(plan.section)
            train(held, params, root=root, run=plan.name, resume=plan.begun, log=log)
    except ValueError as error:
        raise ParamsError(str(error)) from error
    watch().ended("train", "built", {})
    show_losses(plan.record["loss"])
    return plan.record


@flow(name="train_newest", persist_result=False)
def train_newest(project: str = ".") -> dict[str, Any]:
    """Train on the newest release, laying its pin where it is missing.

    Raises GristmillError where there is none.
    """
    root = Path(project).resolve()
    record = newest(root)
    if record is None:
        raise GristmillError(f"{root.name} has no release to train on", "make one: gristmill release NAME")
    fetch(root, record["name"])
    trained: dict[str, Any] = train_on(record["name"], str(root))
    return trained


def train_or_find(root: Path, pin: str, steps: int | None, again: bool) -> tuple[dict[str, Any], bool]:
    """(content of run.json, whether it was trained now): a complete run is found without starting Prefect."""
    plan = plan_run(Project(root), open_pin(pin, root), steps, again)
    if plan.complete:
        return plan.record, False
    return train_on(pin, str(root), steps, again), True


@contextmanager
def _live(plan: Plan, facts: dict[str, str]) -> Iterator[Live]:
    """DVCLive writing into the run's own folder: no experiment, no report, no dvc.yaml of its own."""
    from dvclive import Live

    folder = str(plan.folder / "dvclive")
    with Live(folder, resume=plan.begun, report=None, save_dvc_exp=False, dvcyaml=None) as live:
        plain = {name: value for name, value in plan.section.items() if not isinstance(value, dict)}
        live.log_params(plain | facts)
        yield live


def _log(live: Live, progress: Callable[[int, int, str], None], steps: int) -> Log:
    def log(given: Mapping[str, float]) -> None:
        step, figures = int(given["step"]), {name: value for name, value in given.items() if name != "step"}
        live.step = step
        for name, value in figures.items():
            live.log_metric(name, value)
        live.make_summary()
        progress(step, steps, ", ".join(f"{name} {value:.4g}" for name, value in figures.items()))

    return log
