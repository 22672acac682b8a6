"""Named recipes of `gristmill init`: recipes/<name>.yaml, each what it changes in the repository's params.yaml.

In: a name. Out: values and rules to write into a new params.yaml, which then holds every number itself: what a recipe
says later changes no corpus that was laid. A recipe: `about` for people; `values`, section.key -> what stands there;
`rules`, the text of filter.rules with its comments.
"""

from __future__ import annotations

from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict

from tasks.errors import ParamsError

RECIPES = Path(__file__).parent / "recipes"


class Preset(BaseModel):
    """A file of recipes/. values: "section.key" -> a plain value; rules: lines of YAML, a list."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    about: str
    values: dict[str, int | float | str]
    rules: str

    @property
    def keys(self) -> set[tuple[str, str]]:
        """(section, key) of its values."""
        return {(name.partition(".")[0], name.partition(".")[2]) for name in self.values}


def preset_names() -> list[str]:
    """The recipes that there are."""
    return sorted(path.stem for path in RECIPES.glob("*.yaml"))


def load_preset(name: str) -> Preset:
    """Raises ParamsError where there is no such recipe."""
    if name not in preset_names():
        raise ParamsError(f"there is no recipe {name}", f"there are {', '.join(preset_names())}")
    return Preset.model_validate(yaml.safe_load((RECIPES / f"{name}.yaml").read_text(encoding="utf-8")))
