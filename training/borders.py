"""Where documents begin in rows of mapped shards, for thousands of rows at once.

In: the mapped bytes, where each row's pointers lie in them, and the ids that a row spans. Out: (row, byte) of every
document that a row holds. Pointers ascend, so a row's first is guessed by interpolation, narrowed by halving, and
the rest is read as one window. It never looks at ids. Legend: n rows, K pointers of a window.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

USUAL = 4
"""Documents more than twice the mean that a first window has room for."""

ROWS = 1024
"""Rows looked at together: of thousands full of short documents, what numpy holds on the way would be tens of
megabytes in each worker."""

Words = np.ndarray[Any, np.dtype[np.int64]]


class Spans(NamedTuple):
    """Per row, int64 [n]: first byte of its shard's pointers in the mapped bytes, documents and bytes of ids of the
    shard, and the bytes of ids [start, stop) that the row spans."""

    pointers: Words
    documents: Words
    held: Words
    start: Words
    stop: Words


def counted(everything: np.ndarray, spans: Spans, *, width: int, item: int, group: int) -> tuple[Words, Words]:
    """(begins, of_row) as training.finding.borders gives them; width: ids that a row can hold, of `item` bytes."""
    begins, counts = [], []
    for at in range(0, max(1, len(spans.start)), ROWS):
        own = Spans(*(part[at : at + ROWS] for part in spans))
        row, byte = borders(everything, own, width)
        begins.append((row + at) % group * width + np.maximum(byte - own.start[row], 0) // item)
        counts.append(np.bincount(row, minlength=len(own.start)))
    return np.concatenate(begins), np.cumsum(np.concatenate([[0], *counts]))


def borders(everything: np.ndarray, spans: Spans, most: int) -> tuple[Words, Words]:
    """(row, byte of the shard's ids where it begins) of each document that a row holds, ascending; the first of a row
    may have begun before it.

    everything: uint8, what is mapped, with 8 * (most + 2) bytes to spare at the end. most: documents that a row can
    hold.
    """
    last = spans.pointers + 8 * (spans.documents - 1)
    first = _before(_view(everything, 1)[:, 0], spans, last)
    usual = int((2 * (spans.stop - spans.start) * spans.documents // spans.held).max(initial=0)) + USUAL
    rows, found, asked = [], [], np.arange(len(first))
    while len(asked):
        windows = _view(everything, min(usual, most + 1))[first[asked]]
        inside = windows < spans.stop[asked, None]
        left = (last + 8 - first)[asked] >> 3  # pointers up to the index's end
        for at_end in np.flatnonzero(left < windows.shape[1]).tolist():
            inside[at_end, left[at_end] :] = False
        whole = ~inside[:, -1]
        inside[~whole] = False
        at = np.flatnonzero(inside.ravel())
        rows.append(asked[at // windows.shape[1]])
        found.append(windows.ravel()[at])
        asked, usual = asked[~whole], 4 * usual
    row, byte = np.concatenate(rows or [first]), np.concatenate(found or [first])
    if len(rows) > 1:
        order = np.argsort(row, kind="stable")
        row, byte = row[order], byte[order]
    return row, byte


def count_upto(everything: np.ndarray, spans: Spans) -> Words:
    """How many documents of the shard begin at or before each `start`, int64 [n]."""
    low = _before(_view(everything, 1)[:, 0], spans, spans.pointers + 8 * (spans.documents - 1))
    counts: Words = ((low - spans.pointers) >> 3) + 1
    return counts


def _before(words: Words, spans: Spans, last: Words) -> Words:
    """Address of the last pointer at or before each row's start."""
    pointers, documents, held, start, _ = spans
    guess = (start / np.maximum(held, 1) * documents).astype(np.int64)
    reach = 2 * np.sqrt(documents).astype(np.int64) + 1
    low = pointers + 8 * (guess - reach).clip(0)
    high = np.minimum(pointers + 8 * (guess + reach), last)
    low = np.where(words[low] <= start, low, pointers)
    high = np.where(words[high] > start, high, last + 8)
    step = 1 << (int((high - low).max(initial=0)) >> 3).bit_length()
    while step > 1:
        step >>= 1
        middle = np.minimum(low + 8 * step, last)
        low = np.where(words[middle] <= start, middle, low)
    return low


def _view(everything: np.ndarray, width: int) -> Words:
    """The int64 [addresses, width] at every address: .idx holds its int64 where they happen to fall."""
    rows = max(0, len(everything) - 8 * width + 1)
    return np.ndarray((rows, width), "<i8", everything.data, strides=(1, 8))
