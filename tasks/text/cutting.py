"""Which lines of a text belong to a signal, and which spans a mask hides: bytes, for what takes them out.

In: one text. Out: spans of its UTF-8. It decides nothing and takes nothing out (tasks.text.excision).

A line means what it means to the signals (tasks.text.lines, marks). A line that goes takes its line feed with it, the
text's last line the one before it. Where whole paragraphs go, one blank line is left, at the text's ends none.

*e-mail*: the common form, local part of letters, digits and . _ % + -, a domain with a dot (as dolma and DataTrove);
not the name and password of a URL, nor git@.
*ip*: four numbers from 0 to 255 between dots, no digit or further dotted number beside them; and IPv6 with at least
three groups. Four numbers below 30, or behind a word such as section or version, are taken for the number of one: of
public addresses 1 in 5,000 looks so.
*phone*: + and 9 to 15 digits that begin with no 0 (E.164), or 10 digits grouped as in North America (area and exchange
begin with 2 to 9), with spaces, dots, dashes or brackets between, one or two in a row, no letter or digit beside them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tasks.text.lines import NAMES as LINES
from tasks.text.lines import count_lines
from tasks.text.marks import NAMES as MARKS
from tasks.text.marks import count_marks
from tasks.text.words import split_words, text_buffers

Span = tuple[int, int]

_BYTE = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_GROUP = r"[0-9A-Fa-f]{1,4}"
MASKS = {
    "email": re.compile(
        r"(?<![\w.+%-])(?!git@)[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![\w@-])"
    ),
    "ip": re.compile(
        rf"(?<![\w.:])(?:(?:{_BYTE}\.){{3}}{_BYTE}(?!\w|\.\d)"
        rf"|(?:(?:{_GROUP}:){{7}}{_GROUP}|(?:{_GROUP}:){{2,6}}(?::{_GROUP}){{1,5}})(?![\w:]|\.\d))"
    ),
    "phone": re.compile(
        r"(?<![\w+.-])(?:\+[1-9](?:[ .()/-]{0,2}\d){8,14}"
        r"|(?:1[ .-])?(?:\([2-9]\d\d\) ?|[2-9]\d\d[ .-])[2-9]\d\d[ .-]\d{4})(?![\w-]|\.\d)"
    ),
}
"""Kinds of personal data, and what is taken for them."""
_USERINFO = re.compile(r"""//[^/\s"'<>?#]*$""")
_NUMBERED = re.compile(
    r"(?:sections?|§|paragraph|chapter|clause|appendix|version|release|kernel|build|v)[\s.#:-]*$", re.I
)
_BEFORE = 80
_SMALL = 30


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
    found = [match.span() for match in MASKS[kind].finditer(text) if _is_meant(match, kind)]
    if not found or text.isascii():
        return found
    return [(len(text[:start].encode()), len(text[:stop].encode())) for start, stop in found]


def _is_meant(match: re.Match[str], kind: str) -> bool:
    """Whether what stands before it, or its own numbers, do not say that it is something else."""
    before = match.string[max(0, match.start() - _BEFORE) : match.start()]
    if kind == "email":
        return _USERINFO.search(before) is None
    if kind == "phone" or ":" in match[0]:
        return True
    return _NUMBERED.search(before) is None and any(int(number) >= _SMALL for number in match[0].split("."))


def _marked(lines: list[bytes], signal: str) -> np.ndarray:
    """Of each line, whether the signal's count of it alone is not 0."""
    column = pa.array([line.decode() for line in lines], pa.large_string())
    offsets_D1, data = text_buffers(column)
    marks_DK, breaks_N = count_marks(offsets_D1, data)
    if signal in MARKS:
        return np.asarray(marks_DK[:, MARKS.index(signal)] > 0)
    words = split_words(column)
    ascii_D = np.diff(offsets_D1) == words.characters_D
    counts_DK = count_lines(offsets_D1, data, breaks_N, ascii_D, words.starts_W, words.offsets_D1)
    if signal == "brief_lines":
        return np.asarray(counts_DK[:, LINES.index(signal)] > 0)
    return np.asarray(counts_DK[:, LINES.index("lines")] > counts_DK[:, LINES.index("terminated_lines")])


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
