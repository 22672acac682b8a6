"""The folder tokenize/report, the file report.json: how well the tokenizer fits the corpus.

In: the usage of all parts, and the tokenizer for its pieces. Out: one JSON for people. Memory: a number for each id,
and the parts one after another.

format: 1
totals: documents, tokens (EOS counted), bytes, unknown, unlearnt (documents of which no id carries loss),
    bytes_per_token, unknown_share
sources, languages: name -> the same
sources_by_language: source -> language -> the same
vocabulary: size, used (ids that occur), unused
most_frequent, least_frequent: a hundred ids that occur, each as id, piece, count
worst: documents with the fewest bytes a token, of those with 32 tokens or more: part, row, id, language, tokens, bytes,
    bytes_per_token
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.artifacts.canonical import canonical, pretty
from tasks.encoder import Tokenizer
from tasks.engines import open_model
from tasks.step import Made, Reads
from tasks.tokenize.usage import WORST, fewest_bytes

if TYPE_CHECKING:
    from tasks.tokenize import TokenizeParams

USAGE = "tokenize/usage"
NAMED = 100
"""Ids at either end that are named."""

Fates = dict[str, Counter[str]]


def make(reads: Reads, params: TokenizeParams) -> Made:
    """report.json. spec["tokenizer"]: see tasks.tokenize.tokenizer.facts."""
    facts, path = reads.spec["tokenizer"], reads.path("tokenizer")
    options = canonical(facts["options"]).decode()
    tokenizer = open_model(str(path), facts["sha256"], path.parent.name, facts["engine"], options)
    used, worst = np.zeros(facts["vocab_size"], np.int64), list[dict[str, Any]]()
    cells: dict[tuple[str, str], Counter[str]] = {}
    for unit in reads.units(USAGE):
        table = reads.table(USAGE, None, unit)
        used[table["token"].to_numpy()] += table["count"].to_numpy()
        own = json.loads(reads.path(USAGE, ".json", unit).read_bytes())
        for language, counts in own["languages"].items():
            cells.setdefault((unit.split("-")[0], language), Counter()).update(counts)
        worst = sorted([*worst, *({"part": unit} | one for one in own["worst"])], key=fewest_bytes)[:WORST]
    report = {"format": 1} | _cells(cells) | _vocabulary(used, tokenizer)
    report["worst"] = [one | {"bytes_per_token": _share(one["bytes"], one["tokens"])} for one in worst]
    return Made({".json": pretty(report).encode()})


def _cells(cells: Mapping[tuple[str, str], Counter[str]]) -> dict[str, Any]:
    sources, languages, total = Fates(), Fates(), Counter[str]()
    for (source, language), counts in cells.items():
        for held, name in ((sources, source), (languages, language)):
            held.setdefault(name, Counter()).update(counts)
        total.update(counts)
    crossed: dict[str, dict[str, Any]] = {source: {} for source in sources}
    for (source, language), counts in cells.items():
        crossed[source][language] = _told(counts)
    named = {"sources": sources, "languages": languages}
    told = {kind: {name: _told(counts) for name, counts in held.items()} for kind, held in named.items()}
    return {"totals": _told(total), **told, "sources_by_language": crossed}


def _told(counts: Counter[str]) -> dict[str, Any]:
    plain = {name: counts[name] for name in ("documents", "tokens", "bytes", "unknown", "unlearnt")}
    shares = {"bytes_per_token": _share(plain["bytes"], plain["tokens"])}
    return plain | shares | {"unknown_share": _share(plain["unknown"], plain["tokens"])}


def _share(count: int, of: int) -> float | None:
    return round(count / of, 6) if of else None


def _vocabulary(used: Any, tokenizer: Tokenizer) -> dict[str, Any]:
    ids = np.flatnonzero(used)
    order = ids[np.lexsort((ids, -used[ids]))]
    return {
        "vocabulary": {"size": len(used), "used": len(ids), "unused": len(used) - len(ids)},
        "most_frequent": list(_named(order[:NAMED], used, tokenizer)),
        "least_frequent": list(_named(ids[np.lexsort((ids, used[ids]))][:NAMED], used, tokenizer)),
    }


def _named(ids: Any, used: Any, tokenizer: Tokenizer) -> Iterator[dict[str, Any]]:
    for number in ids.tolist():
        yield {"id": number, "piece": tokenizer.piece(number), "count": int(used[number])}
