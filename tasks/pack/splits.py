"""The folder pack/splits: for each row of a part its split, and the domain that it is weighed in.

In: the rows of tokenize, their kinds and languages. Out: one row a row, dropped rows too. It moves no token.

A domain (what mixture weights are given to: Xie et al. 2023, "DoReMi") is the first of pack.domains that selects the
row by source, kind and language; a row that none selects belongs to the domain named as its source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.artifacts.tokens import SPLITS
from tasks.errors import InvariantError
from tasks.step import Counts, Made, Reads
from tasks.text.split import splits

if TYPE_CHECKING:
    from tasks.pack import DomainParams, PackParams

SCHEMA = SPLITS
TOKENS, TEXT, SIGNALS = "tokenize/tokens", "normalize/text", "filter/signals"


def make(reads: Reads, params: PackParams) -> Made:
    """Split, domain, kind and language of every row, and the documents and tokens that each split and domain keeps."""
    rows = reads.table(TOKENS, ["text_sha", "tokens"])
    kinds, languages = reads.table(TEXT, ["kind"])["kind"], reads.table(SIGNALS, ["language"])["language"]
    if not rows.num_rows == len(kinds) == len(languages):
        raise InvariantError(
            f"{reads.name} has {rows.num_rows} rows in {TOKENS}, {len(kinds)} in {TEXT}, {len(languages)} in {SIGNALS}",
            "build tokenize again with --force",
        )
    names = splits(rows["text_sha"], params.split_seed, params.validation_share, params.test_share)
    domains = domains_of(reads.name.split("-")[0], kinds, languages, params.domains)
    table = pa.table({"split": names, "domain": domains, "kind": kinds, "language": languages}, schema=SPLITS)
    return Made({".parquet": table}, _counts(table.append_column("tokens", rows["tokens"])))


def domains_of(
    source: str, kinds: pa.ChunkedArray, languages: pa.ChunkedArray, domains: tuple[DomainParams, ...]
) -> pa.Array:
    """The domain of each row of a part of `source`: the first of `domains` that selects it, else `source`."""
    found = pa.repeat(source, len(kinds))
    for domain in reversed(domains):
        if domain.sources and source not in domain.sources:
            continue
        chosen = np.ones(len(kinds), bool)
        for column, wanted in ((kinds, domain.kinds), (languages, domain.languages)):
            if wanted:
                chosen &= pc.is_in(column, pa.array(wanted, pa.string())).to_numpy()
        found = pc.if_else(pa.array(chosen), domain.name, found)
    return found


def _counts(table: pa.Table) -> Counts:
    """Documents with tokens, and their tokens: by domain (it is the mixture's source), by split, and by both."""
    kept = table.filter(pc.greater(table["tokens"], 0))
    sums = kept.group_by(["domain", "split"]).aggregate([("tokens", "sum"), ("tokens", "count")])
    counts: Counts = {}
    for row in sums.sort_by([("domain", "ascending"), ("split", "ascending")]).to_pylist():
        members = {"source": row["domain"], "split": row["split"], "stream": f"{row['domain']}/{row['split']}"}
        for dimension, member in members.items():
            for measure, number in (("documents", row["tokens_count"]), ("tokens", row["tokens_sum"])):
                key = f"{measure}|{dimension}={member}"
                counts[key] = counts.get(key, 0) + number
    return counts
