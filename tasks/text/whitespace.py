"""Clean text: one Unicode form, one kind of line end, no invisible characters, no runs of blanks.

In: a text, and how its kind of document wants it. Out: the text as every later step sees it. It repairs no
wrong encoding and removes no word.

In this order: 1. Line ends: \\r\\n, \\r, vertical tab, form feed, U+0085, U+2028 and U+2029 become \\n. 2.
Out go control characters but \\n and \\t, and invisible ones: zero-width space and no-break space (U+FEFF),
word
   joiner and invisible operators, soft hyphen, directional marks, tags. The two joiners U+200C and U+200D
   spell words in Persian and in Indic scripts and make one emoji of several: they stay where they stand
   between two characters that are not white.
3. Runs of combining marks are cut to `marks_max`: canonical reordering is quadratic in a run's length (200 kB
of marks
   took 27 s). Unicode's stream-safe format (UAX 15) allows 30.
4. Unicode form: NFC, NFKC or none. NFKC is a choice, never a default: it makes x2 of x², 1⁄2 of ½ and 1 of ①.
5. Blanks: those at the end of a line go. `collapse`: each run of blanks (tabs and Unicode's spaces among
them)
   becomes one space; `inside`: the same, but what a line begins with stays, so that lists and code in prose
   keep their shape (of the first line it goes); `keep`: they stay (code, tables, chats that hold code).
6. Blank lines: at most one in a row, in `keep` two, as code separates functions. None at either end.

normalize(normalize(text)) == normalize(text) for all forms (tests/test_whitespace.py). Speed: 100 MB of web
text a CPU second, where 97 of 100 texts are clean as they come; the usual chain of substitutions does 20 (one
core, 2026).
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache
from typing import Any

import numpy as np

FORMS = ("NFC", "NFKC", "none")
WHITESPACE = ("collapse", "inside", "keep")

_BLANKS = " \t\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_EDGES = "\n \t\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]+"
)
_JOINERS = re.compile(r"(?<!\S)[\u200c\u200d]+|[\u200c\u200d]+(?!\S)")
_AT_LINE_END = re.compile(f"[{_BLANKS}]+(?=\n|\\Z)")
_RUN = re.compile(f"[{_BLANKS}]{{2,}}|[{_BLANKS[1:]}]")
_INNER_RUN = re.compile(f"(?<=[^{_BLANKS}\n])(?:[{_BLANKS}]{{2,}}|[{_BLANKS[1:]}])")
_BLANK = re.compile(f"[{_BLANKS[2:]}]")
_JOINER = re.compile("[\u200c\u200d]")
_BLANK_LINES = {False: re.compile("\n{3,}"), True: re.compile("\n{4,}")}

LINE_END, INVISIBLE, JOINER, BLANK, MARK = 1, 2, 4, 8, 16
"""Classes of code points that call for work; BLANK is every blank but space and tab."""

CHUNK = 1 << 20
_CHARACTERS = ((0, 0xD800), (0xE000, 0x20000), (0x2F800, 0x2FA20), (0xE0000, 0xE1000))
"""Where marks, blanks and invisible characters are: not in the ideographs of planes 2 and 3, nor in private
use.
"""

Array = np.ndarray[Any, Any]


def normalize(text: str, form: str, whitespace: str, marks_max: int) -> str:
    """`text` made clean. form: one of FORMS; whitespace: one of WHITESPACE; marks_max: combining marks in a
    row.

    Raises ValueError for another form or whitespace. A pass over the classes of all characters tells which of
    the
    substitutions there is work for: most texts need none.
    """
    if form not in FORMS or whitespace not in WHITESPACE:
        raise ValueError(f"form {form!r}, whitespace {whitespace!r}; known: {FORMS}, {WHITESPACE}")
    found = _found(text)
    if found & LINE_END:
        text = _LINE_ENDS.sub("\n", text)
    if found & INVISIBLE:
        text = _INVISIBLE.sub("", text)
    if not text.isascii():
        text = _formed(text, form, marks_max, found)
    return _spaced(text, whitespace, bool(found & BLANK))


def _found(text: str) -> int:
    """The classes of all characters of `text`, or-ed; CHUNK characters at a time, to bound memory."""
    found = 0
    for start in range(0, len(text), CHUNK):
        found |= int(np.bitwise_or.reduce(classes()[_codes(text[start : start + CHUNK])]))
    return found


def _formed(text: str, form: str, marks_max: int, found: int) -> str:
    """Marks are bounded before the form, for its time, and after: one character may become several marks."""
    if found & MARK:
        text = _bounded(text, marks_max)
    if form != "none":
        formed = unicodedata.normalize("NFKC" if form == "NFKC" else "NFC", text)
        text = text if formed == text else _bounded(formed, marks_max)
    return _JOINERS.sub("", text) if found & JOINER else text


def _spaced(text: str, whitespace: str, blanks: bool) -> str:
    """blanks: there may be others than space and tab."""
    keep = whitespace == "keep"
    if blanks or " \n" in text or "\t\n" in text or text.endswith((" ", "\t")):
        text = _AT_LINE_END.sub("", text)
    if not keep and (blanks or "  " in text or "\t" in text):
        text = (_RUN if whitespace == "collapse" else _INNER_RUN).sub(" ", text)
    if "\n\n\n" in text:
        text = _BLANK_LINES[keep].sub("\n\n\n" if keep else "\n\n", text)
    return text.strip("\n" if keep else _EDGES)


def _codes(text: str) -> Array:
    """Code points, [characters]: uint8 of ASCII, else uint32."""
    if text.isascii():
        return np.frombuffer(text.encode(), np.uint8)
    return np.frombuffer(text.encode("utf-32-le"), np.dtype("<u4"))


def _bounded(text: str, marks_max: int) -> str:
    """`text` with no more than marks_max combining marks in a row: the first ones of each run."""
    codes = _codes(text)
    marks = np.flatnonzero(classes()[codes] & MARK)
    if len(marks) <= marks_max:
        return text
    order = np.arange(len(marks))
    begins = np.concatenate(([True], np.diff(marks) > 1))
    in_run = order - np.maximum.accumulate(np.where(begins, order, 0))
    beyond = marks[in_run >= marks_max]
    return np.delete(codes, beyond).tobytes().decode("utf-32-le") if len(beyond) else text


@cache
def classes() -> Array:
    """The class of each code point, uint8 [0x110000].

    A mark is what reordering moves (canonical combining class above 0), or what NFKD makes of nothing else.
    """
    table = np.zeros(sys.maxunicode + 1, np.uint8)
    everything = "".join(chr(code) for first, stop in _CHARACTERS for code in range(first, stop))
    for pattern, flag in (
        (_LINE_ENDS, LINE_END),
        (_INVISIBLE, INVISIBLE),
        (_BLANK, BLANK),
        (_JOINER, JOINER),
    ):
        for found in pattern.finditer(everything):
            table[[ord(letter) for letter in found.group()]] |= flag
    table[[ord(letter) for letter in everything if _is_mark(letter)]] |= MARK
    return table


def _is_mark(letter: str) -> bool:
    if unicodedata.combining(letter):
        return True
    return bool(unicodedata.decomposition(letter)) and all(
        unicodedata.combining(part) for part in unicodedata.normalize("NFKD", letter)
    )
