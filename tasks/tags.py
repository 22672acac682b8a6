"""Whether a remote file changed, by what its store says of it: an entity tag or digest, else a time.

In: what fsspec knows of a file. Out: its size and a tag. It reaches no store.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

FRESH = 2.0
"""Seconds in which a second change could leave the same time; a tag that is a time is not trusted before."""

STRONG = ("ETag", "etag", "md5Hash", "md5", "Content-MD5", "content_md5", "crc32c", "generation", "checksum")
TIMES = ("LastModified", "last_modified", "Last-Modified", "mtime", "updated", "created")


class Facts(NamedTuple):
    """A file there. size: bytes, -1 where unknown; tag: changes with the content, empty where nothing does."""

    size: int
    tag: str


def settled(tag: str) -> bool:
    """Whether a tag may be remembered: no second change can have left the same one."""
    kind, _, value = tag.partition(":")
    if kind != "time":
        return bool(tag)
    return time.time() - float(value) > FRESH


def facts_of(info: Mapping[str, Any]) -> Facts:
    size = info.get("size")
    return Facts(-1 if size is None else int(size), _tag(info))


def _tag(info: Mapping[str, Any]) -> str:
    for name in STRONG:
        value = info.get(name)
        if value and not str(value).startswith("W/"):
            return f"{name.lower()}:{value}"
    times = (_seconds(info[name]) for name in TIMES if info.get(name))
    found = next((value for value in times if value is not None), None)
    return f"time:{found!r}" if found is not None else ""


def _seconds(value: Any) -> float | None:
    try:
        if isinstance(value, str):
            value = parsedate_to_datetime(value) if "," in value else datetime.fromisoformat(value)
        return value.timestamp() if isinstance(value, datetime) else float(value)
    except (TypeError, ValueError):
        return None
