"""decontaminate/verdicts: what is done with the rows that share n-grams with evaluation items.

In: matches and boilerplate, dedup's verdicts, the kinds and the lengths of a part; no text. Out:
DECONTAMINATE_VERDICTS, row-aligned.

*Policy*: `drop` drops a document with a match; `cut` takes the passages out of books, papers and web pages,
and drops chats and code, in which a hole would leave no conversation and no program; `report` keeps
everything, and the matches and the certificate tell. A document that earlier steps dropped is gone.

The verdict names the item that shares most n-grams with the document, of equals the first by set and item.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.artifacts.verdicts import CUT, DECONTAMINATE_VERDICTS, DROP, GONE, KEEP
from tasks.decontaminate.telling import telling_matches
from tasks.step import Counts, Made, Reads

if TYPE_CHECKING:
    from tasks.decontaminate import DecontaminateParams

SCHEMA = DECONTAMINATE_VERDICTS
NEVER_CUT = ("chat", "code")
SAID = (KEEP, DROP, CUT, GONE)


def decide(reads: Reads, params: DecontaminateParams) -> Made:
    """The verdicts of one part.

    Counts: documents_in = documents_kept + documents_dropped; documents_cut of the kept ones lose a passage,
    and characters_kept counts them whole (decontaminate/cuts counts what goes).
    """
    alive = pc.equal(reads.table("dedup/verdicts", ["verdict"]).column("verdict"), KEEP).to_numpy()
    kinds = reads.table("normalize/text", ["kind"]).column("kind")
    characters = reads.table("dedup/sketches", ["characters"]).column("characters").to_numpy()
    best = _most_shared(telling_matches(reads))
    rows = best.column("row").to_numpy()
    acts = params.policy != "report"
    said = np.where(alive, SAID.index(KEEP), SAID.index(GONE)).astype(np.int8)
    named = np.full(len(alive), -1, np.int64)
    if acts:
        mine, places = rows[alive[rows]], np.flatnonzero(alive[rows])
        never_cut = pc.is_in(kinds, value_set=pa.array(NEVER_CUT)).to_numpy()[mine]
        said[mine] = np.where(never_cut | (params.policy == "drop"), SAID.index(DROP), SAID.index(CUT))
        named[mine] = places
    places = pa.array(named, mask=named < 0)
    columns = {"verdict": pa.array(SAID, pa.string()).take(pa.array(said)), "rule": best.column("set").take(places)}
    columns |= {name: best.column(name).take(places) for name in ("item", "grams")}
    table = pa.table(columns, schema=SCHEMA)
    rules = pc.unique(table.column("rule").drop_null()).sort()
    of_rule = {rule: pc.fill_null(pc.equal(table.column("rule"), rule), False).to_numpy() for rule in rules.to_pylist()}
    return Made({".parquet": table}, _counts(said, of_rule, characters))


def _most_shared(matches: pa.Table) -> pa.Table:
    """One line a row with matches, ascending: the item with most n-grams, passages summed."""
    items = matches.group_by(["row", "set", "item"]).aggregate([("grams", "sum")])
    order = [("row", "ascending"), ("grams_sum", "descending"), ("set", "ascending"), ("item", "ascending")]
    items = items.sort_by(order)
    _, firsts = np.unique(items.column("row").to_numpy(), return_index=True)
    best = items.take(pa.array(firsts))
    return pa.table({name: best.column(name) for name in ("row", "set", "item")} | {"grams": best.column("grams_sum")})


def _counts(said: np.ndarray, of_rule: Mapping[str, np.ndarray], characters: np.ndarray) -> Counts:
    """said: places of the rows' verdicts in SAID; of_rule: for each rule, sorted, whether it is the row's."""
    gone, kept, dropped, cut = (said == SAID.index(verdict) for verdict in (GONE, KEEP, DROP, CUT))
    counts: Counts = {"documents_cut": int(cut.sum())}
    for measure, rows in (("in", ~gone), ("kept", kept | cut), ("dropped", dropped)):
        counts[f"documents_{measure}"] = int(rows.sum())
        counts[f"characters_{measure}"] = int(characters[rows].sum())
    for rule, mine in of_rule.items():
        counts[f"dropped|rule={rule}"] = int((mine & dropped).sum())
        counts[f"characters_dropped|rule={rule}"] = int(characters[mine & dropped].sum())
        counts[f"cut|rule={rule}"] = int((mine & cut).sum())
    return counts
