"""Writes data/sources.json and data/code.json: what DVC's stages depend on besides each other's artifacts.

data/sources.json: what tasks.sources.scan found. data/code.json: {step: digest of the code of its folders}.
"""

from __future__ import annotations

from pathlib import Path

from tasks.artifacts.canonical import digest, pretty
from tasks.code import function_digest
from tasks.errors import ParamsError
from tasks.parts import planner_digest
from tasks.pipeline import STEPS
from tasks.project import Project
from tasks.sources import scan
from tasks.step import Step

OTHER_SECTIONS = ("train", "run")
"""Sections of params.yaml besides the nine steps'."""


def refuse_unknown_sections(project: Project) -> None:
    """Raise ParamsError for a section of params.yaml that nobody reads: a misspelt `fitler:` would else say nothing."""
    known = (*STEPS, *OTHER_SECTIONS)
    unknown = sorted(str(name) for name in project.recipe() if name not in known)
    if unknown:
        raise ParamsError(
            f"params.yaml has unknown sections: {', '.join(unknown)}", f"the sections are: {', '.join(known)}"
        )


def write_sources(project: Project) -> None:
    """Write both files where their content differs from what stands; raises what refuse_unknown_sections does."""
    refuse_unknown_sections(project)
    project.data.mkdir(parents=True, exist_ok=True)
    _write(project.data / "sources.json", pretty(scan(project)))
    _write(project.data / "code.json", pretty(code_digests()))


def code_digests() -> dict[str, str]:
    """step -> 64 hex over the code that shapes its folders."""
    return {name: digest(_digests(step)) for name, step in STEPS.items()}


def _digests(step: Step) -> dict[str, list[str]]:
    return {folder.name: [function_digest(folder.function), planner_digest(folder)] for folder in step.folders}


def _write(path: Path, text: str) -> None:
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    partial = path.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
