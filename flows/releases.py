"""Releases as they lie in git: releases/<name>.json, read and found again.

In: the project's root. Out: a release's record; a name, tag or fingerprint prefix resolved. It writes
nothing.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tasks.errors import GristmillError, ParamsError
from tasks.project import Project

FOLDER = "releases"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
Record = dict[str, Any]


def check_name(name: str) -> str:
    """`name` where it can be a file name and a git tag; raises ParamsError."""
    if not NAME.fullmatch(name) or ".." in name or name.endswith((".", ".lock")):
        raise ParamsError(f"{name!r} cannot name a release", "use letters, digits, dots and dashes, as corpus-1")
    return name


def path_of(root: Path, name: str) -> Path:
    return root / FOLDER / f"{name}.json"


def read(root: Path, name: str) -> Record | None:
    """The record of the release `name`; None where there is none.

    Raises ParamsError where it is no record.
    """
    path = path_of(root, check_name(name))
    if not path.is_file():
        return None
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return {"fingerprint": record["fingerprint"], "created": record["created"], **record}
    except (ValueError, KeyError, TypeError):
        raise ParamsError(f"{path} is no release", f"restore it: git checkout -- {FOLDER}/{name}.json") from None


def all_of(root: Path) -> list[Record]:
    """Every release, oldest first."""
    names = sorted(path.stem for path in (root / FOLDER).glob("*.json"))
    found = (read(root, name) for name in names)
    return sorted((record for record in found if record), key=lambda record: (record["created"], record["name"]))


def newest(root: Path) -> Record | None:
    """The release made last; None where there is none."""
    releases = all_of(root)
    return releases[-1] if releases else None


def resolve(root: Path, pin: str) -> Record:
    """The release that `pin` (a name, or six or more hex digits of a fingerprint) means.

    Raises GristmillError.
    """
    named = read(root, pin)
    if named:
        return named
    matches = [record for record in all_of(root) if len(pin) >= 6 and record["fingerprint"].startswith(pin)]
    if len({record["fingerprint"] for record in matches}) == 1:
        return matches[-1]
    known = ", ".join(record["name"] for record in all_of(root)) or "none"
    what = "means several releases" if matches else "is no release and no fingerprint of one"
    raise GristmillError(f"{pin} {what} (releases: {known})", f"make one: gristmill release {pin}")


def mixture_of(project: Project) -> dict[str, Any]:
    """data/mix/mixture.json as it stands; {} where mix does not stand."""
    path = project.artifact("mix") / "mixture.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}


def refuse_rewritten_past(root: Path, mix: dict[str, Any]) -> None:
    """Raise ParamsError where the section `mix` changes the order below the newest release's last stage.

    Runs on that release may have read as far as into its last stage; what lies below must stay as it was.
    """
    record = newest(root)
    if record is None or not record.get("mix", {}).get("stages"):
        return
    then = record["mix"]
    below = int(then["stages"][-1]["start"])
    if below > 0 and _past(then, below) != _past(mix, below):
        raise ParamsError(
            f"params.yaml: mix changes positions below {below}, the last stage of release {record['name']}",
            f"leave seed, period and the stages before {below} as they were; add a stage after them",
        )


def _past(mix: dict[str, Any], below: int) -> list[Any]:
    stages = [
        [stage.get("start"), stage.get("weights"), stage.get("temperature", 1), sorted(stage.get("leave_out", ()))]
        for stage in mix.get("stages", [])
    ]
    return [mix.get("seed"), mix.get("period"), [stage for stage in stages if stage[0] < below]]
