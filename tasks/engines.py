"""Tokenizers of other libraries behind the protocol of tasks.encoder, and opening a model by its file.

In: a tokenizer.json of Hugging Face's tokenizers, or the ranks of a tiktoken encoding. Out: the ids that these
libraries give, but for one thing: text that spells a control token stays text. They add no BOS, no EOS, no padding,
and cut nothing off.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from tasks.byte_words import KNOWN, ByteWords, byte_words, pieces_of
from tasks.encoder import BATCH_CHARACTERS, WORTH_CUTTING, Array, SentencePiece, Tokenizer, absent
from tasks.errors import TokenizerError
from tasks.segmented import MOST_ALONE, Segmented
from tasks.text.seams import WORD_SEAMS
from tasks.texts import bulk

ROLES = ("unk", "bos", "eos", "pad")
Options = Mapping[str, Any]
DECODED = 4096
"""Ids that are spelled at a time: half the time of all of a book's, whose list the caches do not hold."""


class _Foreign:
    """What both have in common: ids of roles by the names that the card gives them, and ids of control tokens.

    options: {"roles": {"eos": "<|endoftext|>", ...}}; those of tiktoken also "pattern" (the expression that cuts text
    into words) and "control" (name -> id).
    """

    control: dict[str, int]
    name: str
    sha256: str
    vocab_size: int

    def encode_batch(self, texts: Sequence[str]) -> tuple[Array, Array]:
        """By segments where that is known to give the library's ids, and worth it."""
        if bulk(texts) >= WORTH_CUTTING and self._segmented is not None:
            return self._segmented.encode(texts)
        return _in_batches(texts, self._encode)

    @cached_property
    def _segmented(self) -> Segmented | None:
        return None

    def _encode(self, texts: list[str]) -> list[list[int]]:
        """The library's ids of each text."""
        raise NotImplementedError

    def _whole(self, text: str) -> Array:
        return np.array(self._encode([text])[0], np.int32)

    def _settle(self, name: str, model: bytes, options: Options) -> None:
        self.name, self.sha256 = name, hashlib.sha256(model).hexdigest()
        roles = options.get("roles", {})
        absent_names = sorted(piece for piece in roles.values() if piece not in self.control)
        if absent_names or "eos" not in roles:
            raise TokenizerError(
                f"tokenizer {name} has no control token {', '.join(absent_names) or 'named for the role eos'}",
                f"name roles by its own: {', '.join(sorted(self.control)) or 'it has none'}",
            )
        self.unk_id, self.bos_id, self.eos_id, self.pad_id = (
            self.control[roles[role]] if role in roles else -1 for role in ROLES
        )


class HuggingFace(_Foreign):
    """A tokenizer.json. The library encodes 2 to 3 MB a CPU second, by segments (tasks.byte_words) it is 40 to 90."""

    engine = "tokenizers"

    def __init__(self, name: str, model: bytes, options: Options) -> None:
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # the steps' own processes are the parallel ones
        import tokenizers

        try:
            self._tokenizer = tokenizers.Tokenizer.from_buffer(model)
        except Exception as error:  # the library raises plain Exception
            raise TokenizerError(f"tokenizers/{name}: no tokenizer.json: {error}", "restore that file") from None
        self.version, self.options = tokenizers.__version__, dict(options)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._tokenizer.encode_special_tokens = True  # which means: as text
        added = self._tokenizer.get_added_tokens_decoder()
        self.control = {token.content: number for number, token in sorted(added.items()) if token.special}
        self._content = orjson.loads(model)
        vocabulary = self._content["model"]["vocab"]
        if not isinstance(vocabulary, dict):
            vocabulary = self._tokenizer.get_vocab(with_added_tokens=False)
        self.vocab_size = max([*vocabulary.values(), *added]) + 1
        self._exact = _is_exact(self._content)
        self._settle(name, model, options)

    @cached_property
    def _words(self) -> ByteWords | None:
        return byte_words(self._tokenizer, self._content)

    @cached_property
    def _segmented(self) -> Segmented | None:
        words = self._words
        if words is None or len(words.alone) > MOST_ALONE:
            return None
        return Segmented(self.name, words.seams, words.learn, self._whole, alone=words.alone, outer=WORD_SEAMS)

    def _encode(self, texts: list[str]) -> list[list[int]]:
        return [each.ids for each in self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)]

    def decode(self, ids: Array) -> str:
        """By the bytes of the pieces where these are all there is to it; the library takes six times as long."""
        if self._spelled is None:
            return str(self._tokenizer.decode(ids.tolist(), skip_special_tokens=True))
        spelled = self._spelled.__getitem__
        parts = (ids[at : at + DECODED].tolist() for at in range(0, len(ids), DECODED))
        return b"".join(b"".join(map(spelled, part)) for part in parts).decode("utf-8", "replace")

    @cached_property
    def _spelled(self) -> list[bytes] | None:
        """The bytes of each id, none of a special one; None where pieces are no bytes, or added tokens spell text."""
        added = self._tokenizer.get_added_tokens_decoder()
        if not self._exact or not all(token.special for token in added.values()):
            return None
        found = [b""] * self.vocab_size
        pieces = self._words.pieces if self._words else pieces_of(self._content["model"]["vocab"])
        for piece, number in pieces.items():
            found[number] = b"" if number in added else piece
        return found

    def exact_on(self, text: str) -> bool:
        return self._exact

    def piece(self, number: int) -> str:
        return _named(self.name, number, self._tokenizer.id_to_token(number))


class Tiktoken(_Foreign):
    """The ranks of a tiktoken encoding: a line each, the piece in base64 and its id.

    The library encodes 11 MB a CPU second; by segments, where its expression is a known one, it is 30 and more.
    """

    engine = "tiktoken"

    def __init__(self, name: str, model: bytes, options: Options) -> None:
        import tiktoken

        self.version, self.options = tiktoken.__version__, dict(options)
        self.control = {str(key): int(value) for key, value in options.get("control", {}).items()}
        try:
            lines = (line.split() for line in model.splitlines() if line)
            ranks = {base64.b64decode(piece, validate=True): int(number) for piece, number in lines}
            self._encoding = tiktoken.Encoding(
                name, pat_str=options["pattern"], mergeable_ranks=ranks, special_tokens=self.control
            )
        except (KeyError, ValueError) as error:
            raise TokenizerError(
                f"tokenizers/{name}: no ranks of tiktoken with a pattern: {error!r}", "restore its files"
            ) from None
        self.vocab_size = self._encoding.n_vocab
        self._settle(name, model, options)

    @cached_property
    def _segmented(self) -> Segmented | None:
        known = self.options["pattern"] in KNOWN
        return Segmented(self.name, WORD_SEAMS, self._learn, self._whole) if known else None

    def _encode(self, texts: list[str]) -> list[list[int]]:
        return [self._encoding.encode_ordinary(text) for text in texts]

    def _learn(self, data: Array, stops: Array) -> tuple[Array, Array]:
        """(ids int32, ids of each segment int64)."""
        spelled = data.tobytes()
        each = self._encode([spelled[a:b].decode() for a, b in pairwise([0, *stops.tolist()])])
        return np.array(list(chain.from_iterable(each)), np.int32), np.array([len(ids) for ids in each], np.int64)

    def decode(self, ids: Array) -> str:
        control = set(self.control.values())
        own = [number for number in ids.tolist() if number not in control]
        return self._encoding.decode_bytes(own).decode("utf-8", "replace")

    def exact_on(self, text: str) -> bool:
        return True

    def piece(self, number: int) -> str:
        try:
            return self._encoding.decode_single_token_bytes(number).decode("utf-8", "replace")
        except KeyError:
            return _named(self.name, number, None)


ENGINES: dict[str, tuple[str, Callable[[str, bytes, Options], Any]]] = {
    "sentencepiece": ("tokenizer.model", lambda name, model, options: SentencePiece(name, model)),
    "tokenizers": ("tokenizer.json", HuggingFace),
    "tiktoken": ("ranks.tiktoken", Tiktoken),
}
"""engine -> its file in tokenizers/<name>, and what opens it."""


def make_engine(engine: str, name: str, model: bytes, options: Options) -> Any:
    """The tokenizer; raises TokenizerError for an engine that is not known."""
    if engine not in ENGINES:
        raise TokenizerError(f"tokenizer {name} wants engine {engine!r}", f"known are {', '.join(ENGINES)}")
    return ENGINES[engine][1](name, model, options)


@lru_cache(maxsize=4)
def open_model(path: str, sha256: str, name: str, engine: str = "sentencepiece", options: str = "{}") -> Tokenizer:
    """The model at `path`, once a process; options: JSON. Raises TokenizerError where its file has another digest."""
    file = Path(path)
    if not file.is_file():
        raise absent(name)
    model = file.read_bytes()
    found = hashlib.sha256(model).hexdigest()
    if found != sha256:
        raise TokenizerError(f"tokenizers/{name}/{file.name}: expected {sha256}, found {found}", "restore that file")
    tokenizer: Tokenizer = make_engine(engine, name, model, json.loads(options))
    return tokenizer


def _named(name: str, number: int, piece: str | None) -> str:
    if piece is None:
        raise TokenizerError(f"id {number} is not in tokenizer {name}", "take ids of this tokenizer")
    return piece


def _in_batches(texts: Sequence[str], encode: Callable[[list[str]], list[list[int]]]) -> tuple[Array, Array]:
    """(ids int32 flat, lengths int64), about BATCH_CHARACTERS at a time: lists of Python's integers are large."""
    flat, lengths = [np.empty(0, np.int32)], list[int]()
    batch, room = list[str](), BATCH_CHARACTERS
    for number, text in enumerate(texts):
        batch.append(text)
        room -= len(text)
        if room <= 0 or number == len(texts) - 1:
            each = encode(batch)
            flat += [np.array(ids, np.int32) for ids in each]
            lengths += [len(ids) for ids in each]
            batch, room = [], BATCH_CHARACTERS
    return np.concatenate(flat), np.array(lengths, np.int64)


def _is_exact(content: Mapping[str, Any]) -> bool:
    """Whether a text must come back: bytes as pieces, nothing normalized, nothing put before it."""
    before, after = content.get("pre_tokenizer") or {}, content.get("decoder") or {}
    members = before.get("pretokenizers", [before])
    prefixed = any(member.get("add_prefix_space") for member in members)
    return content.get("normalizer") is None and after.get("type") == "ByteLevel" and not prefixed
