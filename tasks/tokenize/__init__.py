"""The step tokenize: from texts, verdicts and cuts to ids. This module wires; the work is in
tasks.tokenize.tokens.

In: normalize, the verdicts and cuts of filter, dedup and decontaminate, and tokenizers/<name>. Out:
data/tokenize/.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import pyarrow as pa
from pydantic import model_validator

from tasks.step import Artifact, Counts, Folder, Step, StepParams, names, runs, shapes
from tasks.survivors import CUTS, VERDICTS
from tasks.tokenize.planning import plan_report, plan_tokenizer, plan_tokens, plan_usage
from tasks.tokenizer_training import Recipe


class ChatParams(StepParams):
    """How chats become ids, and what of them is learnt."""

    template: str = shapes(pattern=r"^(plain|chatml|llama3|.+\.jinja2?)$")  # plain: contents joined by a blank line
    loss: Literal["assistant", "all"] = shapes()  # whose messages the model learns

    @model_validator(mode="after")
    def _told_apart(self) -> ChatParams:
        if self.template == "plain" and self.loss != "all":
            raise ValueError(
                f"chat.loss is {self.loss!r}, but the template plain does not tell turns apart; take chatml, llama3,"
                f" a file in Jinja, or loss all"
            )
        return self


class TokenizeParams(StepParams):
    """Section tokenize of params.yaml."""

    tokenizer: str = names(pattern=r"^[a-z0-9][a-z0-9._-]*$")  # tokenizers/<name>; the ids depend on its digest only
    # Where BOS stands: nowhere, before each document, or, which is pack's affair, where a sequence or a stream begins.
    bos: Literal["none", "first", "document", "sequence"] = shapes()
    min_characters: int = shapes(ge=1)  # a document that cuts leave with fewer is dropped as cut_short
    chat: ChatParams = shapes()
    train: Recipe = runs()  # for `gristmill tokenizer train`; an existing tokenizer is never made again


def invariants(artifact: Artifact) -> Iterator[str]:
    """Characters and tokens are all accounted for, and every kept document ends with the only EOS it has."""
    for unit, counts in artifact.counts("tokenize/tokens").items():
        table = artifact.table("tokenize/tokens", ["tokens", "reason"], unit)
        yield from _breaches(unit, counts, table, artifact.params.bos)


def rows(artifact: Artifact, unit: str) -> pa.Table:
    """One row a document: part, row, source, and the columns of TOKEN_ROWS but its digests."""
    table = artifact.table("tokenize/tokens", None, unit).drop_columns(["text_sha", "row_key"])
    size = table.num_rows
    source = unit.split("-")[0]
    place = {"part": [unit] * size, "row": range(size), "source": [source] * size}
    for name in reversed(place):
        table = table.add_column(0, name, pa.array(place[name]))
    return table


def _breaches(unit: str, counts: Counts, table: pa.Table, bos: str) -> Iterator[str]:
    characters = sum(counts[f"characters_{fate}"] for fate in ("kept", "cut", "dropped"))
    if counts["characters_in"] != characters:
        yield f"{unit}: {counts['characters_in']} characters in, but {characters} kept, cut or dropped"
    tokens = table["tokens"].to_numpy()
    if counts["tokens"] != tokens.sum():
        yield f"{unit}: {counts['tokens']} ids lie in the flat file, its rows name {tokens.sum()}"
    if counts["ends"] != counts["documents_kept"]:
        yield f"{unit}: {counts['documents_kept']} documents kept, but {counts['ends']} ids are EOS"
    if counts["begins"] != counts["documents_kept"] * (bos == "document"):
        yield f"{unit}: {counts['documents_kept']} documents kept and bos is {bos}, but {counts['begins']} ids are BOS"
    kept = table["reason"].is_null().to_numpy()
    if ((tokens > 0) != kept).any():
        yield f"{unit}: a kept document has no token, or a dropped one has some"
    yield from _unbalanced(unit, counts)


def _unbalanced(unit: str, counts: Mapping[str, int]) -> Iterator[str]:
    for measure, total in (("dropped", "documents_dropped"), ("characters_dropped", "characters_dropped")):
        by_rule = sum(count for key, count in counts.items() if key.startswith(f"{measure}|rule="))
        if by_rule != counts[total]:
            yield f"{unit}: {total} is {counts[total]}, by rule it is {by_rule}"


STEP = Step(
    name="tokenize",
    params=TokenizeParams,
    folders=(
        Folder(
            "tokens",
            "tasks.tokenize.tokens:make",
            reads=("normalize/text", *VERDICTS, *CUTS),
            shapes=("min_characters", "chat"),
            versions=("sentencepiece",),
            plan=plan_tokens,
        ),
        Folder(
            "usage",
            "tasks.tokenize.usage:make",
            reads=("tokenize/tokens", "filter/signals", "normalize/text"),
            plan=plan_usage,
        ),
        Folder(
            "report",
            "tasks.tokenize.report:make",
            reads=("tokenize/usage",),
            plan=plan_report,
            place="{folder}",
        ),
        Folder(
            "tokenizer",
            "tasks.tokenize.tokenizer:make",
            shapes=("bos",),
            versions=("sentencepiece",),
            plan=plan_tokenizer,
            place="{folder}",
        ),
    ),
    inputs=("normalize", "filter", "dedup", "decontaminate"),
    rows=rows,
    rows_of="tokenize/tokens",
    invariants=invariants,
    outside=("tokenizers",),
)
