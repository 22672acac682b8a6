"""The files of one shard as other trainers read them.

In: a shard of a pin. Out: files in the export's folder; every form gives back how many sequences the shard holds.

megatron     <source>_<split>_shard_00000.bin and .idx, as Megatron's IndexedDataset reads them
datatrove    <source>_<split>_shard_00000.ds (the ids), .ds.index (uint64: where each document ends), .ds.metadata and,
             where some id is not learnt, .ds.loss, as DatatroveFileDataset reads them, in windows of its own
npy          <source>_<split>_shard_00000.{ids,starts,stops}.npy, and .loss.npy where some id is not learnt
huggingface  <split>/<source>_shard_00000.parquet, a row a sequence: source, input_ids, labels (-100 where there is no
             loss; the model shifts), as datasets.load_dataset("parquet", ...) reads them
mds          <split>/<source>/index.json and shard.00000.mds, a stream of sequences: tokens, labels (as above), int32,
             as streaming.StreamingDataset reads them (MDS version 2)
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tasks.artifacts.shards import ShardReader

IGNORED = -100
SEQUENCES = pa.schema([("source", pa.string()), ("input_ids", pa.list_(pa.int32())), ("labels", pa.list_(pa.int32()))])
ROWS = 1024
MDS_BYTES = 1 << 26
"""About the size of an MDS shard, which its reader fetches and holds whole; its offsets are uint32."""

MDS_COLUMNS = ("labels", "tokens")

Ids = np.ndarray[Any, Any]


def _megatron(folder: Path, source: str, split: str, path: Path, shard: ShardReader) -> int:
    for suffix in (".bin", ".idx"):
        shutil.copyfile(f"{path}{suffix}", folder / f"{source}_{split}_{path.name}{suffix}")
    return len(shard)


def _datatrove(folder: Path, source: str, split: str, path: Path, shard: ShardReader) -> int:
    name = folder / f"{source}_{split}_{path.name}.ds"
    shutil.copyfile(f"{path}.bin", name)
    np.cumsum(shard.index.sizes, dtype="<u8").tofile(f"{name}.index")
    facts = [f"gristmill|{shard.dtype.itemsize}", str(len(shard.tokens)), f"{len(shard.tokens):,} tokens"]
    Path(f"{name}.metadata").write_text("\n".join(facts), encoding="utf-8")
    if shard.loss is not None:
        shutil.copyfile(f"{path}.loss", f"{name}.loss")
    return len(shard)


def _npy(folder: Path, source: str, split: str, path: Path, shard: ShardReader) -> int:
    arrays = {"ids": shard.tokens, "starts": shard.starts, "stops": shard.stops, "loss": shard.loss}
    for name, values in arrays.items():
        if values is not None:
            np.save(folder / f"{source}_{split}_{path.name}.{name}.npy", values)
    return len(shard)


def _huggingface(folder: Path, source: str, split: str, path: Path, shard: ShardReader) -> int:
    (folder / split).mkdir(exist_ok=True)
    with pq.ParquetWriter(folder / split / f"{source}_{path.name}.parquet", SEQUENCES, compression="zstd") as writer:
        for ids, labels in _batches(shard):
            rows = {"source": [source] * len(ids), "input_ids": ids, "labels": labels}
            writer.write_table(pa.table(rows, schema=SEQUENCES))
    return len(shard)


def _mds(folder: Path, source: str, split: str, path: Path, shard: ShardReader) -> int:
    home = folder / split / source
    home.mkdir(parents=True, exist_ok=True)
    samples: list[bytes] = []
    for ids, labels in _batches(shard):
        samples += [_mds_sample(*columns) for columns in zip(labels, ids, strict=True)]
        if sum(map(len, samples)) >= MDS_BYTES:
            _mds_shard(home, samples)
            samples = []
    if samples:
        _mds_shard(home, samples)
    return len(shard)


def _mds_sample(*columns: Ids) -> bytes:
    """uint32 [columns]: bytes of each. Then each: a byte for "one axis, length in uint32", the length, the values."""
    data = [bytes([1 << 2 | 2]) + np.uint32(len(column)).tobytes() + column.tobytes() for column in columns]
    return np.array([len(each) for each in data], "<u4").tobytes() + b"".join(data)


def _mds_shard(home: Path, samples: list[bytes]) -> None:
    """uint32 number; uint32 [number + 1]: where each sample begins, and the end; the columns as JSON; the samples."""
    index = home / "index.json"
    shards: list[dict[str, Any]] = json.loads(index.read_bytes())["shards"] if index.exists() else []
    columns = {
        "column_encodings": ["ndarray:int32"] * 2,
        "column_names": ["labels", "tokens"],
        "column_sizes": [None] * 2,
    }
    facts = {**columns, "compression": None, "format": "mds", "hashes": [], "size_limit": MDS_BYTES, "version": 2}
    header = json.dumps(facts, sort_keys=True).encode()
    begin = 4 + 4 * (len(samples) + 1) + len(header)
    offsets = begin + np.cumsum([0, *map(len, samples)])
    content = np.uint32(len(samples)).tobytes() + offsets.astype("<u4").tobytes() + header + b"".join(samples)
    name = f"shard.{len(shards):05d}.mds"
    (home / name).write_bytes(content)
    raw = {"basename": name, "bytes": len(content), "hashes": {}}
    shards.append({**facts, "raw_data": raw, "samples": len(samples), "zip_data": None})
    index.write_text(json.dumps({"shards": shards, "version": 2}, sort_keys=True), encoding="utf-8")


def _batches(shard: ShardReader) -> Iterator[tuple[list[Ids], list[Ids]]]:
    """(ids, labels) of up to ROWS sequences, int32 [at most T + 1] each."""
    for first in range(0, len(shard), ROWS):
        bounds = zip(shard.starts[first : first + ROWS].tolist(), shard.stops[first : first + ROWS], strict=True)
        spans_of = [slice(start, int(stop)) for start, stop in bounds]
        ids = [shard.tokens[span].astype("<i4") for span in spans_of]
        labels = ids
        if shard.loss is not None:
            labels = [
                np.where(shard.loss[span], own, IGNORED).astype("<i4") for span, own in zip(spans_of, ids, strict=True)
            ]
        yield ids, labels


Form = Callable[[Path, str, str, Path, ShardReader], int]
FORMS: dict[str, Form] = {
    "megatron": _megatron,
    "datatrove": _datatrove,
    "npy": _npy,
    "huggingface": _huggingface,
    "mds": _mds,
}
