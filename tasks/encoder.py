"""From text to ids: a tokenizer as the steps use it.

In: a SentencePiece model and texts. Out: ids, flat, and how many belong to each text. It adds no id of its
own (the closing EOS is the step's affair), and no text becomes a control token: the model matches control
pieces never, only their letters. Training and cards are tasks.tokenizers' affair.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from threading import Lock
from typing import Any, Protocol

import numpy as np
import sentencepiece

from tasks.errors import TokenizerError
from tasks.text.segments import SegmentMemory, segment_starts

PROBE = (
    "Probe: naïve café 1234 \n\t indented\n\n    def f(x):  # two  spaces\r\n"
    "日本語 テスト, тест, العربية, हिन्दी, 👩‍🔬\u00a0½ x²\x00 <s> </s> <pad> <unk> <0x41> [INST] ▁ ▅"
)
"""A fixed text. Its ids show what a tokenizer does, whatever its name or its library's version say."""

SPACE_MARK = "\u2581"
ACROSS = re.compile(f"[^ {SPACE_MARK}][ {SPACE_MARK}]|[\n\t].|.[\n\t]", re.DOTALL)
"""What no piece may hold where texts are cut into segments."""

PLAIN = PROBE.replace(SPACE_MARK, "")
BATCH_CHARACTERS = 1 << 22
WORTH_CUTTING = 1 << 16
MEMORY_BYTES = 1 << 25
"""Bytes of segments that are kept for the batches to come, 100 to 200 MB with their ids; above, all begin
anew."""

CHUNK_BYTES = 1 << 16
NEWLINE = 0x0A

Array = np.ndarray[Any, Any]


class Tokenizer(Protocol):
    """A tokenizer. An id that it has not is -1.

    engine, version: the library and its version; options: what it needs beside its file.
    """

    engine: str
    version: str
    options: dict[str, Any]
    name: str
    sha256: str
    vocab_size: int
    eos_id: int
    bos_id: int
    unk_id: int
    pad_id: int

    def encode_batch(self, texts: Sequence[str]) -> tuple[Array, Array]:
        """(ids int32 [sum of lengths], lengths int64 [texts]); no BOS, no EOS."""

    def decode(self, ids: Array) -> str:
        """The text that `ids` stand for; control ids stand for none."""

    def control_id(self, name: str) -> int:
        """The id of the control piece of that name, which no text becomes; -1 where there is none."""

    def piece(self, number: int) -> str:
        """The piece of an id; raises TokenizerError for an id out of the vocabulary."""

    def exact_on(self, text: str) -> bool:
        """Whether decode must give `text` back; False where the model cannot hold one of its characters."""


class SentencePiece:
    """A SentencePiece model: 5 MB of text a CPU second, and a multiple of that where texts may be cut.

    A BPE merges neighbours into pieces of its vocabulary. Where no piece holds a space after another
    character, nor a newline or tab beside one, no merge reaches across a segment's border
    (tasks.text.segments), so the ids of a text are those of its segments: each different one is encoded once
    and remembered.

    Memory: up to 100 bytes a character of the longest text, 4 million letters without a space take 4 s.

    U+2581 is how a model writes a space, so that a text which holds that very character would come back with
    spaces. Where the model has byte pieces and puts nothing before a text, such a text is encoded piecewise
    and each U+2581 by its three bytes. (A model with a dummy prefix would put one before every piece: there
    U+2581 stays lossy.)
    """

    engine, version = "sentencepiece", sentencepiece.__version__

    def __init__(self, name: str, model: bytes) -> None:
        self._processor = _processor(name, model)
        self.name, self.options = name, dict[str, Any]()
        self.sha256 = hashlib.sha256(model).hexdigest()
        self.vocab_size: int = self._processor.vocab_size()
        self.eos_id: int = self._processor.eos_id()
        self.bos_id: int = self._processor.bos_id()
        self.unk_id: int = self._processor.unk_id()
        self.pad_id: int = self._processor.pad_id()
        self._mark = self._mark_ids()
        self._memory: SegmentMemory | None = None
        self._lock = Lock()
        _check_ids(self)

    def encode_batch(self, texts: Sequence[str]) -> tuple[Array, Array]:
        """See Tokenizer. Works in batches of about four million characters, so that memory follows the
        ids."""
        batches = [self._encode_one(batch) for batch in _batches(texts)]
        ids = np.concatenate([np.empty(0, np.int32), *(ids for ids, _ in batches)])
        return ids, np.concatenate([np.empty(0, np.int64), *(lengths for _, lengths in batches)])

    @cached_property
    def segmented(self) -> bool:
        """Whether the ids of a text are those of its segments; see the class."""
        pieces = [self._processor.id_to_piece(number) for number in range(self.vocab_size)]
        scores = (self._processor.get_score(number) for number in range(self.vocab_size))
        return (
            self._mark is not None
            and len(self._encode(["\n"])[0]) == 1
            and not any(ACROSS.search(piece) for piece in pieces)
            and all(score == int(score) for score in scores)  # ranks of merges; a unigram model has logarithms
            and self._processor.normalize(PLAIN) == PLAIN.replace(" ", SPACE_MARK)
        )

    def decode(self, ids: Array) -> str:
        return str(self._processor.decode(ids.tolist()))

    def exact_on(self, text: str) -> bool:
        return self._mark is not None or SPACE_MARK not in text

    def control_id(self, name: str) -> int:
        number = int(self._processor.piece_to_id(name))
        return number if self._processor.is_control(number) else -1

    def piece(self, number: int) -> str:
        """The piece of an id; raises TokenizerError for an id out of the vocabulary."""
        if not 0 <= number < self.vocab_size:
            raise TokenizerError(
                f"id {number} is not in tokenizer {self.name}, which has ids 0 to {self.vocab_size - 1}",
                "take ids of this tokenizer, or the tokenizer of these ids",
            )
        return str(self._processor.id_to_piece(number))

    @cached_property
    def _newline(self) -> int:
        return int(self._encode(["\n"])[0][0])

    def _fresh_memory(self) -> SegmentMemory:
        """One that knows the newline: the only segment that cannot be told from what closes the others."""
        memory = SegmentMemory()
        memory.numbers_of(np.array([NEWLINE], np.uint8), np.zeros(1, np.int64))
        memory.learn(np.array([self._newline], np.int32), np.ones(1, np.int64))
        return memory

    def _encode_one(self, texts: list[str]) -> tuple[Array, Array]:
        if sum(map(len, texts)) >= WORTH_CUTTING and self.segmented:
            return self._by_segment(texts)
        return _joined(self._encode(texts))

    def _by_segment(self, texts: list[str]) -> tuple[Array, Array]:
        spelled = [text.encode() for text in texts]
        borders = np.cumsum([0, *map(len, spelled)])
        data = np.frombuffer(b"".join(spelled), np.uint8)
        starts = segment_starts(data, borders)
        with self._lock:  # a Dask worker runs several units at once
            if self._memory is None or self._memory.bytes > MEMORY_BYTES:
                self._memory = self._fresh_memory()
            which = self._memory.numbers_of(data, starts)
            self._memory.learn(*self._ids_of(*self._memory.unlearned()))
            ids, stops = self._memory.ids_of(which)
        ends = np.concatenate([np.zeros(1, np.int64), stops])
        lengths = np.diff(ends[np.searchsorted(starts, borders)])
        self._check_exact(texts[0], ids[: lengths[0]])
        return ids, lengths

    def _ids_of(self, data: Array, stops: Array) -> tuple[Array, Array]:
        """(ids flat, ids of each) of segments, encoded in chunks, each segment closed by a newline.

        Only the segment that is a newline holds one; it is known from the first (see _fresh_memory).
        """
        closed = np.insert(data, stops, NEWLINE).tobytes()
        ends = stops + np.arange(1, len(stops) + 1)
        cuts = [0, *ends[np.flatnonzero(np.diff(ends // CHUNK_BYTES))].tolist(), len(closed)]
        chunks = [closed[start:stop].decode() for start, stop in pairwise(cuts) if start < stop]
        ids, _ = _joined(self._encode(chunks))
        newlines = np.flatnonzero(ids == self._newline)
        return ids[ids != self._newline], np.diff(newlines, prepend=-1) - 1

    def _check_exact(self, text: str, ids: Array) -> None:
        """One text of each batch is encoded whole as well: the proof rests on how the library merges."""
        if not np.array_equal(self._encode([text])[0], ids):
            raise TokenizerError(
                f"tokenizer {self.name} gives {text[:40]!r} other ids in segments than whole",
                "report its model: tasks.encoder.SentencePiece.segmented must refuse it",
            )

    def _encode(self, texts: list[str]) -> list[Array]:
        each: list[Array] = self._processor.encode(texts, out_type="numpy", num_threads=1)
        if self._mark is not None:
            for at, text in enumerate(texts):
                if SPACE_MARK in text:
                    each[at] = self._piecewise(text, self._mark)
        return each

    def _piecewise(self, text: str, mark: Array) -> Array:
        pieces = self._processor.encode(text.split(SPACE_MARK), out_type="numpy", num_threads=1)
        return np.concatenate([pieces[0], *(ids for piece in pieces[1:] for ids in (mark, piece))])

    def _mark_ids(self) -> Array | None:
        """The byte pieces of U+2581; None where the model has none, or puts a space before a text."""
        ids = [self._processor.piece_to_id(f"<0x{byte:02X}>") for byte in SPACE_MARK.encode()]
        exact = all(self._processor.is_byte(number) for number in ids)
        prefixed = self._processor.encode("a", out_type=str)[0].startswith(SPACE_MARK)
        return np.array(ids, np.int32) if exact and not prefixed else None


def absent(name: str) -> TokenizerError:
    """The error for a tokenizer that nobody made."""
    return TokenizerError(f"tokenizers/{name} is not there", f"run: gristmill tokenizer train {name}")


def probe_ids(tokenizer: Tokenizer) -> list[int]:
    """The ids of the probe text."""
    ids: list[int] = tokenizer.encode_batch([PROBE])[0].tolist()
    return ids


def _processor(name: str, model: bytes) -> Any:
    try:
        return sentencepiece.SentencePieceProcessor(model_proto=model)
    except RuntimeError as error:
        raise TokenizerError(
            f"tokenizers/{name}/tokenizer.model ({len(model)} bytes) is no SentencePiece model: {error}",
            "restore that file",
        ) from None


def _check_ids(tokenizer: SentencePiece) -> None:
    if tokenizer.eos_id < 0:
        raise TokenizerError(
            f"tokenizer {tokenizer.name} has no end-of-text id; every document must close with one",
            "train one with an EOS piece, or choose another",
        )
    special = {
        "eos": tokenizer.eos_id,
        "bos": tokenizer.bos_id,
        "unk": tokenizer.unk_id,
        "pad": tokenizer.pad_id,
    }
    for word, number in special.items():
        if number >= tokenizer.vocab_size:
            raise TokenizerError(
                f"tokenizer {tokenizer.name}: {word} id {number} is beyond its {tokenizer.vocab_size} pieces",
                "choose another",
            )


def _joined(each: list[Array]) -> tuple[Array, Array]:
    """(ids flat, int32; length of each, int64)."""
    lengths = np.fromiter((len(ids) for ids in each), np.int64, len(each))
    return np.concatenate([np.empty(0, np.int32), *each]), lengths


def _batches(texts: Sequence[str]) -> list[list[str]]:
    batches: list[list[str]] = [[]]
    room = BATCH_CHARACTERS
    for text in texts:
        if room <= 0:
            batches.append([])
            room = BATCH_CHARACTERS
        batches[-1].append(text)
        room -= len(text)
    return batches
