"""What a batch promises, a check each: ids, labels, padding, positions, masks.

In: a batch as arrays. Out: its faults, the first of each row. See training.inspect_batches for the whole. Legend: B
rows, T inputs of a row; begins: the first id of a document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from training.masks import IGNORED, Labels

Bools = np.ndarray[Any, np.dtype[np.bool_]]
NAMES = {
    "inputs": ("input_ids", "inputs_BT", "input_ids_BT"),
    "labels": ("labels", "labels_BT"),
    "padding_mask": ("attention_mask", "attention_mask_BT"),
    "positions": ("position_ids", "position_ids_BT"),
    "documents": ("document_ids", "document_ids_BT"),
    "mask": ("combined_mask", "mask_B1TT", "attention_mask_B1TT"),
}


@dataclass(frozen=True)
class Fault:
    """One thing that does not hold; row and position are None where it concerns the whole batch."""

    check: str
    batch: int
    row: int | None
    position: int | None
    message: str

    def __str__(self) -> str:
        """batch 0, row 3, position 17: what is wrong."""
        places = {"batch": self.batch, "row": self.row, "position": self.position}
        where = ", ".join(f"{name} {value}" for name, value in places.items() if value is not None)
        return f"{where}: {self.check}: {self.message}"


Check = Callable[["Seen", int, int, bool], Iterator[Fault]]


@dataclass(frozen=True)
class Seen:
    """A batch as arrays [B, T]; mask [B, 1, T, T]. padding_mask, positions, documents and mask may be None.
    dtypes: of the tensors, by name."""

    inputs: np.ndarray
    labels: np.ndarray
    padding_mask: np.ndarray | None
    positions: np.ndarray | None
    documents: np.ndarray | None
    mask: np.ndarray | None
    dtypes: dict[str, torch.dtype]
    convention: Labels

    @classmethod
    def of(cls, batch: Any, convention: Labels) -> Seen:
        """From a mapping, or an object with such attributes; raises TypeError where inputs or labels are missing."""
        found = {name: _field(batch, names) for name, names in NAMES.items()}
        if found["inputs"] is None or found["labels"] is None:
            raise TypeError(f"a batch is a {type(batch).__name__} without input_ids and labels; see training.collate")
        if found["mask"] is None and found["padding_mask"] is not None and found["padding_mask"].ndim == 4:
            found["mask"], found["padding_mask"] = found["padding_mask"], None
        dtypes = {name: tensor.dtype for name, tensor in found.items() if tensor is not None}
        arrays = {name: None if tensor is None else _array(tensor) for name, tensor in found.items()}
        return cls(**arrays, dtypes=dtypes, convention=convention)  # type: ignore[arg-type]

    @cached_property
    def real(self) -> Bools:
        """Which positions hold an id: by the mask, else the documents, else up to the last label."""
        if self.padding_mask is not None:
            return np.asarray(self.padding_mask != 0)
        if self.documents is not None:
            return np.asarray(self.documents > 0)
        places = np.arange(self.labels.shape[1])
        last = np.where(self.labels != IGNORED, places, -1).max(1, initial=-1)
        return np.asarray(places <= (last + (self.convention == "shifted"))[:, None])

    @cached_property
    def begins(self) -> Bools:
        """Where a document begins: by its number, else by a position of less than its left neighbour's."""
        first = self.real & ~_before(self.real, False)
        if self.documents is not None:
            return np.asarray(first | (self.real & (self.documents != _before(self.documents, -1))))
        if self.positions is not None:
            return np.asarray(first | (self.real & (self.positions <= _before(self.positions, -1))))
        return np.asarray(first)


def _field(batch: Any, names: tuple[str, ...]) -> torch.Tensor | None:
    for name in names:
        value = batch.get(name) if isinstance(batch, Mapping) else getattr(batch, name, None)
        value = value() if callable(value) else value
        if value is not None:
            return torch.as_tensor(value)
    return None


def _array(tensor: torch.Tensor) -> np.ndarray:
    plain = tensor.detach().cpu()
    return np.asarray((plain.float() if plain.dtype == torch.bfloat16 else plain).numpy())


def _before(values_BT: np.ndarray, first: Any) -> np.ndarray:
    """Each position's left neighbour."""
    return np.concatenate([np.full((len(values_BT), 1), first, values_BT.dtype), values_BT[:, :-1]], 1)


def _told(check: str, batch: int, wrong_BT: np.ndarray, message: Callable[[int, int], str]) -> Iterator[Fault]:
    """The first wrong position of each row, and how many more there are."""
    for row in np.flatnonzero(wrong_BT.any(1)).tolist():
        at, more = int(wrong_BT[row].argmax()), int(wrong_BT[row].sum()) - 1
        yield Fault(check, batch, row, at, message(row, at) + (f" (and {more} more in this row)" if more else ""))


def shape_faults(seen: Seen, batch: int) -> Iterator[Fault]:
    """Shapes and dtypes; where they are wrong, nothing else can be looked at."""
    shape = seen.inputs.shape
    if len(shape) != 2 or not seen.inputs.size:
        yield Fault("shape", batch, None, None, f"inputs are {shape}, not rows of ids")
        return
    rows, width = shape
    for name in ("labels", "padding_mask", "positions", "documents", "mask"):
        value, wanted = getattr(seen, name), (rows, 1, width, width) if name == "mask" else shape
        if value is not None and value.shape != wanted:
            yield Fault("shape", batch, None, None, f"{name} are {value.shape}, inputs {shape}; expected {wanted}")
    for name in ("inputs", "labels", "positions", "documents"):
        if seen.dtypes.get(name, torch.int64) != torch.int64:
            yield Fault("dtype", batch, None, None, f"{name} are {seen.dtypes[name]}; embeddings and losses take int64")


def check_ids(seen: Seen, batch: int, vocab_size: int, loss_masked: bool) -> Iterator[Fault]:
    """Every id, and every label but -100, is within the vocabulary."""
    for name, values in (("id", seen.inputs), ("label", seen.labels)):
        wrong = ((values < 0) | (values >= vocab_size)) & ((values != IGNORED) | (name == "id"))
        yield from _told("vocabulary", batch, wrong, _outside(name, values, vocab_size - 1))


def _outside(name: str, values: np.ndarray, last: int) -> Callable[[int, int], str]:
    return lambda row, at: f"{name} {values[row, at]} is not within 0 to {last}"


def check_padding(seen: Seen, batch: int, vocab_size: int, loss_masked: bool) -> Iterator[Fault]:
    """The padding mask is 0 or 1, its ids one run a row, and it names the positions that the documents do."""
    if seen.padding_mask is None:
        return
    values = seen.padding_mask
    yield from _told(
        "padding", batch, (values != 0) & (values != 1), lambda row, at: f"the mask is {values[row, at]}, not 0 or 1"
    )
    again = seen.real & ~_before(seen.real, False)
    yield from _told("padding", batch, again & (np.cumsum(again, 1) > 1), lambda row, at: "ids go on after padding")
    if seen.documents is not None:
        differ = seen.real != (seen.documents > 0)
        yield from _told(
            "padding", batch, differ,
            lambda row, at: f"the mask is {values[row, at]}, the document {seen.documents[row, at]}",  # type: ignore[index]
        )  # fmt: skip


def check_labels(seen: Seen, batch: int, vocab_size: int, loss_masked: bool) -> Iterator[Fault]:
    """Labels are the next id (shifted) or the id itself (model) wherever they must be, and nowhere else."""
    shifted = seen.convention == "shifted"
    wanted, known, barred = _expected(seen)
    held = seen.labels != IGNORED
    yield from _told(
        "labels", batch, held & known & (seen.labels != wanted),
        lambda row, at: f"label {seen.labels[row, at]}, expected {wanted[row, at]}{_guess(seen, row)}",
    )  # fmt: skip
    yield from _told(
        "labels", batch, held & ~seen.real, lambda row, at: f"padding has label {seen.labels[row, at]}, not {IGNORED}"
    )
    across = "the next document's first id is a target" if shifted else "a document's first id is a target"
    yield from _told("labels", batch, held & barred, lambda row, at: across)
    if not loss_masked:
        yield from _told("labels", batch, ~held & known, lambda row, at: f"label {IGNORED}, expected {wanted[row, at]}")
    if not held.any():
        yield Fault("labels", batch, None, None, "no position has a label, so the mean of its loss is NaN")


def _expected(seen: Seen) -> tuple[np.ndarray, Bools, Bools]:
    """(labels that must be, where they must, where no label may be), each [B, T].

    What follows a row's last id is not in the row, so the last shifted label is taken as it is; so is the model
    convention's of column 0, which no model looks at. That of an id after left padding is: the model would learn it
    from the padding.
    """
    if seen.convention == "model":
        return seen.inputs, seen.real & ~seen.begins, seen.begins & (np.arange(seen.inputs.shape[1]) > 0)
    inside = seen.begins & _before(seen.real, False)
    after = np.roll(seen.inputs, -1, 1)
    follows = np.roll(seen.real & ~seen.begins, -1, 1)
    next_begins = np.roll(inside, -1, 1)
    follows[:, -1] = next_begins[:, -1] = False
    return after, seen.real & follows, next_begins


def _guess(seen: Seen, row: int) -> str:
    """What a row of wrong labels is instead, if it is that throughout."""
    inputs, labels = seen.inputs[row], seen.labels[row]
    held = np.flatnonzero(labels != IGNORED)
    own = 1 if seen.convention == "shifted" else 0
    said = {0: "the labels are the inputs: nobody shifted them", 1: "the labels are shifted already",
            2: "the labels are shifted twice"}  # fmt: skip
    for by, words in said.items():
        compared = held[held + by < len(inputs)]
        if by != own and len(compared) and (labels[compared] == inputs[compared + by]).all():
            return f"; {words}"
    return ""


def check_positions(seen: Seen, batch: int, vocab_size: int, loss_masked: bool) -> Iterator[Fault]:
    """Positions start alike at every document, rise by one within it, and restart nowhere else."""
    if seen.positions is None:
        return
    positions, starts = seen.positions, seen.begins
    lowest = int(positions[starts].min()) if starts.any() else 0
    yield from _told(
        "positions", batch, starts & (positions != lowest) | starts & (positions < 0),
        lambda row, at: f"a document begins at position id {positions[row, at]}, others at {lowest}",
    )  # fmt: skip
    before = _before(positions, -1)
    yield from _told(
        "positions", batch, seen.real & ~starts & (positions != before + 1),
        lambda row, at: f"position id {positions[row, at]} follows {before[row, at]} within a document",
    )  # fmt: skip


def check_mask(seen: Seen, batch: int, vocab_size: int, loss_masked: bool) -> Iterator[Fault]:
    """A combined mask lets each real position see its document up to itself, and nothing else."""
    if seen.mask is None:
        return
    mask = seen.mask[:, 0]
    allowed = np.asarray(mask if mask.dtype == np.bool_ else mask == 0 if mask.min() < 0 else mask != 0)
    numbers = np.cumsum(seen.begins, 1) * seen.real
    width = mask.shape[1]
    wanted = np.asarray((numbers[:, :, None] == numbers[:, None, :]) & np.tri(width, dtype=np.bool_))
    for name, wrong in (("sees", allowed & ~wanted), ("does not see", ~allowed & wanted)):
        places = wrong & seen.real[:, :, None]
        yield from _told("mask", batch, np.asarray(places.any(2)), _key(name, places))
    yield from _told(
        "mask", batch, np.asarray(~allowed.any(2)), lambda row, at: "it sees nothing, so its softmax is NaN"
    )


def _key(name: str, places: np.ndarray) -> Callable[[int, int], str]:
    return lambda row, at: f"it {name} position {int(places[row, at].argmax())}"


CHECKS: tuple[Check, ...] = (check_ids, check_padding, check_labels, check_positions, check_mask)
