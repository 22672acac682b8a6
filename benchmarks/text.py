"""Normalizing, measuring and judging text, against the usual Python and DataTrove: `python -m benchmarks text`.

Texts are those of samples/, in documents of about 3,000 characters, repeated to some megabytes; or the .txt files below
the folder that GRISTMILL_TEXTS names. CPU seconds of both in one run, alternating.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import unicodedata
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import yaml

from benchmarks.figures import cpu_seconds, figure, peer
from tasks.artifacts.documents import DOCUMENTS
from tasks.artifacts.tables import read_table, write_table
from tasks.artifacts.verdicts import SIGNALS
from tasks.filter import FilterParams
from tasks.filter.verdicts import make as make_verdicts
from tasks.normalize import NormalizeParams
from tasks.normalize.text import make as make_text
from tasks.text.languages import detect_languages
from tasks.text.signals import measure_texts

ROOT = Path(__file__).parent.parent
TIMES, DOCUMENT, MEGABYTES, PEER_MEGABYTES, ROWS = 3, 3000, 8, 0.5, 1_000_000


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
    texts = _texts(MEGABYTES)
    _normalize(texts)
    _signals(texts)
    _thresholds()


def _texts(megabytes: float) -> list[str]:
    folder = Path(os.environ.get("GRISTMILL_TEXTS", ROOT / "samples" / "prose"))
    documents: list[str] = []
    for path in sorted(folder.rglob("*.txt")):
        text = path.read_bytes()[: 1 << 20].decode("utf-8", "replace").replace("\r\n", "\n")
        documents += [text[at : at + DOCUMENT] for at in range(0, len(text), DOCUMENT)]
    size = sum(len(text.encode()) for text in documents) / len(documents)
    return list(islice(cycle(documents), max(10, round(megabytes * 1e6 / size))))


def _size(texts: list[str]) -> float:
    return sum(len(text.encode()) for text in texts) / 1e6


def _normalize(texts: list[str]) -> None:
    table = pa.table({field.name: pa.nulls(len(texts), field.type) for field in DOCUMENTS})
    table = table.set_column(table.column_names.index("text"), "text", pa.array(texts, pa.large_string()))
    table = table.set_column(table.column_names.index("kind"), "kind", pa.array(["web"] * len(texts)))
    section = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))["normalize"]
    params, reads = NormalizeParams.model_validate_json(json.dumps(section)), Held(ingest_documents=table)
    white, ours, usual = re.compile(r"\s+"), [], []
    make_text(reads, params)  # type: ignore[arg-type]
    for _ in range(TIMES):
        ours.append(cpu_seconds(lambda: make_text(reads, params)))  # type: ignore[arg-type]
        usual.append(
            cpu_seconds(lambda: [white.sub(" ", unicodedata.normalize("NFKC", text)).strip() for text in texts])
        )
    figure("normalize, digests included", [_size(texts) / seconds for seconds in ours], 120, "MB/cpu-s")
    ratios = [slow / fast for slow, fast in zip(usual, ours, strict=True)]
    figure("normalize, ratio", ratios, 5, "x", "unicodedata NFKC + re")


def _signals(texts: list[str]) -> None:
    column, languages = pa.array(texts, pa.large_string()), pa.array(["en"] * len(texts))
    measure_texts(column.slice(0, 10), languages.slice(0, 10))
    some = _texts(PEER_MEGABYTES)
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
    detect_languages(column.slice(0, 1), 300)
    each = [_size(texts) / cpu_seconds(lambda: detect_languages(column, 300)) for _ in range(TIMES)]
    figure("language by 300 characters", each, 40, "MB/cpu-s")


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
        "language_characters": 300,
        "language_letters_min": 20,
        "segmentation": {},
        "signals": [],
        "metadata": [],
        "mask": {},
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
