"""What a character is to cleaning: its class, and whether its form depends on what stands beside it.

In: the Unicode tables of the running Python (`unicodedata.unidata_version`). Out: for each form a table of classes and
one of canonical orders by code point, and what puts a text into that form. It reads no text by itself.

*Where a text may be cut.* A character is a border if it is a starter (combining class 0), is left as it is by the form,
and neither it nor what it decomposes to begins with a character that composes with one before it. Then nothing is
reordered or composed across its front, and form(a + b) = form(a) + form(b) wherever b begins with a border (UAX 15,
"Concatenation of Normalized Strings"). So only the spans from a border to the next one that hold something else need to
be formed. *Which of those are formed already.* A span of marks that the form leaves as they are, that compose with
nothing and stand in canonical order, is (the quick check of UAX 15); it is most of Thai, Arabic and Hindi.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

FORMS = ("NFC", "NFKC", "none")

LINE_END, INVISIBLE, JOINER, BLANK, MARK, UNSURE, CHANGED = 1, 2, 4, 8, 16, 32, 64
"""Classes; the rest has none. BLANK: Unicode's spaces, space and tab among them; MARK: what reordering moves, or what
NFKD makes of nothing else, where the form leaves it as it is; CHANGED: a text may be cut in front of it, but the form
makes another of it; UNSURE: any other that is no border."""

BLANKS = " \t\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_MEMBERS = {
    LINE_END: "\r\x0b\x0c\x85\u2028\u2029",
    INVISIBLE: "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f",
    JOINER: "\u200c\u200d",
    BLANK: BLANKS,
}
_ASSIGNED = (
    (0x80, 0x3400),
    (0x4DC0, 0x4E00),
    (0xA000, 0xAC00),
    (0xD7A4, 0xD800),
    (0xF900, 0x20000),
    (0x2F800, 0x2FA20),
)
"""Where anything but a border can be: neither among ideographs and syllables of Hangul, nor in private use."""
_CONJOINING = ((0x1160, 0x1200), (0x11A7, 0x11C4), (0xD7B0, 0xD800))
"""Vowels and finals of Hangul, which compose by arithmetic."""

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Form:
    """name: one of FORMS. classes uint8 [0x110000] and orders uint8 [0x110000] (canonical combining classes, 0 where
    the form is none) by code point; marks: a class of a regular expression that holds every mark."""

    name: str
    classes: Array
    orders: Array
    marks: str

    def formed(self, text: str) -> str:
        return unicodedata.normalize("NFKC" if self.name == "NFKC" else "NFC", text) if self.name != "none" else text

    def bounded(self, text: str, marks_max: int) -> str:
        """`text` with the first marks_max marks of each run."""
        return _beyond(self.marks, marks_max).sub(r"\1", text)


@cache
def form_of(name: str) -> Form:
    """The tables of a form; made once, in about 0.2 s."""
    classes, orders = np.zeros(sys.maxunicode + 1, np.uint8), np.zeros(sys.maxunicode + 1, np.uint8)
    codes = [code for first, stop in _ASSIGNED for code in range(first, stop)]
    marks = [code for code in codes if _is_mark(chr(code))]
    classes[marks] = MARK
    if name != "none":
        orders[marks] = [unicodedata.combining(chr(code)) for code in marks]
        for code, found in _touched(codes, name):
            classes[code] = found
    for flag, members in _MEMBERS.items():
        classes[list(_codes(members))] |= flag
    return Form(name, classes, orders, "".join(_range(first, last) for first, last in _runs(marks)))


def _touched(codes: list[int], name: str) -> Iterator[tuple[int, int]]:
    """(code point, UNSURE or CHANGED) of what composes with one before it, decomposes to such a beginning, or is made
    another by the form."""
    later = {code for first, stop in _CONJOINING for code in range(first, stop)} | set(_seconds(codes))
    yield from ((code, UNSURE) for code in sorted(later))
    for code in codes:
        letter = chr(code)
        if code not in later and unicodedata.decomposition(letter):
            first = unicodedata.normalize("NFKD", letter)[0]
            if ord(first) in later or unicodedata.combining(first):
                yield code, UNSURE
            elif not unicodedata.is_normalized("NFKC" if name == "NFKC" else "NFC", letter):
                yield code, CHANGED


def _seconds(codes: list[int]) -> Iterable[int]:
    """Every second character of a canonical decomposition."""
    for code in codes:
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            yield int(parts[1], 16)


def _is_mark(letter: str) -> bool:
    if unicodedata.combining(letter):
        return True
    return bool(unicodedata.decomposition(letter)) and all(
        map(unicodedata.combining, unicodedata.normalize("NFKD", letter))
    )


def _codes(members: str) -> Iterable[int]:
    """The code points of a class as a regular expression writes it, "a-f\\x7f"."""
    for found in re.finditer("(.)-(.)|(.)", members, re.DOTALL):
        first, last, alone = found.groups()
        yield from [ord(alone)] if alone else range(ord(first), ord(last) + 1)


def _runs(codes: list[int]) -> list[tuple[int, int]]:
    """(first, last) of each run of neighbours in sorted codes."""
    starts = [at for at in range(len(codes)) if at == 0 or codes[at] != codes[at - 1] + 1]
    return [(codes[at], codes[stop - 1]) for at, stop in zip(starts, [*starts[1:], len(codes)], strict=True)]


def _range(first: int, last: int) -> str:
    return re.escape(chr(first)) + ("-" + re.escape(chr(last)) if last > first else "")


@cache
def _beyond(marks: str, marks_max: int) -> re.Pattern[str]:
    return re.compile(f"([{marks}]{{{marks_max}}})[{marks}]+")
