"""What the targets of a fixed split are, so that validation tells losses apart: by source, by kind, by language.

In: a dataset of validation or test and positions of it. Out: of each target the number of its source, kind and language
among `names`. It reads .classes.npy of the shards (tasks.artifacts.shards); where a pin has none, the source is all
that is known. About 0.1 ms a sequence: validation alone uses it. Legend: n positions, T targets of a sequence.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from tasks.artifacts.shards import CLASS_NAMES, CLASSES, ShardError, ShardIndex
from training.dataset import Origin, PackedDataset

DIMENSIONS = ("source", *CLASS_NAMES)
UNKNOWN = ("", "")

Codes = np.ndarray[Any, np.dtype[np.int64]]


class Classes:
    """names: (dimension, member) of each number; the first stands for what has none, as padding."""

    def __init__(self, dataset: PackedDataset) -> None:
        self._dataset = dataset
        self._paths = {(path.parent.parent.name, path.name): path for path in dataset.shards.paths}
        members = {("source", name) for name, _ in self._paths}
        for path in self._paths.values():
            held = classes_of(path)
            members |= {(name, word.decode()) for name in CLASS_NAMES for word in np.unique(held[name]).tolist()}
        self.names = [UNKNOWN, *sorted(members, key=lambda member: (DIMENSIONS.index(member[0]), member[1]))]
        self._numbers = {member: number for number, member in enumerate(self.names)}

    def of(self, positions: range) -> Codes:
        """int64 [3, n, T]: of the target of each place, the number of its source, kind and language in `names`."""
        codes = np.zeros((len(DIMENSIONS), len(positions), self._dataset.width - 1), np.int64)
        held = [position for position in positions if position < len(self._dataset)]
        for at, origin in enumerate(self._dataset.origins(held)):
            documents, counts = self._targets(origin)
            codes[:, at, : counts.sum()] = np.repeat(documents, counts, axis=1)
        return codes

    def _targets(self, origin: Origin) -> tuple[Codes, Codes]:
        """(numbers [3, documents], how many targets each document has) of one sequence."""
        path = self._paths[origin.source, origin.shard]
        index, own = _index(path), slice(origin.documents.start, origin.documents.stop)
        first, stop = origin.ids
        begins = np.asarray(index.pointers[own]) // index.dtype.itemsize
        ends = np.minimum(begins + index.sizes[own], stop)
        counts = np.maximum(ends - np.maximum(begins, first + 1), 0)  # the first id of a sequence is no target
        source = np.full(len(counts), self._numbers["source", origin.source])
        return np.stack([source, *(self._numbered(path, name, own) for name in CLASS_NAMES)]), counts

    def _numbered(self, path: Path, dimension: str, own: slice) -> Codes:
        words = classes_of(path)[dimension][own]
        found = [self._numbers.get((dimension, word.decode()), 0) for word in words.tolist()]
        return np.array(found, np.int64) if found else np.zeros(own.stop - own.start, np.int64)


@lru_cache(maxsize=64)
def classes_of(path: Path) -> np.ndarray:
    """The CLASSES of a shard [documents], empty where it has none. path: without suffix. Raises ShardError where they
    are not one for each document."""
    file, documents = path.with_name(path.name + ".classes.npy"), _index(path).documents
    if not file.exists():
        return np.empty(0, CLASSES)
    held = np.load(file, allow_pickle=False)
    if held.dtype != CLASSES or held.shape != (documents,):
        raise ShardError(f"{file}: expected {CLASSES} [{documents}], found {held.dtype} {held.shape}; lay it anew")
    return np.asarray(held)


@lru_cache(maxsize=64)
def _index(path: Path) -> ShardIndex:
    return ShardIndex.open(path.with_name(path.name + ".idx"))
