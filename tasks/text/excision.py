"""Taking spans out of a text: what is left, and what every character became.

In: a text and byte spans of it, in any order, overlapping or not. Out: the text without them. A passage leaves one
blank line in its place; a span that says what is put there leaves that: nothing for a line, a word for what is masked.
It does not decide what is cut.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

BLANK_LINE = b"\n\n"
Span = tuple[int, int]


class Cut(NamedTuple):
    """Bytes start to stop of a text. put: what stands in their place; None for one blank line."""

    start: int
    stop: int
    put: str | None = None


AnyCut = Cut | Span


class Excised(NamedTuple):
    """What is left of a text. characters + characters_cut = characters before + separators.

    text: what is left. characters_cut: characters taken out, the newlines beside a passage among them.
    separators: characters put in: of blank lines, and in the place of what is masked.
    """

    text: str
    characters_cut: int
    separators: int


def union(spans: Iterable[AnyCut]) -> tuple[Span, ...]:
    """The same bytes as spans that neither overlap nor touch, in order; empty ones vanish."""
    joined: list[Span] = []
    for start, stop in sorted(span[:2] for span in spans if span[0] != span[1]):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
        else:
            joined.append((start, stop))
    return tuple(joined)


def settled(cuts: Iterable[AnyCut]) -> tuple[Cut, ...]:
    """What is done of cuts that meet: a passage takes what it overlaps with it; of others that overlap the text put is
    nothing if one puts nothing, else that of the first. Spans with a text to put need not be apart.
    """
    all_cuts = [Cut(*cut) for cut in cuts]
    passages = list(union(cut for cut in all_cuts if cut.put is None))
    joined: list[Cut] = []
    for cut in sorted(cut for cut in all_cuts if cut.put is not None and cut.start != cut.stop):
        last = joined[-1] if joined else None
        if last and cut.start < last.stop:
            joined[-1] = Cut(last.start, max(last.stop, cut.stop), last.put if cut.put else "")
        else:
            joined.append(cut)
    apart = [cut for cut in joined if not any(cut.start < stop and start < cut.stop for start, stop in passages)]
    passages += [cut[:2] for cut in joined if cut not in apart]
    return tuple(sorted([*(Cut(*span) for span in union(passages)), *apart]))


def excise(text: str, spans: Iterable[AnyCut]) -> Excised:
    """`text` without `spans` (bytes of its UTF-8): exactly one blank line where text stands on both sides of
    a passage, what is to be put in the place of others.

    The newlines on either side of a passage go with it, else a cut paragraph would leave five blank lines
    behind. Raises ValueError where a span leaves the text, runs backwards or cuts a character in two.
    """
    data = text.encode()
    cuts = [Cut(*_checked(data, cut)) for cut in spans]
    if not any(cut.start != cut.stop for cut in cuts):
        return Excised(text, 0, 0)
    left, put = _rebuilt(data, _spread(data, settled(cuts)))
    return Excised(left.decode(), len(text) + put - len(left.decode()), put)


def _spread(data: bytes, cuts: tuple[Cut, ...]) -> tuple[Cut, ...]:
    """The cuts with every passage widened over the newlines beside it, and over what it meets there."""
    wide = settled(cut if cut.put is not None else Cut(*_widened(data, cut)) for cut in cuts)
    return wide if wide == cuts else _spread(data, wide)


def _rebuilt(data: bytes, cuts: tuple[Cut, ...]) -> tuple[bytes, int]:
    """(what is left, characters put in)."""
    left, at, put, open_passage = bytearray(), 0, 0, False
    for start, stop, instead in [*cuts, Cut(len(data), len(data), "")]:
        kept = data[at:start] + (instead or "").encode()
        if kept and open_passage and left:
            left, put = left + BLANK_LINE, put + len(BLANK_LINE)
        open_passage = (open_passage and not kept) or instead is None
        left, at, put = left + kept, stop, put + len(instead or "")
    return bytes(left), put


def _checked(data: bytes, cut: AnyCut) -> AnyCut:
    start, stop = cut[:2]
    if not 0 <= start <= stop <= len(data):
        raise ValueError(f"bytes {start} to {stop} are no span of a text of {len(data)} bytes")
    for border in (start, stop):
        if border < len(data) and data[border] & 0xC0 == 0x80:
            raise ValueError(f"byte {border} lies inside a character; a span {start} to {stop} must not cut one in two")
    return cut


def _widened(data: bytes, cut: Cut) -> Span:
    start, stop, _ = cut
    while start > 0 and data[start - 1] == 0x0A:
        start -= 1
    while stop < len(data) and data[stop] == 0x0A:
        stop += 1
    return start, stop
