"""Batches on a device: one process, a ring of pinned buffers, exact resume from one number.

In: a Pin, or a file of text. Out: Batches in the order of the run. A global batch is `batch_size` positions, of which
rank r of W reads its r-th share: 1, 2 or 64 ranks see the same global batches and take equally many steps. By default
there are no workers, as gathering a batch costs less than passing one between processes. Legend: B rows of this rank,
T tokens, T1 = T+1.
"""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, distributed
from torch.utils.data import DataLoader

from training import kernels
from training.batch import Batch
from training.dataset import Origin, PackedDataset, PositionBatches, keep
from training.gather import Apart, Gathered
from training.masks import Labels
from training.order import Shuffle
from training.pin import Pin, open_pin
from training.ring import Slot, widened

SLOTS = 3
TEXT_LENGTH = 512
NAMED = {True: "global", False: "none"}
TEXTS = (".txt", ".jsonl", ".ndjson")


def build_dataloader(
    source: Pin | Path | str,
    tokenizer: Any = None,
    batch_size: int = 8,
    max_seq_len: int | None = None,
    stride: int | None = None,
    *,
    num_workers: int = 0,
    pin_memory: bool = True,
    shuffle: bool | str | Shuffle = True,
    drop_last: bool = False,
    prefetch_factor: int = 2,
    labels: Labels = "shifted",
    isolate_documents: bool = False,
    rank: int | None = None,
    world: int | None = None,
    pad_id: int | None = None,
    **of_a_pin: Any,
) -> Any:
    """A Loader over a pin, or a torch DataLoader over windows of a text file.

    source: a Pin, the name of one below `root`, or a .txt or .jsonl. tokenizer: of a text file, with a pad id or beside
    `pad_id`; not needed for a pin, whose padding is known by position. batch_size: sequences of a global batch, over
    all ranks; `world` must divide it. max_seq_len: tokens of an input row, a pin's own or 512. stride: of a text's
    windows, max_seq_len by default. num_workers: capped at the cores, 0 for the direct path. pin_memory: only where
    there is CUDA. shuffle: True or "global", False or "none", or a training.order.Shuffle; of a train split alone.
    drop_last: leave out an incomplete last batch; else one of validation is filled up with rows without loss. labels,
    isolate_documents: see training.masks and training.batch. rank, world: of torch.distributed where it runs, else one
    process. of_a_pin: device, steps, split, vocab_size and root, see `pin_loader`.

    Raises ValueError for ranks that do not divide the batch, a pad id of None or -1 (of a text), what a text has no use
    for, lengths that a pin does not have, and what `pin_loader` raises.
    """
    workers, (rank, world), pinning = capped(num_workers), _place(rank, world), pin_memory and torch.cuda.is_available()
    both: dict[str, Any] = {"labels": labels, "isolate_documents": isolate_documents, "rank": rank, "world": world}
    both |= {"num_workers": workers, "prefetch_factor": prefetch_factor, "pin_memory": pinning, "drop_last": drop_last}
    if _is_text(source):
        from training.text_loader import text_loader

        if of_a_pin:
            raise ValueError(f"{', '.join(sorted(of_a_pin))} go with a pin and not with a text; leave them out")
        length = max_seq_len or TEXT_LENGTH
        return text_loader(
            Path(str(source)), tokenizer, batch_size, length, stride, pad=pad_id, shuffle=bool(shuffle), **both
        )
    pin = source if isinstance(source, Pin) else open_pin(str(source), of_a_pin.get("root", Path()))
    _check_lengths(pin, max_seq_len, stride)
    return pin_loader(pin, batch_size, shuffle=shuffle, **both, **{k: v for k, v in of_a_pin.items() if k != "root"})


def pin_loader(
    pin: Pin,
    batch_size: int,
    *,
    shuffle: bool | str | Shuffle,
    labels: Labels,
    isolate_documents: bool,
    rank: int,
    world: int,
    num_workers: int,
    prefetch_factor: int,
    pin_memory: bool,
    drop_last: bool,
    device: str | torch.device = "cpu",
    steps: int | None = None,
    split: str = "train",
    vocab_size: int | None = None,
) -> Loader:
    """The loader of one rank; what is not said here stands at `build_dataloader`.

    device: where batches lie. steps: global batches from position 0 to the end of the run; None for a run without
    end. split: "train" follows the schedule; "validation" and "test" are read once in a fixed order. vocab_size: of
    the model. Raises ValueError for a split without sequences, and ShardError for an id beyond vocab_size or a file
    that is not whole.
    """
    how = shuffle if isinstance(shuffle, Shuffle) else Shuffle(NAMED.get(shuffle, shuffle))  # type: ignore[arg-type]
    dataset = PackedDataset(pin, split, shuffle=how, isolate_documents=isolate_documents, vocab_size=vocab_size)
    if not dataset.sequences:
        raise ValueError(f"pin {pin.fingerprint[:12]} has no {split} sequences; see pack's shares of the splits")
    last = None if steps is None else steps * batch_size
    if split != "train":
        last = dataset.sequences // batch_size * batch_size if drop_last else dataset.sequences
    batches = PositionBatches(batch_size, last, rank=rank, world=world)
    if not num_workers:
        return DirectLoader(dataset, batches, labels, torch.device(device))
    return WorkerLoader(dataset, batches, labels, torch.device(device), num_workers, prefetch_factor, pin_memory)


class Loader:
    """Iterates over the batches from `position` on; each `iter` starts at the position of that moment. One pass at a
    time: a pass that goes on after another has begun raises RuntimeError, as both would fill the same buffers."""

    def __init__(self, dataset: PackedDataset, batches: PositionBatches, labels: Labels, device: torch.device) -> None:
        self.dataset, self.position, self.batch_size = dataset, 0, batches.batch_size
        self._passes = 0
        self._batches, self._labels, self._device = batches, labels, device
        if labels not in ("shifted", "model"):
            raise ValueError(f"labels is {labels!r}; it must be 'shifted' or 'model'")

    def __len__(self) -> int:
        """Batches still to come; raises TypeError for a run without end."""
        self._batches.position = self.position
        return len(self._batches)

    def rewind(self) -> None:
        """Begin again at position 0: for validation."""
        self.position = 0

    def state_dict(self) -> dict[str, Any]:
        """The position after the last batch handed out (not the last prefetched), and the data and order it belongs
        to."""
        return self.dataset.state(self.position)

    def load_state_dict(self, state: dict[str, Any], *, allow_other_pin: bool = False) -> None:
        """Go on at the state's position from the next `iter`; ranks, workers and batch size may differ from then.

        Raises ValueError where the state belongs to another order, or to another pin and that is not allowed.
        """
        self.position = self.dataset.position_of(state, allow_other_pin=allow_other_pin)

    def __iter__(self) -> Iterator[Batch]:
        self._passes += 1
        own = self._passes
        for batch in self._made():
            self.position = batch.position
            yield batch
            if self._passes != own:
                raise RuntimeError(
                    f"another pass over this loader began after this one had come to position {batch.position}; "
                    f"build a second loader for two at once"
                )

    def _made(self) -> Iterator[Batch]:
        raise NotImplementedError

    def _batch(
        self,
        tokens: Tensor,
        lengths: np.ndarray | None,
        begins: np.ndarray | None,
        after: int,
        unlearnt: np.ndarray | None,
        borders: np.ndarray | None = None,
        apart: Apart | None = None,
    ) -> Batch:
        origins = partial(self._origins, after)
        return Batch(tokens, lengths, begins, self._labels, after, origins, unlearnt, borders, apart)

    def _origins(self, after: int) -> list[Origin]:
        return self.dataset.origins(self._positions(after))

    def positions_of(self, batch: Batch) -> range:
        """The positions that the rows of this rank's share read; those that fill up a split's last batch have none."""
        return self._positions(batch.position)

    def _positions(self, after: int) -> range:
        own, first = self._batches.own, after - self.batch_size
        asked = range(first + own.start, first + own.stop)
        if self.dataset.order is not None:
            return asked
        return range(asked.start, max(asked.start, min(asked.stop, self.dataset.sequences)))


class DirectLoader(Loader):
    """Gathers in this process: on a GPU a few batches ahead, each copied on a side stream while the model works."""

    def __init__(self, dataset: PackedDataset, batches: PositionBatches, labels: Labels, device: torch.device) -> None:
        super().__init__(dataset, batches, labels, device)
        self._side = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]
        slots = SLOTS if self._side else 1
        # Compiled, what is told of documents is found while a row's ids are at hand; numpy makes it if asked for.
        ahead = int(labels == "shifted") if dataset.isolate_documents and kernels.COMPILED else None
        self._ring = [Slot(len(batches.own), dataset.width, dataset.dtype, device, ahead) for _ in range(slots)]
        if self._side:
            self._side.wait_stream(torch.cuda.current_stream(device))

    def _made(self) -> Iterator[Batch]:
        under_way: deque[tuple[Slot, int]] = deque()
        following, turn, last, own = self.position, 0, self._batches.last, self._batches.own
        while True:
            while len(under_way) < len(self._ring) and (last is None or following < last):
                slot = self._ring[turn % len(self._ring)]
                slot.batch = self.dataset.rows(following + own.start, len(own), slot.room())
                slot.send(self._side)
                following, turn = following + self.batch_size, turn + 1
                under_way.append((slot, following))
            if not under_way:
                return
            slot, after = under_way.popleft()
            held: Gathered = slot.batch
            yield self._batch(slot.take(), held.lengths, held.begins, after, held.unlearnt, held.borders, held.apart)


class WorkerLoader(Loader):
    """The same batches through a torch DataLoader: for storage so slow that reading must overlap with work. Passing a
    batch between processes costs 20 times the gather from memory."""

    def __init__(
        self,
        dataset: PackedDataset,
        batches: PositionBatches,
        labels: Labels,
        device: torch.device,
        workers: int,
        prefetch_factor: int,
        pin_memory: bool,
    ) -> None:
        super().__init__(dataset, batches, labels, device)
        reads: Any = DataLoader
        self.loader = reads(
            dataset, batch_sampler=batches, collate_fn=keep, num_workers=workers, prefetch_factor=prefetch_factor,
            persistent_workers=True, pin_memory=pin_memory,
        )  # fmt: skip

    def _made(self) -> Iterator[Batch]:
        after = self._batches.position = self.position
        for tokens, *rest, _ in self.loader:
            after += self.batch_size
            lengths, begins, unlearnt = (None if part is None else part.numpy() for part in rest)
            yield self._batch(widened(tokens.to(self._device, non_blocking=True)), lengths, begins, after, unlearnt)


def capped(workers: int) -> int:
    """`workers`, or with a warning the cores there are, where it is more; raises ValueError below 0."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if workers < 0:
        raise ValueError(f"num_workers is {workers}; give 0 or more")
    if workers > cores:
        warnings.warn(f"num_workers is {workers}, there are {cores} cores; {cores} workers are used", stacklevel=3)
    return min(workers, cores)


def _place(rank: int | None, world: int | None) -> tuple[int, int]:
    """(rank, world) as given, or of torch.distributed where it runs."""
    running = distributed.is_available() and distributed.is_initialized()
    number = distributed.get_rank() if rank is None and world is None and running else rank or 0
    return number, distributed.get_world_size() if world is None and rank is None and running else world or 1


def _is_text(source: Pin | Path | str) -> bool:
    return not isinstance(source, Pin) and (Path(source).suffix in TEXTS or Path(source).is_file())


def _check_lengths(pin: Pin, max_seq_len: int | None, stride: int | None) -> None:
    own = pin.schedule.tokens_per_sequence
    if max_seq_len not in (None, own) or stride not in (None, own):
        raise ValueError(
            f"the pin's sequences have {own} tokens and do not overlap, asked for are max_seq_len={max_seq_len} and "
            f"stride={stride}; leave both out, or set pack.tokens_per_sequence and build again"
        )
