"""No orphans: what a flow started ends with it, kill -9 included.

In: the life of this process. Out: every process below it that outlives it is ended. Prefect's embedded server
is a child that stops at a clean exit only; a watchman, a process that does nothing but wait, sees the pipe
from us close and ends whoever carries our token in its environment. Linux only (/proc), as renameat2 and
flock are. 8 MB and no CPU while it waits.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

TOKEN = "GRISTMILL_GUARDED_BY"
GRACE_SECONDS = 3.0


def guard() -> None:
    """Start the watchman of this process; what is started from now on is guarded. Once a process."""
    if TOKEN in os.environ:
        return
    ours, theirs = os.pipe()
    token = f"{os.getpid()}-{uuid.uuid4().hex}"
    command = [sys.executable, "-S", "-E", str(Path(__file__).resolve()), token]
    subprocess.Popen(command, stdin=ours, start_new_session=True, stdout=subprocess.DEVNULL)
    os.close(ours)
    os.environ[TOKEN] = token
    _PIPES.append(theirs)


# Open until this process ends; the kernel closes it however that happens.
_PIPES: list[int] = []


def guarded(token: str) -> list[int]:
    """Processes whose environment carries `token`."""
    mark = f"{TOKEN}={token}".encode()
    environments = Path("/proc").glob("[0-9]*/environ")
    return [int(path.parent.name) for path in environments if mark in _environment(path)]


def _environment(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().split(b"\0")
    except OSError:
        return []


def _end(token: str) -> None:
    """Ask them to end, and after the grace make them."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in guarded(token):
            _signal(pid, number)
        deadline = time.monotonic() + GRACE_SECONDS
        while guarded(token) and time.monotonic() < deadline:
            time.sleep(0.05)


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


if __name__ == "__main__":
    sys.stdin.buffer.read()
    _end(sys.argv[1])
