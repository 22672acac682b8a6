"""The documents of a part as rules see them: for the verdicts and the cuts alike.

In: signals, own signals and kinds of a part. Out: Documents with the columns that the rules ask for, no others: a
corpus of a million rows is judged anew in a second or two.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tasks.artifacts.verdicts import SIGNALS
from tasks.step import Reads
from tasks.text.rules import LANGUAGE, LETTERS, Documents, Rule

OWN, BLOCKED = "filter/own", "filter/blocked"


def documents_of(reads: Reads, rules: Sequence[Rule]) -> Documents:
    """Raises ValueError where rows do not match."""
    asked = {"characters", LETTERS, LANGUAGE, *(rule.signal for rule in rules)}
    signals = reads.table("filter/signals", [name for name in SIGNALS.names if name in asked])
    others = sorted(asked - set(SIGNALS.names))
    blocked = [name for name in others if name.startswith("blocked.")]
    for folder, own in ((OWN, [name for name in others if name not in blocked]), (BLOCKED, blocked)):
        if own:
            table = reads.table(folder, own)
            _same(reads, folder, table.num_rows, signals)
            for name in own:
                signals = signals.append_column(name, table[name].cast(pa.float64()))
    kinds = reads.table("normalize/text", ["kind"])["kind"]
    _same(reads, "normalize/text", len(kinds), signals)
    return Documents(signals, kinds, reads.name.partition("-")[0])


def _same(reads: Reads, folder: str, rows: int, signals: pa.Table) -> None:
    if rows != signals.num_rows:
        raise ValueError(f"part {reads.name} has {signals.num_rows} rows of signals and {rows} of {folder}; build anew")
