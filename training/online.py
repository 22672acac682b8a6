"""Training on a text file without the pipeline: tokenized once, read as windows of ids.

In: a .txt or .jsonl file, or rows of a datasets.Dataset, and a tokenizer. Out: a torch Dataset of samples. Memory
holds a block of text; the ids go to a file. Nothing is cleaned, deduplicated, mixed or pinned: a pin is for runs
that must be repeated. Legend: T max_seq_len.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset, IterableDataset, get_worker_info

from training.encoders import encoder, end_id
from training.masks import Labels, inputs_and_labels, position_ids
from training.texts import pieces
from training.windows import Window, Windows

Sample = dict[str, Tensor]
IDS, BEGINS = "ids.bin", "begins.bin"
ID, PLACE = np.dtype("<i4"), np.dtype("<i8")


class LMTextDataset(Dataset[Sample]):
    """Windows of a file's ids, by number; any sampler, workers and ranks of a DataLoader go with it.

    file_path: a .txt (one document), a .jsonl (a document a line: text, else content, else instruction and
    output), or rows with such fields. tokenizer: anything with encode or __call__; each document is closed by its
    end-of-document id, or eos_id. max_seq_len, stride, min_length: see training.windows; stride is max_seq_len
    where it is None. labels, isolate_documents: as in training.loader. folder: where the file of ids is laid (4
    bytes an id), the system's temporary folder by default; it goes with the dataset.

    tokens: ids of the file; tokens_dropped: those in no window. Raises training.texts.TextsError for what cannot
    be read, and ValueError where there is no window at all.
    """

    def __init__(
        self,
        file_path: Path | str | Iterable[Any],
        tokenizer: Any,
        max_seq_len: int = 512,
        stride: int | None = None,
        min_length: int | None = None,
        *,
        labels: Labels = "shifted",
        isolate_documents: bool = False,
        eos_id: int | None = None,
        folder: Path | str | None = None,
    ) -> None:
        self.windows = Windows(max_seq_len, max_seq_len if stride is None else stride, min_length)
        self.labels, self.isolate = labels, isolate_documents
        self._folder = Path(tempfile.mkdtemp(prefix="gristmill-", dir=folder))
        weakref.finalize(self, _remove, self._folder, os.getpid())
        self.tokens, self.documents = _spool(token_stream(file_path, tokenizer, eos_id), self._folder)
        self.tokens_dropped = self.tokens - self.windows.covered(self.tokens)
        self._held: Window | None = None
        if not len(self):
            name = file_path if isinstance(file_path, (str, Path)) else "the rows"
            raise ValueError(
                f"{name} has {self.tokens} ids, no window of {self.windows.full}; "
                f"lower max_seq_len, or pass min_length=2 to keep a shorter last window"
            )

    def __len__(self) -> int:
        return self.windows.count(self.tokens)

    def __getitem__(self, number: int) -> Sample:
        """input_ids and labels int64 [T] (T + 1 by the model's convention); position_ids where documents are
        isolated. The last window may be shorter: collate with training.collate."""
        if not -len(self) <= number < len(self):
            raise IndexError(f"window {number} of {len(self)}")
        start, stop = self.windows.bounds(number % len(self), self.tokens)
        ids, documents = self._maps()
        begins = np.zeros(stop - start, np.bool_)
        first, last = np.searchsorted(documents, [start, stop])
        begins[documents[first:last] - start] = True
        return sample(Window(ids[start:stop].astype(np.int64), begins), self.labels, self.isolate)

    def __getstate__(self) -> dict[str, Any]:
        """A worker process maps the file of ids itself."""
        return {**self.__dict__, "_held": None}

    def _maps(self) -> Window:
        if self._held is None:
            ids = np.memmap(self._folder / IDS, ID, "r", shape=(self.tokens,))
            self._held = Window(ids, np.memmap(self._folder / BEGINS, PLACE, "r", shape=(self.documents,)))
        return self._held


class LMTextStream(IterableDataset[Sample]):
    """The same windows in the same order while the text is read: the first at once, nothing laid on disk.

    Each of `world` ranks gets every world-th window and equally many; DataLoader workers share a rank's windows
    without repeating any, but each tokenizes the whole text, so LMTextDataset is quicker over several passes.
    skip: windows of this rank to pass over, to resume a run of one worker. Arguments else as of LMTextDataset.
    """

    def __init__(
        self,
        file_path: Path | str | Iterable[Any],
        tokenizer: Any,
        max_seq_len: int = 512,
        stride: int | None = None,
        min_length: int | None = None,
        *,
        labels: Labels = "shifted",
        isolate_documents: bool = False,
        eos_id: int | None = None,
        rank: int = 0,
        world: int = 1,
        skip: int = 0,
    ) -> None:
        if not 0 <= rank < world or skip < 0:
            raise ValueError(f"rank {rank} of {world} with {skip} windows passed over cannot be; see the launcher")
        self.windows = Windows(max_seq_len, max_seq_len if stride is None else stride, min_length)
        self._source, self._tokenizer, self._eos_id = file_path, tokenizer, eos_id
        self.labels, self.isolate = labels, isolate_documents
        self.rank, self.world, self.skip = rank, world, skip

    def __iter__(self) -> Iterator[Sample]:
        worker = get_worker_info()
        turn, turns = (worker.id, worker.num_workers) if worker else (0, 1)
        stream = token_stream(self._source, self._tokenizer, self._eos_id)
        for number, window in enumerate(self._own(self.windows.over(stream))):
            if number >= self.skip and number % turns == turn:
                yield sample(window, self.labels, self.isolate)

    def _own(self, windows: Iterator[Window]) -> Iterator[Window]:
        """This rank's window of each round; a last round that not all ranks could share is left out."""
        for number, window in enumerate(windows):
            if number % self.world == self.rank:
                own = window
            if number % self.world == self.world - 1:
                yield own


def token_stream(source: Path | str | Iterable[Any], tokenizer: Any, eos_id: int | None = None) -> Iterator[Window]:
    """The ids of the documents one after another, each closed by its end; documents without ids are left out.

    A document of several pieces comes in several parts, each encoded alone: a tokenizer that puts a prefix before
    a text does so at each (about one id in 250,000).
    """
    encode, end = encoder(tokenizer), end_id(tokenizer, eos_id)
    inside = False
    for text, ends in pieces(source):
        ids = encode(text) if text else np.empty(0, np.int64)
        closing = [end] if ends and (inside or len(ids)) else []
        ids = np.concatenate([ids, np.array(closing, np.int64)])
        begins = np.zeros(len(ids), np.bool_)
        begins[:1] = not inside
        inside = not ends and (inside or len(ids) > 0)
        yield Window(ids, begins)


def sample(window: Window, labels: Labels, isolate: bool) -> Sample:
    """A window as input_ids, labels and, isolated, position_ids: int64 [n - 1], or [n] by the model's
    convention."""
    begins = torch.from_numpy(window.begins.copy())[None]
    begins[:, :1] = True
    inputs, targets = inputs_and_labels(torch.from_numpy(window.ids)[None], None, begins if isolate else None, labels)
    made = {"input_ids": inputs[0], "labels": targets[0]}
    return made | ({"position_ids": position_ids(begins[:, : inputs.shape[1]])[0]} if isolate else {})


def _spool(stream: Iterator[Window], folder: Path) -> tuple[int, int]:
    """Write ids and the places where documents begin; gives back how many there are of each."""
    tokens = documents = 0
    with (folder / IDS).open("wb") as ids, (folder / BEGINS).open("wb") as begins:
        for part in stream:
            if len(part.ids) and not 0 <= part.ids.min() <= part.ids.max() <= np.iinfo(ID).max:
                raise ValueError(f"the tokenizer gave ids {part.ids.min()} to {part.ids.max()}; they must fit int32")
            places = np.flatnonzero(part.begins) + tokens
            ids.write(part.ids.astype(ID).tobytes())
            begins.write(places.astype(PLACE).tobytes())
            tokens, documents = tokens + len(part.ids), documents + len(places)
    return tokens, documents


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
