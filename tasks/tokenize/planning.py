"""Units of tokenize: each part with the tokenizer and the chat template that the recipe names.

In: the parts, tokenizers/<name>, a template's file. Out: units of work, whose specification holds all that ids depend
on but text: "tokenizer" (tasks.tokenize.tokenizer.facts), "template" (a name or a source in Jinja), "jinja2" (its
version, where it is asked), "bos_each" (whether every document begins with BOS).
"""

from __future__ import annotations

from dataclasses import replace
from importlib import metadata
from typing import Any

from tasks.encoder import Tokenizer
from tasks.engines import ENGINES
from tasks.errors import ParamsError, TokenizerError
from tasks.step import Folder, Plan, Unit, each_part, the_whole
from tasks.tokenize.chats import PLAIN, TEMPLATES
from tasks.tokenize.tokenizer import facts
from tasks.tokenizers import FOLDER, load


def plan_tokens(plan: Plan, folder: Folder) -> list[Unit]:
    """A unit for each part; all depend on the tokenizer's digest, and on what it does to a fixed text."""
    home = plan.root / FOLDER / plan.params.tokenizer
    tokenizer = load(home)
    spec = {"tokenizer": facts(tokenizer)} | _form(plan) | {"bos_each": _bos(plan, tokenizer) == "document"}
    files = {"tokenizer": str(home / ENGINES[spec["tokenizer"]["engine"]][0])}
    return [replace(unit, spec=spec, files=files) for unit in each_part(plan, folder)]


def plan_usage(plan: Plan, folder: Folder) -> list[Unit]:
    """A unit for each part; of the tokenizer only what the file of ids looks like."""
    known = facts(load(plan.root / FOLDER / plan.params.tokenizer))
    spec = {name: known[name] for name in ("vocab_size", "dtype")}
    return [replace(unit, spec=spec) for unit in each_part(plan, folder)]


def plan_report(plan: Plan, folder: Folder) -> list[Unit]:
    """The single unit of report.json, which reads every part's usage and the tokenizer's pieces."""
    home = plan.root / FOLDER / plan.params.tokenizer
    spec = {"tokenizer": facts(load(home))}
    files = {"tokenizer": str(home / ENGINES[spec["tokenizer"]["engine"]][0])}
    return [replace(unit, spec=spec, files=files) for unit in the_whole(plan, folder)]


def plan_tokenizer(plan: Plan, folder: Folder) -> list[Unit]:
    """The single unit of tokenizer.json."""
    tokenizer = load(plan.root / FOLDER / plan.params.tokenizer)
    return [Unit(folder.name, spec={"tokenizer": facts(tokenizer), "bos": _bos(plan, tokenizer)})]


def _bos(plan: Plan, tokenizer: Tokenizer) -> str:
    """Where BOS goes; raises TokenizerError where the tokenizer has none."""
    where: str = plan.params.bos
    if where != "none" and tokenizer.bos_id < 0:
        raise TokenizerError(
            f"tokenize.bos is {where}, but tokenizer {tokenizer.name} has no BOS; its EOS is {tokenizer.eos_id}",
            "set tokenize.bos to none, or name its BOS: gristmill tokenizer adopt ... --role bos=NAME",
        )
    return where


def _form(plan: Plan) -> dict[str, Any]:
    """The template by name, or its source with the version of Jinja that writes it."""
    name: str = plan.params.chat.template
    if name == PLAIN or name in TEMPLATES:
        return {"template": name}
    path = plan.root / name
    try:
        source = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ParamsError(
            f"tokenize.chat.template {name} cannot be read: {error}",
            f"name a file in Jinja beside params.yaml, or one of {PLAIN}, {', '.join(TEMPLATES)}",
        ) from None
    return {"template": source, "jinja2": metadata.version("jinja2")}
