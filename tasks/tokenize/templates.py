"""A chat template in Jinja, and where each of its characters stems from.

In: the template's source and a chat. Out: the text that the template writes, in spans: what a message says, and what
the template adds. It encodes nothing.

What a message says is found by writing the chat a second time with a word that stands nowhere else in place of each
content, and by holding both against each other: never by looking for markers, which a message may spell itself. A
template may trim a content; one that does anything else to it, leaves a message out or writes one twice is refused,
since nobody could say then who said what.

Templates see what transformers shows them, as far as it is a function of the data: messages, bos_token, eos_token,
add_generation_prompt (false), tools and documents (none), raise_exception and tojson, loop controls, and the block
{% generation %}. No date and no clock.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from tasks.errors import TokenizerError

Turn = tuple[str, str]
PRIVATE = range(0xE000, 0xF8FF)
"""Code points that Unicode leaves to private use: two of them, which a chat does not hold, frame the words put in."""

TRIMMED: tuple[Callable[[str], str], ...] = (str, str.strip, str.rstrip, str.lstrip)
OPENED, CLOSED = "_opened", "_closed"
GENERATION = re.compile(r"\{%-?\+?\s*generation\b")


class Span(NamedTuple):
    """A stretch of what the template wrote. message: whose content it is, -1 for the template's own text. generated:
    whether it stands in a block {% generation %}; None where the template has none."""

    text: str
    message: int
    generated: bool | None


class Refused(Exception):
    """The template itself says that it does not take this chat."""


class Generation(Extension):
    """The block {% generation %} ... {% endgeneration %}: what is in it, framed by two words that the context gives."""

    tags = {"generation"}  # noqa: RUF012 - as Jinja's own extensions have it

    def parse(self, parser: Parser) -> list[nodes.Node]:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        frame = [nodes.Output([nodes.Name(name, "load", lineno=line)], lineno=line) for name in (OPENED, CLOSED)]
        return [frame[0], *body, frame[1]]


class Template:
    """A template, compiled once. names: bos_token and eos_token, "" for one that the tokenizer lacks."""

    def __init__(self, source: str, names: Mapping[str, str]) -> None:
        self._names, self._source = dict(names), source
        self._tracked = GENERATION.search(source) is not None
        try:
            self._template = _environment().from_string(source)
        except TemplateError as error:
            raise TokenizerError(f"the chat template is no Jinja: {error}", "mend tokenize.chat.template") from None

    def spans(self, chat: Sequence[Turn]) -> list[Span]:
        """What the template writes. Raises Refused where it refuses the chat, TokenizerError where it cannot be said
        which message a character belongs to."""
        frame = _free([*(text for turn in chat for text in turn), self._source, *self._names.values()])
        words = [f"{frame[0]}{at}{frame[1]}" if content.strip() else content for at, (_, content) in enumerate(chat)]
        written = self._written(chat, "", "")
        marked = self._written(
            [(role, word) for (role, _), word in zip(chat, words, strict=True)],
            frame[0] + "+" + frame[1],
            frame[0] + "-" + frame[1],
        )
        parts = re.split(f"{frame[0]}([0-9]+|[+-]){frame[1]}", marked)
        asked = [at for at, word in enumerate(words) if word != chat[at][1]]
        self._check(sorted(int(part) for part in parts[1::2] if part.isdigit()), asked, chat)
        return list(self._aligned(written, parts, chat))

    def _written(self, chat: Sequence[Turn], opened: str, closed: str) -> str:
        messages = [{"role": role, "content": content} for role, content in chat]
        frame = {OPENED: opened, CLOSED: closed}
        try:
            return self._template.render(
                messages=messages, add_generation_prompt=False, tools=None, documents=None, **self._names, **frame
            )
        except Refused:
            raise
        except Exception as error:  # a template may fail in any way on a chat that it was not made for
            raise TokenizerError(
                f"the chat template fails on a chat of {', '.join(role for role, _ in chat)}: {error!r}"[:300],
                "mend tokenize.chat.template",
            ) from None

    def _check(self, found: list[int], asked: list[int], chat: Sequence[Turn]) -> None:
        if found != asked:
            at = next(at for at in sorted({*found, *asked}) if found.count(at) != 1)
            self._unclear(f"writes message {at} ({chat[at][0]}) {found.count(at)} times")

    def _aligned(self, written: str, parts: Sequence[str], chat: Sequence[Turn]) -> Iterator[Span]:
        """parts: text of the template, and between two of them the number of a message, + or -."""
        at, generated = 0, False if self._tracked else None
        for number, part in enumerate(parts):
            if number % 2 == 0:
                if not written.startswith(part, at):
                    self._unclear(f"writes other text around contents, {written[at : at + 40]!r}, when they change")
                text, message = part, -1
            elif not part.isdigit():
                generated = part == "+"
                continue
            else:
                message = int(part)
                text = self._content(written, at, parts[number + 1 :], chat[message])
            at += len(text)
            if text:
                yield Span(text, message, generated)
        if at != len(written):
            self._unclear(f"writes more after the last message, {written[at : at + 40]!r}, when contents change")

    def _content(self, written: str, at: int, after: Sequence[str], turn: Turn) -> str:
        following = next((part for part in after[::2] if part), "")
        direct = bool(after[0]) or len(after) == 1
        for trim in TRIMMED:
            text = trim(turn[1])
            if written.startswith(text, at) and (not direct or written.startswith(following, at + len(text))):
                return text
        return self._unclear(
            f"does more than trim what {turn[0]} says: {turn[1][:40]!r} became {written[at : at + 40]!r}"
        )

    def _unclear(self, said: str) -> NoReturn:
        raise TokenizerError(
            f"the chat template {said}: it cannot be told whose words are whose, so no loss mask can be made",
            "write contents as they are, once each, in tokenize.chat.template",
        )


@lru_cache(maxsize=8)
def compiled(source: str, bos_token: str, eos_token: str) -> Template:
    """The template, once a process."""
    return Template(source, {"bos_token": bos_token, "eos_token": eos_token})


def _free(texts: Sequence[str]) -> tuple[str, str]:
    """Two characters of private use that stand in none of the texts."""
    held = set().union(*texts)
    free = [chr(point) for point in PRIVATE if chr(point) not in held]
    if len(free) < 2:
        raise TokenizerError("a chat holds every character of private use", "drop it by a rule of filter")
    return free[0], free[1]


def _refuse(message: str) -> NoReturn:
    raise Refused(message)


def _to_json(value: Any, indent: int | None = None) -> str:
    """JSON as templates want it: not escaped for HTML."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _environment() -> ImmutableSandboxedEnvironment:
    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, autoescape=False, extensions=[Generation, loopcontrols]
    )
    made.filters["tojson"] = _to_json
    made.globals["raise_exception"] = _refuse
    return made
