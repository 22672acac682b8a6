"""EUC-TW, which Python does not know: the planes 1 and 2 of CNS 11643-1992, of which all of its texts are made.

Importing it makes "euc-tw" a codec of Python, for decoding alone. The other five planes, which were never in common
use, do not decode. The table (cns11643.txt: a line a row of a plane, 94 cells of a character or a blank) holds the
mapping to Unicode that Unihan publishes as kIRG_TSource T1 and T2, in the form of the GNU C library's converter.
"""

from __future__ import annotations

import codecs
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

DATA_FILES = ("cns11643.txt",)
NAME = "euc-tw"
_FIRST, _SHIFT, _ROWS = 0xA1, 0x8E, 94


def _decode(raw: bytes, errors: str = "strict", final: bool = True) -> tuple[str, int]:
    """(text, bytes read). Raises UnicodeDecodeError; the end of a character may come later where not final."""
    cells, found, at = _cells(), [], 0
    while at < len(raw):
        if raw[at] < 0x80:
            found.append(chr(raw[at]))
            at += 1
            continue
        begin = at + 2 if raw[at] == _SHIFT else at
        if begin + 2 > len(raw) and not final:
            break
        plane = raw[at + 1] - _FIRST if begin > at and at + 1 < len(raw) else 0
        letter = cells.get((plane, *raw[begin : begin + 2]))
        if letter is None:
            raise UnicodeDecodeError(NAME, bytes(raw), at, at + 1, "no character of planes 1 and 2")
        found.append(letter)
        at = begin + 2
    return "".join(found), at


def _decode_whole(raw: Buffer, errors: str = "strict") -> tuple[str, int]:
    return _decode(bytes(raw), errors)


class _Incremental(codecs.BufferedIncrementalDecoder):
    def _buffer_decode(self, input: Buffer, errors: str, final: bool) -> tuple[str, int]:
        return _decode(bytes(input), errors, final)


def _encode(text: str, errors: str = "strict") -> tuple[bytes, int]:
    raise UnicodeEncodeError(NAME, text, 0, len(text), "it is read and not written")


def _found(name: str) -> codecs.CodecInfo | None:
    if name.replace("_", "-") not in (NAME, "euctw", "x-euc-tw", "cns11643"):
        return None
    return codecs.CodecInfo(_encode, _decode_whole, incrementaldecoder=_Incremental, name=NAME)


@cache
def _cells() -> dict[tuple[int, ...], str]:
    """(plane, row, cell) -> character; plane 0 or 1, row and cell as bytes."""
    text = (Path(__file__).parent / DATA_FILES[0]).read_text(encoding="utf-8")
    return {
        (number // _ROWS, number % _ROWS + _FIRST, cell + _FIRST): letter
        for number, line in enumerate(text.split("\n"))
        for cell, letter in enumerate(line)
        if letter != " "
    }


codecs.register(_found)
