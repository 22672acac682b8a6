"""Where units are made: this process, worker processes of this machine, or a Dask cluster.

concurrent.futures.Executor is the only seam. Worker processes are spawned, never forked (threads and locks of the main
process must not be copied), live as long as the main process wants them, and end by themselves within two seconds of
its death, kill -9 included.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from tasks.errors import GristmillError
from tasks.parts import Job, make

WATCH_SECONDS = 1.0


class Inline(Executor):
    """Makes each unit at once in this process: one worker, no start-up."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@contextlib.contextmanager
def workers(count: int, cluster: str | None = None) -> Iterator[Executor]:
    """`count` processes on this machine, or the workers of the Dask scheduler at `cluster` ("tcp://host:port")."""
    if cluster:
        from distributed import Client

        with Client(cluster) as client:
            yield client.get_executor(pure=False)
    elif count <= 1:
        yield Inline()
    else:
        spawn = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(count, mp_context=spawn, initializer=_watch, initargs=(os.getpid(),))
        with pool:
            yield pool


def make_all(jobs: list[Job], executor: Executor, done: Callable[[Job], None]) -> None:
    """Make every job; `done` is called in this thread as each ends. The first error cancels what has not begun."""
    waiting: dict[Future[Any], Job] = {}
    try:
        for job in jobs:
            waiting[executor.submit(make, job)] = job
        for future in as_completed(waiting):
            future.result()
            done(waiting[future])
    except BrokenProcessPool as error:
        raise GristmillError(
            "a worker process was killed, most likely for want of memory", "use fewer with --workers"
        ) from error
    finally:
        for future in waiting:
            future.cancel()


def _watch(parent: int) -> None:
    """Run in each worker: end it when its main process is gone."""
    threading.Thread(target=_end_with, args=(parent,), daemon=True, name="watch-parent").start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(WATCH_SECONDS)
    os._exit(1)
