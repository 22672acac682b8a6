"""The text of a chat: its messages' contents joined by a blank line, and where each begins."""

from __future__ import annotations

from collections.abc import Sequence

BETWEEN = "\n\n"


def joined(contents: Sequence[str]) -> tuple[str, list[int]]:
    """The text, and the byte of it (UTF-8) where each content begins. Contents that are all empty give no
    text.
    """
    if not any(contents):
        return "", [0] * len(contents)
    offsets, byte = [], 0
    for content in contents:
        offsets.append(byte)
        byte += len(content.encode()) + len(BETWEEN)
    return BETWEEN.join(contents), offsets
