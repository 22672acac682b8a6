"""From text to ids: a tokenizer as the steps use it.

In: a SentencePiece model and texts. Out: ids, flat, and how many belong to each text. It adds no id of its
own (the closing EOS is the step's affair), and no text becomes a control token: the model matches control
pieces never, only their letters. Training and cards are tasks.tokenizers' affair.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
import sentencepiece

from tasks.errors import TokenizerError
from tasks.segmented import Segmented
from tasks.sentencepiece_model import read_model
from tasks.sentencepiece_words import words_of
from tasks.texts import bulk

PROBE = (
    "Probe: naïve café 1234 \n\t indented\n\n    def f(x):  # two  spaces\r\n"
    "日本語 テスト, тест, العربية, हिन्दी, 👩‍🔬\u00a0½ x²\x00 <s> </s> <pad> <unk> <0x41> [INST] ▁ ▅"
)
"""A fixed text. Its ids show what a tokenizer does, whatever its name or its library's version say."""

SPACE_MARK = "\u2581"
PLAIN = PROBE.replace(SPACE_MARK, "")
BATCH_CHARACTERS = 1 << 22
WORTH_CUTTING = 1 << 16
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

    @property
    def control(self) -> Mapping[str, int]:
        """name -> id of the control pieces, which no text becomes."""

    def piece(self, number: int) -> str:
        """The piece of an id; raises TokenizerError for an id out of the vocabulary."""

    def exact_on(self, text: str) -> bool:
        """Whether decode must give `text` back; False where the model cannot hold one of its characters."""


class SentencePiece:
    """A SentencePiece model. The library encodes 4 to 5 MB of a BPE a CPU second (15 to 30 of a unigram model, which
    goes through it whole: its sums of scores are rounded by what stands before).

    A BPE model that normalizes nothing is encoded by segments (tasks.segmented): a merge makes a piece of the
    vocabulary, so none reaches across two neighbours that no piece holds side by side, and the ids of a text are those
    of its segments, whose merges tasks.text.merging makes. A beginning of each batch goes through the library as well.

    U+2581 is how a model writes a space, so that a text which holds that very character would come back with
    spaces. Where the model has byte pieces and puts nothing before a text, such a text is encoded piecewise
    and each U+2581 by its three bytes. (A model with a dummy prefix would put one before every piece: there
    U+2581 stays lossy.)
    """

    engine, version = "sentencepiece", sentencepiece.__version__

    def __init__(self, name: str, model: bytes) -> None:
        self._processor = _processor(name, model)
        self._model = model
        self.name, self.options = name, dict[str, Any]()
        self.sha256 = hashlib.sha256(model).hexdigest()
        self.vocab_size: int = self._processor.vocab_size()
        self.eos_id: int = self._processor.eos_id()
        self.bos_id: int = self._processor.bos_id()
        self.unk_id: int = self._processor.unk_id()
        self.pad_id: int = self._processor.pad_id()
        self._prefixed = bool(self._processor.encode("a", out_type=str)[0].startswith(SPACE_MARK))
        self._mark = self._mark_ids()
        _check_ids(self)

    def encode_batch(self, texts: Sequence[str]) -> tuple[Array, Array]:
        """See Tokenizer."""
        if bulk(texts) >= WORTH_CUTTING and self._segmented is not None:
            if self._prefixed:  # such a model cannot tell the two apart
                texts = [text.replace(SPACE_MARK, " ") if SPACE_MARK in text else text for text in texts]
            return self._segmented.encode(texts)
        each = [_joined(self._encode(batch)) for batch in _batches(texts)]
        ids = np.concatenate([np.empty(0, np.int32), *(ids for ids, _ in each)])
        return ids, np.concatenate([np.empty(0, np.int64), *(lengths for _, lengths in each)])

    @cached_property
    def _segmented(self) -> Segmented | None:
        words = words_of(read_model(self._model))
        plain = all(self._processor.normalize(text) == self._spelled(text) for text in (PLAIN, "  a  b  ", "\t\n a\n"))
        if words is None or not plain:
            return None
        whole = self._whole
        learn = partial(words.learn, whole=lambda text: self._after(whole, text))
        return Segmented(self.name, words.seams, learn, whole, " " * self._prefixed, words.alone)

    def decode(self, ids: Array) -> str:
        return str(self._processor.decode(ids.tolist()))

    def exact_on(self, text: str) -> bool:
        return self._mark is not None or SPACE_MARK not in text

    @cached_property
    def control(self) -> dict[str, int]:
        numbers = filter(self._processor.is_control, range(self.vocab_size))
        return {str(self._processor.id_to_piece(number)): number for number in numbers}

    def piece(self, number: int) -> str:
        """The piece of an id; raises TokenizerError for an id out of the vocabulary."""
        if not 0 <= number < self.vocab_size:
            raise TokenizerError(
                f"id {number} is not in tokenizer {self.name}, which has ids 0 to {self.vocab_size - 1}",
                "take ids of this tokenizer, or the tokenizer of these ids",
            )
        return str(self._processor.id_to_piece(number))

    def _spelled(self, text: str) -> str:
        return SPACE_MARK * self._prefixed + text.replace(" ", SPACE_MARK)

    def _whole(self, text: str) -> Array:
        return self._encode([text])[0]

    def _after(self, whole: Callable[[str], Array], text: str) -> Array:
        """The ids of a segment that does not begin its text."""
        return whole("\n" + text)[len(whole("\n")) :] if self._prefixed else whole(text)

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
        return np.array(ids, np.int32) if exact and not self._prefixed else None


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
