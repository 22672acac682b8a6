"""What a banding of signatures finds: the S-curve of locality-sensitive hashing.

Numbers only; the bands themselves are in tasks.text.bands. Source: Leskovec, Rajaraman, Ullman, "Mining of
Massive Datasets", section 3.4.
"""

from __future__ import annotations


def candidate_probability(similarity: float, bands: int, rows: int) -> float:
    """The odds that two sets of Jaccard `similarity` share one of `bands` bands of `rows` values: 1 - (1 -
    s^r)^b.

    21 bands of 6 find 0.7: 0.93, 0.8: 0.998, 0.9: 1.000; 9 of 13, which datasketch picks for 0.8, find 0.40
    at 0.8.
    """
    return 1.0 - (1.0 - similarity**rows) ** bands
