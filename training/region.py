"""Many files in one range of addresses, so that one numpy index reaches a row of any of them.

In: paths with the bytes that each must hold. Out: offsets into one read-only array of bytes, of which the system's
page cache holds what is used. A range of addresses is reserved (no memory), and files are mapped into it one after
another as they are asked for; no descriptor stays open, so neither `ulimit -n` nor memory bounds how many. It knows
no format. Linux and macOS.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from pathlib import Path

import numpy as np

from tasks.artifacts.shards import ShardError

PAGE = mmap.ALLOCATIONGRANULARITY
MAP_FIXED = 0x10
MAP_NORESERVE = 0x40 if sys.platform == "darwin" else 0x4000


def span(held: int, guard: int) -> int:
    """Bytes of addresses that a file of `held` bytes takes with `guard` bytes behind it that read as zero."""
    return -(-(held + guard) // PAGE) * PAGE


class Region:
    """bytes: uint8 [capacity], what is mapped so far and zeros elsewhere.

    A file that shrinks once it is mapped ends the process with SIGBUS where it is read (no program can catch it
    safely): `lay` checks its size, training.gather looks again as it reads on.
    """

    def __init__(self, capacity: int) -> None:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE
        try:
            self._range = mmap.mmap(-1, max(PAGE, capacity), flags=flags, prot=mmap.PROT_READ)
        except OSError as error:
            raise ShardError(f"no {capacity} bytes of addresses: {error}; raise `ulimit -v`") from error
        self.bytes = np.frombuffer(self._range, np.uint8)
        self._end = 0

    def lay(self, path: Path, expected: int, guard: int) -> int:
        """Map a file; gives back the offset of its first byte in `bytes`, a multiple of the page.

        Raises ShardError where the file is absent or does not hold `expected` bytes.
        """
        at, self._end = self._end, self._end + span(expected, guard)
        descriptor = _open(path)
        try:
            found = os.fstat(descriptor).st_size
            if found != expected:
                raise ShardError(f"{path}: expected {expected} bytes, found {found}; lay it anew")
            if expected:
                _map(self.bytes.ctypes.data + at, expected, descriptor, path)
        finally:
            os.close(descriptor)
        return at


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        raise ShardError(f"{path}: expected a file, found none; lay it anew") from None


def _map(address: int, length: int, descriptor: int, path: Path) -> None:
    flags = mmap.MAP_SHARED | MAP_FIXED
    if _mmap(address, length, mmap.PROT_READ, flags, descriptor, 0) != address:
        raise OSError(ctypes.get_errno(), f"{path} cannot be mapped: {os.strerror(ctypes.get_errno())}")


_mmap = ctypes.CDLL(None, use_errno=True).mmap
_mmap.restype = ctypes.c_void_p
_mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
