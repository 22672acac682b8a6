"""Looking at what a model would be fed, before it is: batches, and the ids of samples.

In: an iterable of batches (of training.loader, or mappings as a collator makes them) or of samples. Out: what was
found, with every fault named by batch, row and position. It mends nothing. Lengths are looked at in
training.lengths. Legend: B rows, T inputs of a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from training.batch_checks import CHECKS, Fault, Seen, shape_faults
from training.lengths import Statistics, analyze_dataset_statistics
from training.masks import IGNORED, Labels

__all__ = [
    "Coverage",
    "Statistics",
    "Verified",
    "analyze_dataset_statistics",
    "check_vocab_coverage",
    "verify_pipeline",
]

UNKNOWN_SHARE_HIGH = 0.001
"""Above one unknown id in a thousand, the tokenizer was made for other text (the project's own threshold: byte
fallback leaves none)."""


@dataclass(frozen=True)
class Verified:
    """What verify_pipeline saw. shapes: of the inputs, as (rows, width); valid_share: of the positions, those
    with a label; real_share: those that are no padding."""

    batches: int
    rows: int
    shapes: tuple[tuple[int, int], ...]
    valid_share: float
    real_share: float
    faults: tuple[Fault, ...]

    @property
    def ok(self) -> bool:
        """Whether no fault was found."""
        return not self.faults

    def lines(self) -> Iterator[str]:
        """For people."""
        shapes = ", ".join(f"{rows} x {width}" for rows, width in self.shapes)
        yield f"{self.batches} batches of {shapes}: {self.real_share:.1%} ids, {self.valid_share:.1%} with a label"
        yield from map(str, self.faults)


def verify_pipeline(
    batches: Iterable[Any],
    num_batches: int = 3,
    *,
    labels: Labels,
    vocab_size: int,
    loss_masked: bool = False,
    expected: Iterable[np.ndarray] | None = None,
) -> Verified:
    """Hold the first `num_batches` against what their convention promises.

    Shapes and dtypes; every id and label within the vocabulary; labels shifted at every real position, none
    across a document's border or in padding, none missing (unless loss_masked: chats train on answers alone); the
    padding mask one run a row and in step with the documents; positions that restart with each document and
    nowhere else; a combined mask [B, 1, T, T] that is padding ∩ causal ∩ document. A batch without any label is a
    fault, as its loss would be NaN. expected: the ids [B, at least T] that each batch must hold, as from
    training.pin_rows.
    """
    faults: list[Fault] = []
    shapes, rows, positions, valid, real, number = set(), 0, 0, 0, 0, -1
    truths: Iterator[np.ndarray | None] = iter(expected) if expected is not None else iter(lambda: None, 0)
    for number, (batch, truth) in enumerate(zip(islice(batches, num_batches), truths, strict=False)):
        seen = Seen.of(batch, labels)
        found = list(shape_faults(seen, number)) or [
            fault for check in CHECKS for fault in check(seen, number, vocab_size, loss_masked)
        ]
        faults += found or _differs(seen, truth, number)
        shapes.add(seen.inputs.shape)
        rows, positions = rows + len(seen.inputs), positions + seen.inputs.size
        valid, real = valid + int((seen.labels != IGNORED).sum()), real + int(seen.real.sum())
    if number + 1 < num_batches:
        faults.append(Fault("batches", number + 1, None, None, f"there are {number + 1} batches, not {num_batches}"))
    whole = max(1, positions)
    return Verified(number + 1, rows, tuple(sorted(shapes)), valid / whole, real / whole, tuple(faults))


def _differs(seen: Seen, truth: np.ndarray | None, number: int) -> list[Fault]:
    if truth is None:
        return []
    wrong = (seen.inputs != truth[:, : seen.inputs.shape[1]]) & seen.real
    return [
        Fault("source", number, int(row), int(at), f"id {seen.inputs[row, at]}, the data has {truth[row, at]}")
        for row, at in _firsts(wrong)
    ]


def _firsts(wrong: np.ndarray) -> Iterator[tuple[int, int]]:
    """(row, first position) of each row that holds one."""
    for row in np.flatnonzero(wrong.any(1)):
        yield int(row), int(wrong[row].argmax())


@dataclass(frozen=True)
class Coverage:
    """What check_vocab_coverage saw. distinct: ids of the vocabulary that occur; outside: (sample, place, id) of
    the first ten out of range; advice: what follows, or nothing."""

    samples: int
    ids: int
    vocab_size: int
    distinct: int
    unknown: int
    out_of_range: int
    outside: tuple[tuple[int, int, int], ...] = ()
    advice: tuple[str, ...] = field(default=())

    @property
    def ok(self) -> bool:
        """Whether every id is within the vocabulary."""
        return not self.out_of_range

    def lines(self) -> Iterator[str]:
        """For people."""
        yield (
            f"{self.samples} samples, {self.ids} ids: {self.distinct} of {self.vocab_size} pieces occur, "
            f"{self.unknown} ids are unknown, {self.out_of_range} out of range"
        )
        yield from (f"sample {sample}, position {at}: id {found} is out of range" for sample, at, found in self.outside)
        yield from self.advice


def check_vocab_coverage(
    samples: Iterable[Any], vocab_size: int, *, unknown_id: int | None = None, num_samples: int = 1000
) -> Coverage:
    """Count ids of the first `num_samples` samples (rows of ids, or mappings of input_ids): unknown, out of range,
    and how much of the vocabulary they touch."""
    used = np.zeros(vocab_size, np.bool_)
    number, total, unknown, beyond = -1, 0, 0, 0
    outside: list[tuple[int, int, int]] = []
    for number, sample in enumerate(islice(samples, num_samples)):
        ids = np.asarray(sample["input_ids"] if isinstance(sample, Mapping) else sample).reshape(-1)
        inside = (ids >= 0) & (ids < vocab_size)
        used[ids[inside]] = True
        wrong = np.flatnonzero(~inside)
        outside += [(number, int(at), int(ids[at])) for at in wrong[: 10 - len(outside)]]
        total, beyond = total + len(ids), beyond + len(wrong)
        unknown += int((ids == unknown_id).sum()) if unknown_id is not None else 0
    advice = _vocabulary_advice(total, unknown, beyond, vocab_size)
    return Coverage(number + 1, total, vocab_size, int(used.sum()), unknown, beyond, tuple(outside), advice)


def _vocabulary_advice(total: int, unknown: int, beyond: int, vocab_size: int) -> tuple[str, ...]:
    found = []
    if beyond:
        found.append(
            f"{beyond} ids are not within 0 to {vocab_size - 1}: take the tokenizer and vocab_size that belong together"
        )
    if total and unknown / total > UNKNOWN_SHARE_HIGH:
        found.append(
            f"{unknown / total:.2%} of the ids are unknown, above {UNKNOWN_SHARE_HIGH:.1%}: take a tokenizer with byte "
            f"fallback, or one made for this text"
        )
    return tuple(found)
