"""Why a record is no document."""

from __future__ import annotations

from typing import Any

DETAIL_MAX = 500


class Reject(Exception):
    """The record should have been a document. reason: a word; detail: a sentence with the value and the limit, of which
    DETAIL_MAX characters are kept: a value may be of any length."""

    def __init__(self, reason: str, detail: str) -> None:
        self.reason, self.detail = reason, detail[:DETAIL_MAX]
        super().__init__(reason, self.detail)


class Skip(Exception):
    """The record was never meant to be one, as a request in a web archive. reason: a word; it is counted."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


def kind_of(value: Any) -> str:
    """What a JSON value is, in words."""
    names = {dict: "an object", list: "a list", str: "text", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")
