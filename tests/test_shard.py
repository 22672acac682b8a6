"""shard: files that Megatron's format describes, sizes that must fit, ids that must not wrap."""

import json
import struct
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.artifacts.documents import DOCUMENTS, TEXT
from tasks.artifacts.manifest import Entry
from tasks.artifacts.shards import ShardError, ShardIndex, ShardReader, checked_ids, index_bytes
from tasks.artifacts.tokens import PIECES, SEQUENCES, token_dtype
from tasks.errors import InvariantError
from tasks.shard import STEP, invariants, rows
from tasks.shard import sequences as sequences_folder
from tasks.shard import stream as stream_folder
from tasks.shard.planning import plan_sequences, plan_stream
from tests.memory_reads import MemoryReads

CASES = Path(__file__).parent.parent.parent / "shared/cases"
U2, I4 = np.dtype("<u2"), np.dtype("<i4")


def parsed(data):
    """An independent reader of a .idx, from the description of the format."""
    assert data[:9] == b"MMIDIDX\x00\x00"
    (version,) = struct.unpack_from("<Q", data, 9)
    (code,) = struct.unpack_from("<B", data, 17)
    sequences, documents = struct.unpack_from("<QQ", data, 18)
    sizes = struct.unpack_from(f"<{sequences}i", data, 34)
    pointers = struct.unpack_from(f"<{sequences}q", data, 34 + 4 * sequences)
    indices = struct.unpack_from(f"<{documents}q", data, 34 + 12 * sequences)
    assert len(data) == 34 + 12 * sequences + 8 * documents
    return version, code, sizes, pointers, indices


# --- the format -----------------------------------------------------------------------------------------


def test_the_index_byte_by_byte():
    expected = (
        b"MMIDIDX\x00\x00" + b"\x01" + b"\0" * 7 + b"\x08" + b"\x02" + b"\0" * 7 + b"\x03" + b"\0" * 7
        + b"\x03\0\0\0" + b"\x01\0\0\0" + b"\0" * 8 + b"\x06" + b"\0" * 7
        + b"\0" * 8 + b"\x01" + b"\0" * 7 + b"\x02" + b"\0" * 7
    )  # fmt: skip
    assert index_bytes(np.array([3, 1]), U2) == expected


@given(st.lists(st.integers(1, 1 << 20), max_size=40), st.sampled_from([U2, I4]))
def test_an_independent_reader_agrees(sizes, dtype):
    version, code, read_sizes, pointers, indices = parsed(index_bytes(np.array(sizes, np.int64), dtype))
    assert (version, code) == (1, {U2: 8, I4: 4}[dtype])
    assert list(read_sizes) == sizes
    assert list(pointers) == [sum(sizes[:at]) * dtype.itemsize for at in range(len(sizes))]
    assert list(indices) == list(range(len(sizes) + 1))


def test_pointers_beyond_two_gib():
    sizes = np.full(3, 1 << 30, np.int64)
    assert parsed(index_bytes(sizes, I4))[3] == (0, 1 << 32, 1 << 33)


@pytest.mark.parametrize("sizes", [[0], [1, 1 << 31], [-1]])
def test_sizes_without_a_place_are_refused(sizes):
    with pytest.raises(ShardError, match="the index holds 1 to 2147483647"):
        index_bytes(np.array(sizes), U2)


def test_uint32_has_no_code():
    with pytest.raises(ShardError, match="dtype uint32 has no code"):
        index_bytes(np.array([1]), np.dtype("<u4"))


# --- ids ------------------------------------------------------------------------------------------------


def test_an_id_that_does_not_fit_is_named():
    with pytest.raises(ShardError, match=r"g: id 65536 at 1 is not within 0 to 65535 \(vocabulary of 70000, uint16\)"):
        checked_ids("g", np.array([1, 65_536]), U2, 70_000)
    with pytest.raises(ShardError, match="id -1 at 0"):
        checked_ids("g", np.array([-1]), I4, 70_000)
    assert checked_ids("g", np.array([0, 65_535]), U2, 65_536).dtype == U2
    assert checked_ids("g", np.array([], np.int64), U2, 65_536).dtype == U2


def test_case_13_width_and_range(tmp_path):
    path = CASES / "13-id-width-and-range"
    if not path.is_dir():
        pytest.skip("the shared cases are not here")
    given, wanted = (json.loads((path / name).read_text()) for name in ("ids.json", "expect.json"))
    ids = np.array(given["ids"])
    dtype = token_dtype(max(given["ids"]) + 1)
    lay(tmp_path, checked_ids("x", ids, dtype, max(given["ids"]) + 1), [len(ids)])
    reader = ShardReader(tmp_path, "shard_00000")
    assert reader.tokens.tolist() == wanted["roundtrip"]
    with pytest.raises(ShardError, match=r"shard_00000.bin: id 128255 at 4 .*vocabulary of 128000"):
        reader.check_ids(given["model_vocab"])
    with pytest.raises(ShardError):
        checked_ids("x", ids, U2, max(given["ids"]) + 1)


# --- reading --------------------------------------------------------------------------------------------


def lay(folder, ids, sizes, starts=(0,), stops=None):
    (folder / "shard_00000.bin").write_bytes(ids.tobytes())
    (folder / "shard_00000.idx").write_bytes(index_bytes(np.array(sizes), ids.dtype))
    np.save(folder / "shard_00000.starts.npy", np.array(starts, "<u8"))
    np.save(folder / "shard_00000.stops.npy", np.array((len(ids),) if stops is None else stops, "<u8"))


def test_a_shard_reads_back_without_a_copy(tmp_path):
    lay(tmp_path, np.arange(10, dtype=U2), [4, 6], [0, 4, 8], [5, 9, 10])
    reader = ShardReader(tmp_path, "shard_00000")
    assert len(reader) == 3
    assert reader.sequence(1).tolist() == [4, 5, 6, 7, 8]
    assert reader.index.sizes.tolist() == [4, 6]
    assert reader.index.pointers.tolist() == [0, 8]
    assert type(reader.tokens) is np.ndarray
    assert not reader.tokens.flags.owndata
    assert not reader.tokens.flags.writeable
    reader.index.verify()
    reader.check_ids(10)


def test_case_38_the_last_document_of_a_sparse_shard_of_five_gib(tmp_path):
    """Ids, bytes and sequences beyond 2^31 and 2^32: 5 documents of 2^28 - 1 int32 and one of 7."""
    sizes = np.array([*[(1 << 28) - 1] * 5, 7])
    total, last = int(sizes.sum()), np.array([5, 6, 7, 8, 9, 10, 2], I4)
    with (tmp_path / "shard_00000.bin").open("wb") as file:
        file.truncate(4 * total)
        file.seek(4 * (total - 7))
        file.write(last.tobytes())
    (tmp_path / "shard_00000.idx").write_bytes(index_bytes(sizes, I4))
    np.save(tmp_path / "shard_00000.starts.npy", np.array([0, total - 7], "<u8"))
    np.save(tmp_path / "shard_00000.stops.npy", np.array([513, total], "<u8"))
    reader = ShardReader(tmp_path, "shard_00000")
    reader.verify()
    assert (4 * total, reader.index.tokens) == (5 * (1 << 30) + 8, total)
    assert reader.index.pointers[-1] == 4 * (total - 7) > 1 << 32
    assert reader.sequence(1).tolist() == last.tolist()
    assert reader.sequence(0).tolist() == [0] * 513


def test_case_38_columns_of_text_have_offsets_of_64_bits():
    for schema in (DOCUMENTS, TEXT):
        assert schema.field("text").type == pa.large_string()


def test_an_empty_shard(tmp_path):
    lay(tmp_path, np.empty(0, U2), np.empty(0, int), [], [])
    reader = ShardReader(tmp_path, "shard_00000")
    assert (len(reader), len(reader.tokens)) == (0, 0)


def cut(path, by=1):
    path.write_bytes(path.read_bytes()[:-by])


def grown(path):
    path.write_bytes(path.read_bytes() + b"\0")


@pytest.mark.parametrize("suffix", [".bin", ".idx", ".starts.npy", ".stops.npy"])
@pytest.mark.parametrize("damage", [cut, Path.unlink])
def test_a_damaged_shard_is_named(tmp_path, suffix, damage):
    lay(tmp_path, np.arange(10, dtype=U2), [4, 6])
    damage(tmp_path / f"shard_00000{suffix}")
    with pytest.raises(ShardError, match=rf"shard_00000{suffix}: expected .*, found .*; lay it anew"):
        ShardReader(tmp_path, "shard_00000")


@pytest.mark.parametrize("suffix", [".bin", ".idx"])
def test_a_longer_file_is_named(tmp_path, suffix):
    lay(tmp_path, np.arange(10, dtype=U2), [4, 6])
    grown(tmp_path / f"shard_00000{suffix}")
    with pytest.raises(ShardError, match=r"expected \d+ bytes, found \d+"):
        ShardReader(tmp_path, "shard_00000")


def test_a_truncated_bin_says_how_many_bytes(tmp_path):
    lay(tmp_path, np.arange(10, dtype=U2), [4, 6])
    cut(tmp_path / "shard_00000.bin", 3)
    with pytest.raises(ShardError, match=r"shard_00000\.bin: expected 20 bytes, found 17"):
        ShardReader(tmp_path, "shard_00000")


@pytest.mark.parametrize(
    ("at", "byte"), [(0, b"X"), (9, b"\x02"), (17, b"\x05"), (18, b"\x07"), (26, b"\x09"), (25, b"\xff")]
)
def test_a_false_header_is_named(tmp_path, at, byte):
    lay(tmp_path, np.arange(10, dtype=U2), [4, 6])
    path = tmp_path / "shard_00000.idx"
    data = path.read_bytes()
    path.write_bytes(data[:at] + byte + data[at + 1 :])
    with pytest.raises(ShardError, match=r"shard_00000\.idx: expected"):
        ShardIndex.open(path)


def test_a_false_pointer_is_found_by_verify(tmp_path):
    lay(tmp_path, np.arange(10, dtype=U2), [4, 6])
    path = tmp_path / "shard_00000.idx"
    data = bytearray(path.read_bytes())
    data[34 + 8] = 2
    path.write_bytes(data)
    with pytest.raises(ShardError, match="expected document 0 at byte 0, found 2"):
        ShardIndex.open(path).verify()


@pytest.mark.parametrize(
    ("starts", "stops"), [([0, 4], [5, 11]), ([0, 4], [5, 4]), ([0, 4], [5]), ([0, 1 << 63], [5, 10])]
)
def test_bounds_that_leave_the_stream_are_named(tmp_path, starts, stops):
    lay(tmp_path, np.arange(10, dtype=U2), [4, 6], starts, stops)
    with pytest.raises(ShardError, match=r"stops\.npy: expected"):
        ShardReader(tmp_path, "shard_00000").verify()


@pytest.mark.parametrize("bounds", [np.array([0]), np.zeros((1, 1), "<u8"), np.array(["a"], object)])
def test_bounds_of_another_type_are_named(tmp_path, bounds):
    lay(tmp_path, np.arange(10, dtype=U2), [4, 6])
    np.save(tmp_path / "shard_00000.starts.npy", bounds, allow_pickle=True)
    with pytest.raises(ShardError, match=r"starts\.npy: expected"):
        ShardReader(tmp_path, "shard_00000")


# --- the step -------------------------------------------------------------------------------------------


def facts_at(tmp_path, vocab_size=100, eos_id=2):
    path = tmp_path / "tokenizer.json"
    path.write_text(
        json.dumps({"vocab_size": vocab_size, "eos_id": eos_id, "bos_id": 1, "dtype": token_dtype(vocab_size).str})
    )
    return path


def stream_reads(tmp_path, pieces, flats, **facts):
    rows = [(*piece, *(False, True, False)[len(piece) - 4 :]) for piece in pieces]
    table = pa.table([pa.array(list(column)) for column in zip(*rows, strict=True)], schema=PIECES)
    return MemoryReads(
        "web/train/shard_00000",
        {"pack/pieces": table},
        {("tokenize/tokens", part): np.array(ids) for part, ids in flats.items()},
        {"group": "web-train-x", "masked": []},
        {"tokenize/tokenizer": facts_at(tmp_path, **facts)},
    )


PIECES_OF_TWO = [("web-1", 0, 0, 2), ("web-1", 1, 2, 5), ("web-1", 4, 7, 8), ("web-2", 0, 0, 3)]
FLATS = {"web-1": [7, 2, 8, 9, 2, 5, 2, 2], "web-2": [4, 4, 2]}


def test_a_stream_is_its_pieces_in_order(tmp_path):
    result = stream_folder.make(stream_reads(tmp_path, PIECES_OF_TWO, FLATS), None)
    assert result.files[".bin"].tolist() == [7, 2, 8, 9, 2, 2, 4, 4, 2]
    assert result.files[".bin"].dtype == U2
    assert parsed(result.files[".idx"])[2] == (2, 3, 1, 3)
    assert result.counts == {"tokens": 9, "documents": 4, "bytes": 18, "learnt": 9}


def test_a_bos_that_pack_puts_in_belongs_to_its_piece_and_carries_no_loss(tmp_path):
    pieces = [
        ("web-1", 0, 0, 2, True, True, True),
        ("web-1", 1, 2, 4, False, False),
        ("web-1", 1, 4, 5, True, True, True),
    ]
    reads = stream_reads(tmp_path, pieces, FLATS)
    result = stream_folder.make(reads, None)
    assert result.files[".bin"].tolist() == [1, 7, 2, 8, 9, 1, 2]
    assert parsed(result.files[".idx"])[2] == (3, 2, 2)
    assert result.counts == {"tokens": 7, "documents": 3, "bytes": 14, "learnt": 5}
    reads.spec["masked"] = ["web-1"]
    reads._arrays["tokenize/tokens.loss", "web-1"] = np.array([1, 0, 1, 1, 1, 1, 1, 1], np.uint8)
    result = stream_folder.make(reads, None)
    assert list(result.files[".loss"]) == [0, 1, 0, 1, 1, 0, 1]
    assert result.counts["learnt"] == 4


@given(st.data())
def test_any_pieces_of_any_parts(tmp_path_factory, data):
    flats, pieces, expected = {}, [], []
    for part in range(data.draw(st.integers(1, 3))):
        ids = []
        for row in range(data.draw(st.integers(0, 8))):
            document = [*data.draw(st.lists(st.integers(3, 99), max_size=4)), 2]
            if data.draw(st.booleans()):
                pieces.append((f"web-{part}", row, len(ids), len(ids) + len(document)))
                expected += document
            ids += document
        flats[f"web-{part}"] = ids
    if pieces:
        result = stream_folder.make(stream_reads(tmp_path_factory.mktemp("s"), pieces, flats), None)
        assert result.files[".bin"].tolist() == expected


def test_a_piece_that_is_not_closed_or_not_there_is_refused(tmp_path):
    with pytest.raises(InvariantError, match="web-train-x: document 0 ends with id 7, not with EOS 2"):
        stream_folder.make(stream_reads(tmp_path, [("web-1", 0, 0, 1)], FLATS), None)
    with pytest.raises(InvariantError, match="name 4 ids, its parts hold 3"):
        stream_folder.make(stream_reads(tmp_path, [("web-2", 0, 0, 4)], FLATS), None)


def test_a_piece_of_a_document_that_goes_on_does_not_end_with_eos(tmp_path):
    split = [("web-1", 1, 2, 4, True, False), ("web-1", 1, 3, 5, True, True)]
    result = stream_folder.make(stream_reads(tmp_path, split, FLATS), None)
    assert result.files[".bin"].tolist() == [8, 9, 9, 2]
    with pytest.raises(InvariantError, match="piece 0 of a document that goes on ends with EOS"):
        stream_folder.make(stream_reads(tmp_path, [("web-1", 1, 2, 5, True, False)], FLATS), None)


def test_loss_goes_with_its_ids_and_parts_without_learn_all(tmp_path):
    reads = stream_reads(tmp_path, PIECES_OF_TWO, FLATS)
    reads.spec["masked"] = ["web-2"]
    reads._arrays["tokenize/tokens.loss", "web-2"] = np.array([0, 1, 1])
    reads._tables["tokenize/tokens", "web-1"] = pa.table({"tokens": [2, 3, 2, 1]})
    result = stream_folder.make(reads, None)
    assert list(result.files[".loss"]) == [1, 1, 1, 1, 1, 1, 0, 1, 1]
    assert result.counts["learnt"] == 8


def test_an_id_beyond_the_vocabulary_is_refused(tmp_path):
    with pytest.raises(ShardError, match="web-train-x: id 9 at 3 is not within 0 to 8"):
        stream_folder.make(stream_reads(tmp_path, PIECES_OF_TWO, FLATS, vocab_size=9), None)


def bounds(starts, stops):
    table = pa.table({"start": starts, "stop": stops}, schema=SEQUENCES)
    reads = MemoryReads("web/train/shard_00000", {"pack/sequences": table}, spec={"group": "g"})
    return sequences_folder.make(reads, None)


def test_bounds_are_uint64_and_count_shared_ids_once():
    result = bounds([0, 4, 8], [5, 9, 11])
    assert result.files[".starts.npy"].dtype == np.dtype("<u8")
    assert result.files[".stops.npy"].tolist() == [5, 9, 11]
    assert result.counts == {"sequences": 3, "tokens_covered": 11}
    assert bounds([], []).counts == {"sequences": 0, "tokens_covered": 0}
    assert bounds([0, 6], [5, 9]).counts["tokens_covered"] == 8


def plan_of(groups, parts):
    """groups: name -> number of parts; parts: name -> tokens by split."""
    entries = {
        "pack/pieces": {name: Entry("k", "s", {}, 1, {"parts": number}, ("", 0)) for name, number in groups.items()},
        "tokenize/tokens": {name: Entry("k", "s", {}, 1, {}, ("", 0)) for name in parts},
        "pack/splits": {
            name: Entry(
                "k", "s", {}, 1, {f"tokens|stream={name.split('-')[0]}/{word}": n for word, n in by.items()}, ("", 0)
            )
            for name, by in parts.items()
        },
    }
    return SimpleNamespace(entries=entries.__getitem__)


PARTS = {
    "code-1": {"train": 5},
    "web-1": {"train": 1, "test": 2},
    "web-2": {"train": 0, "test": 1},
    "web-3": {"train": 4},
}


def test_shards_are_numbered_within_source_and_split():
    plan = plan_of({"code-train-a": 1, "web-train-a": 1, "web-train-b": 1, "web-test-a": 2}, PARTS)
    units = plan_stream(plan, STEP.folders[0])
    assert {unit.name: unit.reads[2:] for unit in units} == {
        "code/train/shard_00000": (("tokenize/tokens", "code-1"),),
        "web/train/shard_00000": (("tokenize/tokens", "web-1"),),
        "web/train/shard_00001": (("tokenize/tokens", "web-3"),),
        "web/test/shard_00000": (("tokenize/tokens", "web-1"), ("tokenize/tokens", "web-2")),
    }
    assert [unit.name for unit in plan_sequences(plan, STEP.folders[1])] == [unit.name for unit in units]


def test_a_number_is_in_no_key():
    """A group that comes first renames the shard behind it and leaves what its key is made of as it was."""
    before = plan_stream(plan_of({"web-train-b": 1}, {"web-3": {"train": 4}}), STEP.folders[0])[0]
    after = plan_stream(plan_of({"web-train-a": 1, "web-train-b": 1}, PARTS), STEP.folders[0])[1]
    assert (before.reads, dict(before.spec)) == (after.reads, dict(after.spec))
    assert before.name != after.name


def test_groups_and_parts_that_disagree_are_refused():
    with pytest.raises(InvariantError, match="lacks parts of code-train-a"):
        plan_stream(plan_of({"code-train-a": 2}, PARTS), STEP.folders[0])


def artifact_of(tmp_path, **changes):
    counts = {
        "pack/pieces": {"g": {"tokens_stream": 10}},
        "pack/sequences": {"g": {"tokens_packed": 9, "tokens_repeated": 1}},
        "shard/stream": {"web/train/shard_00000": {"tokens": 10, "documents": 2, "bytes": 20}},
        "shard/sequences": {"web/train/shard_00000": {"sequences": 1, "tokens_covered": 10}},
    }
    for name, change in changes.items():
        folder, unit, measure = name.split("__")
        counts[folder.replace("_", "/")][unit if unit == "g" else "web/train/shard_00000"][measure] = change
    path = tmp_path / "shard_00000.bin"
    return SimpleNamespace(counts=counts.__getitem__, path=lambda folder, suffix, unit: path)


def test_invariants_hold_the_shards_against_pack(tmp_path):
    lay(tmp_path, np.arange(10, dtype=U2), [4, 6])
    assert list(invariants(artifact_of(tmp_path))) == []
    assert "the shards hold 9" in next(invariants(artifact_of(tmp_path, shard_stream__u__tokens=9)))
    assert "cover 9" in next(invariants(artifact_of(tmp_path, shard_sequences__u__tokens_covered=9)))
    assert "it holds 10 and 1" in next(invariants(artifact_of(tmp_path, shard_sequences__u__sequences=3)))
    cut(tmp_path / "shard_00000.bin")
    assert "expected 20 bytes, found 19" in next(invariants(artifact_of(tmp_path)))


def test_one_row_a_shard(tmp_path):
    assert rows(artifact_of(tmp_path), "web/train/shard_00000").to_pylist() == [
        {"source": "web", "split": "train", "shard": "shard_00000", "tokens": 10, "sequences": 1, "bytes": 20,
         "documents": 2}
    ]  # fmt: skip
