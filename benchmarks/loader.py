"""How fast training.loader reads a pin, beside limits and peers: JSON lines on standard output, a table beside.

`python -m benchmarks.loader [--tokens 200000000] [--peers PYTHON]`: one process, CPU seconds, B = 8 and 32, T = 2048,
random order, page cache hot, 8 shards. Peers run in an environment of their own (benchmarks/loader-requirements.txt)
whose Python is named; one that does not install beside the others in an environment of the same name with the peer's
after it, if there is one. Without any they are lines without a value. A rate is the median of rounds that alternate
with those of what it is held against.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

from benchmarks.loader_corpus import LENGTH, lay, lay_vast
from benchmarks.loader_figures import ROUNDS, Read, peer_rates, rates, ratio, report
from benchmarks.loader_formats import random_reads, real_shares, text_against_shards
from training.dataset import PackedDataset, PositionBatches, keep
from training.examples import AsMapping
from training.gather import Room
from training.loader import build_dataloader
from training.pin import Pin, open_pin
from training.stream import BatchStream

PEERS = ("datatrove", "datasets", "grain", "litdata", "mosaicml-streaming", "megatron-core", "ai2-olmo-core")


def direct(pin: Pin, batch: int, *, documents: bool) -> Read:
    """What the host does for a GPU: order, gather into a slot of the ring and, asked for, where documents begin and
    cu_seqlens, of which the GPU makes labels and position_ids."""
    dataset = PackedDataset(pin, isolate_documents=documents)
    room = Room(np.empty((batch, LENGTH + 1), dataset.dtype), 1 if documents else None)
    position = iter(range(0, 1 << 60, batch))

    def read() -> None:
        dataset.rows(next(position), batch, room)

    return read


def batches(pin: Pin, batch: int, *names: str, **how: Any) -> Read:
    """Whole batches on the CPU, int64, with the fields that are named."""
    made = iter(build_dataloader(pin, batch_size=batch, **how))
    return lambda: [getattr(one, name) for one in (next(made),) for name in names]


def standard(pin: Pin, batch: int, collate: Any) -> Read:
    """The stream of batches in a plain DataLoader without workers."""
    made = iter(DataLoader(BatchStream(PackedDataset(pin), batch), batch_size=None, collate_fn=collate))
    return lambda: next(made)


def by_index(pin: Pin, batch: int) -> Read:
    """The map-style dataset in a plain DataLoader without workers."""
    sampler = PositionBatches(batch, None)
    made = iter(DataLoader(PackedDataset(pin), batch_sampler=sampler, collate_fn=keep))  # type: ignore[arg-type]
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
        "DataLoader, map-style": by_index(pin, batch),
        "DataLoader, int64 mapping": standard(pin, batch, AsMapping("model", False)),
    }
    found = rates(batch * LENGTH, read)
    middle = {name: statistics.median(values) for name, values in found.items()}
    for name, values in found.items():
        spread = [float(f"{value / 1e6:.4g}") for value in (min(values), max(values))]
        report(f"{name}, B={batch}", middle[name] / 1e6, unit="Mtok/CPU s", n=ROUNDS, spread=spread)
    goal = {8: 0.5, 32: 0.4}[batch]
    ratio(f"direct path of a random gather, B={batch}", middle["direct"] / middle["take"], goal, "higher", "np.take")
    pairs = (("direct", "direct, documents"), ("batch", "batch, documents"), ("batch", "batch, position_ids"))
    for without, with_documents in pairs:
        cost = middle[without] / middle[with_documents]
        ratio(f"time of {with_documents} to {without}, B={batch}", cost, 1.25, "lower", without)
    return middle


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


def held_against_peers(pin: Pin) -> dict[int, dict[str, float]]:
    """B -> the direct path and a plain DataLoader, tokens a CPU second."""
    found = {}
    for batch in (8, 32):
        read = {"direct": direct(pin, batch, documents=False), "DataLoader": standard(pin, batch, keep)}
        found[batch] = {name: statistics.median(own) for name, own in rates(batch * LENGTH, read).items()}
    return found


def peers(python: str | None, folder: Path, pin: Pin) -> None:
    """Each peer in its own process, over a format of its own made of the same ids. What is held against it is measured
    before and after it, as the speed of a machine with other work changes within minutes."""
    best: dict[int, tuple[float, dict[str, float]]] = {}
    before = held_against_peers(pin)
    for name in PEERS:
        answers = peer_rates(python, name, folder)
        after = held_against_peers(pin)
        for batch, rate, why in answers:
            report(
                f"{name}, B={batch}",
                rate and rate / 1e6,
                unit="Mtok/CPU s",
                against=name,
                **({"why": why} if why else {}),
            )
            if rate is None:
                continue
            own = {what: (before[batch][what] + after[batch][what]) / 2 for what in after[batch]}
            best[batch] = max(best.get(batch, (0.0, own)), (rate, own), key=lambda one: one[0])
            if name == "megatron-core":
                ratio(f"direct path to megatron-core, B={batch}", own["direct"] / rate, 60, "higher", name)
        before = after
    for batch, (rate, own) in sorted(best.items()):
        ratio(f"direct path to the fastest peer, B={batch}", own["direct"] / rate, 10, "higher", "peers")
        ratio(f"plain DataLoader to the fastest peer, B={batch}", own["DataLoader"] / rate, 5, "higher", "peers")


def main(arguments: Sequence[str] = ()) -> None:
    """All figures of the loader."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loader", description=__doc__)
    parser.add_argument("--tokens", type=int, default=200_000_000)
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
        random_reads(asked.peers, pin, folder)
        text_against_shards(pin, folder, ours[8]["batch"])
        real_shares(pin)
        peers(asked.peers, folder, pin)
    why = "no CUDA device" if not torch.cuda.is_available() else "run: python -m benchmarks stall"
    report("data stall on a GPU", None, goal=0.01, better="lower", unit="share", why=why)


if __name__ == "__main__":
    main(sys.argv[1:])
