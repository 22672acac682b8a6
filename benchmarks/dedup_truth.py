"""What a deduplication should find, and how near one came: pairs by brute force, recall and precision.

In: texts, or corpora/dedup/*.truth.tsv beside its texts. Out: pairs at or above a threshold, and figures of removals.
No hashing and no sampling: every two texts are compared as sets.

.truth.tsv counts characters of Chinese texts with their punctuation, brute_force letters and digits alone, as dedup
does: two transcriptions of one chapter with other marks are 0.75 alike by the first and 0.9 by the second.
"""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import NamedTuple

_WORDS = re.compile(r"[\u3400-\u9fff]|[^\W_\u3400-\u9fff]+")
Pairs = dict[tuple[int, int], float]


class Corpus(NamedTuple):
    """Texts with the pairs that are alike."""

    name: str
    texts: list[str]
    pairs: Pairs
    """(lower number, higher) -> exact Jaccard of 5-shingles, those at or above the threshold among them."""


def brute_force(texts: list[str], least: float) -> Pairs:
    """All pairs of texts at or above `least`, by sets of five words or Chinese characters."""
    known: dict[tuple[str, ...], int] = {}
    sets = []
    for text in texts:
        words = _WORDS.findall(text.lower())
        shingles = [tuple(words[at : at + 5]) for at in range(max(1, len(words) - 4))]
        sets.append({known.setdefault(shingle, len(known)) for shingle in shingles})
    found: Pairs = {}
    for right, of in enumerate(sets):
        for left in range(right):
            smaller, larger = sorted((len(of), len(sets[left])))
            if smaller >= least * larger:  # else their Jaccard is below it, whatever they share
                shared = len(of & sets[left])
                if shared >= least * (smaller + larger - shared):
                    found[left, right] = shared / (smaller + larger - shared)
    return found


def with_truth(folder: Path) -> list[Corpus]:
    """The corpora of a folder that have a .truth.tsv."""
    found = []
    for path in sorted(folder.glob("*.truth.tsv")):
        name = path.name.removesuffix(".truth.tsv")
        lines = (folder / f"{name}.jsonl").read_text(encoding="utf-8").split("\n")
        documents = [json.loads(line) for line in lines if line]
        numbers = {document["id"]: number for number, document in enumerate(documents)}
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
        pairs = {}
        for row in rows:
            left, right = sorted((numbers[row["id_a"]], numbers[row["id_b"]]))
            pairs[left, right] = float(row["jaccard5"])
        found.append(Corpus(name, [document["text"] for document in documents], pairs))
    return found


def judged(corpus: Corpus, removed: list[int], threshold: float, recounted: Pairs) -> tuple[float, float]:
    """(recall of pairs, precision of removals).

    A pair of the truth at or above the threshold is found where one of the two was removed. A removal is right where a
    text that stays is at or above the threshold of it, by the truth or by `recounted`.
    """
    gone = set(removed)
    near = {pair for pair, similarity in corpus.pairs.items() if similarity >= threshold}
    recall = sum(bool(gone & set(pair)) for pair in near) / max(1, len(near))
    near |= {pair for pair, similarity in recounted.items() if similarity >= threshold}
    right = {one for pair in near for one, other in (pair, pair[::-1]) if one in gone and other not in gone}
    return recall, len(right) / max(1, len(gone))
