"""An artifact takes the place of another whole or not at all, also where the file system knows no exchange."""

import pytest

from tasks import publish
from tasks.artifacts.manifest import Entry, Manifest


@pytest.fixture
def folders(tmp_path):
    staging = tmp_path / "staging"
    staged, standing = staging / "tree", tmp_path / "data" / "filter"
    staged.mkdir(parents=True)
    standing.mkdir(parents=True)
    (staged / "a").write_text("new")
    (standing / "a").write_text("old")
    return staging, staged, standing


@pytest.mark.parametrize("exchange", [True, False])
def test_new_stands_and_old_lies_aside(folders, exchange, monkeypatch):
    staging, staged, standing = folders
    if not exchange:
        monkeypatch.setattr(publish, "_exchange", lambda *_: False)
    publish.publish(staged, standing)
    assert (standing / "a").read_text() == "new"
    assert (staged / "a").read_text() == "old"
    assert not (staging / "journal.json").exists()


def test_the_first_artifact_needs_nothing_to_stand(folders, tmp_path):
    _, staged, _ = folders
    publish.publish(staged, tmp_path / "data" / "dedup")
    assert (tmp_path / "data" / "dedup" / "a").read_text() == "new"


@pytest.mark.parametrize("renames", [0, 1, 2])
def test_a_cut_off_exchange_is_finished_at_the_next_start(folders, monkeypatch, renames):
    staging, staged, standing = folders
    monkeypatch.setattr(publish, "_exchange", lambda *_: False)
    done = []
    real = type(staged).rename

    def rename(self, target):
        if len(done) == renames:
            raise KeyboardInterrupt
        done.append(target)
        return real(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(type(staged), "rename", rename)
        with pytest.raises(KeyboardInterrupt):
            publish.publish(staged, standing)
    publish.recover(standing, staging)
    assert (standing / "a").read_text() == ("old" if renames == 0 else "new")
    assert not (staging / "journal.json").exists()


def test_a_stamp_sees_edits_strays_and_losses(tmp_path):
    home = tmp_path / "filter"
    (home / "signals").mkdir(parents=True)
    (home / "signals" / "x.parquet").write_bytes(b"abc")
    entry = Entry("k", "s", {"signals/x.parquet": {"sha256": "0", "bytes": 3}}, 1, {}, ("", 0))
    manifest = Manifest("filter", {}, {"signals": {"x": entry}})
    manifest.write(home)
    stamp = tmp_path / "stamp.json"
    publish.write_stamp(stamp, home, manifest, "judges")
    assert publish.stamp_holds(publish.read_stamp(stamp), home, manifest)
    (home / "stray").write_text("")
    assert not publish.stamp_holds(publish.read_stamp(stamp), home, manifest)
    (home / "stray").unlink()
    (home / "signals" / "x.parquet").write_bytes(b"abd")
    assert not publish.stamp_holds(publish.read_stamp(stamp), home, manifest)
    assert not publish.stamp_holds({}, home, manifest)
