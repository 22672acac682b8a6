"""Peers' deduplication in the peers' environment: python benchmarks/peer_dedup.py NAME FILE -> one JSON line.

FILE: JSON Lines with text. seconds: CPU seconds of this process for the whole, its libraries loaded and warm. removed:
numbers of the texts that it would remove.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path


def shingles(text: str) -> list[str]:
    """Windows of five words, lower case; of a text mostly without spaces, of five characters."""
    words = text.lower().split()
    if len(text) > 20 * len(words):
        words = list("".join(words))
    return [" ".join(words[at : at + 5]) for at in range(max(1, len(words) - 4))]


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


def datatrove(corpus: list[str]) -> list[int]:
    """Its four stages as its example has them: 14 buckets of 8 hashes, 5-grams; clusters by transitive closure."""
    from datatrove.data import Document
    from datatrove.pipeline.dedup.minhash import (
        MinhashConfig,
        MinhashDedupBuckets,
        MinhashDedupCluster,
        MinhashDedupFilter,
        MinhashDedupSignature,
    )

    language = (
        "cmn_Hani" if sum(len(text) > 20 * len(text.split()) for text in corpus) * 2 > len(corpus) else "eng_Latn"
    )
    config, documents = MinhashConfig(), [Document(text=text, id=str(n)) for n, text in enumerate(corpus)]
    with tempfile.TemporaryDirectory() as folder:
        MinhashDedupSignature(f"{folder}/1", config, language=language).run(iter(documents), 0, 1)
        for bucket in range(config.num_buckets):
            MinhashDedupBuckets(f"{folder}/1", f"{folder}/2", config=config).run(None, bucket, config.num_buckets)
        MinhashDedupCluster(f"{folder}/2", f"{folder}/3", config=config).run(None, 0, 1)
        kept = {int(document.id) for document in MinhashDedupFilter(f"{folder}/3").run(iter(documents), 0, 1)}
    return [number for number in range(len(corpus)) if number not in kept]


PEERS: dict[str, Callable[[list[str]], list[int]]] = {"datasketch": datasketch, "rensa": rensa, "datatrove": datatrove}

if __name__ == "__main__":
    texts = [json.loads(line)["text"] for line in Path(sys.argv[2]).read_text(encoding="utf-8").split("\n") if line]
    PEERS[sys.argv[1]](texts[:8])
    began = time.process_time()
    removed = PEERS[sys.argv[1]](texts)
    print(json.dumps({"seconds": time.process_time() - began, "removed": removed}))
