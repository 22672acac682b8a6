"""What dedup needs of an earlier release onto this machine: from data/ where it holds it, else from DVC.

In: a project and a release's name. Out: against/<release>/, verified against the release in git: the texts, sketches
and verdicts of its documents, as dedup.against reads them (tasks.against). It changes nothing else.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from flows.fetch import from_data, from_dvc
from flows.pins import Source
from flows.releases import resolve
from tasks.against import FOLDER, WANTED, wanted_files
from tasks.artifacts.canonical import file_digest
from tasks.artifacts.manifest import FILE, Manifest
from tasks.errors import IntegrityError, SpaceError
from tasks.project import Project


def fetch_documents(root: Path, pin: str) -> Path:
    """The folder against/<release>/ of the release that `pin` means. Raises GristmillError."""
    project = Project(root.resolve())
    record = resolve(project.root, pin)
    home = project.root / FOLDER / str(record["name"])
    source = from_data(project) if _data_holds(project, record) else from_dvc(project.root, record["name"])
    staged = home.with_name(f".{home.name}.{os.getpid()}")
    shutil.rmtree(staged, ignore_errors=True)
    try:
        for step in WANTED:
            _lay(staged, step, str(record["steps"][step]["content"]), source)
        shutil.rmtree(home, ignore_errors=True)
        staged.rename(home)
    except OSError as error:
        raise SpaceError(f"cannot lay {home}: {error.strerror}", "free some space or mend the rights") from error
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return home


def _data_holds(project: Project, record: dict[str, Any]) -> bool:
    standing = {step: Manifest.read(project.artifact(step)) for step in WANTED}
    return all(
        manifest is not None and manifest.content == record["steps"][step]["content"]
        for step, manifest in standing.items()
    )


def _lay(staged: Path, step: str, content: str, source: Source) -> None:
    home = staged / step
    home.mkdir(parents=True)
    source(f"{step}/{FILE}", home / FILE)
    manifest = Manifest.read(home)
    if manifest is None or manifest.content != content:
        found = manifest.content if manifest else "no manifest"
        raise IntegrityError(
            f"{step}/{FILE}: expected content {content}, found {found}", "fetch it from another remote"
        )
    for path, wanted in wanted_files(step, manifest):
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        source(f"{step}/{path}", home / path)
        found = file_digest(home / path)
        if found != wanted:
            raise IntegrityError(f"{step}/{path}: expected {wanted}, found {found}", "fetch it from another remote")
        (home / path).chmod(0o444)
