"""Batches on a device: one process, a ring of pinned buffers, exact resume from one number.

In: a Pin. Out: Batches in the order of the run. A global batch is `batch_size` positions, of which rank r of
W reads its r-th share: 1, 2 or 64 ranks see the same global batches and take equally many steps. There are no
workers, as gathering a batch costs less than passing one between processes. Legend: B rows of this rank, T
tokens, T1 = T+1.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from training.dataset import PackedDataset, own_rows
from training.masks import Labels, document_ids, inputs_and_labels, position_ids
from training.pin import Pin
from training.ring import Slot

SLOTS = 3


@dataclass(frozen=True)
class Batch:
    """One rank's share of a global batch, int64 on the device.

    inputs_BT, labels_BT: see training.masks.inputs_and_labels; [B, T+1] where labels="model".
    position_ids_BT, document_ids_BT: where documents are isolated, else None.
    position: of the run, after this global batch.
    """

    inputs_BT: Tensor
    labels_BT: Tensor
    position_ids_BT: Tensor | None
    document_ids_BT: Tensor | None
    position: int


def build_dataloader(
    pin: Pin,
    batch_size: int,
    *,
    labels: Labels,
    isolate_documents: bool,
    device: str | torch.device = "cpu",
    steps: int | None = None,
    split: str = "train",
    rank: int = 0,
    world: int = 1,
) -> Loader:
    """The loader of one rank.

    batch_size: sequences of a global batch, over all ranks; `world` must divide it. labels: "shifted" or
    "model", see training.masks. isolate_documents: positions restart with each document, and its first token
    carries no loss; pass training.masks.attention_mask or cu_seqlens to the model. steps: global batches from
    position 0 to the end of the run; None for a run without end. split: "train" follows the schedule;
    "validation" and "test" are read once in a fixed order, and the last batch is filled up with rows that
    carry no loss. Raises ValueError for ranks that do not divide the batch and for a split without sequences.
    """
    own = own_rows(batch_size, rank, world)
    dataset = PackedDataset(pin, split)
    if not dataset.sequences:
        raise ValueError(f"pin {pin.fingerprint[:12]} has no {split} sequences; see pack's shares of the splits")
    last = dataset.sequences if split != "train" else steps * batch_size if steps is not None else None
    return Loader(dataset, batch_size, own, last, labels, isolate_documents, torch.device(device))


class Loader:
    """Iterates over the batches from `position` on; each `iter` starts at the position of that moment."""

    def __init__(
        self,
        dataset: PackedDataset,
        batch_size: int,
        own: range,
        last: int | None,
        labels: Labels,
        isolate: bool,
        device: torch.device,
    ) -> None:
        self.dataset, self.batch_size, self.position = dataset, batch_size, 0
        self._own, self._last, self._labels = own, last, labels
        self._side = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]
        slots = SLOTS if self._side else 1
        self._ring = [Slot(len(own), dataset.width, dataset.dtype, device, begins=isolate) for _ in range(slots)]
        if self._side:
            self._side.wait_stream(torch.cuda.current_stream(device))

    def __len__(self) -> int:
        """Batches still to come; raises TypeError for a run without end."""
        if self._last is None:
            raise TypeError("this run has no end; give build_dataloader its steps")
        return max(0, -(-(self._last - self.position) // self.batch_size))

    def rewind(self) -> None:
        """Begin again at position 0: for validation."""
        self.position = 0

    def state_dict(self) -> dict[str, Any]:
        """The position after the last batch handed out (not the last prefetched), and the data it belongs
        to."""
        return {"position": self.position, "fingerprint": self.dataset.pin.fingerprint}

    def load_state_dict(self, state: dict[str, Any], *, allow_other_pin: bool = False) -> None:
        """Go on at the state's position from the next `iter`; ranks and batch size may differ from then.

        Raises ValueError where the state belongs to another pin and that is not allowed.
        """
        theirs, own = str(state["fingerprint"]), self.dataset.pin.fingerprint
        if theirs != own and not allow_other_pin:
            raise ValueError(
                f"the state belongs to data {theirs[:12]}, this loader reads {own[:12]}; "
                f"open that pin, or pass allow_other_pin=True"
            )
        self.position = int(state["position"])

    def __iter__(self) -> Iterator[Batch]:
        under_way: deque[tuple[Slot, int]] = deque()
        following, turn = self.position, 0
        while True:
            while len(under_way) < len(self._ring) and (self._last is None or following < self._last):
                slot = self._ring[turn % len(self._ring)]
                self._fill(slot, following)
                slot.send(self._side)
                following, turn = following + self.batch_size, turn + 1
                under_way.append((slot, following))
            if not under_way:
                return
            batch = self._take(*under_way.popleft())
            self.position = batch.position
            yield batch

    def _fill(self, slot: Slot, first: int) -> None:
        """Gather this rank's rows of the global batch at `first`; rows beyond the end of a split stay
        empty."""
        slot.await_copy()
        begin, held = first + self._own.start, len(self._own)
        if self.dataset.order is None:
            held = max(0, min(held, self.dataset.sequences - begin))
        slot.full = self.dataset.gather(self.dataset.run(begin, held), slot.tokens, slot.lengths, slot.begins)
        if held < len(self._own):
            slot.full = False
            slot.tokens[held:], slot.lengths[held:] = self.dataset.pin.schedule.eos_id, 0
            if slot.begins is not None:
                slot.begins[held:] = False

    def _take(self, slot: Slot, after: int) -> Batch:
        tokens_BT1, lengths_B, begins_BT1 = slot.take()
        inputs, targets = inputs_and_labels(tokens_BT1, lengths_B, begins_BT1, self._labels)
        positions = documents = None
        if begins_BT1 is not None:
            begins = begins_BT1[:, : inputs.shape[1]]
            positions, documents = position_ids(begins), document_ids(begins, lengths_B)
        slot.release()
        return Batch(inputs, targets, positions, documents, after)
