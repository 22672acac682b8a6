"""Which steps a command means. In: names as people type them. Out.

Steps of the pipeline, or an error that lists them.
"""

from __future__ import annotations

from collections.abc import Sequence

from flows.releases import refuse_rewritten_past
from tasks.errors import ParamsError
from tasks.pipeline import STEPS
from tasks.project import Project
from tasks.sourcing import refuse_unknown_sections


def steps_until(until: str | None) -> list[str]:
    """The steps from the first to `until`; all of them for None.

    Raises ParamsError for a name that is no step.
    """
    names = list(STEPS)
    return names if until is None else names[: names.index(known([until])[0]) + 1]


def known(names: Sequence[str]) -> list[str]:
    """`names` where all are steps; raises ParamsError."""
    for name in names:
        if name not in STEPS:
            raise ParamsError(f"{name} is no step", f"the steps are: {', '.join(STEPS)}")
    return list(names)


def check_request(project: Project, until: str | None, force: Sequence[str]) -> None:
    """Refuse what cannot end well before anything starts: a step's name, a section of params.yaml, the schedule.

    An hour of ingest should not end at a misspelt key of mix. Raises ParamsError.
    """
    known(force)
    refuse_unknown_sections(project)
    for name in steps_until(until):
        project.params(STEPS[name])
    refuse_rewritten_past(project.root, project.section("mix"))
