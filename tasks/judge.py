"""The judges of an artifact: its step's invariants, then its suite of expectations."""

from __future__ import annotations

from itertools import islice

from tasks.artifacts.canonical import digest
from tasks.errors import ExpectationError, InvariantError
from tasks.project import Project
from tasks.step import Artifact, Step, StepParams

BREACHES_SHOWN = 5
STANDS = "what stood before still stands"


def judge(step: Step, artifact: Artifact, project: Project, hands: int = 1) -> list[str]:
    """Raise InvariantError or ExpectationError where the artifact must not appear; returns the suite's warnings.

    hands: threads that may read at once. In a small run a failed expectation is a warning: shares of a handful of
    documents prove nothing.
    """
    breaches = list(islice(step.invariants(artifact), BREACHES_SHOWN))
    if breaches:
        raise InvariantError(f"{step.name} breaks a promise: " + " | ".join(breaches))
    from tasks.validate import validate

    docs = project.report(step.name).parent / "docs"
    found = validate(step, artifact, project.suite(step.name), docs, hands)
    notes = list(found.warnings)
    if found.tested.get("sampled"):
        seen, there = found.tested["rows"], found.tested["rows_total"]
        notes.append(f"rows: what is not counted row by row was tested on a seeded sample of {seen} of {there}")
    if project.small:
        return [*found.failures, *notes]
    if not found.success:
        raise ExpectationError(f"{step.name} fails its suite: " + " | ".join(found.failures), STANDS)
    return notes


def judge_digest(step: Step, params: StepParams, project: Project) -> str:
    """64 hex over every limit that judges the step: its params that judge, and its suite."""
    from tasks.validate import suite_digest

    judging = {
        name
        for name, info in type(params).model_fields.items()
        if isinstance(info.json_schema_extra, dict) and info.json_schema_extra.get("role") == "judges"
    }
    return digest({"params": params.model_dump(include=judging), "suite": suite_digest(project.suite(step.name))})
