"""data/filter/cuts: the lines that rules with action cut take out, and the personal data that is masked.

In: signals and texts of a part. Out: FILTER_CUTS, sorted by (row, start). Spans of one row may overlap; tokenize takes
out their union. Texts are read only where a document is cut or params.mask names something. It judges nothing anew:
the verdicts come from the same rules and signals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tasks.artifacts.verdicts import FILTER_CUTS
from tasks.filter.judging import documents_of
from tasks.step import Made, Reads
from tasks.text.cutting import lines_of, masked
from tasks.text.rules import judge

if TYPE_CHECKING:
    from tasks.filter import FilterParams

SCHEMA = FILTER_CUTS
Cut = tuple[int, int, int, str, str]


def make(reads: Reads, params: FilterParams) -> Made:
    """The cuts of one part. Counts: cuts, cuts|rule=<rule> (runs of lines), masked|mask=<kind>."""
    counts: Counter[str] = Counter(cuts=0)
    counts.update({f"masked|mask={kind}": 0 for kind in params.mask})
    cuts: list[Cut] = []
    cutting = any(rule.action == "cut" for rule in params.rules)
    if cutting or params.mask:
        for cut in _cuts(reads, params):
            mask = cut[3].removeprefix("mask:")
            counts[f"masked|mask={mask}" if mask != cut[3] else f"cuts|rule={cut[3]}"] += 1
            cuts.append(cut)
    counts["cuts"] = len(cuts)
    columns = [list(column) for column in zip(*sorted(cuts), strict=True)] or [[]] * len(FILTER_CUTS)
    return Made({".parquet": pa.table(columns, schema=FILTER_CUTS)}, dict(counts))


def _cuts(reads: Reads, params: FilterParams) -> Iterator[Cut]:
    broken = judge(params.rules, documents_of(reads, params.rules), params.language_letters_min)
    wanted_D = ~broken.dropped_D
    if not params.mask:
        wanted_D &= broken.rule_D >= 0
    rows = np.flatnonzero(wanted_D).tolist()
    if not rows:
        return
    texts = reads.table("normalize/text", ["text"])["text"].take(pa.array(rows))
    for row, scalar in zip(rows, texts, strict=True):
        text = scalar.as_py()
        for place, cut_D in sorted(broken.cuts.items()):
            if cut_D[row]:
                rule = params.rules[place]
                yield from ((row, start, stop, rule.name, "") for start, stop in lines_of(text, rule.signal))
        for kind, put in sorted(params.mask.items()):
            yield from ((row, start, stop, f"mask:{kind}", put) for start, stop in masked(text, kind))
