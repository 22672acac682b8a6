"""A histogram of lengths, for a terminal and as a picture: doubling bins, as lengths run over orders of magnitude.

In: lengths. Out: lines of text, or an SVG that any browser shows. No plotting library, no fonts, no network.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

import numpy as np

BAR = 40
WIDTH, ROW, LEFT, RIGHT, TOP = 640, 22, 120, 110, 60
NOTE = 100
"""Characters of a line of notes: what WIDTH has room for."""
BLOCKS = " ▏▎▍▌▋▊▉"


class Bin(NamedTuple):
    """How many samples have a length in [low, high]."""

    low: int
    high: int
    samples: int


def bins(lengths: np.ndarray) -> list[Bin]:
    """0, 1, 2-3, 4-7, ... up to the longest, empty bins between others kept; [] for no lengths."""
    if not len(lengths):
        return []
    counts = np.bincount(np.frexp(lengths.astype(np.float64))[1])
    made = [Bin(1 << number >> 1, (1 << number) - 1, int(count)) for number, count in enumerate(counts)]
    return made[int(np.flatnonzero(counts)[0]) :]


def terminal(held: Sequence[Bin]) -> Iterator[str]:
    """One line a bin: bounds, a bar in eighths of a character, count."""
    most = max((one.samples for one in held), default=0)
    for one in held:
        whole, eighths = divmod(round(8 * BAR * one.samples / most), 8)
        bar = "█" * whole + (BLOCKS[eighths] if eighths else "")
        yield f"{bounds(one):>15} {bar:<{BAR}} {one.samples:>10,}"


def bounds(one: Bin) -> str:
    """64-127, or 1 for a bin of one length."""
    return f"{one.low:,}" if one.low == one.high else f"{one.low:,}-{one.high:,}"


def svg(held: Sequence[Bin], title: str, notes: Sequence[str] = ()) -> str:
    """The picture: a bar a bin, with its count, and `notes` below."""
    most = max((one.samples for one in held), default=1)
    notes = [line for note in notes for line in textwrap.wrap(note, NOTE)]
    height = TOP + ROW * (len(held) + len(notes) + 1)
    parts = [_text(10, 24, title, size=16), _text(10, 44, "length in ids, samples", color="#666")]
    for number, one in enumerate(held):
        y = TOP + ROW * number
        length = max((WIDTH - LEFT - RIGHT) * one.samples / most, 0)
        parts += [
            _text(LEFT - 8, y + 15, bounds(one), anchor="end"),
            f'<rect x="{LEFT}" y="{y + 3}" width="{length:.1f}" height="{ROW - 6}" fill="#4477aa"/>',
            _text(round(LEFT + length + 6), y + 15, f"{one.samples:,}"),
        ]
    parts += [_text(10, TOP + ROW * (len(held) + number) + 20, note) for number, note in enumerate(notes)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="sans-serif" role="img" aria-label="{escape(title, quote=True)}">'
        f'<rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def _text(x: int, y: int, text: str, *, size: int = 12, anchor: str = "start", color: str = "#222") -> str:
    return f'<text x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}" fill="{color}">{escape(text)}</text>'
