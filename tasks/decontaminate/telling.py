"""Matches that tell something: those whose n-grams are not all boilerplate, short questions without answer aside.

In: matches of a part and the corpus's boilerplate. Out: such passages, `grams` counting the n-grams that
tell. It decides nothing about documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

COLUMNS = ["row", "set", "item", "start", "stop", "answer", "answer_start", "answer_stop"]


class Tables(Protocol):
    """Reads or Artifact, as far as this module needs them."""

    def table(self, folder: str, columns: Sequence[str] | None = None, unit: str | None = None) -> pa.Table:
        """A unit's table."""


def telling_matches(reads: Tables, unit: str | None = None) -> pa.Table:
    """The matches of a part that tell something: COLUMNS and grams."""
    matches = reads.table("decontaminate/matches", [*COLUMNS, "rule", "ngrams"], unit=unit)
    matches = matches.filter(pc.not_equal(matches.column("rule"), "question"))
    boilerplate = reads.table("decontaminate/boilerplate", ["ngram"], unit="boilerplate").column("ngram")
    sizes = pc.list_value_length(matches.column("ngrams")).to_numpy()
    of_match = np.repeat(np.arange(matches.num_rows), sizes)
    tells = ~np.isin(pc.list_flatten(matches.column("ngrams")).to_numpy(), boilerplate.to_numpy())
    grams = np.bincount(of_match[tells], minlength=matches.num_rows)
    matches = matches.select(COLUMNS).append_column("grams", pa.array(grams))
    return matches.filter(pa.array(grams > 0))


def with_answers(matches: pa.Table) -> pa.Table:
    """row, set, item, start and stop of the passages, and of the short answers beside them, each once."""
    names = ["row", "set", "item", "start", "stop"]
    passages = matches.select(names)
    answered = matches.filter(pc.is_valid(matches.column("answer")))
    answers = answered.select(["row", "set", "answer", "answer_start", "answer_stop"]).rename_columns(names)
    return pa.concat_tables([passages, answers.group_by(names).aggregate([]).cast(passages.schema)])
