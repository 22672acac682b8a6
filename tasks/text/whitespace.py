"""Clean text: one Unicode form, one kind of line end, no invisible characters, no runs of blanks.

In: a column of texts as Arrow holds them, and how their kind of document wants them. Out: the column as every later
step sees it; texts that are clean as they come are copied, not looked at twice. It repairs no wrong encoding and
removes no word.

In this order: 1. Line ends: \\r\\n, \\r, vertical tab, form feed, U+0085, U+2028 and U+2029 become \\n. 2. Out go
control characters but \\n and \\t, and invisible ones: zero-width space and no-break space (U+FEFF), word joiner and
invisible operators, soft hyphen, directional marks, tags. The two joiners U+200C and U+200D spell words in Persian and
in Indic scripts and make one emoji of several: they stay where they stand between two characters that are not white.
3. Runs of combining marks are cut to `marks_max`: canonical reordering is quadratic in a run's length (200 kB of marks
took 27 s). Unicode's stream-safe format (UAX 15) allows 30.
4. Unicode form: NFC, NFKC or none. NFKC is a choice, never a default: it makes x2 of x², 1⁄2 of ½ and 1 of ①.
5. Blanks: those at the end of a line go. `collapse`: each run of blanks (tabs and Unicode's spaces among them) becomes
one space; `inside`: the same, but what a line begins with stays, so that lists and code in prose keep their shape (of
the first line it goes); `keep`: they stay (code, tables, chats that hold code).
6. Blank lines: at most one in a row, in `keep` two, as code separates functions. None at either end.

Normalizing twice is normalizing once, for all forms, and every text comes out as the plain chain of substitutions and
`unicodedata.normalize` makes it (tests/plain_text.py).
"""

from __future__ import annotations

import pyarrow as pa

from tasks.text.blanks import assemble
from tasks.text.cleaning import CLEAN, find_needs, gather, replace, strip
from tasks.text.columns import one_array, text_buffers
from tasks.text.forms import BLANKS, FORMS, Form, form_of

__all__ = ["BLANKS", "FORMS", "WHITESPACE", "normalize_texts"]

WHITESPACE = ("keep", "inside", "collapse")


def normalize_texts(
    texts: pa.Array | pa.ChunkedArray, form: str, whitespace: str, marks_max: int
) -> pa.LargeStringArray:
    """`texts` [D] made clean; a null becomes an empty text. form: one of FORMS; whitespace: one of WHITESPACE;
    marks_max: combining marks in a row.

    Raises ValueError for another form or whitespace. Holds a few times the texts that are not clean.
    """
    if form not in FORMS or whitespace not in WHITESPACE:
        raise ValueError(f"form {form!r}, whitespace {whitespace!r}; known: {FORMS}, {WHITESPACE}")
    column, how, way = one_array(texts), form_of(form), WHITESPACE.index(whitespace)
    offsets_D1, data = text_buffers(column)
    needs_D = find_needs(data, offsets_D1, how.classes, how.orders, way, marks_max)
    if (needs_D == CLEAN).all():
        return column
    stripped, places_D1, spans_S2 = strip(data, offsets_D1, needs_D, how.classes, how.orders, marks_max)
    if len(spans_S2):
        formed = _formed(gather(stripped, spans_S2).tobytes(), how, marks_max)
        stripped, places_D1 = replace(stripped, places_D1, spans_S2, formed)
    whole, wholes_D1 = assemble(data, offsets_D1, needs_D, stripped, places_D1, how.classes, way)
    return pa.LargeStringArray.from_buffers(len(column), pa.py_buffer(wholes_D1), pa.py_buffer(whole))


def _formed(spans: bytes, how: Form, marks_max: int) -> bytes:
    """The spans, a zero byte behind each, in their form. Marks are bounded before, for its time, and after it, as one
    character may become several marks. A zero byte stands in no text any more, and nothing is composed across it."""
    text = how.bounded(spans.decode(), marks_max)
    return how.bounded(how.formed(text), marks_max).encode()
