"""A pin's data onto this machine: from data/ where it holds the release, else from DVC's cache or remote.

In: a project and a release's name or fingerprint prefix. Out: pins/<fingerprint>/, verified against the
release in git. It changes nothing else: neither data/ nor dvc.lock nor the branch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flows.pins import Files, Source, clone, lay_pin
from flows.releases import FOLDER, resolve
from flows.versioning import GitError, git
from tasks.artifacts.manifest import Manifest
from tasks.errors import GristmillError
from tasks.project import Project


def fetch(root: Path, pin: str) -> Path:
    """The folder pins/<fingerprint>/ of the release that `pin` means. Raises GristmillError."""
    project = Project(root.resolve())
    record = resolve(project.root, pin)
    source = from_data(project) if data_holds(project, record) else from_dvc(project.root, record["name"])
    return lay_pin(project.root, record["fingerprint"], record["name"], record["files"], source)


def pin_files(project: Project) -> Files:
    """What a pin of the artifacts that stand would hold: path -> {"sha256", "bytes"}.

    Raises GristmillError.
    """
    files: Files = {}
    for step in ("shard", "mix"):
        manifest = Manifest.read(project.artifact(step))
        if manifest is None:
            raise GristmillError(f"data/{step} does not stand", "build it: gristmill build")
        files |= {f"{step}/{path}": facts for path, facts in manifest.files.items()}
    return files


def data_holds(project: Project, record: dict[str, Any]) -> bool:
    """Whether data/ names the very files of the release; their digests are checked when they are copied."""
    manifest = Manifest.read(project.artifact("mix"))
    return manifest is not None and manifest.fingerprint == record["fingerprint"]


def from_data(project: Project) -> Source:
    """Files as they stand in data/."""
    return lambda path, target: clone(project.data / path, target)


def from_dvc(root: Path, name: str) -> Source:
    """Files as the commit of the release names them, from DVC's cache or its remote."""
    from dvc.api import DVCFileSystem

    files = DVCFileSystem(str(root), rev=revision_of(root, name))

    def get(path: str, target: Path) -> None:
        try:
            files.get_file(f"data/{path}", str(target))
        except Exception as error:
            raise GristmillError(
                f"data/{path} of release {name} is neither in DVC's cache nor on its remote",
                "name a remote that holds it: dvc remote list, dvc push where it was released",
            ) from error

    return get


def revision_of(root: Path, name: str) -> str:
    """The commit of the release: its tag, or where tags were not fetched the commit that brought its file."""
    try:
        return git(root, "rev-parse", "--verify", "-q", f"refs/tags/{name}^{{commit}}")
    except GitError:
        found = git(root, "log", "-1", "--diff-filter=A", "--format=%H", "--", f"{FOLDER}/{name}.json")
    if not found:
        raise GitError(f"no commit holds {FOLDER}/{name}.json", "fetch the branch it was released on: git fetch --tags")
    return found
