"""Making a tokenizer for a project: an input of the corpus, made once and then pinned by its digest.

In: what decontaminate kept of the train split. Out: tokenizers/<name>/ with its card. It is never made again
by itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flows.scope import steps_until
from tasks.locks import build_lock
from tasks.pipeline import STEPS
from tasks.project import Project
from tasks.staged import Staged
from tasks.tokenizers import train, training_texts


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
