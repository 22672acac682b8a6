"""Rule sets by name and version: presets/<name>-<version>.yaml, and how params.yaml uses them.

In: the list `rules` of params.yaml. Out: the same list with every `set` replaced by its rules, named <set>.<rule>. A
published set never changes; what changes gets the next version. It judges nothing; the rules themselves enter the key.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tasks.text.rules import Scope

PRESETS = Path(__file__).parent / "presets"
SCOPES = ("kinds", "languages", "sources")


class Use(Scope):
    """One item of `rules`: a whole set.

    set: as gopher-1. kinds, languages, sources: its rules judge those alone. leave_out: rules that are not wanted.
    change: rule -> fields of it in place of the set's, as {stop_words: {min: 3}}.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    set: str
    leave_out: tuple[str, ...] = ()
    change: dict[str, dict[str, Any]] = Field(default_factory=dict)


class Set(BaseModel):
    """A file of presets/: about: what it follows, and where its figures come from."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    about: str
    rules: list[dict[str, Any]]


def expand(items: Any) -> Any:
    """`items` with the rules of each set in its place; what is no list is left to whoever checks it."""
    if not isinstance(items, list | tuple):
        return items
    return _tupled(
        [rule for item in items for rule in (_of(item) if isinstance(item, dict) and "set" in item else [item])]
    )


def names() -> list[str]:
    """The sets there are."""
    return sorted(path.stem for path in PRESETS.glob("*.yaml"))


def load(name: str) -> Set:
    """Raises ValueError where there is no such set."""
    if name not in names():
        raise ValueError(f"there is no set {name}; there are {', '.join(names())}")
    return Set.model_validate(yaml.safe_load((PRESETS / f"{name}.yaml").read_text(encoding="utf-8")))


def _of(item: dict[str, Any]) -> list[dict[str, Any]]:
    try:
        use = Use.model_validate_json(json.dumps(item, default=str))
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()]
        raise ValueError(f"set {item['set']}: {'; '.join(faults)}") from None
    rules = load(use.set).rules
    known = [rule["name"] for rule in rules]
    for name in (*use.leave_out, *use.change):
        if name not in known:
            raise ValueError(f"set {use.set} has no rule {name}; it has {', '.join(known)}")
    prefix = use.set.rpartition("-")[0]
    return [
        rule | {"name": f"{prefix}.{rule['name']}"}
        for rule in _narrowed(use, [rule | use.change.get(rule["name"], {}) for rule in rules])
        if rule["name"] not in use.leave_out
    ]


def _narrowed(use: Use, rules: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The rules with the scopes of the use; one that is left with nothing to judge goes."""
    for rule in rules:
        narrowed = dict(rule)
        for scope in SCOPES:
            wanted, own = getattr(use, scope), rule.get(scope)
            if wanted is not None:
                narrowed[scope] = [name for name in (own or wanted) if name in wanted]
        if all(narrowed.get(scope) != [] for scope in SCOPES):
            yield narrowed


def _tupled(value: Any) -> Any:
    """Lists as tuples, which the strict models want of what is no longer JSON."""
    if isinstance(value, dict):
        return {name: _tupled(item) for name, item in value.items()}
    return tuple(map(_tupled, value)) if isinstance(value, list | tuple) else value
