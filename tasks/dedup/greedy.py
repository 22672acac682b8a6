"""Who stays: one pass over the documents, best rank first, without transitive closure.

In: ranked documents, their buckets and the shingle sets of those that have candidates. Out: for each document its
survivor, or none. It knows nothing of parts.

*Rule*: a document stays unless a document that stays, and shares a bucket or the very text with it, is
similar to it at or above the threshold of their kinds; the best ranked of those is its survivor. A chain A ~
B ~ C with A unlike C thus keeps A and C, and every removed document stands within the threshold of one that
is there to read.

A bucket offers its `survivors_max` best ranked survivors and no more: boilerplate that half of the corpus
shares would else cost a comparison of each with each. Equal texts always meet, whatever their buckets.

Cost on one core: 1.5 ns a shingle compared, 25 ns a pair of short sets that their masks tell apart.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from tasks.dedup.documents import Documents
from tasks.dedup.matching import BLOCK, ENTRY, Buckets
from tasks.dedup.scratch import Scratch, read_partition

STAYS = -1
"""The survivor of a document that stays."""


class Sets(NamedTuple):
    """Shingle sets of the documents that may be compared, by the documents' numbers."""

    hashes_M: np.ndarray
    """uint64, ascending within a document."""
    starts_N: np.ndarray
    """int64: where each document's set begins,"""
    sizes_N: np.ndarray
    """int32: and how many hashes it has."""


class Choice(NamedTuple):
    """What was decided, by the documents' ranks. Mapped: 29 bytes a document."""

    survivors_R: np.ndarray
    """int32: rank of the document that stands for it, STAYS where it stays."""
    nearest_R: np.ndarray
    """int32: the most similar of the survivors compared that did not remove it, best rank first; STAYS for none."""
    skipped_R: np.ndarray
    """int32: full buckets that this document, which stays, was not offered in."""
    compared_R: np.ndarray
    """int32: comparisons made for it."""
    similarities_R: np.ndarray
    """float64: to the survivor; 0 where it stays."""
    near_similarities_R: np.ndarray
    """float64: to the nearest."""


def choose(
    documents: Documents,
    buckets: Buckets,
    sets: Sets,
    thresholds_KK: np.ndarray,
    similarity_min: float,
    scratch: Scratch,
) -> Choice:
    """Decide every document, block by block of ranks.

    thresholds_KK: float64, the threshold between two kinds, symmetric.
    similarity_min: neighbours below it are not noted; at most every threshold.
    """
    count, taken = len(documents.order_R), len(buckets.firsts_K1) - 1
    choice = Choice(
        *(scratch.array(name, np.int32, count) for name in ("survivors", "nearest", "skipped", "compared")),
        *(scratch.array(name, np.float64, count) for name in ("similarities", "near_similarities")),
    )
    seen_R, masks_R = scratch.array("seen", np.int32, count), scratch.array("masks", np.uint64, count)
    filled_K = scratch.array("filled", np.int32, taken)
    slots = scratch.array("slots", np.int32, int(buckets.firsts_K1[-1]))
    for start in range(0, count, BLOCK):
        stop = min(count, start + BLOCK)
        _choose(
            start,
            documents.fixed,
            (
                (documents.order_R, documents.kinds_R, documents.leaders_R, documents.texts_R),
                tuple(sets),
                _of_block(buckets, start, stop),
            ),
            *(buckets.firsts_K1, filled_K, slots, seen_R, masks_R),
            thresholds_KK,
            similarity_min,
            *choice,
        )
        scratch.relax()
    return choice


def _of_block(buckets: Buckets, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
    """(offsets int64 [stop - start + 1], buckets int64) of the leaders of one block of ranks."""
    records = read_partition(buckets.entries, ENTRY, start // BLOCK)
    order = np.argsort(records["rank"], kind="stable")
    counts = np.bincount(records["rank"] - start, minlength=stop - start)
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]), records["bucket"][order]


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _choose(
    start: int,
    fixed: int,
    given: Any,
    firsts_K1: np.ndarray,
    filled_K: np.ndarray,
    slots: np.ndarray,
    seen_R: np.ndarray,
    masks_R: np.ndarray,
    thresholds_KK: np.ndarray,
    similarity_min: float,
    survivors_R: np.ndarray,
    nearest_R: np.ndarray,
    skipped_R: np.ndarray,
    compared_R: np.ndarray,
    similarities_R: np.ndarray,
    near_similarities_R: np.ndarray,
) -> None:
    """Fills the last six arrays for the ranks of one block. given: four arrays of Documents, Sets, _of_block."""
    (order_R, kinds_R, leaders_R, texts_R), (hashes_M, starts_N, sizes_N), (offsets_B1, buckets_E) = given
    for document in range(start, start + len(offsets_B1) - 1):
        survivors_R[document], nearest_R[document] = STAYS, STAYS
        leader, text, kind = leaders_R[document], texts_R[document], kinds_R[document]
        if leader != document:
            _follow(document, leader, texts_R, survivors_R, nearest_R, similarities_R, near_similarities_R)
            compared_R[document] = 1
            continue
        mine_B = buckets_E[offsets_B1[document - start] : offsets_B1[document - start + 1]]
        if len(mine_B):
            masks_R[document] = _mask(_set_of(order_R[document], hashes_M, starts_N, sizes_N))
        if document >= fixed:
            for other in _ascending(_gather(document, mine_B, filled_K, firsts_K1, slots, seen_R)):
                near, threshold = near_similarities_R[document], thresholds_KK[kind, kinds_R[other]]
                least = min(threshold, max(np.nextafter(near, 2.0), similarity_min))
                mine, its, similarity = order_R[document], order_R[other], 1.0
                if texts_R[other] != text:
                    most = _bound(sizes_N[mine], sizes_N[its], masks_R[document], masks_R[other])
                    similarity = _similarity(mine, its, hashes_M, starts_N, sizes_N, least) if most >= least else 0.0
                compared_R[document] += 1
                if similarity >= threshold:
                    survivors_R[document], similarities_R[document] = other, similarity
                    break
                if similarity >= similarity_min and similarity > near:
                    nearest_R[document], near_similarities_R[document] = other, similarity
        if survivors_R[document] < 0:
            skipped_R[document] = _offer(document, mine_B, filled_K, firsts_K1, slots)
        elif texts_R[survivors_R[document]] == text:
            nearest_R[document], near_similarities_R[document] = STAYS, 0.0


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _follow(
    document: int,
    leader: int,
    texts_R: np.ndarray,
    survivors_R: np.ndarray,
    nearest_R: np.ndarray,
    similarities_R: np.ndarray,
    near_similarities_R: np.ndarray,
) -> None:
    """What became of the leader, better ranked, of equal text and kind, becomes of the document."""
    if survivors_R[leader] < 0:
        survivors_R[document], similarities_R[document] = leader, 1.0
        return
    survivors_R[document], similarities_R[document] = survivors_R[leader], similarities_R[leader]
    if texts_R[survivors_R[leader]] != texts_R[leader]:
        nearest_R[document], near_similarities_R[document] = nearest_R[leader], near_similarities_R[leader]


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _set_of(number: int, hashes_M: np.ndarray, starts_N: np.ndarray, sizes_N: np.ndarray) -> np.ndarray:
    return hashes_M[starts_N[number] : starts_N[number] + sizes_N[number]]


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _mask(hashes: np.ndarray) -> np.uint64:
    """One of 64 bits for each hash: one that only the left of two sets has is of a hash that the right has not."""
    mask = np.uint64(0)
    for value in hashes:
        mask |= np.uint64(1) << (value >> np.uint64(58))
    return mask


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _bound(lefts: int, rights: int, left: np.uint64, right: np.uint64) -> float:
    """What two sets' similarity is at most, by their sizes and masks: of short sets it says so much that most pairs
    that are not alike enough are never read."""
    common = min(np.int64(lefts) - _ones(left & ~right), np.int64(rights) - _ones(right & ~left))
    return float(common / max(1, np.int64(lefts) + np.int64(rights) - common))


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _similarity(
    left: int, right: int, hashes_M: np.ndarray, starts_N: np.ndarray, sizes_N: np.ndarray, least: float
) -> float:
    """What `jaccard` gives of the sets of two numbers."""
    left_set, right_set = _set_of(left, hashes_M, starts_N, sizes_N), _set_of(right, hashes_M, starts_N, sizes_N)
    return float(jaccard(left_set, right_set, least))


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _ones(value: np.uint64) -> np.int64:
    """How many bits are set (Warren, Hacker's Delight, section 5.1)."""
    value -= (value >> np.uint64(1)) & np.uint64(0x5555555555555555)
    value = (value & np.uint64(0x3333333333333333)) + ((value >> np.uint64(2)) & np.uint64(0x3333333333333333))
    value = (value + (value >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((value * np.uint64(0x0101010101010101)) >> np.uint64(56))


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _gather(
    document: int,
    buckets_B: np.ndarray,
    filled_K: np.ndarray,
    firsts_K1: np.ndarray,
    slots: np.ndarray,
    seen_R: np.ndarray,
) -> np.ndarray:
    """int32: the survivors that share a bucket, each once; seen_R marks them with document + 1."""
    most, found = 0, 0
    for bucket in buckets_B:
        most += filled_K[bucket]
    candidates = np.empty(most, np.int32)
    for bucket in buckets_B:
        for slot in range(firsts_K1[bucket], firsts_K1[bucket] + filled_K[bucket]):
            other = slots[slot]
            if seen_R[other] != document + 1:
                seen_R[other], candidates[found] = document + 1, other
                found += 1
    return candidates[:found]


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _ascending(candidates: np.ndarray) -> np.ndarray:
    """Sorted; by their places in a row of flags where they lie close together, as those of full buckets do."""
    if len(candidates) < 2 or np.int64(candidates.max()) - candidates.min() > 8 * len(candidates):
        return np.sort(candidates)
    first = candidates.min()
    flags = np.zeros(np.int64(candidates.max()) - first + 1, np.uint8)
    for other in candidates:
        flags[other - first] = 1
    at = 0
    for place in range(len(flags)):
        if flags[place]:
            candidates[at] = first + place
            at += 1
    return candidates


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _offer(document: int, buckets_B: np.ndarray, filled_K: np.ndarray, firsts_K1: np.ndarray, slots: np.ndarray) -> int:
    """Put a document that stays into its buckets; returns the buckets that were full."""
    skipped = 0
    for bucket in buckets_B:
        place = firsts_K1[bucket] + filled_K[bucket]
        if place == firsts_K1[bucket + 1]:
            skipped += 1
        else:
            slots[place] = document
            filled_K[bucket] += 1
    return skipped


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def jaccard(left: np.ndarray, right: np.ndarray, least: float = 0.0) -> float:
    """Similarity in 0 to 1 of two ascending uint64 arrays without repeats, exact where it is `least` or more, else 0
    or exact; 0 where both are empty.

    Two texts without shingles share nothing that could be compared: whether they are equal is for the exact rule. It
    stands in this file, as numba's cache on disk does not see edits of another's. 1.5 ns a member on one core.
    """
    sizes = len(left) + len(right)
    if min(len(left), len(right)) < least * max(len(left), len(right)) or not sizes:
        return 0.0
    spare = np.int64(sizes - 2 * (least / (1 + least) * sizes) + 1e-6 * sizes)  # members that may have no partner
    i, j, common = 0, 0, 0
    while i < len(left) and j < len(right):
        if i + j - 2 * common > spare:
            return 0.0
        for _ in range(min(16, len(left) - i, len(right) - j)):
            common += left[i] == right[j]
            behind = left[i] <= right[j]
            ahead = right[j] <= left[i]
            i += behind
            j += ahead
    return common / (sizes - common)
