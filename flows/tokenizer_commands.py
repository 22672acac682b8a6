"""The commands `gristmill tokenizer ...`: making one, taking one over, and how well it fits.

In: arguments. Out: an exit status and text, as all of flows.cli.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.asked import ASKED, EVERYWHERE

tokenizer_app = typer.Typer(help="Make a tokenizer: an input of the corpus, made once.", no_args_is_help=True)


@tokenizer_app.command("train", epilog=EVERYWHERE)
def tokenizer_train(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its folder: tokenizers/NAME.")],
) -> None:
    """Train a SentencePiece model on the train split of what decontaminate kept."""
    from flows import actions

    actions.train_tokenizer(ASKED, name)


@tokenizer_app.command("report", epilog=EVERYWHERE)
def tokenizer_report() -> None:
    """How well it fits what stands: bytes a token and unknown ids by source and language, its ids, the worst texts."""
    from flows import actions

    actions.tokenizer_report(ASKED)


@tokenizer_app.command("adopt", epilog=EVERYWHERE)
def tokenizer_adopt(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its folder: tokenizers/NAME.")],
    model: Annotated[Path, typer.Argument(metavar="FILE", help="A SentencePiece .model, a .json or a .tiktoken.")],
    role: Annotated[list[str] | None, typer.Option(help="Its control tokens, as eos=<|endoftext|>.")] = None,
    control: Annotated[
        list[str] | None, typer.Option(help="Of tiktoken: a control token and its id, as <s>=9.")
    ] = None,
    pattern: Annotated[str, typer.Option(help="Of tiktoken: the expression that cuts text into words.")] = "",
) -> None:
    """Take over a tokenizer made elsewhere; its ids are those of its own library."""
    from flows import actions

    actions.adopt_tokenizer(ASKED, name, model, role or [], control or [], pattern)
