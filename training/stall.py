"""How long training waited for data: in `next` on the host, and as idle time of the GPU between two steps.

In: an iterator of batches, and the steps taken between them. Out: the same batches, and figures. Waiting on the host
costs nothing while the GPU has work queued, so on a GPU the gap between the last kernel of a step and the first of the
next is measured too, by events, without making either wait.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch

from training.batch import Batch
from training.rank import Rank


class StallMeter:
    """seconds: in steps and between them, without what the caller does outside of `batches`."""

    def __init__(self, device: torch.device) -> None:
        self._on_gpu = device.type == "cuda"
        self._waits, self._gaps = array("d"), array("d")
        self._ended: torch.cuda.Event | None = None
        self._pairs: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []
        self.seconds = 0.0
        self._since = 0.0

    def batches(self, source: Iterable[Batch]) -> Iterator[Batch]:
        """The batches of `source`; a step lasts from asking for its batch to `done`."""
        following = iter(source)
        while True:
            self._since = time.perf_counter()
            batch = next(following, None)
            if batch is None:
                return
            self._waits.append(time.perf_counter() - self._since)
            if self._ended is not None:
                self._pairs.append((self._ended, self._event()))
            yield batch

    def done(self) -> None:
        """A step's last kernel is queued; validation and checkpoints after it count for nothing."""
        self.seconds += time.perf_counter() - self._since
        if self._on_gpu:
            self._ended = self._event()
            while self._pairs and self._pairs[0][1].query():  # type: ignore[no-untyped-call]
                before, after = self._pairs.pop(0)
                self._gaps.append(before.elapsed_time(after) / 1000)

    def paused(self) -> None:
        """What follows is no step: the next gap says nothing about data."""
        self._ended = None

    def figures(self, rank: Rank) -> dict[str, Any]:
        """wait_ms and gpu_idle_ms {p50, p99, max}, the largest over all ranks, without the first batch, which stands
        in first_batch_ms; share: of the time that was spent waiting. gpu_idle_ms is null on a CPU. {} before a step.
        """
        if not self._waits:
            return {}
        waits = np.array(self._waits[1:] or [0.0])
        gaps = np.array(self._gaps or [0.0])
        own = [self._waits[0] * 1000, float(waits.sum()) / max(self.seconds - self._waits[0], 1e-9)]
        found = rank.largest([*own, *_spread(waits), *_spread(gaps)])
        names = ("p50", "p99", "max")
        return {
            "first_batch_ms": found[0],
            "share": found[1],
            "wait_ms": dict(zip(names, found[2:5], strict=True)),
            "gpu_idle_ms": dict(zip(names, found[5:], strict=True)) if self._on_gpu else None,
        }

    def _event(self) -> torch.cuda.Event:
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record()
        return event


def _spread(seconds: np.ndarray) -> list[float]:
    return [float(value) * 1000 for value in (*np.quantile(seconds, [0.5, 0.99]), seconds.max())]
