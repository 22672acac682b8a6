"""The folder pack/pieces: which ids of which rows make up a group's stream, in order.

In: the rows and splits of the group's parts. Out: a piece for each kept document of the group's split; with the
strategies best_fit and document, for each run of a document that fits a sequence, in the order of the sequences; and
where each sequence begins with BOS, of concat too, cut where sequences end. It copies no id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.artifacts.tokens import FIRST, PIECES, SEQUENCE
from tasks.errors import InvariantError
from tasks.pack.best_fit import best_fit
from tasks.step import Made, Reads

if TYPE_CHECKING:
    from tasks.pack import PackParams

SCHEMA = PIECES
TOKENS, SPLITS = "tokenize/tokens", "pack/splits"
LONG, SHORT = "long", "short"
"""Why ids of a document are left out: it is longer than a sequence, or a single id, which has no target."""


Flags = np.ndarray[Any, np.dtype[np.bool_]]


class Cut(NamedTuple):
    """Pieces of documents: which [n], their ids [starts, stops) of the part, whether one closes its document."""

    which: np.ndarray[Any, Any]
    starts: np.ndarray[Any, Any]
    stops: np.ndarray[Any, Any]
    closes: Flags


def make(reads: Reads, params: PackParams) -> Made:
    """The pieces of the group. spec: {"domain", "split", "parts": its parts in order}, "bos" where pack puts it, and
    "strategy" and "tokens_per_sequence" where sequences are whole pieces.

    Counts: tokens_in (of the documents) = tokens_stream (of the pieces) - tokens_repeated (the id that neighbouring
    pieces of one document share) - tokens_added (BOS) + tokens_dropped by reason.
    """
    parts: Sequence[str] = reads.spec["parts"]
    whole = pa.concat_tables([_documents(reads, part) for part in parts])
    counts = Counter({"documents_in": whole.num_rows, "parts": len(parts), "tokens_in": _tokens(whole)})
    table = whole
    if "strategy" in reads.spec:
        limit = reads.spec["tokens_per_sequence"] + (reads.spec.get("bos") != SEQUENCE)
        names = whole["part"].combine_chunks().dictionary_encode()
        if reads.spec["strategy"] == "concat":
            cut, opens = _blocks(whole, limit)
        else:
            cut = _cut(whole, limit, _policies(names, params), counts)
            cut, opens = _ordered(cut, limit, reads.spec["strategy"], params.seed)
        table = _table(whole["row"], names, cut, opens)
    table, added = _with_bos(table, reads.spec.get("bos"))
    _add(counts, "tokens_added", added)
    counts["tokens_stream"] = _tokens(table) + int(added.sum())
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
    none = np.zeros(len(rows), bool)
    flags = {"opens": none, "closes": ~none, "bos": none}
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


def _blocks(whole: pa.Table, room: int) -> tuple[Cut, Flags]:
    """The stream of all documents in runs of `room` ids, cut where documents end too, and which pieces begin a run."""
    starts, stops = (whole[name].to_numpy() for name in ("start", "stop"))
    ends = np.cumsum(stops - starts)
    cuts = np.union1d(ends, np.arange(room, ends[-1] if len(ends) else 0, room))
    begins = np.concatenate([np.zeros(1, np.int64), cuts])[:-1]
    which = np.searchsorted(ends, begins, "right")
    moved = (stops - ends)[which]
    return Cut(which, begins + moved, cuts + moved, cuts == ends[which]), begins % room == 0


def _ordered(cut: Cut, limit: int, strategy: str, seed: int) -> tuple[Cut, Flags]:
    """The pieces as the sequences hold them one after another, and which is the first of a sequence."""
    order = bins = np.arange(len(cut.which))
    if strategy == "best_fit":
        order, bins = best_fit(cut.stops - cut.starts, limit, seed)
    return Cut(*(column[order] for column in cut)), np.diff(bins, prepend=-1) != 0


def _table(rows: pa.ChunkedArray, parts: pa.DictionaryArray, cut: Cut, opens: Flags) -> pa.Table:
    """rows, parts: of the documents."""
    taken = pa.array(cut.which)
    columns = {
        "part": parts.take(taken).cast(pa.string()),
        "row": rows.take(taken),
        "start": cut.starts,
        "stop": cut.stops,
        "opens": opens,
        "closes": cut.closes,
        "bos": np.zeros(len(opens), bool),
    }
    return pa.table(columns, schema=PIECES)


def _with_bos(table: pa.Table, where: str | None) -> tuple[pa.Table, Flags]:
    """The pieces, and before which of them a BOS stands: the first of all, or those that begin a sequence."""
    begins = table["opens"].to_numpy() if where == SEQUENCE else np.zeros(table.num_rows, bool)
    if where == FIRST:
        begins[:1] = True
    return table.set_column(PIECES.get_field_index("bos"), PIECES.field("bos"), pa.array(begins)), begins


def _tokens(pieces: pa.Table) -> int:
    return int(np.sum(pieces["stop"].to_numpy() - pieces["start"].to_numpy()))


def _add(counts: Counter[str], measure: str, values: np.ndarray[Any, Any]) -> None:
    total = int(values.sum())
    if total:
        counts[measure] += total
