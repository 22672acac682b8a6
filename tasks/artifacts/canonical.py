"""Canonical JSON and digests: equal values give equal bytes, whatever the order they were written in."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

SMALL = 1 << 17


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
    """64 hex: SHA-256 of a file's bytes. 1.5 GB a CPU second (SHA-NI).

    A small file is read whole: hashlib takes a buffer of 256 KiB for each, which costs more than the file.
    """
    with path.open("rb", buffering=0) as file:
        if os.fstat(file.fileno()).st_size < SMALL:
            return hashlib.sha256(file.readall()).hexdigest()
        return hashlib.file_digest(file, "sha256").hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"{value!r} of type {type(value).__name__} cannot stand in a key")
