"""Bytes become text: by byte order mark, as UTF-8, as declared, or by detection; or they are refused.

In: the bytes of one document and the encoding that somebody declared for it. Out: its text and the encoding it was read
in, None for UTF-8. It never replaces a byte and never guesses below the limits here and in tasks.text.guessing.

In this order:
1. A byte order mark of UTF-8, UTF-16 or UTF-32 decides.
2. Bytes that are UTF-8 are UTF-8, whatever was declared, unless they hold NUL (UTF-16 and UTF-32 without a mark) or the
   escapes of ISO-2022.
3. The declared encoding, where the bytes decode in it and give no control character of C1, no private use. Labels mean
   what browsers take them for (WHATWG): gb2312 and gbk are GB18030, latin-1 is windows-1252.
4. Bytes with NUL or the escapes of ISO-2022: as chardet says, with confidence 0.9 and 0.5 at least. Where neither that
   nor the places of the NUL speak for anything but UTF-8, UTF-8 they are.
5. What the bytes make ordinary writing in (tasks.text.guessing), judged by the lines that hold other bytes than ASCII.
   Where that is no encoding, or more than one, they are refused. docs/reading.md says how often that is right.
6. Lines: where at least nine in ten of the lines with other bytes than ASCII are UTF-8, the others are foreign lines,
   and are read in the encoding that they all, taken together, are in. This comes before 5.
"""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

import chardet

from tasks.text.guessing import NO_TEXT, guess, tried

SAMPLE = 65_536
"""Bytes that detection looks at."""

OTHER_MIN, NUL_MIN, WIDE_MIN = 0.5, 0.9, 0.9
FOREIGN_LINES_MAX = 0.1
MENDED_MIN = 3

MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

_MEANT = {
    "gb18030": "gb2312 gbk gb_2312-80 x-gbk cp936 csgb2312 chinese iso-ir-58 euc-cn",
    "cp1252": "ascii us-ascii iso-8859-1 iso8859-1 latin1 latin-1 l1 windows-1252 x-cp1252 iso_8859-1",
    "cp1254": "iso-8859-9 iso8859-9 latin5 windows-1254",
    "cp874": "tis-620 iso-8859-11 windows-874",
    "cp932": "shift_jis shift-jis sjis x-sjis ms_kanji windows-31j",
    "cp949": "euc-kr euckr ks_c_5601-1987 ks_c_5601 korean windows-949",
    "big5hkscs": "big5 big5-hkscs cn-big5 x-x-big5",
    "utf-16-le": "utf-16 utf-16le unicode ucs-2",
    "utf-8": "utf8 unicode-1-1-utf-8",
}
MEANT = {label: codec for codec, labels in _MEANT.items() for label in labels.split()}
"""Label -> Python's codec for what is meant by it; a label that is not here means its own codec."""

_ESCAPE = b"\x1b"
_SWITCHES = (_ESCAPE + b"$", _ESCAPE + b"(")
"""What changes the character set in ISO 2022."""
_BEYOND_ASCII = re.compile(rb"[\x80-\xff]")
_META = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]{1,40})""", re.IGNORECASE)
_XML = re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9_:.-]{1,40})""")
_HEAD = 4096


class Decoded(NamedTuple):
    """encoding: a codec's name, None for UTF-8. foreign_lines: lines in `encoding` among others in UTF-8."""

    text: str
    encoding: str | None = None
    foreign_lines: int = 0


class Undecodable(ValueError):
    """No encoding is sure. The message says why, with values and limits."""


def decode(raw: bytes, declared: str | None = None) -> Decoded:
    """The text of `raw`; declared: a label from a header, a meta element or params.yaml. Raises Undecodable."""
    for mark, codec in MARKS:
        if raw.startswith(mark):
            return Decoded(_strict(raw[len(mark) :], codec), None if codec == "utf-8" else codec)
    odd, broken = _is_odd(raw), ""
    try:
        text = raw.decode("utf-8")
        if not odd:
            return Decoded(text)
    except UnicodeDecodeError as error:
        broken = f"byte {error.start} (0x{raw[error.start]:02x}) is not UTF-8: {error.reason}"
    found = _declared(raw, declared)
    if found is None and odd and not broken and _guess(raw)[0] is None and not _may_be_wide(raw):
        return Decoded(text)
    return found or _by_line(raw) or _detected(raw, broken)


def _is_odd(raw: bytes) -> bool:
    """Whether there is a NUL, or an escape to another character set; a regular expression took 10 ms a MB for it."""
    return b"\0" in raw or (_ESCAPE in raw and any(switch in raw for switch in _SWITCHES))


def declared_in(head: bytes) -> str | None:
    """The encoding that a page declares in its first bytes: XML's declaration, else its meta element."""
    found = _XML.search(head[:_HEAD]) or _META.search(head[:_HEAD])
    return found[1].decode("ascii") if found else None


def codec_of(label: str) -> str | None:
    """Python's codec for a label, None where there is none that decodes text."""
    try:
        info = codecs.lookup(MEANT.get(label.strip().lower(), label.strip()))
    except LookupError:
        return None
    return info.name if info._is_text_encoding else None


def _strict(raw: bytes, codec: str) -> str:
    try:
        return raw.decode(codec)
    except UnicodeDecodeError as error:
        raise Undecodable(f"its mark says {codec}, but byte {error.start} is no {codec}: {error.reason}") from None


def _declared(raw: bytes, label: str | None) -> Decoded | None:
    codec = codec_of(label) if label else None
    if codec is None or codec == "utf-8":
        return None
    text = tried(raw, codec)
    return None if text is None else Decoded(text, codec)


def _detected(raw: bytes, broken: str) -> Decoded:
    codec, why = _guess(raw)
    broken = broken or "it holds NUL or escape bytes"
    if codec is None:
        raise Undecodable(f"{broken}; {why}")
    text = tried(raw, codec)
    if text is None:
        raise Undecodable(f"{broken}; it seems {codec} and is not wholly that")
    return Decoded(text, None if codec in ("utf-8", "ascii") else codec)


def _guess(raw: bytes) -> tuple[str | None, str]:
    """Codec, or None and why."""
    if b"\0" in raw[:SAMPLE] or b"\x1b" in raw:
        return _wide_or_escaped(raw)
    found = guess(_telling(raw))
    return found.codec, found.why


def _wide_or_escaped(raw: bytes) -> tuple[str | None, str]:
    wide = b"\0" in raw[:SAMPLE]
    found = chardet.detect(raw[:SAMPLE])
    codec = codec_of(found["encoding"]) if found["encoding"] else None
    needed = NUL_MIN if wide else OTHER_MIN
    if codec is None or found["confidence"] < needed or (wide and not codec.startswith(("utf-16", "utf-32"))):
        return None, f"it seems {codec} with confidence {found['confidence']:.2f}, {needed} is needed"
    return codec, ""


def _may_be_wide(raw: bytes) -> bool:
    """Whether bytes with NUL may be UTF-16: nearly all NUL at odd or at even places, as Latin script has it."""
    nul, even = raw.count(0), raw[::2].count(0)
    return nul > 0 and len(raw) % 2 == 0 and max(even, nul - even) > WIDE_MIN * nul and nul > len(raw) // 20


def _telling(raw: bytes) -> bytes:
    """The lines of `raw` that hold other bytes than ASCII, up to SAMPLE bytes."""
    return b"\n".join(line for line in raw[: 4 * SAMPLE].split(b"\n") if _BEYOND_ASCII.search(line))[:SAMPLE]


def _by_line(raw: bytes) -> Decoded | None:
    """Where nearly all lines are UTF-8, the foreign ones decoded on their own; None where that is not so."""
    lines = raw.split(b"\n")
    texts = [_as_utf8(line) for line in lines]
    foreign = [number for number, text in enumerate(texts) if text is None]
    telling = sum(1 for line in lines if _BEYOND_ASCII.search(line))
    if not foreign or len(foreign) > FOREIGN_LINES_MAX * telling or b"\0" in raw:
        return None
    together = _detected(b"\n".join(lines[number] for number in foreign), f"line {foreign[0]} is not UTF-8")
    for number, text in zip(foreign, together.text.split("\n"), strict=True):
        texts[number] = text
    return Decoded("\n".join(text for text in texts if text is not None), together.encoding, len(foreign))


def _as_utf8(line: bytes) -> str | None:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return None


def mended(text: str) -> str | None:
    """`text` as it was before UTF-8 was read as windows-1252 (é as Ã©); None where it is not surely such a text.

    All that is not ASCII in it must be the one or the other way UTF-8, in MENDED_MIN characters at least: a text that
    holds a single right é is left alone. The look for the commonest first characters does 3 GB a CPU second.
    """
    if text.isascii() or not any(first in text for first in ("Ã", "â", "Â", "Ð", "å", "ä", "ã")):
        return None
    for codec in ("cp1252", "latin-1"):
        try:
            found = text.encode(codec).decode("utf-8")
        except UnicodeError:
            continue
        changed = sum(1 for letter in found if letter > "\x7f")
        return found if changed >= MENDED_MIN and not NO_TEXT.search(found) else None
    return None
