"""Samples of different lengths as one batch: padded no further than needed, nothing out of step.

In: samples as mappings (`input_ids`, optionally `labels`, `attention_mask`, `position_ids`) or bare rows of ids.
Out: a mapping of int64 tensors [B, W]. Padding is known by position: an end-of-document id inside a sample stays
a target even where it is also the pad id. It packs nothing and groups nothing (training.grouping does). Legend:
B samples, W width of the batch, n length of a sample.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from training.encoders import pad_id
from training.masks import IGNORED, Labels

BUCKETS = (256, 512, 1024, 2048)
"""Widths for compiled kernels, each compiled once: four shapes instead of hundreds."""

Side = Literal["left", "right"]
Row = dict[str, np.ndarray]
FIELDS = ("input_ids", "labels", "attention_mask", "position_ids")


class LLMDataCollator:
    """The collate_fn of a DataLoader for samples of different lengths.

    tokenizer: a tokenizer with a pad id, or the pad id. padding_side: "left" keeps the last tokens of all samples
    in one column, "right" the first. labels: the convention, also of labels that samples bring; "model" copies the
    ids (the model shifts, as transformers does) but the first, which it would learn from padding; "shifted" takes the
    next id. max_length: ids of a sample that are kept, and the greatest width; keep says which end of a longer sample
    stays, "start" or "end", or "all" to refuse it. buckets: widths to choose from; multiple_of: or the width is a
    multiple of it; with neither, the longest sample's. first_position: of a sample's first id (2 for the RoBERTa
    family, whose positions follow its pad id).

    Counts `samples_cut` and `tokens_cut` in its own process, and warns at the first of them and at the first batch
    without any label. Raises ValueError for a pad id
    of None or -1, contradicting widths, samples out of step, and those longer than all buckets.
    """

    def __init__(
        self,
        tokenizer: Any,
        *,
        padding_side: Side = "left",
        labels: Labels = "model",
        max_length: int | None = None,
        keep: Literal["start", "end", "all"] = "start",
        buckets: Sequence[int] | None = None,
        multiple_of: int | None = None,
        first_position: int = 0,
    ) -> None:
        self.pad_id = pad_id(tokenizer)
        if padding_side not in ("left", "right") or keep not in ("start", "end", "all"):
            raise ValueError(
                f"padding_side is {padding_side!r} and keep {keep!r}; use left or right, and start, end or all"
            )
        if labels not in ("shifted", "model"):
            raise ValueError(f"labels is {labels!r}; it must be 'shifted' or 'model'")
        self.left, self.labels, self.keep, self.first = padding_side == "left", labels, keep, first_position
        self.max_length, self.multiple_of = max_length, multiple_of
        self.buckets = _widths(buckets, multiple_of, max_length)
        self.samples_cut = self.tokens_cut = 0
        self._told_of_no_labels = False

    def __call__(self, samples: Sequence[Any]) -> dict[str, Tensor]:
        """input_ids, labels (-100 where no loss), attention_mask (1 for an id, 0 for padding) and position_ids,
        each int64 [B, W].

        position_ids count a sample's ids from first_position, or are the sample's own (restarting with each
        document of a packed one). Padding holds first_position + 1, as no kernel takes that for the start of a
        sequence. A sample without ids, or masked throughout, is a row of padding. Other fields are left out.
        """
        if not samples:
            raise ValueError("a batch of no samples cannot be collated; see the sampler")
        rows = [self._cut(number, self._row(number, sample)) for number, sample in enumerate(samples)]
        if not self._told_of_no_labels and all((row["labels"] == IGNORED).all() for row in rows):
            warnings.warn(
                f"a batch of {len(rows)} samples has no label, so the mean of its loss is NaN; see max_length and the "
                f"samples' labels (told once)",
                stacklevel=2,
            )
            self._told_of_no_labels = True
        width = self.width(max(1, *(len(row["input_ids"]) for row in rows)))
        filled = {"input_ids": self.pad_id, "labels": IGNORED, "attention_mask": 0, "position_ids": self.first + 1}
        return {name: self._padded([row[name] for row in rows], width, value) for name, value in filled.items()}

    def width(self, longest: int) -> int:
        """The width of a batch whose longest sample has `longest` ids, after cutting."""
        if self.multiple_of:
            return -(-longest // self.multiple_of) * self.multiple_of
        if not self.buckets:
            return longest
        found = next((bucket for bucket in self.buckets if bucket >= longest), None)
        if found is None:
            raise ValueError(
                f"a sample of {longest} ids is longer than the widest bucket, {self.buckets[-1]}; "
                f"give max_length={self.buckets[-1]} or a wider bucket"
            )
        return found

    def _row(self, number: int, sample: Any) -> Row:
        """The sample's rows of FIELDS, each int64 [n], without padding of its own."""
        given = sample if isinstance(sample, Mapping) else {"input_ids": sample}
        row = {name: _array(given[name]) for name in FIELDS if given.get(name) is not None}
        shapes = {name: value.shape for name, value in row.items()}
        if "input_ids" not in row or row["input_ids"].ndim != 1:
            raise ValueError(f"sample {number} has {shapes or 'no input_ids'}; each needs one row of input_ids")
        if len(set(shapes.values())) > 1:
            raise ValueError(f"sample {number} is out of step: {shapes}; its rows must be of one length")
        row = _stripped(number, row)
        ids = row["input_ids"]
        counted = self.first + np.arange(len(ids), dtype=np.int64)
        whole = {"labels": ids, "position_ids": counted, **row, "attention_mask": np.ones_like(ids)}
        if self.labels == "model":
            whole["labels"] = _unforetold(whole["labels"])
        elif "labels" not in row:
            whole["labels"] = np.append(ids[1:], IGNORED)[: len(ids)]
        return whole

    def _cut(self, number: int, row: Row) -> Row:
        length, limit = len(row["input_ids"]), self.max_length
        if limit is None or length <= limit:
            return row
        if self.keep == "all":
            raise ValueError(
                f"sample {number} has {length} ids, max_length is {limit}; "
                f"cut it before, raise max_length, or let keep be 'start' or 'end'"
            )
        if not self.samples_cut:
            warnings.warn(
                f"a sample of {length} ids is cut to max_length={limit}; pack, or use windows with a stride, to "
                f"lose nothing (told once; see samples_cut and tokens_cut)",
                stacklevel=4,
            )
        self.samples_cut, self.tokens_cut = self.samples_cut + 1, self.tokens_cut + length - limit
        part = slice(0, limit) if self.keep == "start" else slice(length - limit, length)
        kept = {name: value[part] for name, value in row.items()}
        if self.labels == "model":
            kept["labels"] = _unforetold(kept["labels"])
        return kept | {"position_ids": _from_first(kept["position_ids"], row["position_ids"][0])}

    def _padded(self, rows: list[np.ndarray], width: int, value: int) -> Tensor:
        out = np.full((len(rows), width), value, np.int64)
        for target, row in zip(out, rows, strict=True):
            target[slice(width - len(row), width) if self.left else slice(0, len(row))] = row
        return torch.from_numpy(out)


def _array(value: Any) -> np.ndarray:
    array = np.asarray(value)
    if array.size and array.dtype != np.bool_ and not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"a sample holds {array.dtype} of shape {array.shape}, not ids; tokenize it first")
    return array.astype(np.int64)


def _unforetold(labels: np.ndarray) -> np.ndarray:
    """Labels without the first: a model that shifts would learn it from the padding to its left."""
    return np.concatenate([[IGNORED], labels[1:]])[: len(labels)]


def _stripped(number: int, row: Row) -> Row:
    """The row without the padding that its own attention_mask names, so that it is padded once, on one side."""
    used = row.get("attention_mask")
    if used is None or used.all():
        return row
    inside = np.flatnonzero(used)
    first, last = (int(inside[0]), int(inside[-1]) + 1) if len(inside) else (0, 0)
    if not used[first:last].all():
        raise ValueError(f"sample {number} masks an id between others; to take the loss off it, label it {IGNORED}")
    return {name: value[first:last] for name, value in row.items()}


def _from_first(positions: np.ndarray, first: int) -> np.ndarray:
    """Positions whose beginning was cut off: the document at their head begins at `first` again."""
    falls = np.flatnonzero(np.diff(positions) < 1)
    head = int(falls[0]) + 1 if len(falls) else len(positions)
    return np.concatenate([positions[:head] - positions[0] + first, positions[head:]])


def _widths(buckets: Sequence[int] | None, multiple_of: int | None, max_length: int | None) -> tuple[int, ...]:
    """Buckets in order, those above max_length replaced by it; raises ValueError where the widths contradict."""
    if buckets and multiple_of:
        raise ValueError(f"buckets {tuple(buckets)} and multiple_of={multiple_of} were both given; give one")
    sizes = [*(buckets or ()), *(size for size in (multiple_of, max_length) if size is not None)]
    if any(size < 1 for size in sizes):
        raise ValueError(f"widths must be 1 or more, given are {sizes}")
    if multiple_of and max_length and max_length % multiple_of:
        raise ValueError(
            f"max_length={max_length} is no multiple of {multiple_of}; take {max_length // multiple_of * multiple_of}"
            f" or {(max_length // multiple_of + 1) * multiple_of}"
        )
    if not buckets or max_length is None:
        return tuple(sorted(set(buckets or ())))
    return (*sorted({bucket for bucket in buckets if bucket < max_length}), max_length)
