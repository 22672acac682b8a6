"""One buffer of the loader's ring: filled on the host, copied on a side stream, widened on the device.

In: room for a batch, which is gathered into it. Out: its tokens on the device, int64. Two events order writer and
reader: the host rewrites a slot only after its copy has ended, and a copy overwrites the device's side only after its
last reader. On a CPU there is neither copy nor event: tokens are widened as they are gathered.
"""

from __future__ import annotations

import warnings

import numpy as np
import torch
from torch import Tensor

from training.gather import Gathered, Room
from training.kernels import SLACK


class Slot:
    """Room for tokens [rows, width] of the shards' dtype. Warns, and goes on without, where memory cannot be pinned.
    ahead: ids that a row has beyond its inputs, where these have documents; a GPU makes labels and positions of their
    borders, on a CPU they are written with the tokens."""

    def __init__(self, rows: int, width: int, dtype: np.dtype, device: torch.device, ahead: int | None = None) -> None:
        self._on_gpu, self._shape, self._dtype = device.type == "cuda", (rows, width), dtype
        self._ahead = ahead
        self.batch = Gathered(np.empty((0, width), dtype), None, None)
        if self._on_gpu:
            # torch computes little with uint16, so int16 carries the bits to the device, where they are widened.
            carrier = torch.int16 if dtype.itemsize == 2 else torch.int32
            self._host = pinned(torch.zeros(rows, width, dtype=carrier))
            self._device = torch.empty_like(self._host, device=device, pin_memory=False)
            self._copied, self._taken = torch.cuda.Event(), torch.cuda.Event()  # type: ignore[no-untyped-call]

    def room(self) -> Room:
        """Where to gather the next batch: pinned memory, free once the copy of the one before has ended; on a CPU new
        arrays of int64."""
        if self._on_gpu:
            self._copied.synchronize()
            return Room(self._host.numpy().view(self._dtype), self._ahead)
        tokens, ahead, (rows, width) = np.empty(self._shape, np.int64), self._ahead, self._shape
        if ahead is None:
            return Room(tokens)
        return Room(tokens, ahead, np.empty(self._shape, np.int64), np.empty(rows * (width - ahead) + SLACK, np.int64))

    def send(self, side: torch.cuda.Stream | None) -> None:
        """Start the copy to the device on stream `side`."""
        if side is None:
            return
        side.wait_event(self._taken)
        with torch.cuda.stream(side):
            self._device.copy_(self._host, non_blocking=True)
        self._copied.record(side)

    def take(self) -> Tensor:
        """Tokens int64 [rows, width] on the current stream, the caller's own; the slot may be filled again."""
        if not self._on_gpu:
            return torch.from_numpy(self.batch.tokens)
        here = torch.cuda.current_stream(self._device.device)
        here.wait_event(self._copied)
        tokens = widened(self._device)
        self._taken.record(here)
        return tokens


def widened(tokens: Tensor) -> Tensor:
    """Ids of int16 bits, uint16 or int32 as int64."""
    wide = tokens.to(torch.int64)
    return wide & 0xFFFF if tokens.dtype == torch.int16 else wide


def pinned(tensor: Tensor) -> Tensor:
    """`tensor` in page-locked memory, or as it is, with a warning, where the system grants none."""
    try:
        return tensor.pin_memory()
    except RuntimeError as error:
        warnings.warn(
            f"{tensor.nbytes} bytes cannot be pinned ({error}): copies to the device will not overlap with work; "
            f"raise `ulimit -l`",
            stacklevel=3,
        )
        return tensor
