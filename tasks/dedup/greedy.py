"""Who stays: one pass over the documents, best rank first, without transitive closure.

In: ranked documents, their buckets and the shingle sets of the texts that have candidates. Out: for each
document its survivor, or none. It knows nothing of parts and files.

*Rule*: a document stays unless a document that stays, and shares a bucket or the very text with it, is
similar to it at or above the threshold of their kinds; the best ranked of those is its survivor. A chain A ~
B ~ C with A unlike C thus keeps A and C, and every removed document stands within the threshold of one that
is there to read.

A bucket offers its `survivors_max` best ranked survivors and no more: boilerplate that half of the corpus
shares would else cost a comparison of each with each. Equal texts always meet, whatever their buckets.

Cost on one core: 1.5 ns a shingle compared; 100,000 equal documents take 10 ms, since each meets one
survivor.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from tasks.dedup.documents import Documents

STAYS = -1
"""The survivor of a document that stays."""


class Sets(NamedTuple):
    """Shingle sets of the texts that may be compared; those of the others are empty."""

    hashes_M: np.ndarray
    """uint64, ascending within a text."""
    starts_U: np.ndarray
    """int64: where each text's set begins,"""
    stops_U: np.ndarray
    """int64: and ends."""


class Choice(NamedTuple):
    """What was decided of N documents."""

    survivors_N: np.ndarray
    """int64: the document that stands for it, STAYS where it stays."""
    similarities_N: np.ndarray
    """float64: to the survivor; 0 where it stays."""
    skipped_N: np.ndarray
    """int64: full buckets that this document, which stays, was not offered in."""
    compared_N: np.ndarray
    """int64: comparisons made for it."""
    nearest_N: np.ndarray
    """int64: the most similar of the survivors compared that did not remove it, best rank first; STAYS for
    none."""
    near_similarities_N: np.ndarray
    """float64: to it."""


def choose(
    documents: Documents, sets: Sets, thresholds_KK: np.ndarray, survivors_max: int, similarity_min: float
) -> Choice:
    """Decide every document.

    thresholds_KK: float64, the threshold between two kinds, symmetric.
    similarity_min: neighbours below it are not noted; at most every threshold.
    """
    room_K = np.minimum(documents.sizes_K, survivors_max)
    firsts_K = np.cumsum(room_K) - room_K
    count = len(documents.texts_N)
    choice = Choice(
        np.full(count, STAYS, np.int64),
        np.zeros(count),
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        np.full(count, STAYS, np.int64),
        np.zeros(count),
    )
    _choose(
        documents.texts_N,
        documents.kinds_N,
        documents.offsets_U1,
        documents.buckets_E,
        room_K,
        firsts_K,
        *sets,
        thresholds_KK,
        similarity_min,
        *choice,
    )
    return choice


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _choose(
    texts_N: np.ndarray,
    kinds_N: np.ndarray,
    offsets_U1: np.ndarray,
    buckets_E: np.ndarray,
    room_K: np.ndarray,
    firsts_K: np.ndarray,
    hashes_M: np.ndarray,
    starts_U: np.ndarray,
    stops_U: np.ndarray,
    thresholds_KK: np.ndarray,
    similarity_min: float,
    survivors_N: np.ndarray,
    similarities_N: np.ndarray,
    skipped_N: np.ndarray,
    compared_N: np.ndarray,
    nearest_N: np.ndarray,
    near_similarities_N: np.ndarray,
) -> None:
    """Fills the last six arrays."""
    filled_K, slots = np.zeros(len(room_K), np.int64), np.empty(room_K.sum(), np.int64)
    seen_N, candidates_N = np.full(len(texts_N), -1, np.int64), np.empty(len(texts_N), np.int64)
    stays_U, removed_U = np.full(len(starts_U), -1, np.int64), np.full(len(starts_U), -1, np.int64)
    for document in range(len(texts_N)):
        text, kind = texts_N[document], kinds_N[document]
        twin = removed_U[text]
        if twin >= 0 and kinds_N[twin] == kind:  # the same comparisons would give the same answer
            candidates = survivors_N[twin : twin + 1]
            nearest_N[document], near_similarities_N[document] = nearest_N[twin], near_similarities_N[twin]
        else:
            mates_B = buckets_E[offsets_U1[text] : offsets_U1[text + 1]]
            found = _gather(document, stays_U[text], mates_B, filled_K, firsts_K, slots, seen_N, candidates_N)
            candidates = np.sort(candidates_N[:found])
        for other in candidates:
            similarity = _similarity(text, texts_N[other], hashes_M, starts_U, stops_U, similarity_min)
            compared_N[document] += 1
            if similarity >= thresholds_KK[kind, kinds_N[other]]:
                survivors_N[document], similarities_N[document], removed_U[text] = other, similarity, document
                break
            if similarity >= similarity_min and similarity > near_similarities_N[document]:
                nearest_N[document], near_similarities_N[document] = other, similarity
        if survivors_N[document] < 0:
            stays_U[text] = document
            mine_B = buckets_E[offsets_U1[text] : offsets_U1[text + 1]]
            skipped_N[document] = _offer(document, mine_B, room_K, filled_K, firsts_K, slots)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _gather(
    document: int,
    twin: int,
    buckets_B: np.ndarray,
    filled_K: np.ndarray,
    firsts_K: np.ndarray,
    slots: np.ndarray,
    seen_N: np.ndarray,
    candidates_N: np.ndarray,
) -> int:
    """Write the survivors that share a bucket or the text, each once, to candidates_N; returns how many."""
    found = 0
    if twin >= 0:
        seen_N[twin], candidates_N[0], found = document, twin, 1
    for bucket in buckets_B:
        for slot in range(firsts_K[bucket], firsts_K[bucket] + filled_K[bucket]):
            other = slots[slot]
            if seen_N[other] != document:
                seen_N[other], candidates_N[found] = document, other
                found += 1
    return found


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _offer(
    document: int,
    buckets_B: np.ndarray,
    room_K: np.ndarray,
    filled_K: np.ndarray,
    firsts_K: np.ndarray,
    slots: np.ndarray,
) -> int:
    """Put a document that stays into its buckets; returns the buckets that were full."""
    skipped = 0
    for bucket in buckets_B:
        if filled_K[bucket] == room_K[bucket]:
            skipped += 1
        else:
            slots[firsts_K[bucket] + filled_K[bucket]] = document
            filled_K[bucket] += 1
    return skipped


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _similarity(
    text: int, other: int, hashes_M: np.ndarray, starts_U: np.ndarray, stops_U: np.ndarray, least: float
) -> float:
    """Jaccard of two texts, 1 of equal ones; 0 where their sizes alone keep it below `least`."""
    if text == other:
        return 1.0
    left = hashes_M[starts_U[text] : stops_U[text]]
    right = hashes_M[starts_U[other] : stops_U[other]]
    if min(len(left), len(right)) < least * max(len(left), len(right)):
        return 0.0
    similarity: float = jaccard(left, right)
    return similarity


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def jaccard(left: np.ndarray, right: np.ndarray) -> float:
    """Similarity in 0 to 1 of two ascending uint64 arrays without repeats; 0 where both are empty.

    Two texts without shingles share nothing that could be compared: whether they are equal is for the exact rule. It
    stands in this file, as numba's cache on disk does not see edits of another's. 1.5 ns a member on one core.
    """
    i, j, common = 0, 0, 0
    while i < len(left) and j < len(right):
        common += left[i] == right[j]
        behind = left[i] <= right[j]
        ahead = right[j] <= left[i]
        i += behind
        j += ahead
    either = len(left) + len(right) - common
    return common / either if either else 0.0
