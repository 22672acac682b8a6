"""Block lists as params.yaml names them, and the rule that each of them is.

In: the list `blocklists` of params.yaml. Out: rules for the front of `rules`, and the units that look the lists up. It
reads no list (tasks.filter.blocklists does) and stands in no key.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from tasks.filter.blocklists import BLOCKED
from tasks.step import Folder, Plan, Unit, each_part
from tasks.text.rules import Scope


class BlockList(Scope):
    """One list. name: its rule is blocked.<name>; path: a file, relative to params.yaml, or absolute.

    match: what meets an entry (tasks.filter.blocklists). entries_min: how many different entries drop a document.
    kinds, languages, sources: documents that the rule judges; without them all that have a URL.
    """

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    path: Annotated[str, Field(min_length=1)]
    match: Literal["domains", "urls", "words", "substrings"]
    entries_min: Annotated[int, Field(ge=1)] = 1

    @property
    def rule(self) -> dict[str, Any]:
        """The rule that drops what meets it, as params.yaml would have it."""
        scope = {name: getattr(self, name) for name in ("kinds", "languages", "sources") if getattr(self, name)}
        signal = BLOCKED + self.name
        return {"name": signal, "signal": signal, "max": self.entries_min - 1, **scope}


def rules_of(lists: Iterable[BlockList] | None) -> list[dict[str, Any]]:
    """A rule for each list."""
    return [item.rule for item in lists or ()]


def check_names(lists: tuple[BlockList, ...]) -> tuple[BlockList, ...]:
    """Raises ValueError where two lists share a name."""
    names = [item.name for item in lists]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"more than one block list is named {', '.join(twice)}; give each a name of its own")
    return lists


def plan_blocked(plan: Plan, folder: Folder) -> list[Unit]:
    """A unit for each part, with the digests of the lists; none where no list is named."""
    lists = plan.params.blocklists
    if not lists:
        return []
    found = plan.sources()["blocklists"]
    digests = {item.name: next(iter(found[item.name]["files"].values()))["sha256"] for item in lists}
    files = {item.name: str((Path(plan.root) / item.path).resolve()) for item in lists}
    return [replace(unit, spec={"blocklists": digests}, files=files) for unit in each_part(plan, folder)]
