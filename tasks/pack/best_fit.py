"""Which pieces share a sequence: best-fit decreasing over the histogram of lengths.

In: lengths and a seed. Out: the order of the pieces and the bin of each. It knows no token and no document.

Best-fit decreasing puts the longest piece first, each into the fullest bin that still has room for it (D. Johnson,
1973; for training sequences Ding et al., arXiv 2404.10830). Pieces of one length are alike, so whole runs of them are
placed at once: the bins are those of the plain algorithm, the cost goes with the number of different lengths.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

Numbers = np.ndarray[Any, np.dtype[np.int64]]
STEP, MIX_1, MIX_2 = (np.uint64(value) for value in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def best_fit(lengths: Numbers, room: int, seed: int) -> tuple[Numbers, Numbers]:
    """(order, bins), int64 [n]: pieces as they follow one another, and the bin of each of these, equal ones together.

    lengths [n]: 1 to `room`, the ids of a bin. The seed says which of equal pieces meet, where a piece stands in its
    bin and a bin among all: sorted by length, long pieces would come first.
    """
    keys = scrambled(len(lengths), seed) >> np.uint64(32)
    falling = _sorted((room - lengths).astype(np.uint64), keys)
    bins = np.empty(len(lengths), np.int64)
    bins[falling] = _placed(lengths[falling], room)
    shuffled = np.argsort(scrambled(int(bins.max(initial=-1)) + 1, seed + 1))
    places = np.empty(len(shuffled), np.int64)
    places[shuffled] = np.arange(len(shuffled))
    order = _grouped(places[bins], _sorted(np.zeros(len(keys), np.uint64), keys), len(places))
    return order, bins[order]


def _sorted(first: np.ndarray[Any, Any], second: np.ndarray[Any, Any]) -> Numbers:
    """Numbers in the order of two keys, the second of 32 bits; equal ones as they come. Where it all fits 64 bits, the
    numbers are sorted along: five times as fast as to sort them by the keys."""
    keys, bits = first << np.uint64(32) | second, len(first).bit_length()
    if int(first.max(initial=0)).bit_length() + 32 + bits > 64:
        return np.argsort(keys, kind="stable")
    packed = np.sort(keys << np.uint64(bits) | np.arange(len(keys), dtype=np.uint64))
    return (packed & np.uint64((1 << bits) - 1)).astype(np.int64)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _grouped(groups: Numbers, order: Numbers, count: int) -> Numbers:
    """`order` sorted by group (0 to `count` - 1), stable: counted, and put in place."""
    ends = np.zeros(count + 1, np.int64)
    for group in groups:
        ends[group + 1] += 1
    ends = np.cumsum(ends)
    out = np.empty(len(order), np.int64)
    for number in order:
        place = ends[groups[number]]
        out[place] = number
        ends[groups[number]] = place + 1
    return out


def scrambled(count: int, seed: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Keys in no order, uint64 [count], no two alike: a bijection of 0 to count - 1 (SplitMix64: Steele, Lea and
    Flood, OOPSLA 2014)."""
    state = (np.arange(count, dtype=np.uint64) + np.uint64(seed * int(MIX_1) % 2**64)) * STEP
    state = (state ^ (state >> np.uint64(30))) * MIX_1
    state = (state ^ (state >> np.uint64(27))) * MIX_2
    return np.asarray(state ^ (state >> np.uint64(31)))


def _placed(falling: Numbers, room: int) -> Numbers:
    """The bin of each piece; falling [n]: lengths, descending.

    open_bins[f]: arrays of bins with f ids free; bit f of `some` is set where there are any.
    """
    placed: list[Numbers] = [np.empty(0, np.int64)]
    open_bins: dict[int, list[Numbers]] = {}
    some, made = 0, 0
    changes = np.flatnonzero(np.diff(falling, prepend=-1))
    counts = np.diff(changes, append=len(falling))
    for length, count in zip(falling[changes].tolist(), counts.tolist(), strict=True):
        left = count
        while left:
            fits = some >> length
            if fits:
                free = length + (fits & -fits).bit_length() - 1
                bins = np.concatenate(open_bins.pop(free))
                some ^= 1 << free
            else:
                free = room
                bins = np.arange(made, made - (-left // (room // length)), dtype=np.int64)
                made += len(bins)
            taken, rest = _fill(bins, free, length, left)
            placed.append(taken)
            left -= len(taken)
            for freed, own in rest:
                open_bins.setdefault(freed, []).append(own)
                some |= 1 << freed
    return np.concatenate(placed)


def _fill(bins: Numbers, free: int, length: int, left: int) -> tuple[Numbers, list[tuple[int, Numbers]]]:
    """Put up to `left` pieces into bins with `free` ids each, one bin after another.

    Gives back the bin of each piece that went in, and (free, bins) of what is open after it.
    """
    each = free // length
    full = min(len(bins), left // each)
    over = min(each, left - full * each) if full < len(bins) else 0
    taken = np.concatenate([np.repeat(bins[:full], each), np.repeat(bins[full : full + 1], over)])
    rest = [(free - each * length, bins[:full])]
    if over:
        rest.append((free - over * length, bins[full : full + 1]))
    rest.append((free, bins[full + bool(over) :]))
    return taken, [(freed, own) for freed, own in rest if len(own) and freed]
