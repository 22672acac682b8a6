"""Where units are made: this process, worker processes of this machine, or a Dask cluster.

concurrent.futures.Executor is the only seam. Worker processes are spawned, never forked (threads and locks of the main
process must not be copied), live as long as the main process wants them, and end by themselves within two seconds of
its death, kill -9 included.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.context import SpawnContext, SpawnProcess
from types import ModuleType
from typing import Any

from tasks.errors import GristmillError
from tasks.memory import stay_at_work
from tasks.parts import Job, make

WATCH_SECONDS = 1.0
CONNECT_SECONDS = 10


class Inline(Executor):
    """Makes each unit at once in this process: one worker, no start-up."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


_POOLS: dict[tuple[int, str | None], Executor] = {}


def pool(count: int, cluster: str | None = None) -> Executor:
    """`count` processes on this machine, or the workers of the Dask scheduler at `cluster` ("tcp://host:port").

    A pool is opened once a process and serves every step: spawning a worker costs 1.5 to 3 CPU seconds of imports.
    """
    place = (count, cluster)
    if place not in _POOLS:
        _POOLS[place] = _open(count, cluster)
    return _POOLS[place]


def _open(count: int, cluster: str | None) -> Executor:
    if cluster:
        return _on_cluster(cluster)
    if count <= 1:
        return Inline()
    return ProcessPoolExecutor(count, mp_context=Bare(), initializer=_watch, initargs=(os.getpid(),))


class BareProcess(SpawnProcess):
    """A spawned process that does not run the main module again, as multiprocessing has it: it would import what the
    command line, a flow or another caller's script imports, half a CPU second to two, and needs none of it."""

    @staticmethod
    def _Popen(process: Any) -> Any:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            return SpawnProcess._Popen(process)
        finally:
            sys.modules["__main__"] = main


class Bare(SpawnContext):
    """Spawned processes that import only what their work names."""

    Process = BareProcess


def _on_cluster(address: str) -> Executor:
    from distributed import Client

    try:
        executor: Executor = Client(address, timeout=CONNECT_SECONDS).get_executor(pure=False)
    except (OSError, ValueError) as error:
        raise GristmillError(
            f"no Dask scheduler answers at {address} within {CONNECT_SECONDS} s",
            "start one, or build without --cluster",
        ) from error
    return executor


def make_all(jobs: list[Job], executor: Executor, done: Callable[[Job], None]) -> None:
    """Make every job; `done` is called in this thread as each ends. The first error cancels what has not begun.

    A single job is made in this process, and may deal its own work to the executor (Reads.each).
    """
    hands = None if isinstance(executor, Inline) or len(jobs) != 1 else executor
    executor = Inline() if len(jobs) == 1 else executor
    waiting: dict[Future[Any], Job] = {}
    try:
        for job in jobs:
            waiting[executor.submit(make, job, *([hands] if hands else []))] = job
            if isinstance(executor, Inline):
                _finish(waiting, done)
        _finish(waiting, done)
    except BrokenProcessPool as error:
        raise _broken() from error
    finally:
        for future in waiting:
            future.cancel()


def finish_all(work: list[Future[Any]]) -> None:
    """Wait for work that was submitted; the first error, in its order, cancels what has not begun."""
    try:
        for future in work:
            future.result()
    except BrokenProcessPool as error:
        raise _broken() from error
    finally:
        for future in work:
            future.cancel()


def _broken() -> GristmillError:
    _POOLS.clear()
    return GristmillError("a worker process was killed, most likely for want of memory", "use fewer with --workers")


def _finish(waiting: dict[Future[Any], Job], done: Callable[[Job], None]) -> None:
    for future in as_completed(list(waiting)):
        future.result()
        done(waiting.pop(future))


def _watch(parent: int) -> None:
    """Run in each worker: end it when its main process is gone, and let it keep its memory until then."""
    stay_at_work()
    threading.Thread(target=_end_with, args=(parent,), daemon=True, name="watch-parent").start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(WATCH_SECONDS)
    os._exit(1)
