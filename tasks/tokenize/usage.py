"""The folder tokenize/usage: which ids a part uses how often, and how well its documents are spelled.

In: the ids and rows of one part, the languages of its documents. Out: <part>.parquet, see
tasks.artifacts.tokens.USAGE; and <part>.json for tasks.tokenize.report:

{"languages": {"en": {"documents", "tokens", "bytes", "unknown", "unlearnt"}, ...}, "worst": [a document, ...]}
worst: the documents with the fewest bytes a token, of those with TOKENS_MIN tokens or more, each as row, id, language,
tokens, bytes. Counts: documents, tokens, bytes, unknown and documents_unlearnt by language. Kept documents alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tasks.artifacts.canonical import canonical
from tasks.artifacts.tokens import USAGE
from tasks.errors import InvariantError
from tasks.step import Counts, Made, Reads
from tasks.text.tally import tallied

if TYPE_CHECKING:
    from tasks.tokenize import TokenizeParams

SCHEMA = USAGE
TOKENS, SIGNALS, TEXT = "tokenize/tokens", "filter/signals", "normalize/text"
WORST = 20
"""Documents that are named; a report, which shapes no other byte."""

TOKENS_MIN = 32
"""A document of a few ids says nothing: its EOS alone weighs too much."""


def make(reads: Reads, params: TokenizeParams) -> Made:
    """The usage of one part. spec: "vocab_size" and "dtype" of the ids. Raises InvariantError for an id beyond it."""
    flat = reads.array(TOKENS, ".bin", reads.spec["dtype"])
    used, odd = tallied(flat, reads.spec["vocab_size"])
    if used.sum() != len(flat):
        raise InvariantError(
            f"{TOKENS} of {reads.name} holds id {odd}, its tokenizer has {reads.spec['vocab_size']} ids",
            "build tokenize again with --force",
        )
    ids = np.flatnonzero(used)
    rows = reads.table(TOKENS, ["tokens", "bytes", "unknown", "learnt"])
    languages = reads.table(SIGNALS, ["language"])["language"].to_numpy(zero_copy_only=False)
    columns = {name: rows[name].to_numpy() for name in rows.column_names}
    kept = np.flatnonzero(columns["tokens"])
    by_language = _by_language(columns, languages, kept)
    worst = _worst(columns, kept)
    names = reads.table(TEXT, ["id"])["id"].take(pa.array(worst)).to_pylist()
    named = [
        {
            "row": row,
            "id": name,
            "language": languages[row],
            **{key: int(columns[key][row]) for key in ("tokens", "bytes")},
        }
        for row, name in zip(worst.tolist(), names, strict=True)
    ]
    files = {
        ".parquet": pa.table({"token": ids, "count": used[ids]}, schema=USAGE),
        ".json": canonical({"languages": by_language, "worst": named}),
    }
    return Made(files, _counts(by_language))


def fewest_bytes(document: dict[str, Any]) -> tuple[float, int]:
    """What the worst documents are sorted by: bytes a token, then the longer first."""
    return document["bytes"] / document["tokens"], -document["tokens"]


def _by_language(columns: dict[str, Any], languages: Any, kept: Any) -> dict[str, dict[str, int]]:
    measures = {"documents": np.ones(len(languages), np.int64)} | {
        name: columns[name] for name in ("tokens", "bytes", "unknown")
    }
    measures["unlearnt"] = columns["learnt"] == 0
    names, which = np.unique(languages[kept].astype(str), return_inverse=True)
    found = {
        measure: np.bincount(which, weights=values[kept], minlength=len(names)) for measure, values in measures.items()
    }
    return {
        str(name): {measure: int(sums[number]) for measure, sums in found.items()} for number, name in enumerate(names)
    }


def _worst(columns: dict[str, Any], kept: Any) -> Any:
    long = kept[columns["tokens"][kept] >= TOKENS_MIN]
    order = np.lexsort((long, -columns["tokens"][long], columns["bytes"][long] / columns["tokens"][long]))
    return long[order[:WORST]]


def _counts(by_language: dict[str, dict[str, int]]) -> Counts:
    return {
        f"{'documents_unlearnt' if measure == 'unlearnt' else measure}|language={name}": count
        for name, counts in by_language.items()
        for measure, count in counts.items()
    }
