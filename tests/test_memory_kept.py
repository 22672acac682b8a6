"""Memory while a build is at work: the collector looks at what is new, what is freed is kept; and not after it."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ProcessPoolExecutor

import pytest

from tasks import perform as module
from tasks.memory import OWN, at_work
from tasks.perform import perform
from tasks.project import Project
from tasks.workers import Bare, _watch
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
    with at_work():
        new = dropped()
        gc.collect()
        assert old() is not None
        assert new() is None
    gc.collect()
    assert old() is None


def test_only_the_last_leaving_shows_what_stands_again() -> None:
    with at_work():
        with at_work():
            pass
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0


def test_an_error_leaves_nothing_hidden() -> None:
    with pytest.raises(OSError, match="disk"), at_work():
        raise OSError("disk")
    assert gc.get_freeze_count() == 0


def test_threads_side_by_side() -> None:
    meet = threading.Barrier(4)

    def work() -> None:
        with at_work():
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


PARTS = """
import ctypes, os, re, resource
import numpy as np, pyarrow as pa
from tasks.memory import OWN, at_work

def part():
    for _ in range(4):
        held = [np.ones(3 << 20, np.uint8) for _ in range(8)]
        held.append(pa.array(np.arange(1 << 20)).cast(pa.float64()))

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(4):
        part()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def held():
    with open("/proc/self/status") as status:
        return int(re.search(r"VmRSS:\\s+(\\d+)", status.read())[1]) // 1024

with at_work():
    for _ in range(4):
        part()
    during = faults(), held()
print(*during, held(), pa.default_memory_pool().backend_name)
"""


def parts_made(**environment: str) -> tuple[int, int, int, str]:
    """Page faults of a part like the last one, MB held before the last leaving and after it, and Arrow's pool."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OWN)}
    done = subprocess.run(
        [sys.executable, "-c", PARTS], env=kept | environment, capture_output=True, text=True, check=True
    )
    faults, during, after, pool = done.stdout.split()
    return int(faults), int(during), int(after), pool


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="this C library is not glibc")
def test_what_is_freed_serves_the_next_part_and_goes_back_at_the_end() -> None:
    faults, during, after, pool = parts_made()
    assert faults < parts_made(MALLOC_ARENA_MAX="2")[0] / 4
    assert pool == "system"
    assert after < during - 15


def test_who_settles_the_heap_by_the_environment_is_left_alone() -> None:
    assert parts_made(ARROW_DEFAULT_MEMORY_POOL="mimalloc")[3] == "mimalloc"
    assert parts_made(MALLOC_ARENA_MAX="2")[3] != "system"


def test_a_worker_hides_what_stands_for_as_long_as_it_lives() -> None:
    with ProcessPoolExecutor(1, mp_context=Bare(), initializer=_watch, initargs=(os.getpid(),)) as workers:
        assert workers.submit(gc.get_freeze_count).result() > 0
