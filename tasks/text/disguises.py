"""Nine disguises in which a benchmark item turns up in a corpus.

In: an item's text. Out: the same in each disguise, as it would stand in a document. Pure and without chance. It plants
nothing and looks for nothing. The nine are those that published leaks show: other case, other punctuation, wrapped
lines, a part of it, one word changed, a fence around it, escaped HTML.
"""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Callable

_TYPED = str.maketrans({"'": "\u2019", '"': "\u201d", "-": "\u2010", " ": "\u00a0", ".": "\u2024", ",": "\u201a"})


def _units(text: str) -> tuple[list[str], str]:
    """(what a reader would count, what stands between): words, or characters where there are no spaces."""
    words = text.split()
    return (words, " ") if len(words) > 1 else (list(text.strip()), "")


def _without_punctuation(text: str) -> str:
    kept = (char if unicodedata.category(char)[0] != "P" else " " for char in text.upper())
    return " ".join("".join(kept).split())


def _wrapped(text: str) -> str:
    units, _ = _units(text)
    return "\n  ".join(units)


def _first_half(text: str) -> str:
    units, between = _units(text)
    return between.join(units[: (len(units) + 1) // 2])


def _last_share(text: str) -> str:
    units, between = _units(text)
    return between.join(units[len(units) * 2 // 5 :])


def _one_changed(text: str) -> str:
    units, between = _units(text)
    units[len(units) // 2] = "CHANGED"
    return between.join(units)


DISGUISES: dict[str, Callable[[str], str]] = {
    "verbatim": str.strip,
    "case_punct": _without_punctuation,
    "whitespace_newline": _wrapped,
    "unicode_punct": lambda text: text.translate(_TYPED),
    "first_half": _first_half,
    "last_60pct_words": _last_share,
    "one_word_changed": _one_changed,
    "question_only_in_code_fence": lambda text: f"```\n{text}\n```",
    "html_escaped": lambda text: html.escape(text.replace("'", "\u2019")).replace("\u2019", "&rsquo;"),
}
"""name -> text to disguised text. Every text must hold something besides white space."""
