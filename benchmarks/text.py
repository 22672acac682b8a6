"""Normalizing, measuring and judging text, against the usual Python and DataTrove: `python -m benchmarks text`.

Texts are those of benchmarks.text_corpus: English; the five languages of samples/ by turns; and those as the worst
sources hold them. Goals are set for clean English. CPU seconds of both in one run, alternating.
"""

from __future__ import annotations

import json
import re
import tempfile
import unicodedata
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import yaml

from benchmarks.figures import cpu_seconds, figure, peer
from benchmarks.text_corpus import ENGLISH, MIXED, ROOT, hard, prose
from tasks.artifacts.documents import DOCUMENTS
from tasks.artifacts.tables import read_table, write_table
from tasks.artifacts.verdicts import SIGNALS
from tasks.filter import FilterParams
from tasks.filter.verdicts import make as make_verdicts
from tasks.normalize import NormalizeParams
from tasks.normalize.text import make as make_text
from tasks.text.languages import detect_languages
from tasks.text.signals import measure_texts

TIMES, MEGABYTES, PEER_MEGABYTES, ROWS = 3, 8, 0.5, 1_000_000


class Held:
    """Tables in memory, or in files, as a folder's function reads them."""

    def __init__(self, **tables: Any) -> None:
        self.name, self._tables = "web-0000000000000000", tables

    def table(self, folder: str, columns: list[str] | None = None, unit: str | None = None) -> pa.Table:
        held = self._tables[folder.replace("/", "_")]
        if isinstance(held, Path):
            return read_table(held, columns)
        return held if columns is None else held.select(columns)


def main() -> None:
    """Print every figure; about half a minute, and a minute with the peer."""
    _normalize()
    _signals(prose(MIXED, MEGABYTES))
    _thresholds()


def _size(texts: list[str]) -> float:
    return sum(len(text.encode()) for text in texts) / 1e6


def _normalize() -> None:
    """The recipe's form and the same form as the usual Python, NFKC, each against that; as pages of the web."""
    section = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))["normalize"]
    usual_form = {kind: {"form": "NFKC", "whitespace": "collapse"} for kind in section["kinds"]}
    recipes = {"": section, ", NFKC": section | {"kinds": usual_form}}
    sets = {"English": prose(ENGLISH, MEGABYTES), "mixed": prose(MIXED, MEGABYTES), "hard": hard(MEGABYTES)}
    for (name, texts), (form, recipe) in product(sets.items(), recipes.items()):
        params = NormalizeParams.model_validate_json(json.dumps(recipe))
        ours, ratios = _against_the_usual(texts, params)
        judged = name == "English"
        figure(f"normalize {name}{form}, digests included", ours, 120 if judged else None, "MB/cpu-s")
        figure(f"normalize {name}{form}, ratio", ratios, 5 if judged else None, "x", "unicodedata NFKC + re")


def _against_the_usual(texts: list[str], params: NormalizeParams) -> tuple[list[float], list[float]]:
    """(MB a CPU second, ratios to the usual Python), alternating; the usual one makes no digests."""
    table = pa.table({field.name: pa.nulls(len(texts), field.type) for field in DOCUMENTS})
    table = table.set_column(table.column_names.index("text"), "text", pa.array(texts, pa.large_string()))
    table = table.set_column(table.column_names.index("kind"), "kind", pa.array(["web"] * len(texts)))
    reads, white, ours, usual = Held(ingest_documents=table), re.compile(r"\s+"), [], []
    make_text(reads, params)  # type: ignore[arg-type]
    for _ in range(TIMES):
        ours.append(cpu_seconds(lambda: make_text(reads, params)))  # type: ignore[arg-type]
        usual.append(
            cpu_seconds(lambda: [white.sub(" ", unicodedata.normalize("NFKC", text)).strip() for text in texts])
        )
    ratios = [slow / fast for slow, fast in zip(usual, ours, strict=True)]
    return [_size(texts) / seconds for seconds in ours], ratios


def _signals(texts: list[str]) -> None:
    column, languages = pa.array(texts, pa.large_string()), pa.array(["en"] * len(texts))
    measure_texts(column.slice(0, 10), languages.slice(0, 10))
    some = prose(MIXED, PEER_MEGABYTES)
    ours: list[float] = []
    theirs: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "texts.jsonl"
        file.write_text("\n".join(json.dumps(text) for text in some), encoding="utf-8")
        for _ in range(TIMES):
            ours.append(_size(texts) / cpu_seconds(lambda: measure_texts(column, languages)))
            answer = peer("peer_datatrove.py", str(file))
            theirs += [_size(some) / answer["seconds"]] if answer else []
    figure("signals of all rule sets", ours, 80, "MB/cpu-s")
    ratios = [fast / slow for fast, slow in zip(ours, theirs, strict=False)]
    figure("signals, ratio", ratios, 100, "x", "datatrove 0.10.1 Gopher + C4 + FineWeb")
    detect_languages(column.slice(0, 1), 1000)
    each = [_size(texts) / cpu_seconds(lambda: detect_languages(column, 1000)) for _ in range(TIMES)]
    figure("language by 1,000 characters", each, 40, "MB/cpu-s")


def _thresholds() -> None:
    """A million documents judged anew by Gopher's, C4's and FineWeb's rules, read from disk."""
    chance = np.random.default_rng(1)
    columns: dict[str, Any] = {}
    for field in SIGNALS:
        drawn = chance.integers(0, 3000, ROWS)
        columns[field.name] = drawn if field.type == pa.int64() else drawn / 2999
    columns["language"] = np.array(["en", "de", "zh", "fr"])[chance.integers(0, 4, ROWS)]
    rules = [{"set": name} for name in ("gopher-1", "c4-1", "fineweb-1")]
    section = {
        "language_characters": 1000,
        "language_letters_min": 20,
        "segmentation": {},
        "signals": [],
        "metadata": [],
        "mask": {},
        "blocklists": [],
    }
    params = FilterParams.model_validate_json(json.dumps({**section, "rules": rules}))
    with tempfile.TemporaryDirectory() as folder:
        signals, kinds = Path(folder) / "signals.parquet", Path(folder) / "kinds.parquet"
        write_table(signals, pa.table(columns), SIGNALS)
        table = pa.table({"kind": ["web"] * ROWS})
        write_table(kinds, table, table.schema)
        reads = Held(filter_signals=signals, normalize_text=kinds)
        each = [cpu_seconds(lambda: make_verdicts(reads, params)) for _ in range(TIMES)]  # type: ignore[arg-type]
    figure("a million documents judged anew", each, 2, "cpu-s", f"{len(params.rules)} rules", better="lower")
