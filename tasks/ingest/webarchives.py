"""Records of WARC, WET and ARC files as lines of JSON.

In: the unpacked stream. Out: a line for each record, in the order of the file: {"type", "url", "date"}, and of those
that may be documents {"language", "status", "content", "charset", "payload"}, the payload in base64. What is no
document (requests, metadata, images, answers other than 200) has no payload; tasks.ingest.pages says which those are.
A record that is shorter than its header says is damage. One above the limit is measured and marked "large"; one whose
HTTP cannot be read, "broken".

Both are read by warcio, which passes a cut-off record on as a whole one: what is left of its length is looked at here.
FastWARC is faster and wants files that it can seek in, which unpacked streams are not.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator
from typing import Any

from tasks.ingest.columns import json_text
from tasks.ingest.streams import BLOCK, as_file

TEXTS = frozenset({"text/html", "application/xhtml+xml", "text/plain"})
LINE_BYTES = 4096
"""What a line holds beside its payload; base64 makes four bytes of three, and the line is held against the limit."""

TYPES = frozenset({"response", "resource", "conversion"})


def archive_lines(stream: Iterator[bytes], limit: int) -> Iterator[bytes]:
    """The records; limit: bytes of a line. Raises OSError or ValueError where the file is damaged."""
    from warcio.archiveiterator import ArchiveIterator
    from warcio.exceptions import ArchiveLoadFailed

    most = max(0, limit * 3 // 4 - LINE_BYTES)
    number = -1
    try:
        records = ArchiveIterator(as_file(stream))
        for number, record in enumerate(records):
            if record.length is None or record.length < 0:
                raise ValueError(f"record {number} does not say its length")
            yield json_text(_facts(record, number, most))
        if records.err_count:
            raise ValueError(f"{records.err_count} of its records are not as long as their headers say")
    except (ArchiveLoadFailed, AttributeError, EOFError, IndexError, KeyError, TypeError, zlib.error) as error:
        said = f"{type(error).__name__}: {' '.join(str(error).split())}"  # warcio takes headers for whole
        raise ValueError(f"after {number + 1} records: {said}") from error
    if number < 0:
        raise ValueError("it holds no record")


def _facts(record: Any, number: int, limit: int) -> dict[str, Any]:
    kind, headers = record.rec_type, record.rec_headers
    url = (headers.get_header("WARC-Target-URI") or "").strip("<>") or None
    facts = {"type": kind, "url": url, "date": headers.get_header("WARC-Date") or headers.get_header("archive-date")}
    if kind in TYPES:
        facts |= _content(record, limit)
    while record.raw_stream.read(BLOCK):
        pass
    if left := getattr(record.raw_stream, "limit", 0):
        raise OSError(f"record {number} lacks {left} of the bytes that its header says")
    return facts


def _content(record: Any, limit: int) -> dict[str, Any]:
    http, headers = record.http_headers, record.rec_headers
    status = http.get_statuscode() if http else None
    content = (http.get_header("Content-Type") if http else headers.get_header("Content-Type")) or ""
    kind, _, more = content.partition(";")
    facts = {
        "language": headers.get_header("WARC-Identified-Content-Language"),
        "status": status,
        "content": kind.strip().lower(),
        "charset": more.partition("charset=")[2].partition(";")[0].strip(" \"'") or None,
    }
    if status not in (None, "200") or facts["content"] not in TEXTS:
        return facts
    try:
        payload = _read(record.content_stream(), limit)
    except (OSError, ValueError, EOFError, zlib.error) as error:
        return facts | {"broken": " ".join(str(error).split())[:200] or type(error).__name__}
    if payload is None:
        return facts | {"large": limit}
    return facts | {"payload": base64.b64encode(payload).decode()}


def _read(stream: Any, limit: int) -> bytes | None:
    """The payload, None where it is above the limit."""
    held, length = [], 0
    while block := stream.read(BLOCK):
        held.append(block)
        length += len(block)
        if length > limit:
            return None
    return b"".join(held)
