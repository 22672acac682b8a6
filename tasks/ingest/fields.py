"""From a raw record to the fields of a document, or to the reason why it is none.

In: a record's bytes, its format and the kind of its source. Out: Fields, or Reject. It reads no file.

Text is UTF-8 and nothing else. JSON is RFC 8259's: NaN, Infinity and numbers beyond 64-bit floats are
refused; of equal keys the last one holds. A lone surrogate (\\ud83d without its half) stands for no character
and is refused here, since every later stage would stumble over it. Which field holds the text: `text`, else
`content`, else `messages` (a list of role and content); in a source of kind chat `messages` comes first. A
record that is itself such a list is a chat. A field that is null is as good as absent. `url` and `created`
are taken where they are text; all other fields, those of messages too, go to `metadata`.

Reasons: encoding, json, surrogate, type, no_text, empty, too_large.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NamedTuple

from tasks.text.chats import joined

SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class Fields(NamedTuple):
    """A document but for its name. messages: (role, content) pairs; offsets: byte of `text` where each
    begins.
    """

    text: str
    messages: list[dict[str, str]] | None = None
    offsets: list[int] | None = None
    url: str | None = None
    created: str | None = None
    metadata: str | None = None


class Reject(Exception):
    """The record is no document. reason: a word; detail: a sentence with the value and the limit."""

    def __init__(self, reason: str, detail: str) -> None:
        self.reason, self.detail = reason, detail
        super().__init__(reason, detail)


def read_fields(raw: bytes, form: str, kind: str) -> Fields:
    """The fields of a record; form "text" takes it as it stands, any other as JSON. Raises Reject."""
    text = _decoded(raw)
    fields = Fields(text) if form == "text" else _of_json(_parsed(text, raw), kind)
    if not fields.text:
        raise Reject("empty", "its text has no characters")
    return fields


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = raw[error.start]
        raise Reject("encoding", f"byte {error.start} (0x{byte:02x}) is not UTF-8: {error.reason}") from None


def _parsed(text: str, raw: bytes) -> Any:
    """The JSON value. RecursionError: more than about a thousand brackets deep."""
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise Reject("json", "its brackets are nested too deeply, about 1,000 is the most") from None
    except ValueError as error:
        raise Reject("json", " ".join(str(error).split())[:300]) from None
    if SURROGATE.search(raw):
        _refuse_surrogates(value)
    return value


def _refuse_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        code = ord(error.object[error.start])
        raise Reject("surrogate", f"it holds U+{code:04X}, half of a character without its other half") from None


def _of_json(record: Any, kind: str) -> Fields:
    if isinstance(record, list):
        record = {"messages": record}
    if not isinstance(record, dict):
        raise Reject("type", f"the record is {_type(record)}, not an object")
    name = next((name for name in _order(kind) if record.get(name) is not None), None)
    if name is None:
        seen = ", ".join(sorted(record)[:20]) or "none"
        raise Reject("no_text", f"none of text, content, messages; its fields: {seen[:200]}")
    known = {key: record[key] for key in ("url", "created") if isinstance(record.get(key), str)}
    others = {key: value for key, value in record.items() if key != name and key not in known}
    if name == "messages":
        messages = _messages(record[name])
        others |= _more(record[name])
        text, offsets = joined([message["content"] for message in messages])
        return Fields(text, messages, offsets, metadata=_metadata(others), **known)
    if not isinstance(record[name], str):
        raise Reject("type", f"field {name} is {_type(record[name])}, not text")
    return Fields(record[name], metadata=_metadata(others), **known)


def _metadata(others: dict[str, Any]) -> str | None:
    return json.dumps(others, sort_keys=True, ensure_ascii=False, separators=(",", ":")) if others else None


def _order(kind: str) -> tuple[str, ...]:
    return ("messages", "text", "content") if kind == "chat" else ("text", "content", "messages")


def _messages(value: Any) -> list[dict[str, str]]:
    if not isinstance(value, list):
        raise Reject("type", f"field messages is {_type(value)}, not a list")
    for number, message in enumerate(value):
        held = message if isinstance(message, dict) else {}
        for name in ("role", "content"):
            if not isinstance(held.get(name), str):
                raise Reject("type", f"message {number} has {_type(held.get(name))} as its {name}, not text")
    return [{"role": message["role"], "content": message["content"]} for message in value]


def _more(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """What messages hold besides role and content, as {"messages": [fields of each]}."""
    more = [{key: held for key, held in message.items() if key not in ("role", "content")} for message in messages]
    return {"messages": more} if any(more) else {}


def _type(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"the number {digits[:40]} is beyond 64-bit floats")
    return number


_DECODER = json.JSONDecoder(parse_constant=_constant, parse_float=_float)
