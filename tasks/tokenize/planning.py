"""Units of tokenize: each part with the tokenizer that the recipe names.

In: the parts and tokenizers/<name>. Out: units of work, whose specification holds all that ids depend on but text.
"""

from __future__ import annotations

from dataclasses import replace

from tasks.engines import ENGINES
from tasks.step import Folder, Plan, Unit, each_part
from tasks.tokenize.tokenizer import facts
from tasks.tokenizers import FOLDER, load


def plan_tokens(plan: Plan, folder: Folder) -> list[Unit]:
    """A unit for each part; all depend on the tokenizer's digest, and on what it does to a fixed text."""
    home = plan.root / FOLDER / plan.params.tokenizer
    spec = {"tokenizer": facts(load(home))}
    files = {"tokenizer": str(home / ENGINES[spec["tokenizer"]["engine"]][0])}
    return [replace(unit, spec=spec, files=files) for unit in each_part(plan, folder)]


def plan_tokenizer(plan: Plan, folder: Folder) -> list[Unit]:
    """The single unit of tokenizer.json."""
    return [Unit(folder.name, spec={"tokenizer": facts(load(plan.root / FOLDER / plan.params.tokenizer))})]
