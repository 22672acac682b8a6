"""The texts that a tokenizer is trained on: a bounded sample of the train split, whatever the order of files.

In: the artifacts up to decontaminate. Out: texts as tokenize would encode them. It trains nothing, and nothing that
loads a tokenizer imports it: another rule of sampling changes no ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from tasks.survivors import Tables, reasons, spans
from tasks.text.excision import excise
from tasks.text.split import TRAIN, splits


class Corpus(Tables, Protocol):
    """What training reads: Artifact-like tables of all steps up to decontaminate."""

    def units(self, folder: str) -> list[str]:
        """Unit names of `folder` ("step/folder") in manifest order."""


def training_texts(
    corpus: Corpus, sample_bytes: int, seed: int, validation_share: float, test_share: float
) -> Iterator[str]:
    """Texts of the kept rows of split train, cuts taken out, in manifest order, up to `sample_bytes` of
    UTF-8.

    Where there is more, the rows of the lowest text_sha are taken: a sample that no order of files shapes.
    One pass reads digests and lengths, 100 bytes of memory a row; a second one reads the texts of the chosen.
    """
    units = corpus.units("normalize/text")
    kept = {unit: _kept(corpus, unit, seed, validation_share, test_share) for unit in units}
    last = _last_chosen((row for rows in kept.values() for row in rows.values()), sample_bytes)
    for unit, rows in kept.items():
        chosen = [row for row, (sha, _) in rows.items() if sha <= last]
        if chosen:
            cuts = spans(corpus, unit)
            texts = corpus.table("normalize/text", ["text"], unit)["text"].take(pa.array(chosen))
            for row, text in zip(chosen, texts, strict=True):
                yield excise(text.as_py(), cuts.get(row, ())).text


def _kept(corpus: Corpus, unit: str, seed: int, validation: float, test: float) -> dict[int, tuple[str, int]]:
    """row -> (text_sha, bytes) of the rows of train that every judge kept."""
    table = corpus.table("normalize/text", ["text_sha", "text"], unit)
    shas = table["text_sha"].to_pylist()
    sizes = pc.binary_length(table["text"]).to_pylist()
    rows = zip(reasons(corpus, unit), splits(shas, seed, validation, test), shas, sizes, strict=True)
    return {
        row: (sha, size) for row, (reason, split, sha, size) in enumerate(rows) if reason is None and split == TRAIN
    }


def _last_chosen(rows: Iterable[tuple[str, int]], limit: int) -> str:
    """The greatest text_sha of the sample: the first row is always in; "" where there is none."""
    last, taken = "", 0
    for sha, size in sorted(rows):
        if last and taken + size > limit:
            break
        last, taken = sha, taken + size
    return last
