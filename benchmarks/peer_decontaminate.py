"""DataTrove's n-gram decontamination in the peers' environment: python peer_decontaminate.py ITEMS DOCUMENTS.

Both are JSON Lines with text. Out: a JSON line. The index is what its indexer computes of each item (its run wants
lighteval and data sets); the filter is its own. seconds: CPU seconds of the filter over the documents; flagged: numbers
of those it drops.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from datatrove.data import Document
from datatrove.pipeline.decont.n_grams import NGramsDecontConfig, NGramsDecontFilter, NGramsDecontIndexer


def texts(path: str) -> list[str]:
    return [json.loads(line)["text"] for line in Path(path).read_text(encoding="utf-8").split("\n") if line]


def main(items: str, documents: str) -> None:
    config = NGramsDecontConfig()
    with tempfile.TemporaryDirectory() as folder:
        scan = NGramsDecontFilter(folder, config)
        indexer = object.__new__(NGramsDecontIndexer)
        indexer.config, indexer.tokenizer, indexer.hash_func = config, scan.tokenizer, scan.hash_func
        hashes = {number for text in texts(items) for number in indexer.compute_hashes(text)}
        np.array(sorted(hashes), config.hash_config.np_descr).tofile(Path(folder) / "items.index.hashes")
        scan.filter(Document(text="warm", id="0"))
        corpus = [Document(text=text, id=str(number)) for number, text in enumerate(texts(documents))]
        began = time.process_time()
        flagged = [number for number, document in enumerate(corpus) if scan.filter(document) is not True]
        print(json.dumps({"seconds": time.process_time() - began, "flagged": flagged}))


if __name__ == "__main__":
    main(*sys.argv[1:])
