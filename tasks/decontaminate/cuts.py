"""decontaminate/cuts: the passages that are taken out of documents whose verdict is cut.

In: matches and boilerplate, this step's verdicts, and the texts of a part that has such a document. Out:
CUTS, sorted by (row, start), the reason "<set>:<line>:<field>". Spans reach `margin_characters` beyond the
shared n-grams on either side and may overlap; tokenize takes out their union. A short answer that stands near a passage
goes with it, by the same rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.artifacts.verdicts import CUT, CUTS
from tasks.decontaminate.telling import telling_matches, with_answers
from tasks.step import Made, Reads

if TYPE_CHECKING:
    from tasks.decontaminate import DecontaminateParams

SCHEMA = CUTS


def cut(reads: Reads, params: DecontaminateParams) -> Made:
    """The cuts of one part; counts characters_cut, the length of their union in code points."""
    verdicts = reads.table("decontaminate/verdicts", ["verdict"]).column("verdict")
    rows = pc.indices_nonzero(pc.equal(verdicts, CUT))
    matches = with_answers(telling_matches(reads))
    matches = matches.filter(pc.is_in(matches.column("row"), value_set=rows.cast(pa.int64())))
    if not matches.num_rows:
        return Made({".parquet": SCHEMA.empty_table()}, {"characters_cut": 0, "cuts": 0})
    texts = reads.table("normalize/text", ["text"]).column("text")
    lines, characters_cut = [], 0
    match_rows = matches.column("row").to_numpy()
    for row in np.unique(match_rows).tolist():
        mine = matches.filter(pa.array(match_rows == row))
        spans = _widen(texts[row].as_py().encode(), mine, params.margin_characters)
        characters_cut += _union(spans)
        reasons = pc.binary_join_element_wise(mine.column("set"), mine.column("item"), ":").to_pylist()
        lines += [
            {"row": row, "start": start, "stop": stop, "reason": reason}
            for (start, stop, *_), reason in zip(spans, reasons, strict=True)
        ]
    table = pa.Table.from_pylist(lines, SCHEMA).sort_by([(name, "ascending") for name in SCHEMA.names])
    return Made({".parquet": table}, {"characters_cut": characters_cut, "cuts": table.num_rows})


def _widen(text: bytes, matches: pa.Table, margin: int) -> list[tuple[int, int, int, int]]:
    """(first byte, last byte + 1, first character, last character + 1) of each match with its margin."""
    data = np.frombuffer(text, np.uint8)
    borders = np.append(np.flatnonzero((data & 0xC0) != 0x80), len(data))
    last = len(borders) - 1
    starts = np.searchsorted(borders, matches.column("start").to_numpy()) - margin
    stops = np.searchsorted(borders, matches.column("stop").to_numpy()) + margin
    starts, stops = np.maximum(starts, 0), np.minimum(stops, last)
    columns = (borders[starts], borders[stops], starts, stops)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _union(spans: list[tuple[int, int, int, int]]) -> int:
    """Characters in the union of the spans."""
    covered, reached = 0, 0
    for _, _, start, stop in sorted(spans, key=lambda span: span[2:]):
        covered += max(0, stop - max(start, reached))
        reached = max(reached, stop)
    return covered
