"""DVC and git as commands: what of them the flows need, each call one function.

In: the project's root. Out: dvc.lock, the remote, one commit and one tag; or an error that says what to do.
Both run as processes of their own (0.5 CPU seconds a call of DVC), as DVC promises no Python interface for
committing or pushing.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tasks.errors import GristmillError

BUSY_TRIES = 8
BUSY_SECONDS = 2.0
BUSY_SIGNS = ("is busy", "Unable to acquire lock", "unable to acquire lock")


class DvcError(GristmillError):
    """DVC refused; the message holds its last line."""

    code = 8


class GitError(GristmillError):
    """git refused, or stands in a state that a release cannot use."""

    code = 9


def dvc(root: Path, *words: str) -> str:
    """`dvc WORDS` in `root`; its standard output. Waits up to 16 s while another dvc works.

    Raises DvcError.
    """
    for tries_left in reversed(range(BUSY_TRIES)):
        done = _run(root, [sys.executable, "-m", "dvc", *words])
        if done.returncode == 0:
            return done.stdout
        said = done.stderr + done.stdout
        if not (tries_left and any(sign in said for sign in BUSY_SIGNS)):
            break
        time.sleep(BUSY_SECONDS)
    raise DvcError(f"dvc {words[0]} failed: {_reason(said)}", f"run `dvc {' '.join(words)}` to see all it says")


def has_dvc(root: Path) -> bool:
    """Whether `root` is a DVC project with a pipeline; without one, builds work and nothing is versioned."""
    return (root / ".dvc").is_dir() and (root / "dvc.yaml").is_file()


def commit_outs(root: Path, stages: Sequence[str]) -> None:
    """Make dvc.lock agree with what stands on disk for `stages`."""
    dvc(root, "commit", "-f", *stages)


def remote(root: Path) -> str:
    """The name of the default remote; raises DvcError where there is none."""
    name = dvc(root, "config", "core.remote").strip()
    if not name:
        raise DvcError(
            f"{root} has no DVC remote, so a release could not be fetched again",
            "add one: dvc remote add -d NAME URL, then commit .dvc/config",
        )
    return name


def push(root: Path) -> None:
    """Copy what dvc.lock names to the remote."""
    dvc(root, "push")


def git(root: Path, *words: str) -> str:
    """`git WORDS` in `root`; its standard output without the last newline. Raises GitError."""
    done = _run(root, ["git", *words])
    if done.returncode != 0:
        raise GitError(f"git {words[0]} failed: {_reason(done.stderr + done.stdout)}")
    return done.stdout.rstrip("\n")


def _run(root: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(words, cwd=root, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        raise GitError(f"{words[0]} is not installed", "install it and run again") from None


def _reason(said: str) -> str:
    """The line in which a command says what went wrong: its first ERROR, or else its last."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR")]
    return (errors or lines[-1:] or ["it said nothing"])[0]
