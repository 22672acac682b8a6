"""What a character is to the signals: letter, digit, punctuation, white, terminal mark, bullet, quote.

In: nothing but the Unicode tables of the running Python (`unicodedata.unidata_version`). Out: one table of bits by code
point. It reads no text.
"""

from __future__ import annotations

import unicodedata
from functools import cache

import numpy as np

LETTER, DIGIT, PUNCTUATION, WHITE = 1, 2, 4, 8
"""General categories L and M; N; P; and `str.isspace`."""
TERMINAL, FULL, CLOSING, QUOTE = 16, 32, 64, 128
"""Marks that end a sentence; those of them that need no blank behind; what may stand between such a mark and the blank;
closing quotation marks, which end a line as well as a terminal mark does (C4)."""
BULLET, PRIVATE, REPLACEMENT = 256, 512, 1024
"""Marks that begin an item of a list; category Co; U+FFFD."""

TERMINALS = ".!?…‥‽⁇⁈⁉‼。！？｡．।॥؟۔։።፧፨။၊។៕᙮᠃᠉꓿꛳꛷෴"
FULLS = "。！？｡"
QUOTES = "\"'”’»›」』＂＇"
BULLETS = "•‣▪▫◦●○■□▶►◆◇*-–·"
_SETS = ((TERMINALS, TERMINAL), (FULLS, FULL), (QUOTES, QUOTE | CLOSING), (BULLETS, BULLET), ("\ufffd", REPLACEMENT))
_BY_MAJOR = {"L": LETTER, "M": LETTER, "N": DIGIT, "P": PUNCTUATION}
_ASSIGNED = ((0, 0x40000), (0xE0000, 0xE1000))  # no letter, digit, mark, punctuation or space lies elsewhere
_PRIVATE = ((0xE000, 0xF8FF), (0xF0000, 0xFFFFD), (0x100000, 0x10FFFD))


@cache
def character_bits() -> np.ndarray:
    """uint16 [0x110000]: the bits above of every code point; made once, in about 0.1 s."""
    bits = np.zeros(0x110000, np.uint16)
    for first, stop in _ASSIGNED:
        bits[first:stop] = np.fromiter(map(_bits_of, map(chr, range(first, stop))), np.uint16, stop - first)
    for first, last in _PRIVATE:
        bits[first : last + 1] = PRIVATE
    for members, bit in _SETS:
        bits[[ord(member) for member in members]] |= bit
    return bits


def _bits_of(character: str) -> int:
    category = unicodedata.category(character)
    found = _BY_MAJOR.get(category[0], 0)
    if category in ("Pe", "Pf"):
        found |= CLOSING
    return found | WHITE if character.isspace() else found
