"""DataTrove's whole chain in the peers' environment: python peer_chain.py DOCUMENTS ITEMS TOKENIZER LANGUAGES.

DOCUMENTS and ITEMS are JSON Lines with text, TOKENIZER is a tokenizer.json, LANGUAGES fastText's lid.176.ftz. Out: a
JSON line. seconds: CPU seconds by stage, libraries loaded and warm; memory: the peak of this process, in MB.

Each stage answers to something that our build of the same corpus does, and is set as DataTrove's examples set it unless
that would do more than ours:

read: JSON Lines without compression (its examples pack them with gzip); our build reads Parquet and source files.
normalize: FTFYFormatter with control characters, line ends and NFC alone. Its defaults also mend encodings, which ours
does not do at this place; ours also sets white space in order and takes invisible characters out.
language: LanguageFilter's default ft176 on the whole text, with the compressed model, which ours uses as well; a label
alone, since no rule of this build drops a language. Ours looks at about 1,000 characters of a text.
filters: Gopher's two, C4 and FineWeb at their defaults, on all documents. They stop at the first that drops a document;
ours measures every signal of every document, and lets these rules drop web pages alone, so more text reaches the rest.
minhash: its four stages at their defaults, with files between them; ours also compares candidates exactly.
lines: SentenceDedupSignature and SentenceFindDedups over single lines, as ours counts lines that stand elsewhere too;
its example takes three sentences, which costs more, and ours also counts paragraphs. Nothing is cut in either.
decontaminate: n-grams of the items. tokenize: ids with an EOS, as .ds files. merge: the files of ids as one, shuffled
by document, as the last step of its example; ours packs, shards and lays an order.

It does without what ours has and it has not: places of records, verdicts with reasons, digests, checks, reports.
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
from datatrove.pipeline.dedup.sentence_dedup import SentDedupConfig, SentenceDedupSignature, SentenceFindDedups
from datatrove.pipeline.filters import (
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
    LanguageFilter,
)
from datatrove.pipeline.formatters import FTFYFormatter
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.tokens import DocumentTokenizer, DocumentTokenizerMerger
from datatrove.pipeline.writers import JsonlWriter
from fasttext.FastText import _FastText

EOS = "<|end|>"
SHORT = 50  # documents of the run that loads its libraries


def run(steps: list[Any], data: Any = None, rank: int = 0, ranks: int = 1) -> list[Any]:
    """The documents that come out of a pipeline."""
    for step in steps:
        data = step.run(data, rank, ranks)
    return list(data) if data is not None else []


def formatter() -> FTFYFormatter:
    """What our normalize does as well, and nothing else."""
    names = "unescape_html remove_terminal_escapes fix_encoding restore_byte_a0 replace_lossy_sequences"
    without = [*names.split(), "decode_inconsistent_utf8", "fix_c1_controls", "fix_surrogates"]
    return FTFYFormatter(**dict.fromkeys(without, False), fix_line_breaks=True, normalization="NFC")


def language(model: Any) -> LanguageFilter:
    made = LanguageFilter(label_only=True)
    made.model._model = model
    return made


def filters() -> list[Any]:
    return [GopherRepetitionFilter(), GopherQualityFilter(), C4QualityFilter(), FineWebQualityFilter()]


def deduplicated(folder: Path) -> None:
    """Signatures, buckets and clusters; the numbers to remove."""
    config = MinhashConfig()
    run([JsonlReader(f"{folder}/kept"), MinhashDedupSignature(f"{folder}/1", config, language="eng_Latn")])
    for bucket in range(config.num_buckets):
        run([MinhashDedupBuckets(f"{folder}/1", f"{folder}/2", config=config)], None, bucket, config.num_buckets)
    run([MinhashDedupCluster(f"{folder}/2", f"{folder}/3", config=config)])


def counted_lines(folder: Path, documents: list[Document]) -> None:
    """The lines that stand in several documents, or twice."""
    config = SentDedupConfig(n_sentences=1, split_sentences=False)
    run([SentenceDedupSignature(f"{folder}/4", config=config)], documents)
    run([SentenceFindDedups(f"{folder}/4", f"{folder}/5", config=config)])


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


def chain(lines: list[str], scan: NGramsDecontFilter, tokenizer: str, model: Any) -> dict[str, Any]:
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
        documents = timed("read", lambda: run([JsonlReader(f"{folder}/in")]))
        documents = timed("normalize", lambda: run([formatter()], documents))
        documents = timed("language", lambda: run([language(model)], documents))
        kept = timed("filters", lambda: run([*filters(), JsonlWriter(f"{folder}/kept", compression=None)], documents))
        timed("minhash", lambda: deduplicated(folder))
        left = timed(
            "decontaminate", lambda: run([JsonlReader(f"{folder}/kept"), MinhashDedupFilter(f"{folder}/3"), scan])
        )
        timed("lines", lambda: counted_lines(folder, left))
        ids = DocumentTokenizer(f"{folder}/ids", tokenizer, eos_token=EOS, shuffle_documents=False)
        timed("tokenize", lambda: run([ids], left))
        merger = DocumentTokenizerMerger(f"{folder}/ids", f"{folder}/merged", "merged", seed=1, progress=False)
        timed("merge", lambda: run([merger]))
        size = sum(path.stat().st_size for path in (folder / "merged").glob("*.ds"))
    return {"seconds": seconds, "documents": len(lines), "kept": len(kept), "left": len(left), "tokens": size // 2}


def main(documents: str, items: str, tokenizer: str, languages: str) -> None:
    lines = [line for line in Path(documents).read_text(encoding="utf-8").split("\n") if line]
    wanted = [json.loads(line)["text"] for line in Path(items).read_text(encoding="utf-8").split("\n") if line]
    model = _FastText(languages)
    with tempfile.TemporaryDirectory() as folder:
        scan = index_of(wanted, Path(folder))
        chain(lines[:: max(1, len(lines) // SHORT)], scan, tokenizer, model)
        made = chain(lines, scan, tokenizer, model)
    made["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(json.dumps(made))


if __name__ == "__main__":
    main(*sys.argv[1:])
