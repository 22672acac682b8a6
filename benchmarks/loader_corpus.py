"""A pin of random ids for benchmarks.loader: lognormal documents, 8 shards, sequences of 2,048 tokens."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from tasks.artifacts.canonical import file_digest
from tasks.artifacts.schedule import Schedule, Shard, Split, folder_content, lay_stages
from tasks.artifacts.shards import index_bytes
from training.pin import Pin, open_pin

LENGTH, SHARDS, EOS, VOCABULARY = 2048, 8, 2, 50_000
FINGERPRINT = "ab" * 32


def lay(root: Path, tokens: int) -> Pin:
    """The pin below `root`, verified."""
    folder = root / "pins" / FINGERPRINT
    home = folder / "shard" / "a" / "train"
    home.mkdir(parents=True)
    random = np.random.default_rng(0)
    shards = [_shard(home, f"shard_{number:05d}", tokens // SHARDS, random) for number in range(SHARDS)]
    content = folder_content({path.name: file_digest(path) for path in home.iterdir()})
    split = Split(content, sum(one.sequences for one in shards), sum(one.tokens for one in shards), tuple(shards))
    (folder / "mix").mkdir()
    (folder / "mix" / "mixture.json").write_bytes(_schedule({"a": {"train": split}}, LENGTH).to_bytes())
    files = {
        path.relative_to(folder).as_posix(): {"sha256": file_digest(path), "bytes": path.stat().st_size}
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    (folder / "pin.json").write_text(
        json.dumps({"format": 1, "fingerprint": FINGERPRINT, "name": None, "files": files})
    )
    return open_pin(FINGERPRINT, root)


def lay_vast(root: Path) -> Pin:
    """10^9 sequences of 8 tokens in 1,000 shards, which are one shard under as many names; not verified."""
    held, width, shards = 1_000_000, 8, 1000
    root.mkdir()
    ids = np.resize(np.arange(3, 11, dtype="<u2"), held * width + 1)
    ids.tofile(root / "one.bin")
    (root / "one.idx").write_bytes(index_bytes(np.append(np.full(len(ids) // 1000, 1000), len(ids) % 1000), ids.dtype))
    starts = np.arange(0, held * width, width, dtype="<u8")
    np.save(root / "one.starts.npy", starts)
    np.save(root / "one.stops.npy", starts + np.uint64(width + 1))
    home = root / "shard" / "a" / "train"
    home.mkdir(parents=True)
    for number in range(shards):
        for suffix in (".bin", ".idx", ".starts.npy", ".stops.npy"):
            (home / f"shard_{number:05d}{suffix}").symlink_to(root / f"one{suffix}")
    laid = tuple(Shard(f"shard_{number:05d}", held, len(ids)) for number in range(shards))
    split = Split("0" * 64, held * shards, len(ids) * shards, laid)
    return Pin(root, FINGERPRINT, None, _schedule({"a": {"train": split}}, width))


def _shard(home: Path, name: str, tokens: int, random: np.random.Generator) -> Shard:
    sizes = np.exp(random.normal(6, 1.2, tokens // 400)).clip(2, 50_000).astype(np.int64)
    sizes = sizes[: int(np.searchsorted(np.cumsum(sizes), tokens))]
    ids = random.integers(3, VOCABULARY, int(sizes.sum())).astype("<u2")
    ids[np.cumsum(sizes) - 1] = EOS
    ids.tofile(home / f"{name}.bin")
    (home / f"{name}.idx").write_bytes(index_bytes(sizes, ids.dtype))
    starts = np.arange(0, len(ids) - 1, LENGTH, dtype="<u8")
    np.save(home / f"{name}.starts.npy", starts)
    np.save(home / f"{name}.stops.npy", np.minimum(starts + np.uint64(LENGTH + 1), np.uint64(len(ids))))
    return Shard(name, len(starts), len(ids))


def _schedule(sources: dict[str, dict[str, Split]], width: int) -> Schedule:
    stages = lay_stages([(0, {"a": 1})], 1000, ["a"])
    return Schedule(width, VOCABULARY, "uint16", EOS, {"name": "none", "sha256": "0"}, 5, 1000, sources, stages)
