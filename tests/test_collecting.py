"""The collector looks at what is new while work is under way, and at all again after it."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

from tasks import perform as module
from tasks.collecting import only_what_is_new
from tasks.perform import perform
from tasks.project import Project
from tests.toy import TOY, scan


class Ring:
    """Garbage that only the collector can find."""

    def __init__(self) -> None:
        self.own = self


def dropped() -> weakref.ref[Ring]:
    return weakref.ref(Ring())


def test_old_garbage_waits_until_the_end_and_new_garbage_does_not() -> None:
    gc.collect()
    old = dropped()
    with only_what_is_new():
        new = dropped()
        gc.collect()
        assert old() is not None
        assert new() is None
    gc.collect()
    assert old() is None


def test_only_the_last_leaving_shows_what_stands_again() -> None:
    with only_what_is_new():
        with only_what_is_new():
            pass
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0


def test_an_error_leaves_nothing_hidden() -> None:
    with pytest.raises(OSError, match="disk"), only_what_is_new():
        raise OSError("disk")
    assert gc.get_freeze_count() == 0


def test_threads_side_by_side() -> None:
    meet = threading.Barrier(4)

    def work() -> None:
        with only_what_is_new():
            meet.wait(timeout=30)
            assert gc.get_freeze_count() > 0

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert gc.get_freeze_count() == 0


def test_building_hides_what_stands_from_the_collector_and_shows_it_again(tmp_path, monkeypatch) -> None:
    seen = []
    monkeypatch.setattr(module, "judge", lambda *_: seen.append(gc.get_freeze_count()) or [])
    monkeypatch.setattr(module, "judge_digest", lambda *_: "judges")
    monkeypatch.setattr("tasks.build.scan", scan)
    (tmp_path / "input").mkdir()
    (tmp_path / "input" / "one.txt").write_text("one two", encoding="utf-8")
    (tmp_path / "params.yaml").write_text("toy: {times: 1, keep_longest: 1, workers: 1}\n", encoding="utf-8")
    perform(TOY, Project(tmp_path))
    assert seen[0] > 0
    assert gc.get_freeze_count() == 0
