"""The commonest record of all, a JSON object with its text in `text` or `content`, in a third of the time.

In: the bytes of a record. Out: the very fields that tasks.ingest.fields would give, or None, where that must look:
another shape, a mapping, a chat, an error, a number or a text that wants care. So every word on a record is said there,
and this module decides nothing. A test holds both against each other on the corpora and on made-up records.
"""

from __future__ import annotations

import orjson

from tasks.ingest.how import How
from tasks.text.encodings import mended

Row = tuple[str, None, None, str | None, str | None, str | None, str]
_CARE = frozenset({float, dict, list})
_SORTED = orjson.OPT_SORT_KEYS
_loads, _dumps = orjson.loads, orjson.dumps


def is_quick(form: str, kind: str, how: How) -> bool:
    """Whether records read as `form` may be what quick_row knows."""
    return form == "jsonl" and kind != "chat" and not how.fields


def quick_row(raw: bytes, code: bool) -> Row | None:
    """text, messages, offsets, url, created, metadata, shape; code: the source is of kind code."""
    try:
        record = _loads(raw)
    except orjson.JSONDecodeError:
        return None
    if type(record) is not dict:
        return None
    name = "text" if "text" in record else "content"
    text = record.pop(name, None)
    if type(text) is not str or not text or not (code or text.isascii() or mended(text) is None):
        return None
    url = created = None
    if type(record.get("url")) is str:
        url = record.pop("url")
    if type(record.get("created")) is str:
        created = record.pop("created")
    if not record:
        return text, None, None, url, created, None, name
    if not _CARE.isdisjoint(map(type, record.values())):
        return None
    return text, None, None, url, created, _dumps(record, option=_SORTED).decode(), name
