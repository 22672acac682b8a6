"""Which lines of a text belong to a signal, and which spans a mask hides: bytes, for what takes them out.

In: one text. Out: spans of its UTF-8. It decides nothing and takes nothing out (tasks.text.excision).

A line means what it means to the signals (tasks.text.lines, marks). A line that goes takes its line feed with it, the
text's last line the one before it. Where whole paragraphs go, one blank line is left, at the text's ends none.

*e-mail*: the common form, local part of letters, digits and . _ % + -, a domain with a dot (as dolma and DataTrove).
*ip*: four numbers from 0 to 255 between dots, no digit or further dotted number beside them; and IPv6 with at least
three groups. *phone*: + and 7 to 15 digits (E.164), or 10 digits grouped as in North America, with spaces, dots, dashes
or brackets between, at most one or two in a row, and no letter or digit beside them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tasks.text.lines import count_lines
from tasks.text.marks import count_marks
from tasks.text.words import split_words, text_buffers

Span = tuple[int, int]

_BYTE = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_GROUP = r"[0-9A-Fa-f]{1,4}"
MASKS = {
    "email": re.compile(r"(?<![\w.+%-])[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![\w@-])"),
    "ip": re.compile(
        rf"(?<![\w.:])(?:(?:{_BYTE}\.){{3}}{_BYTE}|(?:{_GROUP}:){{7}}{_GROUP}|(?:{_GROUP}:){{2,6}}(?::{_GROUP}){{1,5}})"
        r"(?![\w:]|\.\d)"
    ),
    "phone": re.compile(
        r"(?<![\w+.-])(?:\+\d(?:[ .()/-]{0,2}\d){6,14}|(?:1[ .-])?(?:\(\d{3}\) ?|\d{3}[ .-])\d{3}[ .-]\d{4})"
        r"(?![\w-]|\.\d)"
    ),
}
"""Kinds of personal data, and what is taken for them."""


def lines_of(text: str, signal: str) -> list[Span]:
    """Spans of the lines that belong to `signal`, one of tasks.text.rules.CUTTABLE, in order."""
    data = text.encode()
    lines = data.split(b"\n")
    chosen_L = _repeated(lines) if signal.startswith("duplicate") else _marked(lines, signal)
    return list(_runs(lines, _with_blanks(lines, chosen_L.tolist()))) if chosen_L.any() else []


def masked(text: str, kind: str) -> list[Span]:
    """Spans of what is taken for personal data of a kind, in order."""
    if kind == "email" and "@" not in text:
        return []
    found = [match.span() for match in MASKS[kind].finditer(text)]
    if not found or text.isascii():
        return found
    return [(len(text[:start].encode()), len(text[:stop].encode())) for start, stop in found]


def _marked(lines: list[bytes], signal: str) -> np.ndarray:
    """Of each line, whether the signal's count of it alone is not 0."""
    column = pa.array([line.decode() for line in lines], pa.large_string())
    offsets_D1, data = text_buffers(column)
    marks, breaks_N = count_marks(offsets_D1, data)
    if signal in marks:
        return marks[signal] > 0
    words = split_words(column)
    ascii_D = np.diff(offsets_D1) == words.characters_D
    counts = count_lines(offsets_D1, data, breaks_N, ascii_D, words.starts_W, words.offsets_D1)
    if signal == "brief_lines":
        return counts[signal] > 0
    return counts["lines"] > counts["terminated_lines"]


def _repeated(lines: list[bytes]) -> np.ndarray:
    """Of each line, whether it is not blank and stands above already."""
    seen: set[str] = set()
    chosen = np.zeros(len(lines), np.bool_)
    for place, line in enumerate(lines):
        bare = line.decode().strip()
        chosen[place] = bare in seen
        if bare:
            seen.add(bare)
    return chosen


def _with_blanks(lines: list[bytes], gone: list[bool]) -> list[bool]:
    """Of each line, whether it goes: blank ones that would stand beside another, or at an end, go with the others."""
    blank, beside = True, False  # the last line that stays is blank, and lines after it go
    for place, line in enumerate(lines):
        empty = not line.decode().strip()
        if gone[place] or (empty and beside and blank):
            gone[place], beside = True, True
        else:
            blank, beside = empty, False
    if gone[-1]:
        place = len(lines) - 1
        while place >= 0 and (gone[place] or not lines[place].decode().strip()):
            gone[place] = True
            place -= 1
    return gone


def _runs(lines: list[bytes], gone: list[bool]) -> Iterator[Span]:
    """The span of each run of lines that go."""
    start, begin = 0, None
    for line, goes in zip([*lines, b""], [*gone, False], strict=True):
        if goes and begin is None:
            begin = start
        elif not goes and begin is not None:
            size = sum(map(len, lines)) + len(lines) - 1
            yield (begin, start) if start <= size else (max(0, begin - 1), size)
            begin = None
        start += len(line) + 1
