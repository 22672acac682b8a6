"""Packing and sharding: a million documents into sequences, beside TRL's and LLaMA-Factory's own packers, and a
group's ids into a shard, beside `cp`.

Lengths are those of web pages in tokens: log-normal, 40 to 40,000, 600 in the median. The functions are the folders'
own, from tables in memory to tables in memory; a shard is made, written and digested. CPU seconds; GRISTMILL_PEERS
names an environment with benchmarks/packing-requirements.txt. Peers get fewer documents, as they are slow: their speed
is documents a CPU second as well.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.figures import cpu_seconds, figure, peer
from tasks.artifacts.canonical import canonical, file_digest
from tasks.artifacts.tables import write_payload
from tasks.pack import pieces, sequences
from tasks.shard import stream

DOCUMENTS, ROOM, TIMES, PART = 1_000_000, 2048, 5, "web-0000000000000000"
SHARD_IDS, VOCABULARY, EOS = 128 << 20, 50_000, 2
STRATEGIES = ("concat", "stride", "best_fit", "document")
PEERS = ("trl bfd_split", "trl bfd", "trl wrapped", "llamafactory")


class Held:
    """What a folder's function reads, in memory."""

    name = PART

    def __init__(self, tables: dict[str, Any], spec: dict[str, Any], known: Path | None = None) -> None:
        self.tables, self.spec, self._known = tables, spec, known

    def table(self, folder: str, columns: list[str] | None = None, unit: str | None = None) -> pa.Table:
        return self.tables[folder] if columns is None else self.tables[folder].select(columns)

    def array(self, folder: str, suffix: str, dtype: str, unit: str | None = None) -> Any:
        return self.tables[folder + suffix]

    def path(self, folder: str, suffix: str = "", unit: str | None = None) -> Any:
        return self._known


def main() -> None:
    """Print every figure; two minutes."""
    lengths = np.clip(np.random.default_rng(1).lognormal(np.log(600), 1, DOCUMENTS), 40, 40_000).astype(np.int64)
    speeds = {}
    for strategy in STRATEGIES:
        rounds = [_packed(lengths, strategy) for _ in range(TIMES)]
        seconds, counts = [each for each, _ in rounds], rounds[0][1]
        goal = 0.5 if strategy == "best_fit" else None
        figure(f"pack a million documents, {strategy}", seconds, goal, "CPU s", better="lower")
        padding = [100 * counts["padding"] / counts["places"]]
        figure("  padding", padding, 0.02 if strategy == "best_fit" else None, "%", better="lower")
        speeds[strategy] = DOCUMENTS / min(seconds)
    for name in PEERS:
        _beside(name, lengths, speeds["concat" if name == "trl wrapped" else "best_fit"])
    with tempfile.TemporaryDirectory() as folder:
        _shards(Path(folder))


def _packed(lengths: Any, strategy: str) -> tuple[float, dict[str, int]]:
    """CPU seconds of both folders, and what they count."""
    place = {"split": ["train"] * len(lengths), "domain": ["web"] * len(lengths)}
    tables = {"tokenize/tokens": pa.table({"tokens": lengths}), "pack/splits": pa.table(place)}
    whole = {"strategy": strategy, "tokens_per_sequence": ROOM} if strategy in ("best_fit", "document") else {}
    reads: Any = Held(tables, {"domain": "web", "split": "train", "parts": [PART]} | whole)
    params: Any = SimpleNamespace(
        tokens_per_sequence=ROOM, strategy=strategy, stride=ROOM // 2, tail="keep", long="split", long_of={}, seed=1
    )
    counts: dict[str, int] = {}

    def work() -> None:
        made = pieces.make(reads, params)
        tables["pack/pieces"] = made.files[".parquet"]
        reads.spec = {"counts": made.counts}
        counts.update(sequences.make(reads, params).counts)

    return cpu_seconds(work), counts


def _beside(name: str, lengths: Any, ours: float) -> None:
    """A peer's speed, padding and lost ids. A sequence of ours holds an id more, as its last target."""
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "lengths.npy", lengths)
        found = peer("peer_packing.py", name, str(Path(folder) / "lengths.npy"), str(ROOM + 1))
    said = "trl 1.16.0" if name.startswith("trl") else "llamafactory 0.9.5"
    ratio = [ours * found["seconds"] / found["documents"]] if found else []
    figure(f"documents a CPU second, to {name}", ratio, None, "x", said)
    if found:
        lost = 100 * found["cut"] / (found["cut"] + found["tokens"])
        figure(
            "  its padding", [100 * (1 - found["tokens"] / found["places"])], None, "%", f"loses {lost:.1f} % of ids"
        )


def _shards(folder: Path) -> None:
    """A shard of SHARD_IDS made, written and digested, beside a copy of its file: wall and CPU seconds."""
    ids = np.random.default_rng(2).integers(4, VOCABULARY, SHARD_IDS).astype("<u2")
    stops = np.arange(600, SHARD_IDS + 1, 600)
    ids[stops - 1] = EOS
    ids = ids[: stops[-1]]
    (folder / "tokenizer.json").write_bytes(canonical({"dtype": "<u2", "eos_id": EOS, "vocab_size": VOCABULARY}))
    table = {"part": pa.repeat(PART, len(stops)), "start": stops - 600, "stop": stops}
    table |= {"closes": [True] * len(stops), "bos": [False] * len(stops)}
    tables = {"pack/pieces": pa.table(table), "tokenize/tokens.bin": ids}
    reads: Any = Held(tables, {"group": "web-train-0", "masked": []}, folder / "tokenizer.json")

    def shard() -> None:
        for suffix, payload in stream.make(reads, SimpleNamespace()).files.items():  # type: ignore[arg-type]
            write_payload(folder / f"shard{suffix}", payload, None)
            file_digest(folder / f"shard{suffix}")

    def copy() -> None:
        subprocess.run(["cp", folder / "shard.bin", folder / "copy.bin"], check=True)

    shard()
    wall, cpu, shares = list[float](), list[float](), list[float]()
    for _ in range(TIMES):
        (folder / "shard.bin").unlink()
        spent = time.process_time()
        took = _wall(shard)
        cpu.append(ids.nbytes / 1e6 / (time.process_time() - spent))
        wall.append(ids.nbytes / 1e6 / took)
        (folder / "copy.bin").unlink(missing_ok=True)
        shares.append(100 * _wall(copy) / took)
    figure("shard written", wall, 300, "MB/s", f"{ids.nbytes / 1e6:.0f} MB, digests in, wall")
    figure("  a CPU second", cpu, None, "MB/cpu-s")
    figure("  to a copy of the file", shares, None, "%", "cp on the same disk")


def _wall(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
