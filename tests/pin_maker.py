"""Pins for tests: shards of known documents, a mixture and a pin.json, laid as a release would lay them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from tasks.artifacts.canonical import file_digest
from tasks.artifacts.schedule import Schedule, Shard, Split, folder_content, lay_stages, sources_to_train
from tasks.artifacts.shards import index_bytes
from training.pin import Pin, open_pin

FINGERPRINT = "ab" * 32
EOS = 2


def write_shard(folder: Path, name: str, documents: list[list[int]], width: int, dtype: str) -> Shard:
    """Sequences of `width` + 1 ids, neighbours sharing one; the last may be short, down to two ids."""
    folder.mkdir(parents=True, exist_ok=True)
    flat = np.array([token for document in documents for token in document], np.dtype(dtype).newbyteorder("<"))
    flat.tofile(folder / f"{name}.bin")
    sizes = np.array([len(document) for document in documents])
    (folder / f"{name}.idx").write_bytes(index_bytes(sizes, flat.dtype))
    starts = np.arange(0, max(0, len(flat) - 1), width, dtype="<u8")
    np.save(folder / f"{name}.starts.npy", starts)
    np.save(folder / f"{name}.stops.npy", np.minimum(starts + np.uint64(width + 1), np.uint64(len(flat))))
    return Shard(name, len(starts), len(flat))


def lay_pin(
    root: Path,
    corpus: dict[str, dict[str, list[list[list[int]]]]],
    *,
    width: int = 8,
    stages: list | None = None,
    period: int = 64,
    vocab_size: int = 1000,
    dtype: str = "uint16",
    seed: int = 5,
    losses: dict[str, list[int]] | None = None,
    fingerprint: str = FINGERPRINT,
    name: str | None = None,
) -> Path:
    """corpus: source -> split -> shards, each a list of documents; losses: source -> the bytes of .loss of its only
    shard; gives the folder of the pin."""
    folder = root / "pins" / fingerprint
    sources: dict[str, dict[str, Split]] = {}
    for source, splits in corpus.items():
        for split, shards in splits.items():
            home = folder / "shard" / source / split
            made = [write_shard(home, f"shard_{i:05d}", docs, width, dtype) for i, docs in enumerate(shards)]
            if source in (losses or {}):
                (home / "shard_00000.loss").write_bytes(bytes(losses[source]))
            digests = {path.name: file_digest(path) for path in home.iterdir()}
            counts = (sum(shard.sequences for shard in made), sum(shard.tokens for shard in made))
            sources.setdefault(source, {})[split] = Split(folder_content(digests), *counts, tuple(made))
    trained = sources_to_train(sources)
    laid = lay_stages(stages or [(0, dict.fromkeys(trained, 1))], period, trained)
    schedule = Schedule(width, vocab_size, dtype, EOS, {"name": "t", "sha256": "0"}, seed, period, sources, laid)
    (folder / "mix").mkdir(parents=True)
    (folder / "mix" / "mixture.json").write_bytes(schedule.to_bytes())
    write_pin_json(folder, name)
    return folder


def write_pin_json(folder: Path, name: str | None = None) -> dict:
    """pin.json over the files that lie there now."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "pin.json")
    files = {
        path.relative_to(folder).as_posix(): {"sha256": file_digest(path), "bytes": path.stat().st_size}
        for path in paths
    }
    content = {"format": 1, "fingerprint": folder.name, "name": name, "files": files}
    (folder / "pin.json").write_text(json.dumps(content))
    return content


def small_pin(root: Path, **changes) -> Pin:
    """Sources a (two shards) and b, each id used once, with short tails; 5 validation sequences."""
    ids = iter(range(10, 60_000))

    def documents(*lengths: int) -> list[list[int]]:
        return [[next(ids) for _ in range(length - 1)] + [EOS] for length in lengths]

    corpus = {
        "a": {"train": [documents(5, 30, 3, 60), documents(100, 21)], "validation": [documents(20, 16)]},
        "b": {"train": [documents(*[7] * 30)]},
        "empty": {"train": [[[EOS]]]},
    }
    lay_pin(root, corpus, **changes)
    return open_pin(FINGERPRINT[:8], root)
