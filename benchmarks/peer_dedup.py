"""Peers' deduplication in the peers' environment: python benchmarks/peer_dedup.py NAME COUNT -> one JSON line.

seconds: CPU seconds of this process for the whole. removed: numbers of the texts that it would remove.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from dedup_corpus import texts


def shingles(text: str) -> list[str]:
    """Windows of five words, lower case."""
    words = text.lower().split()
    return [" ".join(words[at : at + 5]) for at in range(len(words) - 4)]


def datasketch(corpus: list[str]) -> list[int]:
    """update_batch and MinHashLSH(0.8), as its documentation has it; what a query finds is removed."""
    from datasketch import MinHash, MinHashLSH

    lsh, removed, first = MinHashLSH(threshold=0.8, num_perm=128), [], MinHash(num_perm=128)
    for number, text in enumerate(corpus):
        sketch = MinHash(num_perm=128, permutations=first.permutations, scheme=first.scheme)
        sketch.update_batch([shingle.encode() for shingle in shingles(text)])
        if lsh.query(sketch):
            removed.append(number)
        else:
            lsh.insert(number, sketch)
    return removed


def rensa(corpus: list[str]) -> list[int]:
    """RMinHash and RMinHashLSH with 16 bands; candidates of an estimated 0.8 are removed."""
    from rensa import RMinHash, RMinHashLSH

    lsh, removed, sketches = RMinHashLSH(threshold=0.8, num_perm=128, num_bands=16), [], {}
    for number, text in enumerate(corpus):
        sketch = RMinHash(num_perm=128, seed=1)
        sketch.update(shingles(text))
        if any(sketch.jaccard(sketches[other]) >= 0.8 for other in lsh.query(sketch)):
            removed.append(number)
        else:
            sketches[number] = sketch
            lsh.insert(number, sketch)
    return removed


PEERS: dict[str, Callable[[list[str]], list[int]]] = {"datasketch": datasketch, "rensa": rensa}

if __name__ == "__main__":
    corpus = texts(int(sys.argv[2]))
    PEERS[sys.argv[1]](corpus[:8])
    began = time.process_time()
    removed = PEERS[sys.argv[1]](corpus)
    print(json.dumps({"seconds": time.process_time() - began, "removed": removed}))
