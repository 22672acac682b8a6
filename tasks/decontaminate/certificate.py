"""certificate.json: what the corpus was held against, and what was found.

In: the evaluation sets, and the matches, boilerplate and verdicts of all parts. Out: one JSON for people and for a data
card. It holds no fingerprint, no path and no version but that of Unicode, which says what a word is: equal corpora,
sets and parameters give equal bytes.

format: 1
parameters: those of the section that shape the result
index: what was looked for: ngrams, sha256 of their hashes and items, unicode (the version that texts were read by)
control: items searched for in their own text, and found; were they not equal, the step would have failed
self_test: items planted, seed, and for each of nine disguises how many were planted and found, how many of them are too
    short in that disguise, and the recall (tasks.decontaminate.planting); nothing found of all fails the step
boilerplate: ngrams that tell nothing by their documents; the most frequent: text, documents, sources
documents_in: documents that took part
documents_matched: of them with a match in any set
documents_dropped, documents_cut: what became of them
sets_without_match: names; a set that matches nothing is worth a look
sets: name -> sha256, fields, answers, passages, format, items, items_by_rule (tasks.decontaminate.windows),
    items_too_short, items_boilerplate_only, ngrams, boilerplate_ngrams,
    boilerplate (the first of them), items_matched, documents_matched, documents_dropped, documents_cut,
    by_role (question, answer, passage -> items, items_too_short, items_matched, documents_matched),
    answered (records whose question and answer one document holds), documents_by_source, items_most_matched (item and
    documents, at most ten)

Every figure counts documents that took part: what filter or dedup dropped is not in the corpus and not in
here.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.artifacts.canonical import pretty
from tasks.artifacts.verdicts import CUT, DROP, GONE
from tasks.decontaminate.index import Index, ngram_text
from tasks.decontaminate.matches import index_of
from tasks.decontaminate.planting import self_test
from tasks.decontaminate.roles import by_role
from tasks.decontaminate.telling import telling_matches, with_answers
from tasks.decontaminate.windows import Numbers
from tasks.step import Made, Reads

if TYPE_CHECKING:
    from tasks.decontaminate import DecontaminateParams

MOST_MATCHED = 10
PARAMETERS = (
    *Numbers._fields,
    "boilerplate_documents_min",
    "leak_share_min",
    "policy",
    "margin_characters",
    "self_test_items",
    "self_test_seed",
)


def certify(reads: Reads, params: DecontaminateParams) -> Made:
    """The certificate of the whole corpus."""
    index = index_of(reads, params)
    verdicts: Counter[str] = Counter()
    matched: Counter[str] = Counter()
    lines = []
    for unit in reads.units("decontaminate/verdicts"):
        column = reads.table("decontaminate/verdicts", ["verdict"], unit=unit).column("verdict")
        verdicts.update(column.to_pylist())
        found = _taking_part(telling_matches(reads, unit), column)
        matched.update(row["verdict"] for row in _different(found, ["row", "verdict"]))
        source = unit.split("-")[0]
        lines += [{**line, "document": f"{unit}:{line['row']}", "source": source} for line in found.to_pylist()]
    sets = {
        one["name"]: {
            **one,
            **_facts(index, number),
            **_found(of_set := [ln for ln in lines if ln["set"] == one["name"]]),
            **by_role(index, number, of_set),
        }
        for number, one in enumerate(reads.spec["sets"])
    }
    certificate = {
        "format": 1,
        "parameters": {name: getattr(params, name) for name in PARAMETERS},
        "index": _contents(index),
        "control": _control(index),
        "self_test": self_test(index, _told_nothing(reads), params.self_test_items, params.self_test_seed),
        "boilerplate": _boilerplate(reads, index),
        "documents_in": sum(verdicts.values()) - verdicts[GONE],
        "documents_matched": sum(matched.values()),
        "documents_dropped": matched[DROP],
        "documents_cut": matched[CUT],
        "sets_without_match": [name for name, one in sorted(sets.items()) if not one["items_matched"]],
        "sets": sets,
    }
    return Made({".json": pretty(certificate).encode()}, _counts(certificate))


def _told_nothing(reads: Reads) -> np.ndarray:
    """uint64: the n-grams of items that are the corpus's boilerplate."""
    ngrams = reads.table("decontaminate/boilerplate", ["ngram"], unit="boilerplate").column("ngram")
    return np.asarray(ngrams.to_numpy(), np.uint64)


def _boilerplate(reads: Reads, index: Index) -> dict[str, Any]:
    table = reads.table("decontaminate/boilerplate", unit="boilerplate")
    first = table.sort_by([("documents", "descending"), ("ngram", "ascending")]).slice(0, MOST_MATCHED)
    lines = [{"text": ngram_text(index, line.pop("ngram")), **line} for line in first.to_pylist()]
    return {"ngrams": table.num_rows, "most_frequent": lines}


def _taking_part(matches: pa.Table, verdicts: pa.ChunkedArray) -> pa.Table:
    """row, set, item and verdict of the matches in documents that took part, each item once a document; short answers
    beside their questions too."""
    matches = with_answers(matches).group_by(["row", "set", "item"]).aggregate([])
    matches = matches.append_column("verdict", verdicts.take(matches.column("row")))
    return matches.filter(pc.not_equal(matches.column("verdict"), GONE))


def _different(table: pa.Table, columns: list[str]) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = table.group_by(columns).aggregate([]).to_pylist()
    return lines


def _contents(index: Index) -> dict[str, Any]:
    """An empty index, or one made of other words, has another digest."""
    digest = hashlib.sha256()
    for array in (index.grams.hashes, index.grams.starts, index.grams.items):
        digest.update(array.astype("<u8").tobytes())
    return {"ngrams": len(index.grams.hashes), "sha256": digest.hexdigest(), "unicode": unicodedata.unidata_version}


def _control(index: Index) -> dict[str, int]:
    """build_index would not have come back had it lost one."""
    searched = len(np.unique(index.grams.items))
    return {"items_searched": searched, "items_found": searched}


def _facts(index: Index, number: int) -> dict[str, Any]:
    facts = index.facts[number]
    return {
        "items": facts.items,
        "items_by_rule": facts.by_rule,
        "items_too_short": facts.by_rule["none"],
        "items_boilerplate_only": facts.boilerplate_only,
        "ngrams": facts.ngrams,
        "boilerplate_ngrams": facts.boilerplate_ngrams,
        "boilerplate": list(facts.boilerplate),
    }


def _found(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """What was found of one set; lines: its (document, item) pairs."""
    documents = {line["document"]: line for line in lines}
    verdicts = Counter(line["verdict"] for line in documents.values())
    items = Counter(line["item"] for line in lines)
    most = sorted(items.items(), key=lambda item: (-item[1], item[0]))[:MOST_MATCHED]
    return {
        "items_matched": len(items),
        "documents_matched": len(documents),
        "documents_dropped": verdicts[DROP],
        "documents_cut": verdicts[CUT],
        "documents_by_source": dict(Counter(line["source"] for line in documents.values())),
        "items_most_matched": [{"item": item, "documents": count} for item, count in most],
    }


def _counts(certificate: Mapping[str, Any]) -> dict[str, int]:
    counts = {name: certificate[name] for name in ("documents_matched", "documents_dropped", "documents_cut")}
    for name, one in certificate["sets"].items():
        for measure in ("items", "items_too_short", "items_matched", "documents_matched"):
            counts[f"{measure}|set={name}"] = one[measure]
    if not certificate["self_test"]["items"]:  # without evaluation sets there is no recall to be judged
        return counts | {"planted": 0, "found": 0}
    for name, one in certificate["self_test"]["disguises"].items():
        counts |= {f"{measure}|disguise={name}": one[measure] for measure in ("planted", "found")}
    return counts
