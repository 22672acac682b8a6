"""This process among those of a run: its number, its device, and what all of them agree on.

In: torchrun's environment. Out: a Rank. It starts no process.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import torch
from torch import Tensor, distributed


@dataclass(frozen=True)
class Rank:
    """number of world processes, and the device that this one works on."""

    number: int
    world: int
    device: torch.device

    @classmethod
    def here(cls, device: str) -> Rank:
        """From torchrun's environment, joining the others where there are any."""
        wanted = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
        if wanted == "cuda":
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
        world = int(os.environ.get("WORLD_SIZE", 1))
        if world > 1 and not distributed.is_initialized():
            distributed.init_process_group("nccl" if wanted == "cuda" else "gloo")
        return cls(int(os.environ.get("RANK", 0)), world, torch.device(wanted))

    def summed(self, tensor: Tensor) -> Tensor:
        """`tensor` summed over all ranks, in place."""
        if self.world > 1:
            distributed.all_reduce(tensor)
        return tensor

    def largest(self, values: list[float]) -> list[float]:
        """The largest of each value over all ranks: the slowest rank holds up every other."""
        if self.world == 1:
            return values
        held = torch.tensor(values, dtype=torch.float64, device=self.device)
        distributed.all_reduce(held, op=distributed.ReduceOp.MAX)
        return [float(value) for value in held.tolist()]
