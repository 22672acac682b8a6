"""Where a record holds its text: the shapes that people have, recognised by their fields.

In: a JSON object or list and the kind of its source. Out: Found: the text or the messages, and which fields they came
from. A field that is null is as good as absent. The shapes, in the order in which they are looked for (in a source of
kind chat, text and content come last):

    text          `text`: text, or a list of texts (joined by a blank line)
    content       `content`, likewise
    preference    `chosen` and `rejected` after `conversations`, `messages` or `prompt`: a chat that ends with the
                  chosen answer; the rejected one stays in the metadata
    messages      `messages`: a list of role and content
    conversations `conversations`: a list of from and value (ShareGPT); human is user, gpt is assistant
    prompt        `prompt`: a list of role and content
    instances     `instruction` and `instances`, each with input and output: a pair of turns for each
    instruction   `instruction`, `input`, `output`, and `system` and `history` where they are there
    pair          `prompt` and `completion`, or `prompt` and `response`
    list          the record is itself a list of messages

Instruction, instances and pair are chats in a source of kind chat (an instruction and its input are one message, a line
feed between them), elsewhere text: what is not empty of their parts, in that order, a blank line between them.
A message's content is text, a list of parts that are all text, or null where a tool is called instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from tasks.ingest.refusals import Reject, kind_of

KNOWN = "text, content, messages, conversations, chosen, instruction, prompt"
BETWEEN = "\n\n"
ROLES = {"human": "user", "gpt": "assistant"}

Record = dict[str, Any]
Message = dict[str, str]


class Found(NamedTuple):
    """text or messages; used: fields whose content that is; more: what messages hold besides, {} or {name: list}."""

    shape: str
    used: tuple[str, ...]
    text: str | None = None
    messages: list[Message] | None = None
    more: Mapping[str, Any] = MappingProxyType({})


def recognised(record: Record | list[Any], kind: str) -> Found:
    """Raises Reject: no_text where no shape fits, with the fields seen; type where a field holds something else."""
    if isinstance(record, list):
        return Found("list", ("messages",), messages=messages_of(record, "messages"), more=_more(record, "messages"))
    if kind != "chat" and isinstance(record.get("text"), str):
        return Found("text", ("text",), record["text"])  # nearly every record there is
    for fits, read in _CHAT_ORDER if kind == "chat" else _ORDER:
        if all(_there(record, name) for name in fits):
            return read(record, kind)
    seen = ", ".join(sorted(record)[:20]) or "none"
    raise Reject("no_text", f"none of {KNOWN}; its fields: {seen[:200]}")


def text_of(value: Any, name: str) -> str:
    """A text, or a list of texts joined by a blank line."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return BETWEEN.join(value)
    if isinstance(value, dict) and value.keys() == {"bytes", "sha256"}:
        raise Reject("encoding", f"field {name} holds {value['bytes']} bytes that are not UTF-8")
    raise Reject("type", f"field {name} is {kind_of(value)}, not text")


def messages_of(value: Any, name: str) -> list[Message]:
    """Messages as role and content, from role and content or from and value."""
    if not isinstance(value, list):
        raise Reject("type", f"field {name} is {kind_of(value)}, not a list")
    return [_message(message, number) for number, message in enumerate(value)]


def _there(record: Record, names: str) -> bool:
    return any(record.get(name) is not None for name in names.split("|"))


def _message(message: Any, number: int) -> Message:
    held = message if isinstance(message, dict) else {}
    by = ("from", "value") if "from" in held and "role" not in held else ("role", "content")
    role, content = held.get(by[0]), held.get(by[1])
    if content is None and len(held) > 2:
        content = ""
    if isinstance(content, list):
        content = _parts(content, number)
    for name, value in zip(by, (role, content), strict=True):
        if not isinstance(value, str):
            raise Reject("type", f"message {number} has {kind_of(value)} as its {name}, not text")
    return {"role": ROLES.get(role, role) if by[0] == "from" else role, "content": content}  # type: ignore[arg-type, dict-item]


def _parts(parts: list[Any], number: int) -> str:
    """The texts of a message in parts, joined by a blank line."""
    texts = []
    for part in parts:
        held = part if isinstance(part, dict) else {}
        text = held.get("text", held.get("value"))
        if held.get("type") != "text" or not isinstance(text, str):
            raise Reject("type", f"message {number} has a part of type {held.get('type')}, not text")
        texts.append(text)
    return BETWEEN.join(texts)


def _more(messages: list[Any], name: str) -> Record:
    """What messages hold besides who and what, as {name: [fields of each]}; parts of messages, which are text, not."""
    plain = ("role", "content", "from", "value")
    more = [{key: held for key, held in message.items() if key not in plain} for message in messages]
    return {name: more} if any(more) else {}


def _plainly(name: str) -> Callable[[Record, str], Found]:
    return lambda record, kind: Found(name, (name,), text_of(record[name], name))


def _said(name: str) -> Callable[[Record, str], Found]:
    def read(record: Record, kind: str) -> Found:
        messages = messages_of(record[name], name)
        used: tuple[str, ...] = (name,)
        if name == "conversations" and isinstance(record.get("system"), str) and record["system"]:
            messages, used = [{"role": "system", "content": record["system"]}, *messages], (name, "system")
        return Found(name, used, messages=messages, more=_more(record[name], name))

    return read


def _prompted(record: Record, kind: str) -> Found:
    if isinstance(record["prompt"], list):
        return _said("prompt")(record, kind)
    answer = next((name for name in ("completion", "response") if record.get(name) is not None), None)
    if answer is None:
        seen = ", ".join(sorted(record)[:20])
        raise Reject("no_text", f"a prompt without completion or response; its fields: {seen[:200]}")
    turns = [(_text(record, "prompt"), _text(record, answer))]
    return _turns("pair", ("prompt", answer), turns, kind)


def _instructed(record: Record, kind: str) -> Found:
    used = tuple(name for name in ("instruction", "input", "output", "system", "history") if name in record)
    history = record.get("history") or []
    pairs = isinstance(history, list) and all(isinstance(turn, list) and len(turn) == 2 for turn in history)
    if not pairs or not all(isinstance(said, str) for turn in history for said in turn):
        raise Reject("type", "field history is no list of pairs of texts")
    turns = [*map(tuple, history), (_asked(record, record), _text(record, "output"))]
    return _turns("instruction", used, turns, kind, _text(record, "system"))


def _instances(record: Record, kind: str) -> Found:
    held = record["instances"]
    if not isinstance(held, list) or not all(isinstance(item, dict) for item in held):
        raise Reject("type", f"field instances is {kind_of(held)}, not a list of objects")
    turns = [(_asked(record, item), _text(item, "output")) for item in held]
    return _turns("instances", ("instruction", "instances"), turns, kind)


def _asked(record: Record, item: Record) -> str:
    return "\n".join(part for part in (_text(record, "instruction"), _text(item, "input")) if part)


def _text(record: Record, name: str) -> str:
    """A field as text, empty where it is absent or null."""
    return "" if record.get(name) is None else text_of(record[name], name)


def _turns(shape: str, used: tuple[str, ...], turns: list[Any], kind: str, system: str = "") -> Found:
    if kind != "chat":
        parts = [system, *(part for turn in turns for part in turn)]
        return Found(shape, used, BETWEEN.join(part for part in parts if part))
    first = [{"role": "system", "content": system}] if system else []
    said = [({"role": "user", "content": ask}, {"role": "assistant", "content": answer}) for ask, answer in turns]
    return Found(shape, used, messages=[*first, *(message for pair in said for message in pair)])


def _preferred(record: Record, kind: str) -> Found:
    chosen = record["chosen"]
    if isinstance(chosen, list):
        return Found("preference", ("chosen",), messages=messages_of(chosen, "chosen"), more=_more(chosen, "chosen"))
    before = next((name for name in ("conversations", "messages", "prompt") if record.get(name) is not None), None)
    if before is None:
        raise Reject("no_text", "an answer that was chosen, without conversations, messages or prompt before it")
    asked = record[before]
    said = [{"role": "user", "content": asked}] if isinstance(asked, str) else messages_of(asked, before)
    answer = {"role": "assistant", "content": chosen} if isinstance(chosen, str) else chosen
    return Found("preference", (before, "chosen"), messages=[*said, *messages_of([answer], "chosen")])


_PLAIN = [(("text",), _plainly("text")), (("content",), _plainly("content"))]
_OTHERS = [
    (("chosen", "rejected"), _preferred),
    (("messages",), _said("messages")),
    (("conversations",), _said("conversations")),
    (("instruction", "instances"), _instances),
    (("instruction", "output"), _instructed),
    (("prompt",), _prompted),
]
_ORDER = [*_PLAIN, *_OTHERS]
_CHAT_ORDER = [*_OTHERS, *_PLAIN]
