"""From a raw record to the fields of a document, or to the reason why it is none.

In: a record's bytes, what it is read as, the kind and the options of its source. Out: Fields, Reject or Skip. It reads
no file. Which field of a JSON record holds the text: as the source's `fields` say, else by its shape
(tasks.ingest.shapes). `url` and `created` are taken where they are text; all other fields, those of messages too, go
to `metadata`. There also stand `encoding` (of a text that was not in UTF-8), `foreign_lines`, `language` (mapped, or
from a header) and `mended` (of a text, not of a chat or code, in which UTF-8 had been read as windows-1252).

Reasons: encoding, json, surrogate, type, csv, no_text, empty, too_large, html, http, pdf, no_text_layer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tasks.ingest.how import How
from tasks.ingest.mapping import fact, mapped, without
from tasks.ingest.pages import Page, archived, html_file, pdf_file, text_file
from tasks.ingest.parsing import EXACT, canonical, decoded, exactly_parsed, largest_float, parsed
from tasks.ingest.refusals import Reject, Skip, kind_of
from tasks.ingest.shapes import Found, recognised
from tasks.text.chats import joined
from tasks.text.encodings import mended

__all__ = ["Fields", "Reject", "Skip", "read_fields"]

PLAIN = How()


class Fields(NamedTuple):
    """A document but for its name. messages: (role, content) pairs; offsets: byte of `text` where each
    begins. shape: how it was recognised.
    """

    text: str
    messages: list[dict[str, str]] | None = None
    offsets: list[int] | None = None
    url: str | None = None
    created: str | None = None
    metadata: str | None = None
    shape: str = "file"


def read_fields(raw: bytes, form: str, kind: str, how: How = PLAIN) -> Fields:
    """The fields of a record; form: Opened.records of tasks.ingest.containers. Raises Reject or Skip."""
    if form in ("jsonl", "csv"):
        fields = _of_json(raw, form, kind, how)
    elif form in ("lines", "paragraphs"):
        fields = Fields(decoded(raw), shape=form[:-1])
    else:
        fields = _of_page(_page(raw, form, how))
    if not fields.text:
        raise Reject("empty", "its text has no characters")
    if kind == "code" or fields.messages is not None or (text := mended(fields.text)) is None:
        return fields
    metadata = parsed((fields.metadata or "{}").encode()) | {"mended": "cp1252"}
    return fields._replace(text=text, metadata=canonical(metadata, largest_float(metadata) is None))


def _page(raw: bytes, form: str, how: How) -> Page:
    if form == "html":
        return html_file(raw, how.encoding)
    if form == "pdf":
        return pdf_file(raw)
    return archived(parsed(raw), how.encoding) if form == "warc" else text_file(raw, how.encoding)


def _of_page(page: Page) -> Fields:
    metadata = canonical(dict(page.facts), True) if page.facts else None
    return Fields(page.text, url=page.url, created=page.created, metadata=metadata, shape=page.shape)


def _of_json(raw: bytes, form: str, kind: str, how: How) -> Fields:
    record = parsed(raw)
    fields = _of_record(record, form, kind, how)
    if fields is None:
        fields = _of_record(exactly_parsed(raw), form, kind, how, exact=True)
    assert fields is not None  # noqa: S101 - an exact record is always read
    return fields


def _of_record(record: Any, form: str, kind: str, how: How, exact: bool = False) -> Fields | None:
    """The fields of a record; None where a number in its metadata must be parsed exactly."""
    if form == "csv" and isinstance(record, str):
        raise Reject("csv", record)
    by_name = "text" in how.fields or "messages" in how.fields
    if not isinstance(record, dict) and (not isinstance(record, list) or by_name):
        raise Reject("type", f"the record is {kind_of(record)}, not an object")
    found = mapped(record, how.fields) if by_name and isinstance(record, dict) else recognised(record, kind)
    known: dict[str, Any] = {}
    others: dict[str, Any] = {}
    if isinstance(record, dict) and how.fields:
        known, others = _mapped_facts(record, found, how)
    elif isinstance(record, dict):
        known = {name: record[name] for name in ("url", "created") if isinstance(record.get(name), str)}
        others = {name: value for name, value in record.items() if name not in found.used and name not in known}
    others.update(found.more)
    if not others:
        return _made(found, None, known)
    most = largest_float(others)
    if not exact and most is not None and most >= EXACT:
        return None
    return _made(found, canonical(others, most is None), known)


def _made(found: Found, metadata: str | None, known: dict[str, Any]) -> Fields:
    if found.messages is None:
        facts = known.get("url"), known.get("created"), metadata
        return Fields(found.text or "", None, None, *facts, found.shape)
    text, offsets = joined([message["content"] for message in found.messages])
    return Fields(text, found.messages, offsets, metadata=metadata, shape=found.shape, **known)


def _mapped_facts(record: dict[str, Any], found: Found, how: How) -> tuple[dict[str, str], dict[str, Any]]:
    """url and created, and the record without them and its text, with the mapped language by that name."""
    known, others = {}, record
    for name in ("url", "created", "language"):
        path = how.fields.get(name)
        value = fact(record, path) if path else record.get(name) if name != "language" else None
        if isinstance(value, str):
            known[name], others = value, without(others, path or name)
    for path in found.used:
        others = without(others, path)
    language = known.pop("language", None)
    return known, {**others, **({"language": language} if language else {})}
