"""Chats as ids: a template's markers around each message, and which of the ids carry loss.

In: the role and content of each message. Out: ids and one byte an id, 1 where the model is to learn it. The mask comes
from where an id stems from, never from a search for markers: each content is encoded by itself, so what a message says
cannot open a turn or close one. A marker is the tokenizer's control piece of that name; a tokenizer that lacks it
spells it as text.

chatml: <|im_start|>ROLE\nCONTENT<|im_end|>\n (OpenAI's ChatML, as Qwen's models use it).
llama3: <|start_header_id|>ROLE<|end_header_id|>\n\nCONTENT<|eot_id|> (Llama 3's model card).
With loss "assistant", an assistant's content and the marker that ends it are learnt, and EOS after its last message;
with "all" everything is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tasks.encoder import Tokenizer
from tasks.errors import TokenizerError

Ids = np.ndarray[Any, np.dtype[Any]]
Turn = tuple[str, str]
ASSISTANT = "assistant"
TEMPLATES = {
    "chatml": (("<|im_start|>",), ("\n",), ("<|im_end|>",), ("\n",)),
    "llama3": (("<|start_header_id|>",), ("<|end_header_id|>", "\n\n"), ("<|eot_id|>",), ()),
}
"""Before the role; between role and content; what closes a content; what follows it."""


class Span(NamedTuple):
    """Text, or a marker's name; whether it is to be learnt."""

    text: str
    is_marker: bool
    learnt: bool


def encode_chats(
    chats: Sequence[Sequence[Turn]], tokenizer: Tokenizer, template: str, loss: str
) -> list[tuple[Ids, Ids]]:
    """(ids, loss uint8) of each chat, EOS included.

    Raises TokenizerError where a marker is the tokenizer's EOS: then nothing would tell a turn's end from a document's.
    """
    rendered = [list(spans_of(chat, template, loss)) for chat in chats]
    texts = [span.text for spans in rendered for span in spans if not span.is_marker or not _known(span, tokenizer)]
    flat, lengths = tokenizer.encode_batch(texts)
    pieces = iter(np.split(flat, np.cumsum(lengths)[:-1]) if len(texts) else [])
    return [_joined(chat, spans, pieces, tokenizer, loss) for chat, spans in zip(chats, rendered, strict=True)]


def spans_of(chat: Iterable[Turn], template: str, loss: str) -> Iterator[Span]:
    """The chat as the template writes it."""
    before, between, closing, after = TEMPLATES[template]
    for role, content in chat:
        everything, own = loss == "all", loss == "all" or role == ASSISTANT
        yield from (Span(name, True, everything) for name in before)
        yield Span(role, False, everything)
        yield from (Span(name, name.startswith("<|"), everything) for name in between)
        yield Span(content, False, own)
        yield from (Span(name, True, own) for name in closing)
        yield from (Span(text, False, everything) for text in after)


def _known(span: Span, tokenizer: Tokenizer) -> bool:
    return tokenizer.control_id(span.text) >= 0


def _joined(
    chat: Sequence[Turn], spans: Sequence[Span], pieces: Iterator[Ids], tokenizer: Tokenizer, loss: str
) -> tuple[Ids, Ids]:
    each = [_ids(span, pieces, tokenizer) for span in spans] + [np.array([tokenizer.eos_id], np.int32)]
    learnt = [span.learnt for span in spans] + [loss == "all" or (bool(chat) and chat[-1][0] == ASSISTANT)]
    return np.concatenate(each), np.repeat(np.array(learnt, np.uint8), [len(ids) for ids in each])


def _ids(span: Span, pieces: Iterator[Ids], tokenizer: Tokenizer) -> Ids:
    number = tokenizer.control_id(span.text) if span.is_marker else -1
    if number == tokenizer.eos_id and number >= 0:
        raise TokenizerError(
            f"{span.text} of the chat template is tokenizer {tokenizer.name}'s EOS {number}: every turn would end its"
            f" document",
            "choose another tokenize.chat.template, or a tokenizer whose EOS is a piece of its own",
        )
    return np.array([number], np.int32) if number >= 0 else next(pieces)
