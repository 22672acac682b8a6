"""benchmarks.loader's figures of formats: shards beside Parquet, JSON Lines, HDF5 and plain text, and what padding
takes of a batch. In: the pin and a folder. Out: figures. It measures no loader.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.loader_corpus import LENGTH
from benchmarks.loader_figures import ROUNDS, peer_rates, rates, report
from tasks.artifacts.shards import ShardIndex, ShardReader
from training.dataset import PackedDataset
from training.pin import Pin


def random_reads(python: str | None, pin: Pin, folder: Path) -> None:
    """Single rows in random order, copied into memory: the shards' files without the loader, over all of them, against
    other formats of the same ids. Tokens a CPU second."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = 1024
    shards = [ShardReader(path.parent, path.name) for path in pin.shards("a", "train")]
    tokens = PackedDataset(pin).__getitems__(range(rows)).tokens_BT1.numpy().astype(np.int32)
    table = pa.table({"ids": pa.FixedSizeListArray.from_arrays(pa.array(tokens.ravel()), LENGTH + 1)})
    pq.write_table(table, folder / "rows.parquet", row_group_size=64)
    lines = [json.dumps(row.tolist()).encode() + b"\n" for row in tokens]
    (folder / "rows.jsonl").write_bytes(b"".join(lines))
    ends = np.cumsum([len(line) for line in lines])
    parquet, at = pq.ParquetFile(folder / "rows.parquet"), _random_numbers(rows)
    of_all = _random_numbers(len(shards) * min(map(len, shards)))

    def from_shards() -> None:
        row, shard = divmod(next(of_all), len(shards))
        np.array(shards[shard].sequence(row))

    def from_parquet() -> None:
        row = next(at)
        parquet.read_row_group(row // 64, ["ids"])["ids"][row % 64].values.to_numpy()

    def from_lines() -> None:
        row = next(at)
        with (folder / "rows.jsonl").open("rb") as file:
            file.seek(int(ends[row - 1]) if row else 0)
            np.array(json.loads(file.readline()), np.int32)

    reads = {".bin": from_shards, "Parquet": from_parquet, "JSON Lines": from_lines}
    middle = {name: statistics.median(values) for name, values in rates(LENGTH, reads).items()}
    for name in ("Parquet", "JSON Lines"):
        report(f".bin to {name}, single rows", middle[".bin"] / middle[name], unit="x", against=name, n=ROUNDS)
    [(_, rate, why)] = peer_rates(python, "hdf5", folder, batches=(1,))
    ratio = middle[".bin"] / rate if rate else None
    report(".bin to HDF5, single rows", ratio, unit="x", against="h5py", **({"why": why} if why else {}))


def _random_numbers(below: int) -> Iterator[int]:
    return iter(np.random.default_rng(2).integers(0, below, 1 << 20).tolist())


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
