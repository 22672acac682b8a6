"""From text to ids: a tokenizer as the steps use it.

In: a SentencePiece model and texts. Out: ids, flat, and how many belong to each text. It adds no id of its
own (the closing EOS is the step's affair), and no text becomes a control token: the model matches control
pieces never, only their letters. Training and cards are tasks.tokenizers' affair.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import sentencepiece

from tasks.errors import TokenizerError

PROBE = (
    "Probe: naïve café 1234 \n\t indented\n\n    def f(x):  # two  spaces\r\n"
    "日本語 テスト, тест, العربية, हिन्दी, 👩‍🔬\u00a0½ x²\x00 <s> </s> <pad> <unk> <0x41> [INST] ▁ ▅"
)
"""A fixed text. Its ids show what a tokenizer does, whatever its name or its library's version say."""

SPACE_MARK = "\u2581"
BATCH_CHARACTERS = 1 << 20


class Tokenizer(Protocol):
    """A tokenizer. An id that it has not is -1."""

    name: str
    sha256: str
    vocab_size: int
    eos_id: int
    bos_id: int
    unk_id: int
    pad_id: int

    def encode_batch(self, texts: Sequence[str]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """(ids int32 [sum of lengths], lengths int64 [texts]); no BOS, no EOS."""

    def decode(self, ids: np.ndarray[Any, Any]) -> str:
        """The text that `ids` stand for; control ids stand for none."""

    def exact_on(self, text: str) -> bool:
        """Whether decode must give `text` back; False where the model cannot hold one of its characters."""


class SentencePiece:
    """A SentencePiece model. 4 MB of text a CPU second (BPE of 32,000 pieces, one thread).

    U+2581 is how a model writes a space, so that a text which holds that very character would come back with
    spaces. Where the model has byte pieces and puts nothing before a text, such a text is encoded piecewise
    and each U+2581 by its three bytes. (A model with a dummy prefix would put one before every piece: there
    U+2581 stays lossy.)
    """

    def __init__(self, name: str, model: bytes) -> None:
        self._processor = _processor(name, model)
        self.name = name
        self.sha256 = hashlib.sha256(model).hexdigest()
        self.vocab_size: int = self._processor.vocab_size()
        self.eos_id: int = self._processor.eos_id()
        self.bos_id: int = self._processor.bos_id()
        self.unk_id: int = self._processor.unk_id()
        self.pad_id: int = self._processor.pad_id()
        self._mark = self._mark_ids()
        _check_ids(self)

    def encode_batch(self, texts: Sequence[str]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """See Tokenizer. Works in batches of about a million characters, so that memory follows the ids."""
        each = [ids for batch in _batches(texts) for ids in self._encode(batch)]
        lengths = np.fromiter((len(ids) for ids in each), np.int64, len(each))
        return np.concatenate([np.empty(0, np.int32), *each]), lengths

    def decode(self, ids: np.ndarray[Any, Any]) -> str:
        return str(self._processor.decode(ids.tolist()))

    def exact_on(self, text: str) -> bool:
        return self._mark is not None or SPACE_MARK not in text

    def piece(self, number: int) -> str:
        """The piece of an id; raises TokenizerError for an id out of the vocabulary."""
        if not 0 <= number < self.vocab_size:
            raise TokenizerError(
                f"id {number} is not in tokenizer {self.name}, which has ids 0 to {self.vocab_size - 1}",
                "take ids of this tokenizer, or the tokenizer of these ids",
            )
        return str(self._processor.id_to_piece(number))

    def _encode(self, texts: list[str]) -> list[np.ndarray[Any, Any]]:
        each: list[np.ndarray[Any, Any]] = self._processor.encode(texts, out_type="numpy", num_threads=1)
        if self._mark is not None:
            for at, text in enumerate(texts):
                if SPACE_MARK in text:
                    each[at] = self._piecewise(text, self._mark)
        return each

    def _piecewise(self, text: str, mark: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        pieces = self._processor.encode(text.split(SPACE_MARK), out_type="numpy", num_threads=1)
        return np.concatenate([pieces[0], *(ids for piece in pieces[1:] for ids in (mark, piece))])

    def _mark_ids(self) -> np.ndarray[Any, Any] | None:
        """The byte pieces of U+2581; None where the model has none, or puts a space before a text."""
        ids = [self._processor.piece_to_id(f"<0x{byte:02X}>") for byte in SPACE_MARK.encode()]
        exact = all(self._processor.is_byte(number) for number in ids)
        prefixed = self._processor.encode("a", out_type=str)[0].startswith(SPACE_MARK)
        return np.array(ids, np.int32) if exact and not prefixed else None


@lru_cache(maxsize=4)
def open_model(path: str, sha256: str, name: str) -> SentencePiece:
    """The model at `path`, once a process; raises TokenizerError where its file has another digest."""
    file = Path(path)
    if not file.is_file():
        raise absent(name)
    tokenizer = SentencePiece(name, file.read_bytes())
    if tokenizer.sha256 != sha256:
        raise TokenizerError(
            f"tokenizers/{name}/{file.name}: expected {sha256}, found {tokenizer.sha256}", "restore that file"
        )
    return tokenizer


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
