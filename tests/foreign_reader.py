"""What another project's reader finds in an export, as JSON: tests/test_foreign.py runs it in those projects' place.

`python foreign_reader.py READER PATH...`: the ids of every document or sequence, in order.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path


def megatron(prefix: str) -> list[list[int]]:
    from megatron.core.datasets.indexed_dataset import IndexedDataset

    held = IndexedDataset(prefix, mmap=True)
    return [held[at].tolist() for at in range(len(held))]


def datatrove(path: str) -> dict[str, list[list[int]]]:
    from datatrove.utils.dataset import DatatroveFileDataset

    held = DatatroveFileDataset(path, seq_len=7, token_size=2, return_positions=True)
    rows = [held[at] for at in range(len(held))]
    return {name: [row[name].tolist() for row in rows] for name in ("input_ids", "positions")}


def mds(folder: str) -> dict[str, list[list[int]]]:
    sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
    from without_torchvision import leave_out

    leave_out()
    from streaming import StreamingDataset

    held = StreamingDataset(local=folder, shuffle=False, batch_size=1)
    rows = [held[at] for at in range(len(held))]
    return {name: [row[name].tolist() for row in rows] for name in ("tokens", "labels")}


def huggingface(folder: str) -> dict[str, list[list[int]]]:
    from datasets import load_dataset

    held = load_dataset("parquet", data_files=f"{folder}/*.parquet", split="train")
    return {name: held[name][:] for name in ("input_ids", "labels")}


READERS: dict[str, Callable[[str], object]] = {
    "megatron": megatron,
    "datatrove": datatrove,
    "mds": mds,
    "huggingface": huggingface,
}

if __name__ == "__main__":
    print(json.dumps(READERS[sys.argv[1]](sys.argv[2])))
