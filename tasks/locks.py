"""Who builds now: one lock a project, .gristmill/lock, so that two builds never write one artifact tree.

The lock is a flock on the file, which the kernel drops when its holder dies, kill -9 included. The file's text names
the holder for people: host, pid, when it started and when it last said it was alive. On a shared file system a flock
may not reach other hosts, so a record of another host is believed until somebody removes it with `gristmill unlock`.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from tasks.errors import LockedError

HEARTBEAT_SECONDS = 10.0
POLL_SECONDS = 0.2


@contextlib.contextmanager
def build_lock(state: Path, *, wait: bool, waiting: Callable[[str], None] | None = None) -> Iterator[None]:
    """Hold the lock in folder `state`. wait=False raises LockedError at once, naming the holder.

    waiting: called once with the holder's name before a wait begins.
    """
    state.mkdir(parents=True, exist_ok=True)
    with (state / "lock").open("a+", encoding="utf-8") as file:
        _take(file, wait, waiting)
        stop = threading.Event()
        beat = threading.Thread(target=_beat, args=(file, stop), name="lock-heartbeat", daemon=True)
        _sign(file, _now())
        beat.start()
        try:
            yield
        finally:
            stop.set()
            beat.join()
            file.truncate(0)


def holder(state: Path) -> dict[str, Any]:
    """Who signed the lock file last: host, pid, started, alive; {} after a clean end."""
    try:
        record = json.loads((state / "lock").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def unlock(state: Path) -> dict[str, Any]:
    """Forget the holder's record; returns it. Raises LockedError where a live process of this host holds the lock."""
    record = holder(state)
    if (state / "lock").is_file():
        with (state / "lock").open("a+", encoding="utf-8") as file:
            if not _try(file):
                raise LockedError(f"the lock is held by {_name(record)}, which is alive", "stop that build first")
            file.truncate(0)
    return record


def _take(file: TextIO, wait: bool, waiting: Callable[[str], None] | None) -> None:
    said = False
    while not _try(file):
        name = _name(_read(file))
        if not wait:
            raise LockedError(f"another build is running: {name}", "wait for its end, or stop it")
        if waiting and not said:
            waiting(name)
        said = True
        time.sleep(POLL_SECONDS)
    record = _read(file)
    if record and record.get("host") != socket.gethostname():
        raise LockedError(
            f"the lock was taken on another host: {_name(record)}", "if that build is dead: gristmill unlock"
        )


def _try(file: TextIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _beat(file: TextIO, stop: threading.Event) -> None:
    started = _now()
    while not stop.wait(HEARTBEAT_SECONDS):
        _sign(file, started)


def _sign(file: TextIO, started: str) -> None:
    record = {"host": socket.gethostname(), "pid": os.getpid(), "started": started, "alive": _now()}
    file.truncate(0)
    file.write(json.dumps(record))
    file.flush()


def _read(file: TextIO) -> dict[str, Any]:
    file.seek(0)
    try:
        record = json.loads(file.read() or "{}")
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def _name(record: dict[str, Any]) -> str:
    if not record:
        return "an unnamed process"
    return f"pid {record.get('pid')} on {record.get('host')}, started {record.get('started')}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
