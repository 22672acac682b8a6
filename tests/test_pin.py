"""Pins: found by name, tag or prefix, verified to the last byte, refused with file, digests and mend."""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import re
from pathlib import Path

import pytest

from tests.pin_maker import FINGERPRINT, lay_pin, small_pin, write_pin_json
from training import digests
from training import pin as pin_module
from training.pin import PinError, open_pin

BIN = "shard/a/train/shard_00001.bin"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    small_pin(tmp_path, name="v1")
    (tmp_path / ".gristmill" / "stamps" / "pins" / f"{FINGERPRINT}.json").unlink()
    return tmp_path


def release(root: Path, name: str, fingerprint: str = FINGERPRINT, **more) -> None:
    files = json.loads((root / "pins" / FINGERPRINT / "pin.json").read_text())["files"]
    content = {"name": name, "fingerprint": fingerprint, "files": files, **more}
    (root / "releases").mkdir(exist_ok=True)
    (root / "releases" / f"{name}.json").write_text(json.dumps(content))


def flip(path: Path) -> None:
    """Change one byte and nothing that a stat shows but the time of change."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_a_pin_is_found_by_name_tag_and_prefix(root: Path) -> None:
    release(root, "spring", tag="corpus-1")
    for name in ("spring", "corpus-1", FINGERPRINT, FINGERPRINT[:6], "v1"):
        pin = open_pin(name, root)
        assert (pin.fingerprint, pin.name) == (FINGERPRINT, "spring")
    assert [path.name for path in pin.shards("a", "train")] == ["shard_00000", "shard_00001"]
    assert pin.shards("a", "test") == pin.shards("nobody", "train") == []


def test_without_releases_the_pins_own_file_serves(root: Path) -> None:
    assert open_pin("v1", root).name == "v1"
    assert open_pin(FINGERPRINT[:10], root).fingerprint == FINGERPRINT


@pytest.mark.parametrize("name", ["nobody", "abab", "", "../pins", "ABABAB", "ababac"])
def test_a_name_that_is_nothing_is_refused(name: str, root: Path) -> None:
    release(root, "spring")
    with pytest.raises(PinError, match=f"named {re.escape(name)}; there are: spring, v1$"):
        open_pin(name, root)


def test_where_nothing_was_released_the_mend_is_a_release(tmp_path: Path) -> None:
    with pytest.raises(PinError, match=r"named nobody; there is none here; make one: gristmill release NAME$"):
        open_pin("nobody", tmp_path)


def test_a_release_whose_data_is_elsewhere_says_how_to_fetch_it(root: Path) -> None:
    release(root, "summer", "cd" * 32)
    with pytest.raises(PinError, match=r"summer .*cdcdcdcdcdcd.* is not on this machine; run: gristmill fetch summer"):
        open_pin("summer", root)


def test_a_prefix_of_two_is_refused(root: Path) -> None:
    release(root, "summer", FINGERPRINT[:40] + "0" * 24)
    with pytest.raises(PinError, match=r"begins 2 fingerprints.*write more"):
        open_pin(FINGERPRINT[:20], root)


@pytest.mark.parametrize("file", [BIN, "shard/b/train/shard_00000.stops.npy", "mix/mixture.json"])
def test_one_wrong_byte_is_refused_with_both_digests(file: str, root: Path) -> None:
    expected = json.loads((root / "pins" / FINGERPRINT / "pin.json").read_text())["files"][file]["sha256"]
    flip(root / "pins" / FINGERPRINT / file)
    with pytest.raises(PinError, match=f"{file} is not .*expected SHA-256 {expected}, found [0-9a-f]{{64}}.*fetch v1"):
        open_pin("v1", root)


def test_a_truncated_or_absent_file_is_refused_before_it_is_mapped(root: Path) -> None:
    path = root / "pins" / FINGERPRINT / BIN
    open_pin("v1", root)
    size = path.stat().st_size
    os.truncate(path, size - 2)
    with pytest.raises(PinError, match=f"found {size - 2} bytes instead of {size}"):
        open_pin("v1", root)
    path.unlink()
    with pytest.raises(PinError, match="found no file"):
        open_pin("v1", root)


def test_the_release_in_git_outweighs_the_pins_own_file(root: Path) -> None:
    """Whoever changes a shard and writes pin.json anew is found out by the release."""
    release(root, "v1")
    flip(root / "pins" / FINGERPRINT / BIN)
    write_pin_json(root / "pins" / FINGERPRINT, "v1")
    with pytest.raises(PinError, match=f"{BIN} is not the file that was released"):
        open_pin("v1", root)


def test_without_a_release_the_mixture_tells_other_shards(root: Path) -> None:
    flip(root / "pins" / FINGERPRINT / BIN)
    write_pin_json(root / "pins" / FINGERPRINT, "v1")
    with pytest.raises(PinError, match=r"shards of a/train have content [0-9a-f]{64}, the mixture orders"):
        open_pin("v1", root)


def test_a_verified_file_is_stamped_and_not_digested_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digested: list[str] = []
    digest = pin_module.file_digest
    monkeypatch.setattr(pin_module, "file_digest", lambda path: digested.append(path.name) or digest(path))
    open_pin("v1", root)
    files = len(json.loads((root / "pins" / FINGERPRINT / "pin.json").read_text())["files"])
    assert len(digested) == files
    open_pin("v1", root)
    assert len(digested) == files
    os.utime(root / "pins" / FINGERPRINT / BIN, ns=(1, 1))
    open_pin("v1", root)
    assert digested[files:] == ["shard_00001.bin"]
    open_pin("v1", root, full=True)
    assert len(digested) == 2 * files + 1


@pytest.mark.parametrize("refused", [None, OSError(14, "Bad address"), ValueError("mmap length")])
def test_a_digest_is_that_of_the_bytes_whether_they_can_be_mapped_or_not(refused, tmp_path, monkeypatch) -> None:
    """A page that a failing disk does not give is an error when it is asked for; the file is then read."""

    class Refusing(digests.mmap.mmap):
        def madvise(self, *words: int) -> None:
            if refused:
                raise refused
            super().madvise(*words)

    monkeypatch.setattr(digests, "WINDOW", 2 * mmap.ALLOCATIONGRANULARITY)
    monkeypatch.setattr(digests.mmap, "mmap", Refusing)
    for size in (0, 1, digests.WINDOW - 1, digests.WINDOW, digests.WINDOW + 1, 3 * digests.WINDOW, 70_001):
        (tmp_path / "x").write_bytes(os.urandom(size))
        assert digests.file_digest(tmp_path / "x") == hashlib.sha256((tmp_path / "x").read_bytes()).hexdigest()
    with pytest.raises(IsADirectoryError):
        digests.file_digest(tmp_path)


def test_a_damaged_file_is_not_stamped_as_sound(root: Path) -> None:
    flip(root / "pins" / FINGERPRINT / BIN)
    for _ in range(2):
        with pytest.raises(PinError):
            open_pin("v1", root)


def test_a_stamp_that_cannot_be_written_stops_nothing(root: Path) -> None:
    stamps = root / ".gristmill" / "stamps" / "pins"
    stamps.rmdir()
    stamps.write_text("in the way")
    assert open_pin("v1", root).fingerprint == FINGERPRINT


def test_a_file_list_that_leaves_the_pin_is_refused(root: Path) -> None:
    path = root / "pins" / FINGERPRINT / "pin.json"
    content = json.loads(path.read_text())
    for name in ("../../secret", "/etc/passwd"):
        path.write_text(json.dumps({**content, "files": {**content["files"], name: {"sha256": "", "bytes": 0}}}))
        with pytest.raises(PinError, match="outside the pin"):
            open_pin("v1", root)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"fingerprint": 3, "name": "v1"}', '{"name": "v1", "files": []}'])
def test_a_pin_json_that_cannot_be_read_is_refused(content: str, root: Path) -> None:
    (root / "pins" / FINGERPRINT / "pin.json").write_text(content)
    with pytest.raises(PinError):
        open_pin(FINGERPRINT, root)


def test_a_release_with_no_fingerprint_is_refused(root: Path) -> None:
    release(root, "bad", "../../elsewhere")
    with pytest.raises(PinError, match="not 64 hex"):
        open_pin("bad", root)


def test_a_mixture_for_other_shards_is_refused(root: Path) -> None:
    other = lay_pin(root / "other", {"a": {"train": [[[5, 6, 7, 2]]]}})
    target = root / "pins" / FINGERPRINT / "mix" / "mixture.json"
    target.write_bytes((other / "mix" / "mixture.json").read_bytes())
    write_pin_json(root / "pins" / FINGERPRINT, "v1")
    with pytest.raises(PinError, match="the mixture orders"):
        open_pin("v1", root)
