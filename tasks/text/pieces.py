"""A long text cut into pieces at the ends of its paragraphs.

In: a text and the characters that a piece may have. Out: the pieces; joined they are the text. It drops nothing and
moves nothing: the blank lines between two paragraphs stay with the first.
"""

from __future__ import annotations

import re

_ENDS = (re.compile(r"\n[ \t\r]*\n\s*"), re.compile(r"\n"), re.compile(r"(?<=[.!?。！？])\s*|\s+"))
"""Where a text may end, best first: after blank lines, after a line, after a sentence or word."""


def pieces(text: str, most: int) -> list[str]:
    """Pieces of at most `most` characters, about equally long: [text] where it is no longer.

    Each ends at the paragraph's end nearest to its even share of what is left; where none lies in the second half of
    what it may hold, at a line's end, then at a sentence's or word's, then anywhere.
    """
    found, begin = [], 0
    while len(text) - begin > most:
        left = len(text) - begin
        share = -(-left // -(-left // most))
        end = _end(text, begin + most // 2, begin + share, begin + most)
        found.append(text[begin:end])
        begin = end
    return [*found, text[begin:]]


def _end(text: str, first: int, wanted: int, last: int) -> int:
    for pattern in _ENDS:
        ends = [match.end() for match in pattern.finditer(text, first, last)]
        if ends:
            return min(ends, key=lambda end: (abs(end - wanted), end))
    return wanted
