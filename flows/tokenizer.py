"""Making a tokenizer for a project: an input of the corpus, made once and then pinned by its digest.

In: what decontaminate kept of the train split. Out: tokenizers/<name>/ with its card. It is never made again
by itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flows.scope import steps_until
from tasks.errors import ParamsError
from tasks.locks import build_lock
from tasks.pipeline import STEPS
from tasks.project import Project
from tasks.staged import Staged
from tasks.tokenizer_sample import training_texts
from tasks.tokenizers import adopt, train


def train_tokenizer(root: Path, name: str) -> dict[str, Any]:
    """Train by the recipe tokenize.train of params.yaml; the tokenizer's card. Raises GristmillError.

    The split is pack's, so that validation and test stay unseen.
    """
    project = Project(root.resolve())
    recipe: Any = project.params(STEPS["tokenize"])
    pack: Any = project.params(STEPS["pack"])
    with build_lock(project.state, wait=True):
        corpus = Staged.of_steps(project, steps_until("decontaminate"))
        texts = training_texts(
            corpus, recipe.train.sample_bytes, pack.split_seed, pack.validation_share, pack.test_share
        )
        return train(name, texts, recipe.train, project.root)


def adopt_tokenizer(
    root: Path, name: str, model: Path, roles: list[str], control: list[str], pattern: str
) -> dict[str, Any]:
    """Lay tokenizers/<name> from a model made elsewhere; its card. The library is told by the file's name.

    roles: "eos=<|endoftext|>"; control: "<|endoftext|>=50256", for tiktoken, as is pattern. Raises GristmillError.
    """
    engine = {".json": "tokenizers", ".tiktoken": "tiktoken"}.get(model.suffix, "sentencepiece")
    options: dict[str, Any] = {} if engine == "sentencepiece" else {"roles": dict(map(_pair, roles))}
    if engine == "tiktoken":
        pairs = map(_pair, control)
        options |= {"pattern": pattern, "control": {piece: _number(piece, number) for piece, number in pairs}}
    return adopt(name, model, root.resolve(), engine, options)


def _pair(said: str) -> tuple[str, str]:
    key, _, value = said.rpartition("=") if said.rpartition("=")[2].isdigit() else said.partition("=")
    if not key or not value:
        raise ParamsError(f"{said!r} names nothing", "write it as eos=<|endoftext|>, or <|endoftext|>=50256")
    return key, value


def _number(piece: str, number: str) -> int:
    if not number.isdigit():
        raise ParamsError(f"{piece} has id {number!r}", "an id is a number of 0 or more")
    return int(number)
