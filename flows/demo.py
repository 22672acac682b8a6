"""`make demo`: the whole main job on the texts that this machine has, in one process, told as it goes.

In: a folder, new or laid by an earlier demo. Out: a corpus of nine artifacts, a tokenizer, a release, its pin
and a training run of a few steps, and a summary. A second time everything is found done: nothing is made,
trained or released again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flows import actions, environment, show
from flows.asked import Asked
from flows.versioning import git
from tasks.project import Project

STEPS = 50
NAME = "demo"


def run(asked: Asked, root: Path) -> None:
    """Lay, build, release, train, show. Raises GristmillError where a stage fails.

    A rerun goes on from there.
    """
    asked.root = root
    if not (root / "params.yaml").is_file():
        _tell(asked, f"laying a corpus in {root.name}/ from the texts that this machine has")
        _lay(asked, root)
    environment.settle(root, quiet=not asked.debug)
    _tokenizer(asked)
    _tell(asked, "building: nine steps as one Prefect flow")
    built = actions.run_build(asked, None, None, [])
    released, record, new = _release_and_train(asked, built["fingerprint"])
    if asked.json:
        return show.as_json({"built": built, "release": released, "run": record, "trained": new})
    return _summary(asked, built, released, record, new)


def _lay(asked: Asked, root: Path) -> None:
    from flows.init import init

    with show.shown(quiet=asked.json) as watcher:
        init(root, say=watcher.said)


def _tokenizer(asked: Asked) -> None:
    """The tokenizer is an input: made once, from what decontaminate kept, and then in git."""
    name = Project(asked.root).section("tokenize")["tokenizer"]
    folder = Path("tokenizers") / name
    if not (asked.root / folder).is_dir():
        _tell(asked, "building up to decontaminate: what the tokenizer is trained on")
        actions.run_build(asked, "decontaminate", None, [])
        _tell(asked, f"training tokenizer {name}, once")
        actions.run_train_tokenizer(asked, name)
    if git(asked.root, "status", "--porcelain", "--", str(folder)):
        git(asked.root, "add", "--", str(folder))
        git(asked.root, "commit", "-q", "-m", f"Tokenizer {name}", "--", str(folder))


def _release_and_train(asked: Asked, fingerprint: str) -> tuple[Any, dict[str, Any], bool]:
    from flows.release import release
    from flows.train import train_or_find

    name = _name(asked.root, fingerprint)
    _tell(asked, f"release {name}, and {STEPS} steps of training on its pin: made where they are not there yet")
    with show.shown(quiet=asked.json):
        released = release(asked.root, name)
        record, new = train_or_find(asked.root, name, STEPS, again=False)
    return released, record, new


def _name(root: Path, fingerprint: str) -> str:
    """The release that holds this fingerprint, or the next free of demo-1, demo-2, ..."""
    from flows.releases import all_of

    releases = all_of(root)
    for record in releases:
        if record["fingerprint"] == fingerprint:
            return str(record["name"])
    taken = {record["name"] for record in releases}
    return next(name for number in range(1, len(taken) + 2) if (name := f"{NAME}-{number}") not in taken)


def _summary(asked: Asked, built: dict[str, Any], released: Any, record: dict[str, Any], new: bool) -> None:
    from flows.funnel import shares

    show.funnel(built["funnel"])
    mixture = [(source, f"{share:.1%}") for source, share in shares(Project(asked.root)).items()]
    show.table("Mixture", ("source", "share"), mixture, right=("share",))
    cached = sum(step["cached"] for step in built["steps"])
    show.line(f"{len(built['steps'])} steps stand, {cached} of them cached")
    show.line(f"fingerprint [bold]{built['fingerprint']}[/], release {released.name}")
    show.run(record, new)
    here = _here(asked.root)
    show.line(f"reports  {here}/reports/*.json, {here}/reports/docs/index.html")
    show.line("try next")
    for command in (
        f"gristmill -C {here} status --bytes",
        f"gristmill -C {here} verify {released.name}",
        f"gristmill -C {here} build --limit 100",
    ):
        show.line(f"  [bold]{command}[/]")


def _here(root: Path) -> str:
    """`root` as one would type it from where the command was called."""
    try:
        return root.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return str(root)


def _tell(asked: Asked, text: str) -> None:
    if not asked.json:
        show.side_console().print(f"[bold]{text}[/]", highlight=False)
