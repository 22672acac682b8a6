"""How fast training.loader reads a pin, beside limits and peers: JSON lines on standard output, a table beside.

`python -m benchmarks.loader [--tokens 50000000] [--peers PYTHON]`: one process, CPU seconds, B = 8 and 32, T = 2048,
random order, page cache hot, 8 shards. Peers run in an environment of their own (benchmarks/loader-requirements.txt)
whose Python is named; without one they are lines without a value. A rate is the median of rounds that alternate with
those of what it is held against.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

from benchmarks.loader_corpus import LENGTH, lay, lay_vast
from training.dataset import PackedDataset, PositionBatches, keep
from training.examples import AsMapping
from training.loader import build_dataloader
from training.pin import Pin, open_pin

ROUNDS, SECONDS, WARM_UP = 5, 0.3, 40
PEERS = ("datatrove", "datasets", "grain", "litdata", "mosaicml-streaming", "megatron-core", "ai2-olmo-core")
Read = Callable[[], Any]


def report(figure: str, value: float | None, **more: Any) -> None:
    """One figure, as a line of JSON and a line for people."""
    rounded = None if value is None else float(f"{value:.4g}")
    print(json.dumps({"figure": figure, "value": rounded, **more}), flush=True)
    goal = f"   goal {more['goal']}" if "goal" in more else ""
    shown = more.get("why", "") if rounded is None else f"{rounded:>10} {more.get('unit', '')}"
    print(f"{figure:<58} {shown}{goal}", file=sys.stderr, flush=True)


def rates(tokens: int, reads: dict[str, Read]) -> dict[str, list[float]]:
    """Tokens a CPU second of each, ROUNDS times, one after another in each round."""
    for read in reads.values():
        for _ in range(WARM_UP):
            read()
    found: dict[str, list[float]] = {name: [] for name in reads}
    for _ in range(ROUNDS):
        for name, read in reads.items():
            begun, turns = time.process_time(), 0
            while time.process_time() - begun < SECONDS:
                for _ in range(10):
                    read()
                turns += 10
            found[name].append(turns * tokens / (time.process_time() - begun))
    return found


def direct(pin: Pin, batch: int, *, documents: bool) -> Read:
    """What the host does for a GPU: order, gather into a slot of the ring and, asked for, documents' borders."""
    dataset = PackedDataset(pin, isolate_documents=documents)
    slot, position = np.empty((batch, LENGTH + 1), dataset.dtype), iter(range(0, 1 << 60, batch))

    def read() -> None:
        dataset.rows(next(position), batch, slot)

    return read


def batches(pin: Pin, batch: int, *names: str, **how: Any) -> Read:
    """Whole batches on the CPU, int64, with the fields that are named."""
    made = iter(build_dataloader(pin, batch_size=batch, **how))
    return lambda: [getattr(one, name) for one in (next(made),) for name in names]


def standard(pin: Pin, batch: int, collate: Any) -> Read:
    """The dataset in a plain DataLoader without workers."""
    sampler = PositionBatches(batch, None)
    made = iter(DataLoader(PackedDataset(pin), batch_sampler=sampler, collate_fn=collate))  # type: ignore[arg-type]
    return lambda: next(made)


def limit(pin: Pin, batch: int) -> Read:
    """numpy's take of rows of one array in memory into a buffer: the same bytes, in random order, no file, no order."""
    flat = np.concatenate([np.fromfile(f"{path}.bin", "<u2") for path in pin.shards("a", "train")])
    rows = flat[: len(flat) // LENGTH * LENGTH].reshape(-1, LENGTH)
    order, out = np.random.default_rng(1).permutation(len(rows)), np.empty((batch, LENGTH), "<u2")
    at = iter(range(1 << 60))

    def read() -> None:
        first = next(at) * batch % (len(order) - batch)
        np.take(rows, order[first : first + batch], axis=0, out=out, mode="clip")

    return read


def own_speed(pin: Pin, batch: int) -> dict[str, float]:
    """Figures against the limit; gives back rates for the peers."""
    read = {
        "take": limit(pin, batch),
        "direct": direct(pin, batch, documents=False),
        "direct, documents": direct(pin, batch, documents=True),
        "batch": batches(pin, batch, "input_ids", "labels"),
        "batch, documents": batches(pin, batch, "input_ids", "labels", "cu_seqlens", isolate_documents=True),
        "batch, position_ids": batches(
            pin, batch, "input_ids", "labels", "cu_seqlens", "position_ids", isolate_documents=True
        ),
        "DataLoader": standard(pin, batch, keep),
        "DataLoader, int64 mapping": standard(pin, batch, AsMapping("model", False)),
    }
    found = rates(batch * LENGTH, read)
    middle = {name: statistics.median(values) for name, values in found.items()}
    for name, values in found.items():
        spread = [float(f"{value / 1e6:.4g}") for value in (min(values), max(values))]
        report(f"{name}, B={batch}", middle[name] / 1e6, unit="Mtok/CPU s", n=ROUNDS, spread=spread)
    goal = {8: 0.5, 32: 0.4}[batch]
    _ratio(f"direct path of a random gather, B={batch}", middle["direct"] / middle["take"], goal, "higher", "np.take")
    pairs = (("direct", "direct, documents"), ("batch", "batch, documents"), ("batch", "batch, position_ids"))
    for without, with_documents in pairs:
        cost = middle[without] / middle[with_documents]
        _ratio(f"time of {with_documents} to {without}, B={batch}", cost, 1.25, "lower", without)
    return middle


def _ratio(figure: str, value: float, goal: float, better: str, against: str) -> None:
    report(figure, value, goal=goal, better=better, unit="x", against=against, n=ROUNDS)


def first_batches(pin: Pin, folder: Path) -> None:
    """From a verified pin to the first batch; warm, as importing and the first use of numpy are no news."""
    vast = lay_vast(folder / "vast")
    for name, one in (("", pin), (" of 10^9 sequences", vast)):
        taken, walls = [], []
        for _ in range(ROUNDS + 1):
            wall, begun = time.perf_counter(), time.process_time()
            next(iter(build_dataloader(one, batch_size=8, isolate_documents=True)))
            taken.append((time.process_time() - begun) * 1000)
            walls.append(round((time.perf_counter() - wall) * 1000, 1))
        middle = statistics.median(taken[1:])
        report(f"first batch{name}", middle, goal=50, better="lower", unit="CPU ms", n=ROUNDS, wall_ms=walls[1:])


def verification(root: Path, pin: Pin) -> None:
    """Digesting and checking the whole pin against hashlib over bytes in memory: bytes a CPU second of all threads, so
    that other work on the machine counts for neither."""
    files = [path for path in sorted(pin.folder.rglob("*")) if path.is_file()]
    held, block = sum(path.stat().st_size for path in files), bytes(64 << 20)
    found, plain = [], []
    for _ in range(3):
        begun = time.process_time()
        open_pin(pin.fingerprint, root, full=True)
        found.append(held / (time.process_time() - begun))
        begun = time.process_time()
        hashlib.sha256(block).digest()
        plain.append(len(block) / (time.process_time() - begun))
    share = statistics.median(found) / statistics.median(plain)
    report("verification of hashlib, a core", share, goal=0.8, better="higher", unit="x", against="hashlib", n=3)


def random_reads(pin: Pin, folder: Path) -> None:
    """Rows in random order from other formats, against .bin: tokens a CPU second."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = 1024
    dataset = PackedDataset(pin)
    tokens = dataset.__getitems__(range(rows)).tokens_BT1.numpy().astype(np.int32)
    table = pa.table({"ids": pa.FixedSizeListArray.from_arrays(pa.array(tokens.ravel()), LENGTH + 1)})
    pq.write_table(table, folder / "rows.parquet", row_group_size=64)
    lines = [json.dumps(row.tolist()).encode() + b"\n" for row in tokens]
    (folder / "rows.jsonl").write_bytes(b"".join(lines))
    ends = np.cumsum([len(line) for line in lines])
    parquet, at = (
        pq.ParquetFile(folder / "rows.parquet"),
        iter(np.random.default_rng(2).integers(0, rows, 1 << 20).tolist()),
    )

    def from_parquet() -> None:
        row = next(at)
        parquet.read_row_group(row // 64, ["ids"])["ids"][row % 64].values.to_numpy()

    def from_lines() -> None:
        row = next(at)
        with (folder / "rows.jsonl").open("rb") as file:
            file.seek(int(ends[row - 1]) if row else 0)
            np.array(json.loads(file.readline()), np.int32)

    reads = {".bin": lambda: dataset.__getitems__([next(at)]), "Parquet": from_parquet, "JSON Lines": from_lines}
    middle = {name: statistics.median(values) for name, values in rates(LENGTH, reads).items()}
    for name in ("Parquet", "JSON Lines"):
        report(f".bin to {name}, single rows", middle[".bin"] / middle[name], unit="x", against=name, n=ROUNDS)
    report(".bin to HDF5, single rows", None, unit="x", against="h5py", why="h5py is not among the tested packages")


def text_against_shards(pin: Pin, folder: Path, ours: float) -> None:
    """A text file read by LMTextDataset's stream, tokenized as it goes, against shards: tokens a CPU second."""
    from training.online import LMTextStream

    class Bytes:
        eos_token_id, pad_token_id = 0, 0

        def encode(self, text: str) -> list[int]:
            return [*text.encode()]

    (folder / "text.txt").write_text("Every word of this line is read, split and counted once more.\n" * 40_000)
    stream = iter(LMTextStream(folder / "text.txt", Bytes(), LENGTH))
    begun, tokens = time.process_time(), 0
    for _, one in zip(range(400), stream, strict=False):
        tokens += len(one["input_ids"])
    rate = tokens / (time.process_time() - begun)
    report("shards to text tokenized by bytes", ours / rate, unit="x", against="LMTextStream", n=1)


def real_shares(pin: Pin) -> None:
    """Share of a batch that is tokens and no padding: B=8 documents at a time, or packed rows."""
    from tasks.artifacts.shards import ShardIndex

    sizes = np.concatenate(
        [ShardIndex.open(path.with_name(path.name + ".idx")).sizes for path in pin.shards("a", "train")]
    )
    held = np.minimum(np.random.default_rng(3).permutation(sizes)[: len(sizes) // 8 * 8], LENGTH).reshape(-1, 8)
    real, widest = held.sum(), held.max(1)
    buckets = np.array([256, 512, 1024, 2048])
    fitted = buckets[np.searchsorted(buckets, widest)]
    by_length = np.sort(held.ravel()).reshape(-1, 8).max(1)
    whole = PackedDataset(pin)
    lengths = whole.locate(np.arange(len(whole))).lengths
    shares = {
        "fixed": real / (held.size * LENGTH),
        "dynamic": real / (8 * widest.sum()),
        "bucketed": real / (8 * fitted.sum()),
        "dynamic, grouped by length": real / (8 * by_length.sum()),
        "packed": lengths.sum() / (len(lengths) * (LENGTH + 1)),
    }
    for name, share in shares.items():
        report(f"share of real tokens, {name}", float(share), unit="of a batch", better="higher")


def peers(python: str | None, folder: Path, ours: dict[int, dict[str, float]]) -> None:
    """Each peer in its own process, over a format of its own made of the same ids."""
    best: dict[int, float] = {}
    for name in PEERS:
        for batch, rate, why in _peer(python, name, folder):
            if rate is not None:
                best[batch] = max(best.get(batch, 0.0), rate)
            report(
                f"{name}, B={batch}",
                rate and rate / 1e6,
                unit="Mtok/CPU s",
                against=name,
                **({"why": why} if why else {}),
            )
            if name == "megatron-core" and rate:
                _ratio(f"direct path to megatron-core, B={batch}", ours[batch]["direct"] / rate, 60, "higher", name)
    for batch, rate in sorted(best.items()):
        _ratio(f"direct path to the fastest peer, B={batch}", ours[batch]["direct"] / rate, 10, "higher", "peers")
        _ratio(
            f"plain DataLoader to the fastest peer, B={batch}", ours[batch]["DataLoader"] / rate, 5, "higher", "peers"
        )


def _peer(python: str | None, name: str, folder: Path) -> list[tuple[int, float | None, str]]:
    if python is None:
        return [(batch, None, "no --peers environment") for batch in (8, 32)]
    command = [python, str(Path(__file__).with_name("loader_peers.py")), name, str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=75, check=True)
        return [(batch, rate, "") for batch, rate in json.loads(done.stdout.splitlines()[-1])]
    except subprocess.TimeoutExpired as error:
        return [(batch, None, f"no answer in {error.timeout:.0f} s") for batch in (8, 32)]
    except (subprocess.SubprocessError, ValueError, IndexError) as error:
        told = getattr(error, "stderr", None) or str(error)
        last = (told if isinstance(told, str) else told.decode()).strip().splitlines()[-1:]
        return [(batch, None, " ".join(last)[:200]) for batch in (8, 32)]


def main(arguments: Sequence[str] = ()) -> None:
    """All figures of the loader."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loader", description=__doc__)
    parser.add_argument("--tokens", type=int, default=50_000_000)
    python = Path(os.environ.get("GRISTMILL_PEERS", ".venv-peers")) / "bin" / "python"
    known = str(python) if python.is_file() else None
    parser.add_argument("--peers", default=known, help="the Python of the peers' environment; GRISTMILL_PEERS names it")
    asked = parser.parse_args(list(arguments))
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="gristmill-bench-") as name:
        folder = Path(name)
        pin = lay(folder, asked.tokens)
        ours = {batch: own_speed(pin, batch) for batch in (8, 32)}
        first_batches(pin, folder)
        verification(folder, pin)
        random_reads(pin, folder)
        text_against_shards(pin, folder, ours[8]["batch"])
        real_shares(pin)
        peers(asked.peers, folder, ours)
    why = "no CUDA device" if not torch.cuda.is_available() else "run: python -m training.train PIN --control 200"
    report("data stall on a GPU", None, goal=0.01, better="lower", unit="share", why=why)


if __name__ == "__main__":
    main(sys.argv[1:])
