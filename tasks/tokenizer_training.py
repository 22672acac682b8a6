"""Training a tokenizer: from texts and a recipe to the bytes of a SentencePiece model, and what it saw.

In: texts, one after another. Out: bytes and counts. It writes no file and makes no card (tasks.tokenizers).
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import sentencepiece
from pydantic import model_validator

from tasks.errors import TokenizerError
from tasks.step import StepParams, runs

OWN_LINES = re.compile("[\n\u2581\u2585]")
"""Where a training text is cut: a newline is a piece of its own, the two marks are the trainer's."""

OWN_PIECES = ("<unk>", "<s>", "</s>", "<pad>")


class Recipe(StepParams):
    """How a tokenizer is trained. It shapes an input, the tokenizer: so it enters no key of a build."""

    model: Literal["bpe", "unigram"] = runs()  # a unigram model wants threads: 1
    vocab_size: int = runs(ge=260, le=1 << 24)  # pieces; fewer where the text gives no more
    character_coverage: float = runs(ge=0.9, le=1)  # of the text's characters; the rarest become bytes
    line_bytes_max: int = runs(ge=64, le=1 << 20)  # longer lines are cut, at a character's border
    sample_bytes: int = runs(ge=1)  # of kept training text
    threads: int = runs(ge=1, le=64)  # of the trainer
    reserved: tuple[str, ...] = runs(())  # control pieces, which no text becomes: a chat's markers, mask, spares

    @model_validator(mode="after")
    def _settled(self) -> Recipe:
        if self.model == "unigram" and self.threads != 1:
            raise ValueError(
                f"threads is {self.threads}, but the vocabulary of a unigram model depends on it: take threads: 1, so"
                f" that it can be made again"
            )
        doubled = sorted({name for name in self.reserved if self.reserved.count(name) > 1 or name in OWN_PIECES})
        if doubled:
            raise ValueError(f"reserved names {', '.join(doubled)}, which is there already; name each piece once")
        return self


@dataclass
class Seen:
    """What a trainer was given, counted on the way."""

    texts: int = 0
    characters: int = 0
    bytes: int = 0
    lines: int = 0
    lines_cut: int = 0
    fault: Exception | None = None
    digest: Any = field(default_factory=hashlib.sha256)

    def lines_of(self, texts: Iterable[str], limit: int) -> Iterator[str]:
        """The training lines of `texts`, none above `limit` bytes; an error in `texts` is kept."""
        try:
            for text in texts:
                yield from self._lines(text, limit)
        except Exception as error:
            self.fault = error

    def _lines(self, text: str, limit: int) -> Iterator[str]:
        data = text.encode()
        self.texts += 1
        self.characters += len(text)
        self.bytes += len(data)
        self.digest.update(len(data).to_bytes(8, "little") + data)
        for line in filter(None, OWN_LINES.split(text)):
            pieces = list(_cut(line.encode(), limit))
            self.lines += len(pieces)
            self.lines_cut += len(pieces) > 1
            yield from pieces

    def card(self) -> dict[str, Any]:
        counted = ("texts", "characters", "bytes", "lines", "lines_cut")
        return {name: getattr(self, name) for name in counted} | {"sha256": self.digest.hexdigest()}


def trained(name: str, texts: Iterable[str], recipe: Recipe, seen: Seen) -> bytes:
    """The bytes of a model: a function of texts and recipe; `seen` counts. See tasks.tokenizers.train."""
    lines = seen.lines_of(texts, recipe.line_bytes_max)
    model = io.BytesIO()
    first = next(lines, None)
    if first is None:
        raise seen.fault or TokenizerError(f"no text to train tokenizer {name} on", "build decontaminate first")
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_with(first, lines),
            model_writer=model,
            model_type=recipe.model,
            vocab_size=recipe.vocab_size,
            hard_vocab_limit=False,
            character_coverage=recipe.character_coverage,
            max_sentence_length=recipe.line_bytes_max,
            num_threads=recipe.threads,
            byte_fallback=True,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            add_dummy_prefix=False,
            allow_whitespace_only_pieces=True,
            user_defined_symbols=["\n", "\t"],
            control_symbols=list(recipe.reserved),
            input_sentence_size=0,
            shuffle_input_sentence=False,
            unk_id=0,
            bos_id=1,
            eos_id=2,
            pad_id=3,
            minloglevel=2,
        )
    except RuntimeError as error:
        said = " ".join(str(error).split())
        raise TokenizerError(f"the trainer refused tokenizer {name}: {said}", "change its recipe") from error
    if seen.fault:
        raise seen.fault
    return model.getvalue()


def _with(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def _cut(data: bytes, limit: int) -> Iterator[str]:
    """`data` in pieces of at most `limit` bytes, cut at borders of characters."""
    start = 0
    while start < len(data):
        stop = min(start + limit, len(data))
        while stop < len(data) and data[stop] & 0xC0 == 0x80:
            stop -= 1
        yield data[start:stop].decode()
        start = stop
