"""Chats as ids: a template's text around each message, and which of the ids carry loss.

In: the role and content of each message. Out: ids and one byte an id, 1 where the model is to learn it. The mask comes
from where an id stems from, never from a search for markers: each content is encoded by itself, so what a message says
cannot open a turn or close one. A marker is the tokenizer's control piece of that name; a tokenizer that lacks it
spells it as text.

chatml: <|im_start|>ROLE\nCONTENT<|im_end|>\n (OpenAI's ChatML, as Qwen's models use it).
llama3: <|start_header_id|>ROLE<|end_header_id|>\n\nCONTENT<|eot_id|> (Llama 3's model card).
Any other is a template in Jinja (tasks.tokenize.templates).

With loss "assistant", an assistant's content and the marker that ends it are learnt, and EOS after its last message;
in a template with {% generation %} all that stands there is. With "all" everything is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tasks.encoder import Tokenizer
from tasks.errors import TokenizerError
from tasks.tokenize.templates import Refused, compiled

Ids = np.ndarray[Any, np.dtype[Any]]
Turn = tuple[str, str]
PLAIN, ALL, ASSISTANT = "plain", "all", "assistant"
TEMPLATES = {
    "chatml": (("<|im_start|>",), ("\n",), ("<|im_end|>",), ("\n",)),
    "llama3": (("<|start_header_id|>",), ("<|end_header_id|>", "\n\n"), ("<|eot_id|>",), ()),
}
"""Before the role; between role and content; what closes a content; what follows it."""


class Form(NamedTuple):
    """template: plain, a key of TEMPLATES, or the source of one in Jinja. loss: assistant or all."""

    template: str
    loss: str


class Span(NamedTuple):
    """Text, or a marker's name; whether it is to be learnt."""

    text: str
    is_marker: bool
    learnt: bool


def spans_of(chat: Sequence[Turn], form: Form, tokenizer: Tokenizer) -> list[Span] | None:
    """The chat as the template writes it, EOS included; None where the template refuses it.

    Raises TokenizerError where a marker within it is the tokenizer's EOS or BOS: then nothing would tell where a
    document ends or begins.
    """
    end = Span(_name(tokenizer, tokenizer.eos_id), True, form.loss == ALL or (bool(chat) and chat[-1][0] == ASSISTANT))
    if form.template in TEMPLATES:
        written = list(_by_markers(chat, form))
    else:
        try:
            written = list(_by_template(chat, form, tokenizer))
        except Refused:
            return None
        written = written[_is(written[:1], tokenizer, tokenizer.bos_id) :]
        written = written[: len(written) - _is(written[-1:], tokenizer, tokenizer.eos_id)]
    for span in written:
        number = tokenizer.control.get(span.text, -1) if span.is_marker else -1
        if number >= 0 and number in (tokenizer.eos_id, tokenizer.bos_id):
            word = "EOS" if number == tokenizer.eos_id else "BOS"
            raise TokenizerError(
                f"{span.text} of the chat template is tokenizer {tokenizer.name}'s {word} {number}: every turn would"
                f" {'end' if word == 'EOS' else 'begin'} its document",
                f"choose another tokenize.chat.template, or a tokenizer whose {word} is a piece of its own",
            )
    return [*written, end]


def encode_chats(chats: Sequence[Sequence[Span]], tokenizer: Tokenizer) -> list[tuple[Ids, Ids]]:
    """(ids int32, loss uint8) of each chat as spans_of gives it."""
    texts = [span.text for spans in chats for span in spans if not _marks(span, tokenizer)]
    flat, lengths = tokenizer.encode_batch(texts)
    pieces = iter(np.split(flat, np.cumsum(lengths)[:-1]) if len(texts) else [])
    return [_joined(spans, pieces, tokenizer) for spans in chats]


def _joined(spans: Sequence[Span], pieces: Iterator[Ids], tokenizer: Tokenizer) -> tuple[Ids, Ids]:
    each = [
        np.array([tokenizer.control[span.text]], np.int32) if _marks(span, tokenizer) else next(pieces)
        for span in spans
    ]
    learnt = np.array([span.learnt for span in spans], np.uint8)
    return np.concatenate(each), np.repeat(learnt, [len(ids) for ids in each])


def _by_markers(chat: Iterable[Turn], form: Form) -> Iterator[Span]:
    before, between, closing, after = TEMPLATES[form.template]
    for role, content in chat:
        everything, own = form.loss == ALL, form.loss == ALL or role == ASSISTANT
        yield from (Span(name, True, everything) for name in before)
        yield Span(role, False, everything)
        yield from (Span(name, name.startswith("<|"), everything) for name in between)
        yield Span(content, False, own)
        yield from (Span(name, True, own) for name in closing)
        yield from (Span(text, False, everything) for text in after)


def _by_template(chat: Sequence[Turn], form: Form, tokenizer: Tokenizer) -> Iterator[Span]:
    """Raises Refused also where a role spells a control piece: it would become one."""
    if any(name in role for role, _ in chat for name in tokenizer.control):
        raise Refused("a role spells a control piece")
    names = [_name(tokenizer, number) for number in (tokenizer.bos_id, tokenizer.eos_id)]
    marks = re.compile("(" + "|".join(map(re.escape, sorted(tokenizer.control, key=len, reverse=True))) + ")")
    answered = False  # what comes next follows an answer
    for text, message, generated in compiled(form.template, *names).spans(chat):
        own = form.loss == ALL or (
            generated if generated is not None else message >= 0 and chat[message][0] == ASSISTANT
        )
        if message >= 0:
            yield Span(text, False, own)
        parts = marks.split(text) if message < 0 else []
        for at, part in enumerate(parts):
            closes = answered and generated is None and at == 1 and not parts[0]
            if part:
                yield Span(part, at % 2 == 1, own or closes)
        answered = message >= 0 and chat[message][0] == ASSISTANT


def _marks(span: Span, tokenizer: Tokenizer) -> bool:
    return span.is_marker and span.text in tokenizer.control


def _is(spans: Sequence[Span], tokenizer: Tokenizer, number: int) -> bool:
    """Whether the only span is the marker of that id."""
    return number >= 0 and any(_marks(span, tokenizer) and tokenizer.control[span.text] == number for span in spans)


def _name(tokenizer: Tokenizer, number: int) -> str:
    """The control piece of an id, "" where there is none."""
    return next((name for name, own in tokenizer.control.items() if own == number), "")
