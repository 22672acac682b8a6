"""A release: what stands now, under a name, in git and on the DVC remote, so that a run can be pinned to it.

In: a project whose artifacts are up to date and whose tree is clean. Out: one commit with dvc.lock, reports/
and releases/<name>.json, a tag of that name, the data on the remote, and pins/<fingerprint>/. It builds
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows import versioning
from flows.fetch import from_data, revision_of
from flows.pins import lay_pin
from flows.receipt import receipt
from flows.releases import (
    FOLDER,
    check_name,
    mixture_of,
    path_of,
    read,
    refuse_moved_past,
    refuse_rewritten_past,
)
from flows.standing import statuses
from flows.versioning import GitError, git
from flows.watch import watch
from tasks.artifacts.canonical import pretty
from tasks.artifacts.manifest import Manifest
from tasks.errors import GristmillError, IntegrityError
from tasks.locks import build_lock
from tasks.pipeline import STEPS
from tasks.project import Project

# What a build and a release write themselves.
OURS = ("dvc.lock", "reports", FOLDER)


@dataclass(frozen=True)
class Released:
    """What release did. new: False where that name and fingerprint were there already."""

    name: str
    fingerprint: str
    revision: str
    pin: Path
    new: bool


def release(root: Path, name: str) -> Released:
    """Release what stands in `root` as `name`. Raises GristmillError before anything is written, or finishes.

    The same name and fingerprint again finishes what an interrupted release left undone, and else changes
    nothing.
    """
    project = Project(root.resolve())
    check_name(name)
    with build_lock(project.state, wait=True, waiting=lambda holder: watch().said(f"waiting for {holder}")):
        _all_up_to_date(project)
        refuse_rewritten_past(project.root, project.section("mix"))
        refuse_moved_past(project.root, mixture_of(project))
        record = read(project.root, name)
        if record is None:
            return _make(project, name)
        return _again(project, name, record)


def _make(project: Project, name: str) -> Released:
    _may_commit(project.root, name)
    remote = versioning.remote(project.root)
    _verify_all(project)
    watch().said(f"pushing to the DVC remote {remote}")
    versioning.commit_outs(project.root, ["sources", *STEPS])
    versioning.push(project.root)
    record = receipt(project, name)
    pin = _lay(project, record)
    path = path_of(project.root, name)
    path.parent.mkdir(exist_ok=True)
    path.write_text(pretty(record), encoding="utf-8")
    try:
        revision = _commit_and_tag(project.root, record)
    except GristmillError:
        path.unlink()
        raise
    return Released(name, record["fingerprint"], revision, pin, new=True)


def _again(project: Project, name: str, record: dict[str, Any]) -> Released:
    manifest = Manifest.read(project.artifact("mix"))
    if manifest is None or manifest.fingerprint != record["fingerprint"]:
        now = manifest.fingerprint if manifest else "nothing"
        raise GristmillError(
            f"release {name} is {record['fingerprint'][:12]}, and what stands now is {now[:12]}",
            "a name is given once: choose another",
        )
    if not _committed(project.root, name):
        _may_commit(project.root, name)
        _commit_and_tag(project.root, record)
    elif not _tagged(project.root, name):
        git(project.root, "tag", name, revision_of(project.root, name))
    pin = _lay(project, record)
    return Released(name, record["fingerprint"], revision_of(project.root, name), pin, new=False)


def _lay(project: Project, record: dict[str, Any]) -> Path:
    return lay_pin(project.root, record["fingerprint"], record["name"], record["files"], from_data(project))


def _all_up_to_date(project: Project) -> None:
    for row in statuses(project):
        if not row["up_to_date"]:
            raise GristmillError(
                f"{row['step']} is not up to date: {'; '.join(row['why'])}", "build first: gristmill build"
            )


def _verify_all(project: Project) -> None:
    """Every file of every artifact by its full digest: what is pushed must be what its manifest names."""
    for step in STEPS:
        manifest = Manifest.read(project.artifact(step))
        for mismatch in manifest.verify(project.artifact(step)) if manifest else ():
            raise IntegrityError(f"data/{step}/{mismatch}", f"make it anew: gristmill build --force {step}")


def _may_commit(root: Path, name: str) -> None:
    """A git project with an identity, no change of anybody else's, and the tag free. Raises GitError."""
    _identity(root)
    others = [path for path in _changed(root) if path.rstrip("/").split("/", 1)[0] not in OURS]
    if others:
        more = f" and {len(others) - 3} more" if len(others) > 3 else ""
        raise GitError(
            f"uncommitted changes beside dvc.lock, reports/ and releases/: {', '.join(others[:3])}{more}",
            "commit them: a release names the git revision of its recipe",
        )
    if _tagged(root, name):
        raise GitError(f"the tag {name} is taken by something that is no release", "choose another name")


def _identity(root: Path) -> None:
    try:
        git(root, "rev-parse", "--verify", "-q", "HEAD")
    except GitError:
        raise GitError(f"{root} has no git commit to name as its recipe", "git init, then commit params.yaml") from None
    try:
        git(root, "-c", "user.useConfigOnly=true", "var", "GIT_COMMITTER_IDENT")
    except GitError:
        raise GitError(
            "git has no identity to commit as",
            'set one: git config user.name "NAME"; git config user.email ADDRESS',
        ) from None


def _changed(root: Path) -> list[str]:
    """Changed and new paths below `root`, relative to it, which may be a folder of a larger repository."""
    prefix = git(root, "rev-parse", "--show-prefix")
    lines = git(root, "status", "--porcelain", "-z", "--no-renames", "--", ".").split("\0")
    return sorted(line[3:].removeprefix(prefix) for line in lines if line)


def _commit_and_tag(root: Path, record: dict[str, Any]) -> str:
    present = [path for path in OURS if (root / path).exists()]
    try:
        git(root, "add", "--", *present)
        git(root, "commit", "-q", "-m", _message(record), "--", *present)
    except GitError:
        git(root, "reset", "-q", "--", *present)
        raise
    git(root, "tag", record["name"])
    return git(root, "rev-parse", "HEAD")


def _message(record: dict[str, Any]) -> str:
    return f"Release {record['name']}\n\nfingerprint {record['fingerprint']}\ncontent {record['content']}\n"


def _committed(root: Path, name: str) -> bool:
    return bool(git(root, "ls-tree", "HEAD", "--", f"{FOLDER}/{name}.json"))


def _tagged(root: Path, name: str) -> bool:
    try:
        git(root, "rev-parse", "--verify", "-q", f"refs/tags/{name}")
    except GitError:
        return False
    return True
