"""The memory of Python and of C while a build is at work: neither goes over the same ground again and again.

Both are measured on 300 MB of text through nine steps (about 21 CPU seconds). Python's collector walked all modules,
schemas and suites three times, 0.2 to 0.25 s each: 0.74 s, 0.08 now. And what the C library and Arrow had freed went
back to the system, to be zeroed and mapped anew for the next part: half of 3.2 seconds in the kernel, 0.6 to 1.2 s in
all since some that was mapped anew is copied now; the peak fell from 965 to 890 MB, as one heap serves numpy and Arrow.
"""

from __future__ import annotations

import ctypes
import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pyarrow as pa

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3
"""glibc's malloc.h."""
SETTINGS = {M_MMAP_THRESHOLD: 32 << 20, M_TRIM_THRESHOLD: 2**31 - 1, M_TOP_PAD: 64 << 20}
"""Bytes: a larger block is the system's own and goes back at once; the heap does not shrink; by how much it grows."""
OWN = ("MALLOC_", "GLIBC_TUNABLES", "ARROW_DEFAULT_MEMORY_POOL")
"""Beginnings of the variables by which a user settles this; where one is set nothing is changed."""

_LOCK = threading.Lock()
_INSIDE = 0


@contextmanager
def at_work() -> Iterator[None]:
    """Within it the collector looks at what is new alone, and freed memory is kept for the next part.

    Entering once more hides what has come to stand since. At the last leaving the collector sees all again and what
    is free goes back to the system; the C library's settings and Arrow's pool stay. For one thread or many. Elsewhere
    than on glibc only the collector is told.
    """
    stay_at_work()
    try:
        yield
    finally:
        _leave()


def stay_at_work() -> None:
    """Enter at_work() and never leave: for a worker process."""
    global _INSIDE
    with _LOCK:
        _keep_freed()
        _INSIDE += 1
    hide_what_stands()


def hide_what_stands() -> None:
    """Hide from the collector, until the last leaving, what an import has brought: it looks at lists, not objects."""
    with _LOCK:
        if _INSIDE:
            gc.freeze()


def _leave() -> None:
    global _INSIDE
    with _LOCK:
        _INSIDE -= 1
        if _INSIDE == 0:
            gc.unfreeze()
            if (library := _glibc()) is not None:
                library.malloc_trim(0)


@cache
def _keep_freed() -> None:
    library = _glibc()
    if library is None or any(name.startswith(OWN) for name in os.environ):
        return
    for option, value in SETTINGS.items():
        library.mallopt(option, value)
    pa.set_memory_pool(pa.system_memory_pool())


@cache
def _glibc() -> Any:
    library = ctypes.CDLL(None)
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None
