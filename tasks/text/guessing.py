"""Which encoding undeclared bytes are in: that in which they are ordinary writing, where they are that in one only.

In: the lines of a document that hold other bytes than ASCII. Out: a codec, or why none is sure. Each encoding that the
bytes decode in is a candidate; what it makes of them is held against the letters of the language that it shows
(tasks.text.writing), ideographs against what is common (tasks.text.ideographs). It looks at the first SAMPLE bytes.

A guess needs a text of which nearly all is at home (HOME_MIN, ORDINARY_MIN), a language that is sure (SURE_MIN; or
OWN_SURE_MIN, where it has a script of its own and no word is in ASCII), and no other text that is about as likely
(ODDS, a natural logarithm). Encodings that give the same text are one: the first is named. The limits were chosen on
the Universal Declaration in legacy encodings (docs/reading.md).
"""

from __future__ import annotations

import re
from typing import NamedTuple

import tasks.text.cns11643  # noqa: F401 - the codec euc-tw
from tasks.text.ideographs import CODECS as IDEOGRAPHIC
from tasks.text.ideographs import ordinary
from tasks.text.writing import writing

SAMPLE, AROUND = 1500, 30
HOME_MIN, SURE_MIN, OWN_SURE_MIN = 0.96, 0.05, 0.3
ORDINARY_MIN, ODDS = 0.9, 4.0
LETTERS_MIN, LOST_MAX, MANY = 8, 0.005, 100
"""MANY: so many ordinary characters of two bytes are no alphabet's: what else the bytes may be need not be asked."""
_LETTER = re.compile(rb"[A-Za-z\x80-\xff]")
_LOST = re.compile(rb"[a-z\x80-\xff]\?[a-z\x80-\xff]")
_BEYOND_ASCII = re.compile(rb"[\x80-\xff]")
ALPHABETIC = (
    *("cp1252", "cp1251", "cp1250", "koi8-r", "iso8859-2", "iso8859-15", "cp1254", "cp1253", "iso8859-7", "cp1255"),
    *("iso8859-8", "cp1256", "iso8859-6", "cp874", "iso8859-5", "cp866", "koi8-u", "mac-cyrillic"),
)
LESS = ("cp1257", "iso8859-13", "cp1258", "kz1048", "iso8859-4", "iso8859-3", "iso8859-14")
SELDOM = (
    "iso8859-16", "mac-roman", "mac-latin2", "cp850", "cp852", "cp437", "cp1125", "mac-greek", "mac-turkish", "cp737",
    "cp857",
)  # fmt: skip
"""By how common they are; of equal texts the first one's name is told. What is seldom met is taken where it is much
likelier than the others: what DOS and the Macintosh wrote, and the Latin-10 that came too late."""

NO_TEXT = re.compile("[\x80-\x84\x86-\x9f\ue000-\uf8ff\U000f0000-\U0010ffff]")
"""What no text holds: controls of C1 but NEL, private use."""


class Guess(NamedTuple):
    """codec, or None and why."""

    codec: str | None
    why: str = ""


class _Seen(NamedTuple):
    codec: str
    text: str
    score: float
    ordinary: bool
    many: bool = False


def guess(raw: bytes) -> Guess:
    """The encoding of `raw`, lines that hold other bytes than ASCII."""
    if (lost := len(_LOST.findall(raw[: 16 * SAMPLE]))) > LOST_MAX * len(raw[: 16 * SAMPLE]):
        return Guess(None, f"{lost} question marks stand within its words, where letters were lost")
    if len(_LETTER.findall(raw[:SAMPLE])) < LETTERS_MIN:
        return Guess(None, f"it has fewer than {LETTERS_MIN} letters")
    asian = _asian(_head(raw))
    western = [] if any(seen.many for seen in asian) else _western(telling(raw))
    found = sorted([*asian, *western], key=lambda seen: -seen.score)
    if not found or not found[0].ordinary:
        return Guess(None, "no encoding makes ordinary writing of it")
    best, *others = found
    if others and best.score - others[0].score < ODDS:
        return Guess(None, f"it may be {best.codec} or {others[0].codec}")
    return Guess(best.codec)


def _head(raw: bytes) -> bytes:
    """The first lines, SAMPLE bytes and what is left of the last line: characters of two bytes are not cut."""
    end = raw.find(b"\n", SAMPLE)
    return raw if end < 0 or len(raw) <= SAMPLE else raw[: min(end, 4 * SAMPLE)]


def telling(raw: bytes) -> bytes:
    """The first bytes, and a word of each further byte beyond ASCII: one letter may tell two encodings apart."""
    seen, words = set(raw[:SAMPLE]), []
    for place in _BEYOND_ASCII.finditer(raw, SAMPLE):
        if (byte := raw[place.start()]) not in seen:
            begin, end = raw.rfind(b" ", 0, place.start() - 10), raw.find(b" ", place.end() + 10)
            word = raw[max(begin, place.start() - AROUND, 0) : min(end if end >= 0 else len(raw), place.end() + AROUND)]
            words.append(word)
            seen.add(byte)
    return b"\n".join([raw[:SAMPLE], *words])


def tried(raw: bytes, codec: str) -> str | None:
    """The text, or None where it does not decode or would hold what no text holds."""
    try:
        text = raw.decode(codec)
    except UnicodeDecodeError:
        return None
    return None if NO_TEXT.search(text) or "\0" in text else text


def _asian(sample: bytes) -> list[_Seen]:
    found: dict[str, _Seen] = {}
    for codec in IDEOGRAPHIC:
        if (text := tried(sample, codec)) is not None:
            share, likelihood = ordinary(text, codec)
            if share >= ORDINARY_MIN:
                found.setdefault(text, _Seen(codec, text, likelihood, True, len(text) - len(sample) < -MANY))
    return list(found.values())


def _western(sample: bytes) -> list[_Seen]:
    found: dict[str, _Seen] = {}
    for codec in (*ALPHABETIC, *LESS, *SELDOM):
        if (text := tried(sample, codec)) is not None and text not in found:
            seen = writing(text)
            score = seen.likelihood - ODDS * (codec in SELDOM) - ODDS / 2 * (codec in LESS)
            sure_min = OWN_SURE_MIN if seen.own_script else SURE_MIN
            found[text] = _Seen(codec, text, score, seen.home >= HOME_MIN and seen.sure >= sure_min)
    return list(found.values())
