"""Taking spans out of a text: what is left, and what every character became.

In: a text and byte spans of it, in any order, overlapping or not. Out: the text without them, one blank line
in each place. It does not decide what is cut.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

BLANK_LINE = b"\n\n"
Span = tuple[int, int]


@dataclass(frozen=True)
class Excised:
    """What is left of a text. characters + characters_cut = characters before + separators.

    text: what is left. characters_cut: characters taken out, the newlines beside a span among them.
    separators: characters of the blank lines put in.
    """

    text: str
    characters_cut: int
    separators: int


def union(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The same bytes as spans that neither overlap nor touch, in order; empty ones vanish."""
    joined: list[Span] = []
    for start, stop in sorted(span for span in spans if span[0] != span[1]):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
        else:
            joined.append((start, stop))
    return tuple(joined)


def excise(text: str, spans: Iterable[Span]) -> Excised:
    """`text` without `spans` (bytes of its UTF-8): exactly one blank line where text stands on both sides of
    a cut.

    The newlines on either side of a span go with it, else a cut paragraph would leave five blank lines
    behind. Raises ValueError where a span leaves the text, runs backwards or cuts a character in two.
    """
    data = text.encode()
    joined = union(_checked(data, span) for span in spans)
    if not joined:
        return Excised(text, 0, 0)
    pieces = _between(data, union(_widened(data, span) for span in joined))
    left = BLANK_LINE.join(pieces).decode()
    separators = len(BLANK_LINE) * max(0, len(pieces) - 1)
    return Excised(left, len(text) + separators - len(left), separators)


def _checked(data: bytes, span: Span) -> Span:
    start, stop = span
    if not 0 <= start <= stop <= len(data):
        raise ValueError(f"bytes {start} to {stop} are no span of a text of {len(data)} bytes")
    for border in span:
        if border < len(data) and data[border] & 0xC0 == 0x80:
            raise ValueError(f"byte {border} lies inside a character; a span {start} to {stop} must not cut one in two")
    return span


def _widened(data: bytes, span: Span) -> Span:
    start, stop = span
    while start > 0 and data[start - 1] == 0x0A:
        start -= 1
    while stop < len(data) and data[stop] == 0x0A:
        stop += 1
    return start, stop


def _between(data: bytes, spans: tuple[Span, ...]) -> list[bytes]:
    """The stretches that no span covers; none of them is empty."""
    starts = [0, *(stop for _, stop in spans)]
    stops = [*(start for start, _ in spans), len(data)]
    return [data[start:stop] for start, stop in zip(starts, stops, strict=True) if start < stop]
