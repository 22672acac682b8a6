"""Speed and quality of dedup beside datasketch and rensa: CPU seconds of the same corpus in one run, alternating.

In: the recipe's section dedup and a corpus with known near duplicates (benchmarks.dedup_corpus). Out: figures, one JSON
line each. Whole: sketches, candidates, exact verification and verdicts, in memory; dedup/spans is a figure of its own.
The peers do what their documentation shows, without exact verification.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from benchmarks.dedup_corpus import texts
from benchmarks.figures import cpu_seconds, figure, peer
from tasks.artifacts.documents import TEXT
from tasks.artifacts.verdicts import DROP, SPANS
from tasks.dedup import DedupParams
from tasks.dedup.sketches import sketch
from tasks.dedup.spans import find
from tasks.dedup.verdicts import decide
from tasks.project import checked

TEXTS, PEERS_TEXTS, ROUNDS = 6000, 1000, 3
UNIT = "web-0"


class InMemory:
    """Reads over tables by folder."""

    name, spec = UNIT, dict[str, Any]()

    def __init__(self, corpus: list[str]) -> None:
        digests = [hashlib.sha256(text.encode()).hexdigest() for text in corpus]
        columns = {"id": [d[:32] for d in digests], "text_sha": digests, "text": corpus}
        columns |= {"source": ["web"] * len(corpus), "kind": ["web"] * len(corpus)}
        empty = {name: [None] * len(corpus) for name in TEXT.names if name not in columns}
        text = pa.table({name: (columns | empty)[name] for name in TEXT.names}, TEXT)
        self.tables = {"normalize/text": text, "filter/verdicts": pa.table({"verdict": ["keep"] * len(corpus)})}
        self.tables["dedup/spans"] = SPANS.empty_table()

    def units(self, _folder: str) -> list[str]:
        return [UNIT]

    def table(self, folder: str, columns: Sequence[str] | None = None, unit: str | None = None) -> pa.Table:
        table = self.tables[folder]
        return table.select(list(columns)) if columns is not None else table


def ours(corpus: list[str], params: DedupParams) -> tuple[float, float, float, list[int]]:
    """CPU seconds of the sketches, of the decision and of the spans; numbers of the texts removed."""
    reads, made = InMemory(corpus), dict[str, Any]()
    sketching = cpu_seconds(lambda: made.update(sketches=sketch(reads, params)))
    reads.tables["dedup/sketches"] = made["sketches"].files[".parquet"]
    deciding = cpu_seconds(lambda: made.update(decide(reads, params)))
    spanning = cpu_seconds(lambda: find(reads, params))
    verdicts = made[f"verdicts/{UNIT}"].files[".parquet"].column("verdict").to_pylist()
    return sketching, deciding, spanning, [row for row, verdict in enumerate(verdicts) if verdict == DROP]


def exact_pairs(corpus: list[str], threshold: float) -> set[int]:
    """n of the texts 4n + 1 that are at or above the threshold of text 4n, by plain sets."""
    found = set()
    for number in range(1, len(corpus), 4):
        sets = []
        for text in corpus[number - 1 : number + 1]:
            words = text.split()
            sets.append({tuple(words[at : at + 5]) for at in range(len(words) - 4)})
        if len(sets[0] & sets[1]) / len(sets[0] | sets[1]) >= threshold:
            found.add(number // 4)
    return found


def quality(name: str, removed: Sequence[int], wanted: set[int], goal: float) -> None:
    """Recall and precision of removals; of a pair either text may go."""
    gone = {number // 4 for number in removed if number % 4 < 2}
    strangers = sum(number % 4 > 1 for number in removed)
    figure(f"dedup recall, {name}", [len(gone & wanted) / len(wanted)], goal, "of pairs at 0.8")
    precision = len(gone & wanted) / max(1, len(gone) + strangers)
    figure(f"dedup precision, {name}", [precision], 1.0, "of removals")


def main() -> None:
    """All figures."""
    recipe = yaml.safe_load((Path(__file__).parents[1] / "params.yaml").read_text(encoding="utf-8"))
    params = checked(DedupParams, "dedup", recipe["dedup"])
    corpus, few = texts(TEXTS), texts(PEERS_TEXTS)
    size, few_size = (sum(map(len, part)) / 1e6 for part in (corpus, few))
    ours(few, params)
    rounds = [ours(corpus, params) for _ in range(ROUNDS)]
    figure("dedup sketch", [size / one[0] for one in rounds], 150, "MB/cpu-s")
    figure("dedup whole", [size / (one[0] + one[1]) for one in rounds], 80, "MB/cpu-s")
    figure("dedup spans", [size / one[2] for one in rounds], 300, "MB/cpu-s")
    wanted = exact_pairs(few, 0.8)
    quality("gristmill", ours(few, params)[3], wanted, 0.99)
    for name, goal in (("datasketch", 20.0), ("rensa", 5.0)):
        theirs = partial(peer, "peer_dedup.py", name, str(PEERS_TEXTS))
        answers = [answer for answer in (theirs() for _ in range(ROUNDS)) if answer is not None]
        speeds = [few_size / answer["seconds"] for answer in answers]
        ratios = [size / (one[0] + one[1]) / speed for one, speed in zip(rounds, speeds, strict=False)]
        figure("dedup whole", ratios, goal, "x", {"datasketch": "datasketch 2.0.0", "rensa": "rensa 0.5.0"}[name])
        if answers:
            quality(name, answers[0]["removed"], wanted, 0.99)


if __name__ == "__main__":
    main()
