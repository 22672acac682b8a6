"""Canonical JSON and digests: equal values give equal bytes, whatever the order they were written in."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any


def canonical(value: Any) -> bytes:
    """`value` as JSON with sorted keys and no spaces, UTF-8; sets become sorted lists.

    Raises TypeError for what JSON cannot hold (an object, bytes, NaN): a key must never be silently unstable.
    """
    try:
        text = json.dumps(
            value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=_plain
        )
    except ValueError as error:
        raise TypeError(f"{value!r} cannot stand in a key: {error}") from error
    return text.encode()


def digest(value: Any) -> str:
    """64 hex: SHA-256 of canonical(value)."""
    return hashlib.sha256(canonical(value)).hexdigest()


def pretty(value: Any) -> str:
    """`value` as JSON for people and git: sorted keys, two spaces, one newline at the end."""
    return json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def file_digest(path: Path) -> str:
    """64 hex: SHA-256 of a file's bytes. 1.5 GB a CPU second (SHA-NI)."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"{value!r} of type {type(value).__name__} cannot stand in a key")
