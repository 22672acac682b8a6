"""One build at a time; a dead holder's lock is free at once, another host's record is believed (case 52)."""

import json
import signal
import subprocess
import sys
import time

import pytest

from tasks.errors import LockedError
from tasks.locks import build_lock, holder, unlock

HOLD = """
import sys, time, pathlib
from tasks.locks import build_lock
with build_lock(pathlib.Path(sys.argv[1]), wait=False):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def held(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline().strip() == "held"
    yield tmp_path, process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_second_build_is_refused_and_told_who_holds(held):
    state, process = held
    with pytest.raises(LockedError, match=f"pid {process.pid}") as caught, build_lock(state, wait=False):
        pass
    assert caught.value.code == 75


def test_a_waiting_build_goes_on_after_the_holder_is_killed(held):
    state, process = held
    seen = []
    process.send_signal(signal.SIGKILL)
    process.wait()
    began = time.monotonic()
    with build_lock(state, wait=True, waiting=seen.append):
        assert holder(state)["pid"] != process.pid
    assert time.monotonic() - began < 60


def test_waiting_names_the_holder_once(held):
    state, process = held
    seen = []

    def note(name):
        seen.append(name)
        process.kill()

    with build_lock(state, wait=True, waiting=note):
        pass
    assert len(seen) == 1 and f"pid {process.pid}" in seen[0]


def test_a_live_lock_is_not_unlocked(held):
    state, _ = held
    with pytest.raises(LockedError, match="alive"):
        unlock(state)


def test_another_hosts_record_is_believed_until_unlocked(tmp_path):
    (tmp_path / "lock").write_text(json.dumps({"host": "elsewhere", "pid": 1, "started": "2026-01-01"}))
    with pytest.raises(LockedError, match="gristmill unlock"), build_lock(tmp_path, wait=True):
        pass
    assert unlock(tmp_path)["host"] == "elsewhere"
    with build_lock(tmp_path, wait=False):
        assert holder(tmp_path)["pid"]
    assert holder(tmp_path) == {}
