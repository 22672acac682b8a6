"""What a pin or a machine may do wrong while training reads: files that shrink, ids too large, memory not granted."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from tasks.artifacts.schedule import Schedule, Shard, Split, lay_stages
from tasks.artifacts.shards import ShardError
from tests.pin_maker import EOS, FINGERPRINT, lay_pin, small_pin
from training import gather, region
from training.dataset import PackedDataset, PositionBatches, keep
from training.encoders import pad_id
from training.loader import WorkerLoader, build_dataloader, capped
from training.pin import Pin, PinError, open_pin
from training.region import Region
from training.ring import pinned


@pytest.fixture
def pin(tmp_path: Path) -> Pin:
    return small_pin(tmp_path)


def read_all(pin: Pin) -> None:
    dataset = PackedDataset(pin, isolate_documents=True)
    dataset.locate(np.arange(2 * len(dataset)))


@pytest.mark.parametrize("suffix", [".bin", ".idx", ".starts.npy", ".stops.npy"])
def test_a_file_that_is_cut_off_is_named_when_it_is_opened(pin: Pin, suffix: str) -> None:
    read_all(pin)
    path = Path(f"{pin.shards('a', 'train')[1]}{suffix}")
    path.chmod(0o644)
    os.truncate(path, path.stat().st_size - 2)
    with pytest.raises(ShardError, match=rf"shard_00001{suffix}: expected \d+ bytes, found \d+; lay it anew"):
        read_all(pin)
    path.unlink()
    with pytest.raises(ShardError, match=f"shard_00001{suffix}: expected a file, found none"):
        read_all(pin)


@pytest.mark.parametrize("suffix", [".bin", ".idx", ".starts.npy", ".stops.npy"])
def test_a_shard_that_shrinks_while_it_is_read_stops_the_run_by_name(pin: Pin, suffix: str, monkeypatch) -> None:
    """Reading on would end the process with SIGBUS and no word; sizes are looked at again every few seconds."""
    monkeypatch.setattr(gather, "SECONDS_BETWEEN_LOOKS", 0.0)
    dataset = PackedDataset(pin)
    dataset.rows(0, 8)
    path = Path(f"{pin.shards('b', 'train')[0]}{suffix}")
    before = path.stat().st_size
    os.truncate(path, 10)
    with pytest.raises(ShardError, match=rf"shard_00000{suffix}: {before} bytes when it was opened, 10 now; fetch"):
        dataset.rows(10_000, 8)
    path.unlink()
    with pytest.raises(ShardError, match=rf"shard_00000{suffix}: {before} bytes when it was opened, 0 now; fetch"):
        dataset.rows(20_000, 8)


def test_a_shard_of_another_width_of_ids_is_refused(pin: Pin) -> None:
    path = Path(f"{pin.shards('a', 'train')[0]}.idx")
    data = bytearray(path.read_bytes())
    data[17] = 4
    path.write_bytes(data)
    with pytest.raises(ShardError, match=r"shard_00000.idx: expected uint16 as the mixture says, found int32"):
        read_all(pin)


def test_bounds_that_leave_the_stream_are_found_when_the_pin_is_verified(tmp_path: Path) -> None:
    """Opening a shard does not look at them: 16 bytes a sequence each time."""
    folder = lay_pin(tmp_path, {"a": {"train": [[[5] * 30 + [EOS]]]}})
    from tasks.artifacts.canonical import file_digest
    from tasks.artifacts.schedule import folder_content
    from tests.pin_maker import write_pin_json

    home = folder / "shard" / "a" / "train"
    stops = np.load(home / "shard_00000.stops.npy")
    stops[-1] = 99
    np.save(home / "shard_00000.stops.npy", stops)
    mixture = json.loads((folder / "mix" / "mixture.json").read_bytes())
    digests = {path.name: file_digest(path) for path in home.iterdir()}
    mixture["sources"]["a"]["train"]["content"] = folder_content(digests)
    (folder / "mix" / "mixture.json").write_text(json.dumps(mixture))
    write_pin_json(folder)
    with pytest.raises(PinError, match=r"stops.npy: expected sequence 3 to end after 24 and by 31, found 99"):
        open_pin(FINGERPRINT, tmp_path)


def test_ids_beyond_the_models_vocabulary_are_named_before_the_first_batch(tmp_path: Path) -> None:
    """Case 13: on a GPU they would be a device-side assertion that names nothing."""
    ids = [[1, 65_535, 65_536, 70_000, 128_255, EOS]]
    lay_pin(tmp_path, {"a": {"train": [ids]}}, vocab_size=128_256, dtype="int32")
    pin = open_pin(FINGERPRINT, tmp_path)
    assert next(iter(build_dataloader(pin, batch_size=1, vocab_size=128_256))).input_ids[0, :5].tolist() == ids[0][:5]
    with pytest.raises(ShardError, match=r"shard_00000.bin: id 128255 at 4 is not within 0 to 127999"):
        build_dataloader(pin, batch_size=1, vocab_size=128_000)


def test_a_mixture_that_asks_for_an_absent_source_is_refused(tmp_path: Path) -> None:
    folder = lay_pin(tmp_path, {"a": {"train": [[[5] * 30 + [EOS]]]}})
    mixture = json.loads((folder / "mix" / "mixture.json").read_bytes())
    mixture["stages"][0]["weights"]["gone"] = 1.0
    (folder / "mix" / "mixture.json").write_text(json.dumps(mixture))
    from tests.pin_maker import write_pin_json

    write_pin_json(folder)
    with pytest.raises(PinError, match="'gone', which has no sequences to train on"):
        open_pin(FINGERPRINT, tmp_path)


def test_memory_that_cannot_be_pinned_is_used_as_it_is_and_said(monkeypatch) -> None:
    def refused(self: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("out of locked memory")

    monkeypatch.setattr(torch.Tensor, "pin_memory", refused)
    tensor = torch.zeros(4, 8)
    with pytest.warns(UserWarning, match=r"128 bytes cannot be pinned \(out of locked memory\).*ulimit -l"):
        assert pinned(tensor) is tensor


def test_addresses_that_are_not_granted_are_an_error_with_the_mend(monkeypatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(region.mmap, "mmap", refused)
    with pytest.raises(ShardError, match="raise `ulimit -v`"):
        Region(1 << 20)


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_read_what_the_parent_has_mapped(pin: Pin, context: str) -> None:
    dataset = PackedDataset(pin)
    here = [dataset.__getitems__(range(at, at + 4)) for at in (0, 4)]
    batches = PositionBatches(4, 8)
    loader = DataLoader(dataset, batch_sampler=batches, collate_fn=keep, num_workers=1, multiprocessing_context=context)
    for expected, found in zip(here, loader, strict=True):
        assert torch.equal(expected.tokens_BT1.int(), found.tokens_BT1.int())


def test_more_workers_than_cores_are_not_started_and_fewer_than_none_refused() -> None:
    with pytest.warns(UserWarning, match="num_workers is 100000, there are"):
        assert 0 < capped(100_000) < 100_000
    with pytest.raises(ValueError, match="num_workers is -1; give 0 or more"):
        capped(-1)


@pytest.mark.parametrize("pad", [None, -1])
def test_a_pad_id_that_is_none_is_refused_with_the_mend(pad: int | None, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"the pad id is {pad}, no id of a vocabulary; pass one"):
        pad_id(pad)
    (tmp_path / "x.txt").write_text("a text")
    with pytest.raises(ValueError, match="pass one"):
        build_dataloader(tmp_path / "x.txt", pad)


def test_a_text_refuses_what_goes_with_a_pin_alone(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("a text")
    with pytest.raises(ValueError, match="device, steps go with a pin and not with a text; leave them out"):
        build_dataloader(tmp_path / "x.txt", 0, device="cuda", steps=3)


def test_lengths_that_the_pin_does_not_have_are_refused(pin: Pin) -> None:
    build_dataloader(pin, max_seq_len=8)
    with pytest.raises(
        ValueError, match=r"have 8 tokens and do not overlap.*max_seq_len=16 and stride=4; leave both out"
    ):
        build_dataloader(pin, max_seq_len=16, stride=4)


@pytest.fixture
def vast(tmp_path: Path) -> Pin:
    """10^9 sequences in 1,000 shards, which are one shard under as many names."""
    held, width, shards = 1_000_000, 8, 1000
    ids = np.tile(np.arange(3, 11, dtype="<u2"), held)[: held * width]
    ids = np.append(ids, ids[:1])
    from tests.pin_maker import index_bytes

    ids.tofile(tmp_path / "one.bin")
    sizes = np.full(len(ids) // 1000, 1000)
    (tmp_path / "one.idx").write_bytes(index_bytes(np.append(sizes, len(ids) % 1000), ids.dtype))
    starts = np.arange(0, held * width, width, dtype="<u8")
    np.save(tmp_path / "one.starts.npy", starts)
    np.save(tmp_path / "one.stops.npy", starts + np.uint64(width + 1))
    home = tmp_path / "pin" / "shard" / "a" / "train"
    home.mkdir(parents=True)
    for number in range(shards):
        for suffix in (".bin", ".idx", ".starts.npy", ".stops.npy"):
            (home / f"shard_{number:05d}{suffix}").symlink_to(tmp_path / f"one{suffix}")
    laid = tuple(Shard(f"shard_{number:05d}", held, len(ids)) for number in range(shards))
    sources = {"a": {"train": Split("0" * 64, held * shards, len(ids) * shards, laid)}}
    stages = lay_stages([(0, {"a": 1})], 1000, ["a"])
    schedule = Schedule(width, 100, "uint16", EOS, {"name": "t", "sha256": "0"}, 5, 1000, sources, stages)
    return Pin(tmp_path / "pin", FINGERPRINT, None, schedule)


def test_a_milliard_sequences_cost_no_memory_no_descriptors_and_no_start_up(vast: Pin, monkeypatch) -> None:
    located, locate = [], PackedDataset.locate
    monkeypatch.setattr(PackedDataset, "locate", lambda *asked: located.append(len(asked[1])) or locate(*asked))
    next(iter(build_dataloader(vast, batch_size=8, isolate_documents=True)))  # compiled code is loaded here
    located.clear()
    descriptors = len([*Path("/proc/self/fd").iterdir()])
    tracemalloc.start()
    loader = build_dataloader(vast, batch_size=8, isolate_documents=True)
    first = next(iter(loader))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 8 <= sum(located) <= 64, "sequences located for the first batch"
    assert first.input_ids.shape == (8, 8)
    assert len(loader.dataset) == 10**9
    assert most < 8_000_000, f"{most} bytes"
    for _, _batch in zip(range(300), loader, strict=False):
        pass
    assert len([*Path("/proc/self/fd").iterdir()]) <= descriptors + 2
    loader.load_state_dict({"position": 5 * 10**11, "fingerprint": FINGERPRINT, "order": "global"})
    assert next(iter(loader)).origins()[0].epoch == 500


def private_bytes(process: int) -> int:
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(("Private_Dirty", "Private_Clean")))


def test_workers_do_not_copy_the_index(tmp_path: Path, monkeypatch) -> None:
    """Case 37: 3,000,000 documents, 4 workers, one pass; what is theirs alone grows by less than 100 MB."""
    monkeypatch.setattr(torch._utils, "cpu_count", lambda: 64)
    documents = np.full(3_000_000, 6)
    from tasks.artifacts.canonical import file_digest
    from tasks.artifacts.schedule import folder_content
    from tests.pin_maker import index_bytes, write_pin_json

    home = tmp_path / "pins" / FINGERPRINT / "shard" / "a" / "train"
    home.mkdir(parents=True)
    ids = np.full(int(documents.sum()), 5, "<u2")
    ids.tofile(home / "shard_00000.bin")
    (home / "shard_00000.idx").write_bytes(index_bytes(documents, ids.dtype))
    starts = np.arange(0, len(ids) - 1, 512, dtype="<u8")
    np.save(home / "shard_00000.starts.npy", starts)
    np.save(home / "shard_00000.stops.npy", np.minimum(starts + np.uint64(513), np.uint64(len(ids))))
    content = folder_content({path.name: file_digest(path) for path in home.iterdir()})
    split = Split(content, len(starts), len(ids), (Shard("shard_00000", len(starts), len(ids)),))
    stages = lay_stages([(0, {"a": 1})], 64, ["a"])
    schedule = Schedule(512, 100, "uint16", EOS, {"name": "t", "sha256": "0"}, 5, 64, {"a": {"train": split}}, stages)
    folder = tmp_path / "pins" / FINGERPRINT
    (folder / "mix").mkdir()
    (folder / "mix" / "mixture.json").write_bytes(schedule.to_bytes())
    write_pin_json(folder)
    dataset = PackedDataset(open_pin(FINGERPRINT, tmp_path), isolate_documents=True)
    batches = PositionBatches(64, len(dataset) // 64 * 64)
    loader = WorkerLoader(dataset, batches, "shifted", torch.device("cpu"), 4, 2, False)
    seen = before = 0
    for batch in loader:
        seen += len(batch.input_ids)
        workers = [worker.pid for worker in loader.loader._iterator._workers]
        if seen == 64 * 40:
            before = sum(map(private_bytes, workers))
        if seen == len(dataset) // 64 * 64:
            grown = sum(map(private_bytes, workers)) - before
    assert seen > 30_000 and grown < 100_000_000, f"{grown} bytes"
