"""A corpus with known near duplicates, the same at every call: for benchmarks.dedup and its peers.

In: a number of texts. Out: texts of about 3 kB of made-up words, of which one in four is a copy of the text before it
with some words changed. Standard library only, as the peers' environment has nothing else of ours.
"""

from __future__ import annotations

import random

WORDS_PER_TEXT, VOCABULARY = 500, 30_000


def texts(count: int) -> list[str]:
    """`count` texts; number 4n + 1 is text 4n with 0 to 24 of its words changed."""
    rng = random.Random(1)
    letters = "etaoinshrdlu"
    words = ["".join(rng.choices(letters, k=rng.randint(2, 9))) for _ in range(VOCABULARY)]
    weights = [1 / (rank + 10) for rank in range(VOCABULARY)]
    made: list[list[str]] = []
    for number in range(count):
        if number % 4 == 1:
            changed = list(made[-1])
            for place in rng.sample(range(WORDS_PER_TEXT), number // 4 % 25):
                changed[place] = f"changed{place}"
            made.append(changed)
        else:
            made.append(rng.choices(words, weights, k=WORDS_PER_TEXT))
    return [" ".join(text) for text in made]
