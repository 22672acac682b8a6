"""Documents that are whole files or records of web archives: text, HTML, PDF, WARC.

In: bytes, or a line of tasks.ingest.webarchives. Out: text, encoding and what a header said. It parses no JSON records.
A page's text is its main content (tasks.text.html); a PDF's its text layer: scanned pages, which have none, are
rejected by name, nothing is recognised in images.
"""

from __future__ import annotations

import base64
import io
import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from tasks.ingest.refusals import Reject, Skip
from tasks.text.encodings import Undecodable, declared_in, decode
from tasks.text.html import main_text

PAGES = frozenset({"text/html", "application/xhtml+xml"})


class Page(NamedTuple):
    """facts: for the metadata, what was done with the encoding and the language that a header named."""

    text: str
    shape: str
    facts: Mapping[str, Any] = MappingProxyType({})
    url: str | None = None
    created: str | None = None


def text_file(raw: bytes, declared: str | None) -> Page:
    """A file of text. Raises Reject (encoding)."""
    text, facts = _decoded(raw, declared)
    return Page(text, "file", facts)


def html_file(raw: bytes, declared: str | None) -> Page:
    """A page. Raises Reject (encoding, html, empty)."""
    text, facts = _decoded(raw, declared or declared_in(raw))
    return Page(_main(text), "html", facts)


def pdf_file(raw: bytes) -> Page:
    """The text layer of a PDF, a blank line between pages. Raises Reject (pdf, no_text_layer)."""
    from pypdf import PdfReader

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        pages = [page.extract_text().strip() for page in PdfReader(io.BytesIO(raw)).pages]
    except Exception as error:  # what pypdf raises on a spoilt file has no end
        raise Reject(
            "pdf", f"pypdf cannot read it: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
        ) from None
    if not any(pages):
        raise Reject("no_text_layer", f"its {len(pages)} pages hold images and no text; it would need to be recognised")
    return Page("\n\n".join(page for page in pages if page).encode("utf-8", "replace").decode(), "pdf")


def archived(record: dict[str, Any], encoding: str | None) -> Page:
    """A record of a web archive. Raises Skip for what is no document, Reject for what should be one."""
    for name, reason in (("broken", "http"), ("large", "too_large")):
        if name in record:
            raise Reject(reason, f"the {record['type']} of {record['url']}: {record[name]}"[:300])
    if "payload" not in record:
        raise Skip(_why(record))
    raw = base64.b64decode(record["payload"])
    if not raw:
        raise Reject("empty", f"the {record['type']} of {record['url']} has no bytes")
    page = record["content"] in PAGES
    text, facts = _decoded(raw, record["charset"] or encoding or (declared_in(raw) if page else None))
    if record["language"]:
        facts |= {"language": record["language"]}
    return Page(_main(text) if page else text, record["type"], facts, record["url"], record["date"])


def _why(record: dict[str, Any]) -> str:
    if record.get("status") not in (None, "200"):
        return f"status_{record['status']}"
    return "content_type" if "content" in record else str(record["type"])


def _decoded(raw: bytes, declared: str | None) -> tuple[str, dict[str, Any]]:
    try:
        found = decode(raw, declared)
    except Undecodable as error:
        raise Reject("encoding", str(error)) from None
    facts: dict[str, Any] = {"encoding": found.encoding} if found.encoding else {}
    return found.text, facts | ({"foreign_lines": found.foreign_lines} if found.foreign_lines else {})


def _main(page: str) -> str:
    try:
        text = main_text(page)
    except (ValueError, RecursionError, AttributeError, TypeError, AssertionError) as error:
        raise Reject("html", f"{type(error).__name__}: {' '.join(str(error).split())[:200]}") from None
    if not text:
        raise Reject("empty", f"no main text is found in its {len(page)} characters of HTML")
    return text
