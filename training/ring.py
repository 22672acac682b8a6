"""One buffer of the loader's ring: gathered into on the host, copied on a side stream, widened on the device.

In: rows that a dataset gathers into `tokens`, `lengths` and `begins`. Out: the same on the device, int64. Two
events order writer and reader: the host rewrites a slot only after its copy has ended, and a copy overwrites
the device's side only after its last reader. On a CPU there is neither copy nor event.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


class Slot:
    """Host buffers as arrays: tokens [B, T1] in the shards' dtype, lengths int32 [B], begins bool [B, T1] or
    None; full says that every row has T1 tokens, so that nobody need look at the lengths."""

    def __init__(self, rows: int, width: int, dtype: np.dtype, device: torch.device, *, begins: bool) -> None:
        self._on_gpu = device.type == "cuda"
        # torch computes little with uint16, so int16 carries the bits to the device, where they are widened.
        carrier = torch.int16 if dtype.itemsize == 2 else torch.int32
        self._host = [torch.zeros(rows, width, dtype=carrier), torch.zeros(rows, dtype=torch.int32)]
        self._host += [torch.zeros(rows, width, dtype=torch.bool)] * begins
        if self._on_gpu:
            self._host = [tensor.pin_memory() for tensor in self._host]
            self._device = [torch.empty_like(tensor, device=device, pin_memory=False) for tensor in self._host]
            self._copied, self._taken = torch.cuda.Event(), torch.cuda.Event()  # type: ignore[no-untyped-call]
        self.tokens = self._host[0].numpy().view(dtype)
        self.lengths = self._host[1].numpy()
        self.begins = self._host[2].numpy() if begins else None
        self.full = False

    def await_copy(self) -> None:
        """Return once the host buffers may be written again."""
        if self._on_gpu:
            self._copied.synchronize()

    def send(self, side: torch.cuda.Stream | None) -> None:
        """Start the copy to the device on stream `side`."""
        if side is None:
            return
        side.wait_event(self._taken)
        with torch.cuda.stream(side):
            for target, source in zip(self._device, self._host, strict=True):
                target.copy_(source, non_blocking=True)
        self._copied.record(side)

    def take(self) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """(tokens int64 [B, T1], lengths int32 [B] or None if full, begins bool [B, T1] or None) on the
        current stream.

        tokens are the caller's; the others are the slot's, to be read before `release`.
        """
        if not self._on_gpu:
            tokens, held = torch.from_numpy(self.tokens.astype(np.int64)), self._host
        else:
            torch.cuda.current_stream(self._device[0].device).wait_event(self._copied)
            held = self._device
            tokens = held[0].to(torch.int64)
            if held[0].dtype == torch.int16:
                tokens &= 0xFFFF
        return tokens, None if self.full else held[1], held[2] if self.begins is not None else None

    def release(self) -> None:
        """Say that what was queued on the current stream so far is all that reads this slot."""
        if self._on_gpu:
            self._taken.record(torch.cuda.current_stream(self._device[0].device))
