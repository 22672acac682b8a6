"""The folder pack/pieces: which ids of which rows make up a group's stream, in order.

In: the rows and splits of the group's parts. Out: a piece for each kept document of the group's split; with the
strategies best_fit and document, for each run of a document that fits a sequence, in the order of the sequences. It
copies no id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.artifacts.tokens import PIECES
from tasks.errors import InvariantError
from tasks.pack.best_fit import best_fit
from tasks.step import Made, Reads

if TYPE_CHECKING:
    from tasks.pack import PackParams

SCHEMA = PIECES
TOKENS, SPLITS = "tokenize/tokens", "pack/splits"
LONG, SHORT = "long", "short"
"""Why ids of a document are left out: it is longer than a sequence, or a single id, which has no target."""


class Cut(NamedTuple):
    """Pieces of documents: which [n], their ids [starts, stops) of the part, whether one closes its document."""

    which: np.ndarray[Any, Any]
    starts: np.ndarray[Any, Any]
    stops: np.ndarray[Any, Any]
    closes: np.ndarray[Any, Any]


def make(reads: Reads, params: PackParams) -> Made:
    """The pieces of the group. spec: {"domain", "split", "parts": its parts in order}, and "strategy" and
    "tokens_per_sequence" where sequences are whole pieces.

    Counts: tokens_in (of the documents) = tokens_stream (of the pieces) - tokens_repeated (the id that neighbouring
    pieces of one document share) + tokens_dropped by reason.
    """
    parts: Sequence[str] = reads.spec["parts"]
    whole = pa.concat_tables([_documents(reads, part) for part in parts])
    counts = Counter({"documents_in": whole.num_rows, "parts": len(parts), "tokens_in": _tokens(whole)})
    table = whole
    if "strategy" in reads.spec:
        limit = reads.spec["tokens_per_sequence"] + 1
        names = whole["part"].combine_chunks().dictionary_encode()
        cut = _cut(whole, limit, _policies(names, params), counts)
        table = _ordered(whole["row"], names, cut, limit, reads.spec["strategy"], params.seed)
    counts["tokens_stream"] = _tokens(table)
    return Made({".parquet": table}, dict(counts))


def _documents(reads: Reads, part: str) -> pa.Table:
    tokens = reads.table(TOKENS, ["tokens"], part)["tokens"].to_numpy()
    places = reads.table(SPLITS, ["split", "domain"], part)
    if len(tokens) != places.num_rows:
        raise InvariantError(
            f"{part} has {len(tokens)} rows in {TOKENS}, {places.num_rows} in {SPLITS}",
            "build pack again with --force",
        )
    stops = np.cumsum(tokens)
    mine = [pc.equal(places[name], reads.spec[name]).to_numpy() for name in ("split", "domain")]
    rows = np.flatnonzero(mine[0] & mine[1] & (tokens > 0))
    columns = {"part": pa.repeat(part, len(rows)), "row": rows, "start": (stops - tokens)[rows], "stop": stops[rows]}
    flags = {"opens": np.zeros(len(rows), bool), "closes": np.ones(len(rows), bool)}
    return pa.table(columns | flags, schema=PIECES)


def _policies(parts: pa.DictionaryArray, params: PackParams) -> np.ndarray[Any, Any]:
    """What becomes of each document if it is too long, by its source: words [n]."""
    words = [params.long_of.get(part.split("-")[0], params.long) for part in parts.dictionary.to_pylist()]
    policies: np.ndarray[Any, Any] = np.array(words)[parts.indices.to_numpy()]
    return policies


def _cut(whole: pa.Table, limit: int, policies: np.ndarray[Any, Any], counts: Counter[str]) -> Cut:
    """Pieces of 2 to `limit` ids. policies [n], for longer documents: split (neighbours share one id, so no target is
    lost), cut (the beginning stays) or leave_out. Adds to counts what is repeated or dropped."""
    starts, stops = (whole[name].to_numpy() for name in ("start", "stop"))
    sizes = stops - starts
    pieces = np.maximum(1, -(-(sizes - 1) // (limit - 1)))
    long = pieces > 1
    for policy, stays, measure in (("cut", 1, "documents_cut"), ("leave_out", 0, "documents_dropped|reason=" + LONG)):
        chosen = long & (policies == policy)
        pieces[chosen] = stays
        _add(counts, "tokens_dropped|reason=" + LONG, sizes[chosen] - limit * stays)
        _add(counts, measure, chosen)
    pieces[sizes < 2] = 0
    _add(counts, "tokens_dropped|reason=" + SHORT, sizes[sizes < 2])
    which = np.repeat(np.arange(len(sizes)), pieces)
    number = np.arange(len(which)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    begins = starts[which] + number * (limit - 1)
    ends = np.minimum(begins + limit, stops[which])
    _add(counts, "tokens_repeated", number > 0)
    return Cut(which, begins, ends, ends == stops[which])


def _ordered(
    rows: pa.ChunkedArray, parts: pa.DictionaryArray, cut: Cut, limit: int, strategy: str, seed: int
) -> pa.Table:
    """The pieces as the sequences hold them one after another; `opens` marks the first of each sequence. rows and
    parts: of the documents."""
    order = bins = np.arange(len(cut.which))
    if strategy == "best_fit":
        order, bins = best_fit(cut.stops - cut.starts, limit, seed)
    taken = pa.array(cut.which[order])
    columns = {
        "part": parts.take(taken).cast(pa.string()),
        "row": rows.take(taken),
        "start": cut.starts[order],
        "stop": cut.stops[order],
        "opens": np.diff(bins, prepend=-1) != 0,
        "closes": cut.closes[order],
    }
    return pa.table(columns, schema=PIECES)


def _tokens(pieces: pa.Table) -> int:
    return int(np.sum(pieces["stop"].to_numpy() - pieces["start"].to_numpy()))


def _add(counts: Counter[str], measure: str, values: np.ndarray[Any, Any]) -> None:
    total = int(values.sum())
    if total:
        counts[measure] += total
