"""decontaminate/boilerplate: n-grams of evaluation items that half the world writes.

In: the matches of all parts, and which documents dedup kept. Out: BOILERPLATE, one table for the corpus; a
function of the set of documents, not of their order or parts.

*Rule*: an n-gram tells nothing when `boilerplate_documents_min` or more documents hold it without holding an
item that it belongs to; a document holds an item when it shares `leak_share_min` or more of its n-grams, and a
short question when it has the answer too. A licence notice, a proverb or an instruction inside an item is thus
known by the documents that have it for reasons of their own, while an item that leaked into a thousand documents
stays a leak. GPT-3 and the code after it ignore whatever is found more than ten times, leaks too.

Cost: 0.2 s for a million passages, besides reading them; memory for the different n-grams found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.artifacts.verdicts import BOILERPLATE, KEEP
from tasks.step import Made, Reads

if TYPE_CHECKING:
    from tasks.decontaminate import DecontaminateParams

SCHEMA = BOILERPLATE
COLUMNS = ["row", "set", "item", "grams", "item_grams", "rule", "ngrams"]


def count(reads: Reads, params: DecontaminateParams) -> Made:
    """The boilerplate of the whole corpus."""
    found: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for unit in reads.units("decontaminate/matches"):
        matches = reads.table("decontaminate/matches", COLUMNS, unit=unit)
        verdicts = reads.table("dedup/verdicts", ["verdict"], unit=unit).column("verdict")
        matches = matches.filter(pc.equal(verdicts.take(matches.column("row")), KEEP))
        ngrams = _held_in_passing(matches, params.leak_share_min)
        source = unit.split("-")[0]
        before, counts = found.get(source, (np.zeros(0, np.uint64), np.zeros(0, np.int64)))
        found[source] = _summed(np.append(before, ngrams), np.append(counts, np.ones(len(ngrams), np.int64)))
    parts = [found[source] for source in sorted(found)]
    everything = np.concatenate([np.zeros(0, np.uint64), *(ngrams for ngrams, _ in parts)])
    ngrams, documents = _summed(everything, np.concatenate([np.zeros(0, np.int64), *(n for _, n in parts)]))
    _, sources = _summed(everything, np.ones(len(everything), np.int64))
    often = documents >= params.boilerplate_documents_min
    table = pa.table([ngrams[often], documents[often], sources[often]], schema=SCHEMA)
    return Made({".parquet": table}, {"boilerplate_ngrams": table.num_rows})


def _held_in_passing(matches: pa.Table, leak_share_min: float) -> np.ndarray:
    """uint64: each n-gram once for each document that holds it, but no item that it belongs to."""
    sizes = pc.list_value_length(matches.column("ngrams")).to_numpy()
    rows = np.repeat(matches.column("row").to_numpy(), sizes)
    alone = pc.equal(matches.column("rule"), "question").to_numpy()
    shares = np.repeat(np.where(alone, 0.0, _shares(matches)), sizes)
    ngrams = pc.list_flatten(matches.column("ngrams")).to_numpy()
    order = np.lexsort((-shares, rows, ngrams))
    rows, ngrams, shares = rows[order], ngrams[order], shares[order]
    highest = np.ones(len(rows), np.bool_)
    highest[1:] = (ngrams[1:] != ngrams[:-1]) | (rows[1:] != rows[:-1])
    return np.asarray(ngrams[highest & (shares < leak_share_min)], np.uint64)


def _shares(matches: pa.Table) -> np.ndarray:
    """float64: for each passage the share of its item's n-grams that its document holds, passages
    together."""
    names = pc.binary_join_element_wise(matches.column("set"), matches.column("item"), ":")
    codes = names.combine_chunks().dictionary_encode().indices.to_numpy()
    pairs = np.stack([matches.column("row").to_numpy(), codes])
    _, places = np.unique(pairs, axis=1, return_inverse=True)
    shared = np.bincount(places.ravel(), weights=matches.column("grams").to_numpy())
    return np.asarray(shared[places.ravel()] / matches.column("item_grams").to_numpy(), np.float64)


def _summed(ngrams: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(different n-grams ascending, the sum of each one's counts)."""
    different, places = np.unique(ngrams, return_inverse=True)
    sums = np.zeros(len(different), np.int64)
    np.add.at(sums, places, counts)
    return different, sums
