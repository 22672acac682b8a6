"""A project: the folder that holds a params.yaml, and where everything of it lies."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from tasks.errors import ParamsError
from tasks.step import Step, StepParams


class _Loader(yaml.SafeLoader):
    """Plain values only; numbers as YAML 1.2 and DVC have them (1e-1 is one tenth and no text), and no key twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for key in (key for key in keys if keys.count(key) > 1):
            raise yaml.constructor.ConstructorError(None, None, f"{key} stands there twice", node.start_mark)
        return super().construct_mapping(node, deep)


_EXPONENT = re.compile(r"[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9_]+)[eE][-+]?[0-9]+$")
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _EXPONENT, list("-+.0123456789"))


@lru_cache(maxsize=4)
def _parsed(text: str) -> Any:
    """What a build asks for thirty times, and PyYAML takes 15 ms for. A fault is raised anew each time."""
    return yaml.load(text, _Loader)  # noqa: S506 a SafeLoader


@dataclass(frozen=True)
class Project:
    """A corpus on disk.

    root: the folder of params.yaml. tree: the folder of its artifacts below root.
    limit, fraction: a small run that takes the first documents of each source only; it wants a tree of its own.
    """

    root: Path
    tree: str = "data"
    limit: int | None = None
    fraction: float | None = None

    def __post_init__(self) -> None:
        if self.small and self.tree == "data":
            raise ParamsError("a small run (limit or fraction) would replace data/", "give it a tree of its own")

    @property
    def small(self) -> bool:
        return self.limit is not None or self.fraction is not None

    @property
    def data(self) -> Path:
        return self.root / self.tree

    @property
    def state(self) -> Path:
        """Locks and stamps: facts about this machine, in no version control."""
        return self.root / ".gristmill"

    @property
    def stamps(self) -> Path:
        return self.state / "stamps" / self.tree

    def artifact(self, step: str) -> Path:
        return self.data / step

    def staging(self, step: str) -> Path:
        return self.data / ".staging" / step

    def suite(self, step: str) -> Path:
        return self.root / "expectations" / f"{step}.json"

    def report(self, step: str) -> Path:
        reports = self.root / "reports" if self.tree == "data" else self.data / "reports"
        return reports / f"{step}.json"

    def recipe(self) -> dict[str, Any]:
        """The whole of params.yaml. Raises ParamsError where it is absent or no mapping of sections."""
        path = self.root / "params.yaml"
        if not path.is_file():
            raise ParamsError(f"{path} is not there", "run in a project's folder, or lay one with: gristmill init DIR")
        try:
            recipe = copy.deepcopy(_parsed(path.read_text(encoding="utf-8")))
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise ParamsError(f"{path} is not YAML: {' '.join(str(error).split())}", "correct that line") from error
        if not isinstance(recipe, dict):
            raise ParamsError(f"{path} holds {type(recipe).__name__}, not sections", "see the template of init")
        return recipe

    def section(self, name: str) -> dict[str, Any]:
        """One section of params.yaml as plain data; raises ParamsError where it is absent."""
        section = self.recipe().get(name)
        if not isinstance(section, dict):
            raise ParamsError(f"params.yaml has no section {name}", f"add `{name}:` as in the template of init")
        return section

    def params(self, step: Step) -> StepParams:
        """The checked section of `step`; raises ParamsError naming each key, its value and what was expected."""
        return checked(step.params, step.name, self.section(step.name))


def checked(model: type[StepParams], name: str, section: dict[str, Any]) -> StepParams:
    """`section` as `model`, as strict as JSON is: a list may stand for a tuple or a set, "3" never for 3."""
    try:
        return model.model_validate_json(json.dumps(section, default=str))
    except ValidationError as error:
        faults = [_fault(name, fault) for fault in error.errors(include_url=False)]
        raise ParamsError("params.yaml: " + "; ".join(faults), "correct it and run again") from None


def _fault(section: str, fault: Any) -> str:
    where = ".".join(str(step) for step in (section, *fault["loc"]))
    if fault["type"] == "extra_forbidden":
        return f"{where} is an unknown key"
    if fault["type"] == "missing":
        return f"{where} is missing"
    return f"{where} is {fault['input']!r}: {fault['msg'][:1].lower()}{fault['msg'][1:]}"
