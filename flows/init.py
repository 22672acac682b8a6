"""Lays a corpus: a folder with a recipe, a pipeline, suites, git and DVC, for `gristmill build`.

In: a folder to lay it in, and a folder or URL with texts, or nothing (then the texts that this machine has). Out:
that folder with params.yaml, dvc.yaml, prefect.yaml, expectations/, an ignore file each for git and DVC, a
local DVC remote in .remote, and one commit. It builds nothing and copies no text but this machine's own.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import flows
from flows.found import Found, find_sources
from flows.found_remote import find_remote
from flows.machine_texts import lay_machine_texts
from flows.presets import load_preset
from flows.recipe import write_recipe
from flows.versioning import GitError, dvc, git
from tasks.errors import GristmillError, ParamsError, SpaceError

SHIPPED = Path(flows.__file__).parent.parent
PACKAGES = ("audit", "flows", "tasks", "training")
COPIED = ("dvc.yaml", "prefect.yaml", "expectations")

GITIGNORE = """\
# What is generated, and raw text: a release names the digest of every file of the sources.
/data
/pins
/small
/sources
/runs
/dvclive
/reports/docs
/.gristmill
/.prefect
/.remote
"""
DVCIGNORE = """\
# Folders in which DVC need not look for stages; sources may even hold a dvc.yaml of their own.
/pins
/small
/sources
/runs
/.gristmill
/.prefect
/.remote
"""
# Copies and not hard links: with those an edit in place was seen to destroy what the cache holds.
DVC_CONFIG = """\
[core]
    analytics = false
    autostage = false
    check_update = false
    remote = local
[cache]
    type = "reflink,copy"
['remote "local"']
    url = ../.remote
"""


@dataclass(frozen=True)
class Laid:
    """A corpus that was laid. bytes_per_kind: of the sources' files on disk; revision: of its git commit."""

    root: Path
    sources: list[Found]
    bytes_per_kind: dict[str, int]
    revision: str


def init(
    directory: Path,
    source: Path | str | None = None,
    force: bool = False,
    recipe: str | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Laid:
    """Lay a corpus in `directory`. source: where its texts lie, a path or a URL (a str); None: write this machine's own
    there.

    force: write the files of a corpus that stands there anew, its params.yaml included. recipe: one of flows.presets;
    None: the repository's own values. say: is told what is being done and what each source was recognised as; with
    this machine's texts that takes 6 s, half of it for reading docstrings.
    Raises ParamsError where the folder cannot be used, SourceError where `source` holds no texts.
    """
    _refuse(directory, force)
    if recipe is not None:
        load_preset(recipe)
    _fresh(directory)
    if source is None:
        sources = lay_machine_texts(directory / "sources", SHIPPED / "samples", directory, say)
        _copy(SHIPPED / "samples" / "evaluation", directory / "evaluation")
    else:
        say(f"looking for sources in {source}")
        sources = find_sources(source, directory) if isinstance(source, Path) else find_remote(source)
    for item in sources:
        say(f"{item.name}: {item.kind}; {item.shape or 'no records'}{'; LEFT OUT' if item.unknown else ''}")
    say("setting up git and DVC")
    text = write_recipe(_shipped("params.yaml").read_text(encoding="utf-8"), sources, _sets(source), recipe)
    _version(directory)
    files = _lay_files(directory, text)
    return Laid(directory.resolve(), sources, _per_kind(sources), _commit(directory, files))


def _refuse(directory: Path, force: bool) -> None:
    if directory.exists() and not directory.is_dir():
        raise ParamsError(f"{directory} is a file", "name a folder, new or empty")
    held = [name for name in PACKAGES if (directory / name).exists()]
    if held:
        raise ParamsError(
            f"{directory} holds {', '.join(held)}, which Python would import instead of Gristmill's own",
            "lay the corpus in a folder of its own",
        )
    if (directory / "params.yaml").exists() and not force:
        raise ParamsError(
            f"{directory} holds a params.yaml and so a corpus already",
            f"build it with: gristmill -C {directory} build",
        )


def _fresh(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpaceError(
            f"{directory} cannot be made: {error.strerror}", "choose a folder that you may write to"
        ) from error


def _shipped(name: str) -> Path:
    path = SHIPPED / name
    if not path.exists():
        raise GristmillError(
            f"{name} is not beside the installed program", "install the repository with: pip install -e ."
        )
    return path


def _sets(source: Path | str | None) -> list[str]:
    folder = SHIPPED / "samples" / "evaluation"
    return [] if source else sorted(path.stem for path in folder.glob("*.jsonl"))


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True, copy_function=shutil.copyfile)
    else:
        shutil.copyfile(source, target)


def _lay_files(directory: Path, recipe: str) -> list[str]:
    """Write what git is to hold; params.yaml last, since a folder that has it counts as a corpus."""
    for name in COPIED:
        _copy(_shipped(name), directory / name)
    texts = {
        ".gitignore": GITIGNORE,
        ".dvcignore": DVCIGNORE,
        ".dvc/config": DVC_CONFIG,
        "params.yaml": recipe,
    }
    for name, text in texts.items():
        (directory / name).write_text(text, encoding="utf-8")
    own = [".dvc/.gitignore", *COPIED, *texts]
    return [*own, "evaluation"] if (directory / "evaluation").is_dir() else own


def _version(directory: Path) -> None:
    """git and DVC, where they are not yet; an identity for this repository alone, where git knows none."""
    if not (directory / ".git").exists():
        git(directory, "-c", "init.defaultBranch=main", "init", "--quiet")
    for key, value in (("user.name", "gristmill"), ("user.email", "gristmill@localhost")):
        if not _configured(directory, key):
            git(directory, "config", "--local", key, value)
    if not (directory / ".dvc").is_dir():
        dvc(directory, "init", "--quiet")


def _configured(directory: Path, key: str) -> bool:
    try:
        return bool(git(directory, "config", key))
    except GitError:
        return False


def _commit(directory: Path, files: list[str]) -> str:
    """One commit of `files`, or none where they stand in git already; the revision."""
    git(directory, "add", "--force", "--", *files)
    if git(directory, "status", "--porcelain", "--untracked-files=no", "--", *files):
        plain = ("-c", "commit.gpgsign=false")
        git(directory, *plain, "commit", "--quiet", "--no-verify", "-m", "Lay a corpus", "--", *files)
    return git(directory, "rev-parse", "HEAD")


def _per_kind(sources: list[Found]) -> dict[str, int]:
    sizes: Counter[str] = Counter()
    for item in sources:
        sizes[item.kind] += item.bytes
    return dict(sorted(sizes.items()))
