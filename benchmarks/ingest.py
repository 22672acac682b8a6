"""Reading files into documents, from the first byte of a source to the artifact: `python -m benchmarks ingest`.

Texts are the programs of Python's standard library, in documents of about 3,000 characters that begin where chance
says, so that none repeats; or the .txt files below the folder that GRISTMILL_TEXTS names. Everything that a build does
is counted but judging: the digest of the source, its scan, the documents' ids, the artifact and its digests. MB are
those of the JSON lines, or of Parquet's texts. CPU seconds of one process. Beside it, in the same run, the parts that
no reader can leave out, each done at once by the library alone, and pyarrow's own reader of JSON, which makes neither
ids nor files.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import resource
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json
import pyarrow.parquet as pq

from benchmarks.figures import cpu_seconds, figure
from tasks.artifacts.manifest import Manifest
from tasks.artifacts.tables import write_table
from tasks.build import Build
from tasks.ingest import STEP, planning
from tasks.project import Project

TIMES, DOCUMENT, MEGABYTES, MEMORY = 3, 3000, 48, 1024


def main() -> None:
    """Print every figure; about half a minute."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        rows = _rows(MEGABYTES)
        texts = sum(len(row["text"].encode()) for row in rows) / 1e6
        data = b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)
        table = pa.Table.from_pylist(rows)
        (home / "plain.jsonl").write_bytes(data)
        (home / "packed.jsonl.zst").write_bytes(pa.compress(data, "zstd", asbytes=True))
        pq.write_table(table, home / "rows.parquet", compression="zstd", row_group_size=2000)
        lines = len(data) / 1e6
        _figure(home, "plain.jsonl", lines, 100, _floor(home / "plain.jsonl", data, table))
        _figure(home, "packed.jsonl.zst", lines, 100, _floor(home / "packed.jsonl.zst", data, table))
        _figure(home, "rows.parquet", texts, 250, _floor(home / "rows.parquet", None, table))
        plain = [lines / cpu_seconds(lambda: pa.json.read_json(home / "plain.jsonl")) for _ in range(TIMES)]
        figure("pyarrow.json.read_json, no ids, no files", plain, None, "MB/cpu-s")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figure("peak memory of it all", [peak], MEMORY, "MiB", better="lower")


def _figure(home: Path, name: str, megabytes: float, goal: float, floor: Callable[[], Any]) -> None:
    _build(home, name)
    ours, least = [], []
    for _ in range(TIMES):
        ours.append(cpu_seconds(lambda: _build(home, name)))
        least.append(cpu_seconds(floor))
    figure(f"ingest, {name}", [megabytes / seconds for seconds in ours], goal, "MB/cpu-s")
    ratios = [own / seconds for own, seconds in zip(ours, least, strict=True)]
    figure(f"ingest, {name}, of what the libraries take", ratios, 1.5, "x", "unpack, digests, write", better="lower")


def _build(home: Path, name: str) -> None:
    """A build of a project whose source is that file, as if for the first time in a process that is warm."""
    planning._KNOWN.clear()
    source = {"name": "s", "kind": "web", "path": str(home / name)}
    sizes = {"part_bytes": 16 << 20, "part_bytes_max": 64 << 20, "small_file_bytes": 1 << 20}
    others = {"record_bytes_max": 32 << 20, "piece_characters_max": {}, "rejects_max_share": 0.0}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "params.yaml").write_text(json.dumps({"ingest": {"sources": [source], **sizes, **others}}))
        build = Build.begin(STEP, Project(Path(folder)))
        build.stage(1, None, force=False, progress=None)
        Manifest(STEP.name, build.recipe, build.folders).write(build.tree)


def _floor(file: Path, data: bytes | None, table: pa.Table) -> Callable[[], Any]:
    """What a reader of `file` cannot leave out: its digest, unpacking, a digest of each record, and writing."""
    records = data.splitlines() if data else [text.encode() for text in table["text"].to_pylist()]

    def work() -> None:
        hashlib.sha256(file.read_bytes()).digest()
        if file.suffix == ".zst":
            pa.CompressedInputStream(pa.OSFile(str(file)), "zstd").read()
        if file.suffix == ".parquet":
            pq.read_table(file, use_threads=False)
        for record in records:
            hashlib.sha256(record).digest()
        with tempfile.TemporaryDirectory() as folder:
            written = Path(folder) / "out.parquet"
            write_table(written, table, table.schema)
            hashlib.sha256(written.read_bytes()).digest()

    return work


def _rows(megabytes: float) -> list[dict[str, Any]]:
    chance, texts, rows, size = random.Random(1), _texts(), list[dict[str, Any]](), 0
    while size < megabytes * 1e6:
        whole, number = chance.choice(texts), len(rows)
        start = chance.randrange(max(1, len(whole) - DOCUMENT))
        text = f"{number}\n{whole[start : start + DOCUMENT]}"
        rows.append({"text": text, "id": f"doc-{number}", "url": f"https://example.org/{number}", "n": number})
        size += len(text.encode())
    return rows


def _texts() -> list[str]:
    named = os.environ.get("GRISTMILL_TEXTS")
    folder, suffix = (Path(named), "txt") if named else (Path(sysconfig.get_paths()["stdlib"]), "py")
    paths = [path for path in sorted(folder.rglob(f"*.{suffix}")) if "site-packages" not in path.parts]
    return [path.read_bytes().decode("utf-8", "replace").replace("\r\n", "\n") for path in paths[:1500]]
