"""Matches that tell something: those whose n-grams are not all boilerplate.

In: matches of a part and the corpus's boilerplate. Out: such passages, `grams` counting the n-grams that
tell. It decides nothing about documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


class Tables(Protocol):
    """Reads or Artifact, as far as this module needs them."""

    def table(self, folder: str, columns: Sequence[str] | None = None, unit: str | None = None) -> pa.Table:
        """A unit's table."""


def telling_matches(reads: Tables, unit: str | None = None) -> pa.Table:
    """The matches of a part that tell something: row, set, item, start, stop and grams."""
    matches = reads.table("decontaminate/matches", ["row", "set", "item", "start", "stop", "ngrams"], unit=unit)
    boilerplate = reads.table("decontaminate/boilerplate", ["ngram"], unit="boilerplate").column("ngram")
    sizes = pc.list_value_length(matches.column("ngrams")).to_numpy()
    of_match = np.repeat(np.arange(matches.num_rows), sizes)
    tells = ~np.isin(pc.list_flatten(matches.column("ngrams")).to_numpy(), boilerplate.to_numpy())
    grams = np.bincount(of_match[tells], minlength=matches.num_rows)
    matches = matches.drop_columns("ngrams").append_column("grams", pa.array(grams))
    return matches.filter(pa.array(grams > 0))
