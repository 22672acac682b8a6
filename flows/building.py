"""One build inside a Prefect flow: the lock, a cached task run for each step, the commit at the end.

In: a project and what of it to build. Out: artifacts, dvc.lock, and task runs with progress and counts in
Prefect's UI. The manifest on disk is the only truth: Prefect's cached answer is believed while the artifact
that stands has its fingerprint. It decides nothing about bytes; tasks.perform does.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any, TypedDict

from prefect import State, Task, task
from prefect.context import TaskRunContext

from flows import versioning
from flows.dashboard import show_counts, step_progress
from flows.scope import check_request, known, steps_until
from flows.standing import stands
from flows.watch import watch
from tasks.__main__ import workers_of
from tasks.artifacts.manifest import Manifest
from tasks.errors import GristmillError, IntegrityError
from tasks.locks import build_lock
from tasks.memory import at_work
from tasks.perform import perform, recipe_key
from tasks.pipeline import STEPS
from tasks.project import Project
from tasks.sourcing import write_sources

RETRIES = 2
RETRY_SECONDS = (5.0, 30.0)
Ref = dict[str, str]


class Hands(TypedDict):
    """Who makes the parts: processes of this machine, or the workers of the Dask scheduler at `cluster`."""

    workers: int
    cluster: str | None


def transient(task: Task[..., Any], run: Any, state: State[Any]) -> bool:
    """Whether trying again may help: a fault of the system, or a killed worker.

    What people must mend is never retried.
    """
    error = state.result(raise_on_failure=False)
    if isinstance(error, GristmillError):
        return isinstance(error.__cause__, BrokenExecutor)
    return isinstance(error, (OSError, BrokenExecutor))


def by_recipe(context: TaskRunContext, parameters: dict[str, Any]) -> str:
    """The cache key.

    The step and its recipe key, so neither paths nor hosts nor how arguments are spelled enter it.
    """
    name = parameters["step"]
    return f"gristmill-{name}-{recipe_key(STEPS[name], Project(Path(parameters['project'])))}"


@task(
    task_run_name="{step}",
    cache_key_fn=by_recipe,
    persist_result=True,
    result_serializer="json",
    retries=RETRIES,
    retry_delay_seconds=list(RETRY_SECONDS),
    retry_condition_fn=transient,
)
def make_step(step: str, inputs: list[Ref], project: str, hands: Hands, force: bool) -> Ref:
    """Let `step`'s artifact stand; returns {"step", "fingerprint"}, never data.

    Raises what tasks.perform raises.
    """
    with step_progress(step) as progress:
        report = perform(STEPS[step], Project(Path(project)), **hands, force=force, progress=progress)
    for warning in report.warnings:
        watch().said(f"{step}: warning: {warning}")
    show_counts(step, report.counts)
    watch().ended(step, report.outcome, dict(report.counts))
    return {"step": step, "fingerprint": report.fingerprint}


class Build:
    """The steps of one flow run. Call it with a step's name and the references of its inputs."""

    def __init__(self, project: Project, until: str | None, hands: Hands, force: Sequence[str]) -> None:
        self.project = project
        self.wanted = steps_until(until)
        self.hands = hands
        self.force = known(force)
        self.recipe = _recipe_bytes(project)
        self.done: dict[str, Ref] = {}
        self.cached: list[str] = []
        self.committed = False

    def __call__(self, step: str, *inputs: Ref | None) -> Ref | None:
        """Run `step` as a task; None where the build stops before it."""
        if step not in self.wanted:
            return None
        watch().began(step)
        ref = self._run(
            step, [ref for ref in inputs if ref], fresh=step in self.force or not stands(step, self.project)
        )
        if ref["fingerprint"] != self._fingerprint(step):
            ref = self._run(step, [ref for ref in inputs if ref], fresh=True)
        if ref["fingerprint"] != self._fingerprint(step):
            raise IntegrityError(f"{step} was made and yet does not stand", "see that nothing else writes there")
        self.done[step] = ref
        return ref

    def _run(self, step: str, inputs: list[Ref], *, fresh: bool) -> Ref:
        state = make_step.with_options(refresh_cache=fresh)(
            step, inputs, str(self.project.root), self.hands, step in self.force, return_state=True
        )
        ref: Ref = state.result()
        if state.name == "Cached":
            self.cached.append(step)
            watch().ended(step, "cached", {})
        return ref

    def _fingerprint(self, step: str) -> str | None:
        manifest = Manifest.read(self.project.artifact(step))
        return manifest.fingerprint if manifest else None

    def commit(self) -> None:
        """Make dvc.lock agree.

        A refusal is a warning, since the artifacts are whole and the next run commits them.
        """
        if not versioning.has_dvc(self.project.root):
            return
        if _recipe_bytes(self.project) != self.recipe:
            watch().said("params.yaml changed during the build: dvc.lock is left as it was; build again")
            return
        try:
            versioning.commit_outs(self.project.root, ["sources", *self.done])
            self.committed = True
        except GristmillError as error:
            watch().said(f"the artifacts stand, but dvc.lock does not name them yet ({error}); the next build commits")

    def summary(self) -> dict[str, Any]:
        """What the flow returns, as plain data."""
        last = self.done.get("mix")
        steps = [ref | {"cached": ref["step"] in self.cached} for ref in self.done.values()]
        return {"fingerprint": last and last["fingerprint"], "steps": steps, "committed": self.committed}


@contextlib.contextmanager
def building(
    root: str, until: str | None, workers: int | None, cluster: str | None, force: Sequence[str]
) -> Iterator[Build]:
    """Hold the project's lock from before the first step until dvc.lock is written.

    A failure commits nothing.
    """
    project = Project(Path(root).resolve())
    check_request(project, until, force)
    waiting = build_lock(project.state, wait=True, waiting=lambda name: watch().said(f"waiting for {name}"))
    with waiting, at_work():
        hands: Hands = {"workers": workers or workers_of(project), "cluster": cluster}
        build = Build(project, until, hands, force)
        write_sources(project)
        yield build
        build.commit()


def _recipe_bytes(project: Project) -> bytes:
    return (project.root / "params.yaml").read_bytes()
