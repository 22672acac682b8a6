"""Where a record holds its text: as the source's `fields` in params.yaml say.

In: a JSON object and the mapping. Out: Found, url, created and language, and what is left for the metadata. A field is
named, reached by a dotted path through objects and lists (data.body.text, choices.0.text; a field whose name has dots
comes first), or set together by a template ({title} and {body} with text between them). In a template a field that is
absent or null is empty; where all are, and where a text's path leads nowhere, the record is rejected (no_text).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tasks.ingest.refusals import Reject, kind_of
from tasks.ingest.shapes import Found, messages_of, text_of

PART = re.compile(r"\{([^{}]+)\}")
NAMES = frozenset({"text", "messages", "url", "created", "language"})

Record = dict[str, Any]


def mapped(record: Record, fields: Mapping[str, str]) -> Found:
    """The text or messages of a record. Raises Reject."""
    name = "messages" if "messages" in fields else "text"
    path = fields[name]
    if name == "text" and PART.search(path):
        return Found("template", tuple(PART.findall(path)), _filled(record, path))
    value = at(record, path)
    if value is None:
        seen = ", ".join(sorted(record)[:20]) or "none"
        raise Reject("no_text", f"nothing at {path} (fields of its source in params.yaml); its fields: {seen[:200]}")
    if name == "messages":
        return Found("mapped", (path,), messages=messages_of(value, path))
    return Found("mapped", (path,), text_of(value, path))


def fact(record: Record, path: str) -> str | None:
    """A text or number at `path`, as text; None where there is none. Raises Reject (type) for anything else."""
    value = at(record, path)
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Reject("type", f"field {path} is {kind_of(value)}, not text")
    return str(value)


def at(value: Any, path: str) -> Any:
    """What stands at `path`, None where nothing does."""
    if isinstance(value, dict) and path in value:
        return value[path]
    for step in path.split("."):
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def without(record: Record, path: str) -> Record:
    """`record` less the field at `path`; of the objects on the way those that are left empty go too."""
    if path in record:
        return {name: value for name, value in record.items() if name != path}
    first, _, rest = path.partition(".")
    inner = record.get(first)
    if not rest or not isinstance(inner, dict):
        return record
    left = without(inner, rest)
    return {**record, first: left} if left else without(record, first)


def _filled(record: Record, template: str) -> str:
    parts = {path: at(record, path) for path in PART.findall(template)}
    if all(value is None for value in parts.values()):
        raise Reject("no_text", f"nothing for {template!r}; its fields: {', '.join(sorted(record)[:20])[:200]}")
    texts = {path: "" if value is None else text_of(value, path) for path, value in parts.items()}
    return PART.sub(lambda part: texts[part[1]], template).strip("\n")
