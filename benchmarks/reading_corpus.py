"""Texts in the encodings that their languages were written in before UTF-8: the Universal Declaration in its languages.

In: the folder of UTF-8 texts, a file a language (ISO 639-3). Out: samples as bytes with the text that they should give.
Typographic marks that an encoding lacks are put as people typed them; a sample that it cannot hold is left out.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tasks.text.encodings import Undecodable, decode
from tasks.text.guessing import NO_TEXT

_WESTERN = "cp1252 iso8859-15 mac-roman cp850"
_CENTRAL = "cp1250 iso8859-2 cp852 mac-latin2"
_CYRILLIC = "cp1251 iso8859-5 mac-cyrillic"
_BY_ENCODINGS = {
    _WESTERN: "afr cat deu_1901 fao fra gla gle glg isl ita lat nob por_BR por_PT sco spa src swe vec",
    _CENTRAL: "als hun pol ron_1993 slv",
    "cp1257 iso8859-13 iso8859-4": "lit",
    "cp1254 iso8859-9 cp857": "tur",
    f"{_CYRILLIC} koi8-r cp866": "bul",
    f"{_CYRILLIC} koi8-u cp1125": "ukr",
    _CYRILLIC: "bel srp_cyrl",
    "cp1253 iso8859-7": "ell_monotonic",
    "cp874": "tha",
    "big5 big5hkscs gb18030": "cmn_hant",
    "cp949 euc_kr iso2022_kr": "kor",
    "iso8859-3": "epo",
    "kz1048": "kaz",
}
ENCODINGS = {name: encodings for encodings, names in _BY_ENCODINGS.items() for name in names.split()}
"""File -> encodings."""
TYPED = str.maketrans("–—“”„‟’‘ʼ′‐‑−\u2009șțȘȚ", "--\"\"\"\"''''--- şţŞŢ", "…\u200b\ufeff")
MOST = 12
ESCAPED = ("iso2022_kr",)


class Sample(NamedTuple):
    language: str
    encoding: str
    text: str
    raw: bytes


def legacy_samples(folder: Path, size: int, most: int = MOST) -> Iterator[Sample]:
    """Up to `most` samples of `size` characters of each language in each of its encodings."""
    for name, encodings in sorted(ENCODINGS.items()):
        text = unicodedata.normalize("NFC", (folder / f"{name}.txt").read_text(encoding="utf-8"))
        step = max(size, (len(text) - size) // most)
        parts = [text[at : at + size] for at in range(0, len(text) - size, step)][:most]
        for encoding in encodings.split():
            for part in parts:
                sample = _encoded(name, encoding, part)
                if sample is not None and (not sample.raw.isascii() or encoding in ESCAPED):
                    yield sample


def _encoded(name: str, encoding: str, text: str) -> Sample | None:
    if NO_TEXT.search(text):  # some of the texts hold controls of C1, which are no text in any encoding
        return None
    for typed in (text, text.translate(TYPED)):
        try:
            return Sample(name, encoding, typed, typed.encode(encoding))
        except UnicodeEncodeError:
            continue
    return None


def outcome(sample: Sample) -> str:
    """right, refused or wrong: nothing is declared, the bytes alone say it."""
    try:
        return "right" if decode(sample.raw).text == sample.text else "wrong"
    except Undecodable:
        return "refused"


_KNOWN = """
afr:af als:sq amh:am azj_cyrl:az azj_latn:az bcl:bcl bel:be bod:bo bul:bg cat:ca ceb:ceb ces:cs cmn_hant:zh
cos:co deu_1901:de ell_monotonic:el ell_polytonic:el eml:eml epo:eo fra:fr gla:gd gle:ga glg:gl hat_kreyol:ht
hat_popular:ht hun:hu hye:hy ilo:ilo ina:ia isl:is ita:it jav:jv kan:kn kat:ka kaz:kk khm:km kir:ky kor:ko
lao:lo lat:la lat_1:la lit:lt mai:mai mar:mr nep:ne nob:no pan:pa pol:pl por_BR:pt por_PT:pt quy:qu roh:rm
ron:ro ron_1993:ro sah:sah sco:sco slv:sl spa:es src:sc srp_cyrl:sr sun:su swe:sv swh:sw tam:ta tgk:tg tha:th
tur:tr tyv:tyv uig_arab:ug ukr:uk vec:vec war:war yor:yo
"""
KNOWN = dict(pair.split(":") for pair in _KNOWN.split())
"""File -> the model's code, of the languages that lid.176 knows."""
