"""One peer of benchmarks.loader, in the peers' environment: `python loader_peers.py NAME FOLDER B [B...]`.

In: the folder that benchmarks.loader laid. Out: one line, [[B, tokens a CPU second], ...] as JSON. Each reads 2,048
tokens a row in random order in one process, from a format of its own made of the same ids. Imports nothing of ours.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

LENGTH, ROUNDS, SECONDS, EOS, VOCABULARY = 2048, 3, 0.4, 2, 50_000


def prefixes(folder: Path) -> list[str]:
    return [str(path)[:-4] for path in sorted((folder / "pins").rglob("train/*.bin"))]


def rows_of(folder: Path) -> np.ndarray:
    flat = np.concatenate([np.fromfile(f"{prefix}.bin", "<u2") for prefix in prefixes(folder)])
    return flat[: len(flat) // LENGTH * LENGTH].reshape(-1, LENGTH)


def endless(make: Callable[[], Any]) -> Iterator[Any]:
    while True:
        yield from make()


def torch_loader(dataset: Any, batch: int, **more: Any) -> Iterator[Any]:
    from torch.utils.data import DataLoader

    return endless(lambda: DataLoader(dataset, batch_size=batch, drop_last=True, **more))


def datatrove(folder: Path, batch: int) -> Iterator[Any]:
    from datatrove.utils.dataset import DatatroveFolderDataset

    home = folder / "datatrove"
    if not home.exists():
        home.mkdir()
        rows_of(folder).ravel().astype("<u2").tofile(home / "tokens.ds")
    dataset = DatatroveFolderDataset(str(home), LENGTH, shuffle=True, seed=1, token_size=2, recursive=False)
    return torch_loader(dataset, batch)


def datasets(folder: Path, batch: int) -> Iterator[Any]:
    import datasets as library
    import pyarrow as pa

    home = folder / "datasets"
    if not home.exists():
        rows = rows_of(folder)
        table = pa.table({"ids": pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), LENGTH)})
        library.Dataset(table).save_to_disk(str(home))
    dataset = library.load_from_disk(str(home)).with_format("numpy")
    order = np.random.default_rng(1)

    def read() -> Iterator[Any]:
        yield np.asarray(dataset[order.integers(0, len(dataset), batch).tolist()]["ids"], np.int64)

    return endless(read)


def grain(folder: Path, batch: int) -> Iterator[Any]:
    import grain as library

    rows = rows_of(folder)
    return endless(lambda: library.MapDataset.source(rows).seed(1).shuffle().batch(batch))


def litdata(folder: Path, batch: int) -> Iterator[Any]:
    from litdata import StreamingDataset, TokensLoader
    from litdata.streaming.writer import BinaryWriter

    home = folder / "litdata"
    if not home.exists():
        import torch

        home.mkdir()
        writer = BinaryWriter(str(home), chunk_bytes="64MB", item_loader=TokensLoader(LENGTH))
        for number, part in enumerate(np.array_split(rows_of(folder), 200)):
            writer[number] = torch.from_numpy(part.ravel().copy())
        writer.done()
        writer.merge()
    dataset = StreamingDataset(str(home), item_loader=TokensLoader(LENGTH), shuffle=True, drop_last=True)
    return torch_loader(dataset, batch)


def mosaicml(folder: Path, batch: int) -> Iterator[Any]:
    from without_torchvision import leave_out

    leave_out()
    from streaming import MDSWriter, StreamingDataset

    home = folder / "mds"
    if not home.exists():
        with MDSWriter(out=str(home), columns={"ids": f"ndarray:uint16:{LENGTH}"}) as writer:
            for row in rows_of(folder):
                writer.write({"ids": row})
    dataset = StreamingDataset(local=str(home), shuffle=True, shuffle_algo="py1e", batch_size=batch)
    return torch_loader(dataset, batch, collate_fn=lambda rows: np.stack([row["ids"].astype(np.int64) for row in rows]))


def megatron(folder: Path, batch: int) -> Iterator[Any]:
    from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
    from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
    from torch import distributed

    class Tokenizer:
        eod, pad, vocab_size, unique_identifiers = EOS, 0, VOCABULARY, {"class": "none"}

    if distributed.is_initialized():
        distributed.destroy_process_group()
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    config = GPTDatasetConfig(
        random_seed=1, sequence_length=LENGTH, blend=(prefixes(folder), None), split="1,0,0",
        reset_position_ids=False, reset_attention_mask=False, eod_mask_loss=False, create_attention_mask=False,
        tokenizer=Tokenizer(), path_to_cache=str(folder / "megatron"),
    )  # fmt: skip
    dataset = BlendedMegatronDatasetBuilder(GPTDataset, [20_000, 0, 0], lambda: True, config).build()[0]
    return torch_loader(dataset, batch)


def olmo(folder: Path, batch: int) -> Iterator[Any]:
    from olmo_core.data import NumpyDataLoaderConfig, NumpyFSLDatasetConfig, TokenizerConfig

    home = folder / "olmo"
    home.mkdir(exist_ok=True)
    rows_of(folder).ravel().astype("<u2").tofile(home / "tokens.npy")
    tokenizer = TokenizerConfig(vocab_size=VOCABULARY, eos_token_id=EOS, pad_token_id=0)
    dataset = NumpyFSLDatasetConfig(
        tokenizer=tokenizer, paths=[str(home / "tokens.npy")], sequence_length=LENGTH, work_dir=str(home / "work")
    ).build()
    loader = NumpyDataLoaderConfig(global_batch_size=batch * LENGTH, seed=1, num_threads=0).build(dataset)
    epoch = iter(range(1, 1 << 30))

    def read() -> Any:
        loader.reshuffle(epoch=next(epoch))
        return loader

    return endless(read)


def hdf5(folder: Path, batch: int) -> Iterator[Any]:
    """Rows one after another in random order, from a data set without chunks: the fastest that HDF5 has for them."""
    import h5py

    home = folder / "rows.h5"
    if not home.exists():
        with h5py.File(home, "w") as file:
            file.create_dataset("ids", data=rows_of(folder))
    held, order = h5py.File(home)["ids"], np.random.default_rng(1)
    return endless(lambda: [held[row] for row in order.integers(0, len(held), batch).tolist()][-1:])


PEERS = {
    "datatrove": datatrove, "datasets": datasets, "grain": grain, "litdata": litdata, "mosaicml-streaming": mosaicml,
    "megatron-core": megatron, "ai2-olmo-core": olmo, "hdf5": hdf5,
}  # fmt: skip


def rate(batches: Iterator[Any], batch: int) -> float:
    for _ in range(10):
        next(batches)
    found = []
    for _ in range(ROUNDS):
        begun, turns = time.process_time(), 0
        while time.process_time() - begun < SECONDS:
            next(batches)
            turns += 1
        found.append(turns * batch * LENGTH / (time.process_time() - begun))
    return statistics.median(found)


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)
    name, folder, batches = sys.argv[1], Path(sys.argv[2]), map(int, sys.argv[3:])
    print(json.dumps([[batch, rate(PEERS[name](folder, batch), batch)] for batch in batches]))
