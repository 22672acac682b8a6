"""decontaminate/verdicts: what is done with the rows that share n-grams with evaluation items.

In: matches and boilerplate, dedup's verdicts, the kinds and the lengths of a part; no text. Out:
DECONTAMINATE_VERDICTS, row-aligned.

*Policy*: `drop` drops a document with a match; `cut` takes the passages out of books, papers and web pages,
and drops chats and code, in which a hole would leave no conversation and no program; `report` keeps
everything, and the matches and the certificate tell. A document that earlier steps dropped is gone.

The verdict names the item that shares most n-grams with the document, of equals the first by set and item.
"""

from __future__ import annotations

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
    verdicts = np.where(alive, KEEP, GONE).astype(object)
    never_cut = pc.is_in(kinds, value_set=pa.array(NEVER_CUT)).to_numpy()
    if acts:
        drops = never_cut[rows] | (params.policy == "drop")
        verdicts[rows] = np.where(alive[rows], np.where(drops, DROP, CUT), GONE)
    named = np.full(len(alive), -1, np.int64)
    named[rows] = np.where(alive[rows] & acts, np.arange(len(rows)), -1)
    places = pa.array(named, mask=named < 0)
    columns = {"verdict": pa.array(verdicts, pa.string()), "rule": best.column("set").take(places)}
    columns |= {name: best.column(name).take(places) for name in ("item", "grams")}
    table = pa.table(columns, schema=SCHEMA)
    return Made({".parquet": table}, _counts(verdicts, np.array(table.column("rule").to_pylist(), object), characters))


def _most_shared(matches: pa.Table) -> pa.Table:
    """One line a row with matches, ascending: the item with most n-grams, passages summed."""
    items = matches.group_by(["row", "set", "item"]).aggregate([("grams", "sum")])
    order = [("row", "ascending"), ("grams_sum", "descending"), ("set", "ascending"), ("item", "ascending")]
    items = items.sort_by(order)
    _, firsts = np.unique(items.column("row").to_numpy(), return_index=True)
    best = items.take(pa.array(firsts))
    return pa.table({name: best.column(name) for name in ("row", "set", "item")} | {"grams": best.column("grams_sum")})


def _counts(verdicts: np.ndarray, rules: np.ndarray, characters: np.ndarray) -> Counts:
    counts: Counts = {"documents_cut": int((verdicts == CUT).sum())}
    chosen = {
        "in": verdicts != GONE,
        "kept": (verdicts == KEEP) | (verdicts == CUT),
        "dropped": verdicts == DROP,
    }
    for measure, rows in chosen.items():
        counts[f"documents_{measure}"] = int(rows.sum())
        counts[f"characters_{measure}"] = int(characters[rows].sum())
    for rule in sorted({str(rule) for rule in rules if rule is not None}):
        dropped = (rules == rule) & (verdicts == DROP)
        counts[f"dropped|rule={rule}"] = int(dropped.sum())
        counts[f"characters_dropped|rule={rule}"] = int(characters[dropped].sum())
        counts[f"cut|rule={rule}"] = int(((rules == rule) & (verdicts == CUT)).sum())
    return counts
