"""perform(step): the one way in which an artifact comes to stand.

Nothing to do? Else: stage unit by unit (carried over where the key is there, made where not), check the invariants,
hold the artifact against its suite, write the manifest, exchange it with what stands, stamp it, report. Whatever fails
before the exchange leaves the standing artifact as it was.
"""

from __future__ import annotations

import errno
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tasks.artifacts.manifest import Manifest
from tasks.build import Build
from tasks.errors import IntegrityError, SpaceError
from tasks.judge import judge, judge_digest
from tasks.memory import at_work
from tasks.project import Project
from tasks.publish import publish, read_stamp, recover, stamp_holds, write_stamp
from tasks.report import totals, write_report
from tasks.staged import Staged
from tasks.step import Step

Progress = Callable[[int, int, str], None]
NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NO_WRITING = (errno.EACCES, errno.EPERM, errno.EROFS)


@dataclass(frozen=True)
class Report:
    """What perform did. outcome: up_to_date, judged (a limit changed, the bytes did not) or built.

    made, carried: folder -> units made anew and units taken over. counts: the artifact's totals.
    """

    step: str
    fingerprint: str
    content: str
    outcome: str
    made: dict[str, int] = field(default_factory=dict)
    carried: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    seconds: float = 0.0


@at_work()
def perform(
    step: Step,
    project: Project,
    *,
    workers: int = 1,
    cluster: str | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Make `step`'s artifact stand as params.yaml wants it; the caller holds the project's lock.

    progress(units done, units in all, folder) is called as units end. Raises GristmillError.
    """
    began = time.monotonic()
    recover(project.artifact(step.name), project.staging(step.name))
    build = Build.begin(step, project)
    try:
        standing = None if force else _standing(build)
        report = _judged(build, standing) if standing else _built(build, workers, cluster, force, progress)
    except OSError as error:
        raise _for_people(error, project) from error
    return _timed(report, time.monotonic() - began)


def recipe_key(step: Step, project: Project) -> str:
    """64 hex: what the step's artifact must have as its recipe to be up to date."""
    return Build.begin(step, project).recipe_key


def _standing(build: Build) -> Manifest | None:
    """The manifest of the artifact that stands, if its recipe is the wanted one and its files hold."""
    manifest = build.standing
    if manifest is None or manifest.recipe_key != build.recipe_key:
        return None
    if not stamp_holds(read_stamp(build.stamp), build.home, manifest):
        if any(True for _ in manifest.verify(build.home)):
            return None
        write_stamp(build.stamp, build.home, manifest, judged="")
    return manifest


def _judged(build: Build, manifest: Manifest) -> Report:
    """Judge the standing artifact again if a limit changed since; else there is nothing to do."""
    shutil.rmtree(build.staging, ignore_errors=True)
    wanted = judge_digest(build.step, build.params, build.project)
    outcome, warnings = "up_to_date", []
    if read_stamp(build.stamp).get("judged") != wanted:
        artifact = Staged.standing(build, manifest)
        warnings = judge(build.step, artifact, build.project)
        write_stamp(build.stamp, build.home, manifest, wanted)
        outcome = "judged"
    write_report(build.project, manifest)
    carried = {name: len(units) for name, units in manifest.folders.items()}
    return Report(
        build.step.name, manifest.fingerprint, manifest.content, outcome, {}, carried, totals(manifest), warnings
    )


def _built(build: Build, workers: int, cluster: str | None, force: bool, progress: Progress | None) -> Report:
    made, carried = build.stage(workers, cluster, force, progress)
    artifact = Staged.staged(build)
    warnings = judge(build.step, artifact, build.project, workers)
    _sources_unchanged(build)
    manifest = Manifest(build.step.name, build.recipe, build.folders)
    manifest.write(build.tree)
    publish(build.tree, build.home)
    write_stamp(build.stamp, build.home, manifest, judge_digest(build.step, build.params, build.project))
    write_report(build.project, manifest)
    shutil.rmtree(build.staging, ignore_errors=True)
    counts = totals(manifest)
    return Report(build.step.name, manifest.fingerprint, manifest.content, "built", made, carried, counts, warnings)


def _sources_unchanged(build: Build) -> None:
    """What was read from outside must still lie there: else the artifact would name a digest it does not hold."""
    if build.outside_now() != build.outside:
        raise IntegrityError(
            f"what {build.step.name} reads changed while it ran", "let the writer finish and build again"
        )


def _for_people(error: OSError, project: Project) -> Exception:
    where = error.filename or project.data
    number = error.errno or 0
    if number in NO_SPACE or "No space left" in str(error):
        return SpaceError(f"no space left while writing {where}", "free some and run again: finished parts are kept")
    if number in NO_WRITING:
        return SpaceError(f"cannot write {where}: {error.strerror}", "give this user the right to write there")
    return error


def _timed(report: Report, seconds: float) -> Report:
    return Report(**{**vars(report), "seconds": seconds})
