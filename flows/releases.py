"""Releases as they lie in git: releases/<name>.json, read and found again.

In: the project's root. Out: a release's record; a name, tag or fingerprint prefix resolved. It writes
nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
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


def order_of(mixture: Mapping[str, Any]) -> dict[str, Any]:
    """What of a mixture.json says which source each position reads: seed, period, stages of start and quotas."""
    stages = [{name: stage[name] for name in ("start", "quotas")} for stage in mixture["stages"]]
    return {"seed": mixture["seed"], "period": mixture["period"], "stages": stages}


def refuse_rewritten_past(root: Path, mix: Mapping[str, Any]) -> None:
    """Raise ParamsError where the section `mix` changes the order below the newest release's last stage.

    Runs on that release may have read as far as into its last stage; what lies below must stay as it was.
    """
    record = newest(root)
    then = record.get("mix", {}) if record else {}
    if (
        record
        and len(then.get("stages", ())) > 1
        and _past(then, len(then["stages"])) != _past(mix, len(then["stages"]))
    ):
        raise _rewritten(record, "leave seed, period and the stages before it as they were; add a stage after them")


def refuse_moved_past(root: Path, mixture: Mapping[str, Any]) -> None:
    """Raise ParamsError where data/mix, by the sizes that sources have now, orders those positions otherwise: weights
    that are proportional and stages that are as long as so many epochs move with the corpus."""
    record = newest(root)
    then = record.get("order") if record else None
    if record and then and _past(then, len(then["stages"])) != _past(order_of(mixture), len(then["stages"])):
        raise _rewritten(record, f"write down in params.yaml what it was: {_in_words(then)}")


def _past(mix: Mapping[str, Any], number: int) -> list[Any]:
    """What decides the order below the start of stage `number` - 1, as it is written in params.yaml or mixture.json."""
    stages = [
        {
            "start": 0 if at == 0 else None,
            "temperature": 1,
            **{key: value for key, value in stage.items() if key != "name"},
        }
        for at, stage in enumerate(mix.get("stages", ())[:number])
    ]
    for stage in stages:
        stage["leave_out"] = sorted(stage.get("leave_out", ()))
    last = [stage["start"] for stage in stages[-1:]] if len(stages) == number else None
    return [mix.get("seed"), mix.get("period"), stages[:-1], last]


def _rewritten(record: Record, mend: str) -> ParamsError:
    stages = (record.get("order") or record["mix"])["stages"]
    below = stages[-1].get("start")
    where = f"below {below}" if below is not None else "before the last stage"
    return ParamsError(f"mix changes positions {where}, the last stage of release {record['name']}", mend)


def _in_words(order: Mapping[str, Any]) -> str:
    return "; ".join(f"start: {stage['start']}, weights: {stage['quotas']}" for stage in order["stages"])
