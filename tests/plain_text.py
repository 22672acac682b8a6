"""Clean text as the standard library makes it: the oracle of tasks.text.whitespace. One substitution a rule, no tables
but those of `unicodedata` and `re`, no shortcut."""

import re
import unicodedata
from functools import cache

BLANKS = " \t\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
INVISIBLE = (
    "\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f"
)


@cache
def is_mark(letter):
    if unicodedata.combining(letter):
        return True
    whole = unicodedata.normalize("NFKD", letter)
    return bool(unicodedata.decomposition(letter)) and all(unicodedata.combining(part) for part in whole)


def bounded(text, marks_max):
    kept, run = [], 0
    for letter in text:
        run = run + 1 if is_mark(letter) else 0
        if run <= marks_max:
            kept.append(letter)
    return "".join(kept)


def plain_text(text, form, whitespace, marks_max):
    text = re.sub("\r\n|[\r\x0b\x0c\x85\u2028\u2029]", "\n", text)
    text = re.sub(f"[{INVISIBLE}]", "", text)
    text = bounded(text, marks_max)
    if form != "none":
        text = bounded(unicodedata.normalize(form, text), marks_max)
    text = re.sub("(?<!\\S)[\u200c\u200d]+|[\u200c\u200d]+(?!\\S)", "", text)
    text = re.sub(f"[{BLANKS}]+(?=\n|\\Z)", "", text)
    if whitespace == "collapse":
        text = re.sub(f"[{BLANKS}]+", " ", text)
    if whitespace == "inside":
        text = re.sub(f"(?<=[^{BLANKS}\n])[{BLANKS}]+", " ", text)
    if whitespace == "keep":
        return re.sub("\n{4,}", "\n\n\n", text).strip("\n")
    return re.sub(f"^[{BLANKS}\n]+|[{BLANKS}\n]+\\Z", "", re.sub("\n{3,}", "\n\n", text))
