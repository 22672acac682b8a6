"""The shingle sets of the documents that may be compared, in one mapped file.

In: the candidates and the texts. Out: 64-bit hashes, ascending, document after document. Texts are read once, part by
part; each part is one piece of work, so that parts run on the workers. 8 bytes a shingle on disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.dedup.documents import Documents
from tasks.dedup.greedy import Sets
from tasks.dedup.places import Place, sketches_of
from tasks.dedup.scratch import Scratch, each, mapped
from tasks.step import Reads
from tasks.text.shingles import shingle_sets, shingle_slices

if TYPE_CHECKING:
    from tasks.dedup import DedupParams


def candidate_sets(
    reads: Reads, params: DedupParams, documents: Documents, candidates_R: np.ndarray, scratch: Scratch
) -> Sets:
    """The sets of the documents that share a band."""
    starts_N = scratch.array("set_starts", np.int64, len(documents.ranks_N))
    held, wanted = 0, []
    lengths = (params.shingle_words, params.shingle_characters)
    for at, place in enumerate(documents.places):
        numbers = documents.numbers(at)
        sizes = np.where(candidates_R[documents.ranks_N[numbers]], documents.sizes_N[numbers], 0)
        starts_N[numbers] = held + np.cumsum(sizes) - sizes
        held += int(sizes.sum())
        if sizes.any():
            wanted.append((place.unit, (str(scratch.folder), place, numbers.start, numbers.stop, lengths)))
        scratch.relax()
    scratch.take_room("sets", 8 * held)
    for _ in each(reads, scratch, write_sets, wanted):
        scratch.relax()
    return Sets(scratch.open("sets", np.uint64), starts_N, documents.sizes_N)


def write_sets(reads: Reads, item: tuple[str, Place, int, int, tuple[int, int]]) -> None:
    """Write the sets of one part's candidates to their places in the file."""
    folder, place, start, stop, lengths = item
    numbers = slice(start, stop)
    paths = (Path(folder) / name for name in ("candidates", "ranks", "rows", "set_starts", "sizes"))
    dtypes = (np.uint8, np.int32, np.int32, np.int64, np.int32)
    candidates_R, ranks_N, *others = (mapped(path, dtype) for path, dtype in zip(paths, dtypes, strict=True))
    chosen = np.flatnonzero(candidates_R[ranks_N[numbers]])
    chosen_rows, starts, sizes = (array[numbers][chosen] for array in others)
    texts = place.table(reads, "normalize/text", ["text"]).column("text")
    with (Path(folder) / "sets").open("r+b") as file:
        for some, shingles, _ in shingle_slices(texts, *lengths, chosen_rows):
            hashes, offsets = shingle_sets(shingles)
            if (np.diff(offsets) != sizes[some]).any():
                raise ValueError(f"{place.name}: sketches count other shingles than the texts have")
            os.pwrite(file.fileno(), hashes.data, 8 * int(starts[some][0]))


def each_signature(reads: Reads, params: DedupParams, documents: Documents) -> Iterator[tuple[slice, np.ndarray]]:
    """(numbers, uint32 [documents, 128]) of each part, for estimates without texts."""
    for at, place in enumerate(documents.places):
        numbers = documents.numbers(at)
        column: Any = sketches_of(reads, place, params, ["signature"]).column("signature")
        flat = column.take(documents.rows_N[numbers]).combine_chunks().flatten()
        yield numbers, flat.to_numpy().reshape(-1, column.type.list_size)
