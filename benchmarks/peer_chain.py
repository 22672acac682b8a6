"""DataTrove's whole chain in the peers' environment: python peer_chain.py DOCUMENTS ITEMS TOKENIZER.

DOCUMENTS and ITEMS are JSON Lines with text, TOKENIZER is a tokenizer.json. Out: a JSON line. The pipelines are those
of its examples: filters, the four stages of MinHash with files between them, n-grams of the items, ids with an EOS in
.ds files. seconds: CPU seconds by stage, libraries loaded and warm; memory: the peak of this process, in MB.
"""

import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from datatrove.data import Document
from datatrove.pipeline.decont.n_grams import NGramsDecontConfig, NGramsDecontFilter, NGramsDecontIndexer
from datatrove.pipeline.dedup.minhash import (
    MinhashConfig,
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
    MinhashDedupSignature,
)
from datatrove.pipeline.filters import (
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
)
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.tokens import DocumentTokenizer
from datatrove.pipeline.writers import JsonlWriter

EOS = "<|end|>"
SHORT = 50  # documents of the run that loads its libraries


def run(steps: list[Any], rank: int = 0, ranks: int = 1) -> int:
    """Documents that come out of a pipeline."""
    data: Any = None
    for step in steps:
        data = step.run(data, rank, ranks)
    return sum(1 for _ in data) if data is not None else 0


def filters() -> list[Any]:
    return [GopherRepetitionFilter(), GopherQualityFilter(), C4QualityFilter(), FineWebQualityFilter()]


def filtered(folder: Path) -> int:
    return run([JsonlReader(f"{folder}/in"), *filters(), JsonlWriter(f"{folder}/kept", compression=None)])


def deduplicated(folder: Path) -> None:
    """Signatures, buckets and clusters; the numbers to remove."""
    config = MinhashConfig()
    run([JsonlReader(f"{folder}/kept"), MinhashDedupSignature(f"{folder}/1", config, language="eng_Latn")])
    for bucket in range(config.num_buckets):
        run([MinhashDedupBuckets(f"{folder}/1", f"{folder}/2", config=config)], bucket, config.num_buckets)
    run([MinhashDedupCluster(f"{folder}/2", f"{folder}/3", config=config)])


def tokenized(folder: Path, scan: NGramsDecontFilter, tokenizer: str) -> None:
    """Duplicates and contaminated documents removed, the others as ids."""
    ids = DocumentTokenizer(f"{folder}/ids", tokenizer, eos_token=EOS, shuffle_documents=False)
    run([JsonlReader(f"{folder}/kept"), MinhashDedupFilter(f"{folder}/3"), scan, ids])


def index_of(items: list[str], folder: Path) -> NGramsDecontFilter:
    """The filter of an index; what its indexer computes of each item, whose run wants lighteval and data sets."""
    config = NGramsDecontConfig()
    scan = NGramsDecontFilter(str(folder), config)
    indexer = object.__new__(NGramsDecontIndexer)
    indexer.config, indexer.tokenizer, indexer.hash_func = config, scan.tokenizer, scan.hash_func
    hashes = {number for text in items for number in indexer.compute_hashes(text)}
    np.array(sorted(hashes), config.hash_config.np_descr).tofile(folder / "items.index.hashes")
    scan.filter(Document(text="warm", id="0"))
    return scan


def chain(lines: list[str], scan: NGramsDecontFilter, tokenizer: str) -> dict[str, Any]:
    """Seconds of each stage, and what came out."""
    seconds = dict[str, float]()

    def timed(name: str, work: Callable[[], Any]) -> Any:
        began = time.process_time()
        found = work()
        seconds[name] = time.process_time() - began
        return found

    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "in").mkdir()
        (folder / "in" / "documents.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        kept = timed("filters", lambda: filtered(folder))
        timed("minhash", lambda: deduplicated(folder))
        timed("decontaminate and tokenize", lambda: tokenized(folder, scan, tokenizer))
        size = sum(path.stat().st_size for path in (folder / "ids").glob("*.ds"))
    return {"seconds": seconds, "kept": kept, "tokens": size // 2}


def main(documents: str, items: str, tokenizer: str) -> None:
    lines = [line for line in Path(documents).read_text(encoding="utf-8").split("\n") if line]
    wanted = [json.loads(line)["text"] for line in Path(items).read_text(encoding="utf-8").split("\n") if line]
    with tempfile.TemporaryDirectory() as folder:
        scan = index_of(wanted, Path(folder))
        chain(lines[:: max(1, len(lines) // SHORT)], scan, tokenizer)
        made = chain(lines, scan, tokenizer)
    made["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(json.dumps(made))


if __name__ == "__main__":
    main(*sys.argv[1:])
