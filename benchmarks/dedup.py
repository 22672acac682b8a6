"""Speed and quality of dedup beside datasketch, rensa and DataTrove: CPU seconds of one run, alternating.

In: the recipe's section dedup, a corpus with known near duplicates (benchmarks.dedup_corpus), and the corpora with a
.truth.tsv of the folder that GRISTMILL_CORPORA names (its dedup/). Out: figures, one JSON line each, and a table for
people. Whole: sketches, candidates, exact verification and verdicts; dedup/spans is a figure of its own. The peers do
what their documentation shows, without exact verification. GRISTMILL_PEERS names their environment
(dedup-requirements.txt).
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import platform
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from benchmarks.dedup_corpus import texts
from benchmarks.dedup_truth import Corpus, brute_force, judged, with_truth
from benchmarks.figures import cpu_seconds, figure, peer
from tasks.artifacts.documents import TEXT
from tasks.artifacts.verdicts import DROP, SPANS
from tasks.dedup import DedupParams, verdicts
from tasks.dedup.sketches import sketch
from tasks.dedup.spans import find
from tasks.project import checked

TEXTS, PEERS_TEXTS, ROUNDS, THRESHOLD = 6000, 1000, 3, 0.8
UNIT = "web-0"
PEERS = {"datasketch": ("datasketch 2.0.0", 20), "rensa": ("rensa 0.5.0", 5), "datatrove": ("datatrove 0.10.1", 100)}
STAGES = ("rank_documents", "match_documents", "candidate_sets", "choose", "find_duplicates")


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

    def scratch(self) -> None:
        return None

    def each(self, function: Callable[..., Any], items: Iterable[tuple[str | None, Any]]) -> Iterator[Any]:
        for _, item in items:
            yield function(self, item)


class Timed:
    """CPU seconds of the functions that the decision is made of, those of STAGES that it has."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        for name in STAGES:
            if hasattr(verdicts, name):
                setattr(verdicts, name, self._timed(name, getattr(verdicts, name)))

    def _timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **named: Any) -> Any:
            began = time.process_time()
            result = function(*arguments, **named)
            self.seconds[name] += time.process_time() - began
            return result

        return timed


def ours(corpus: list[str], params: DedupParams) -> tuple[float, float, float, list[int]]:
    """CPU seconds of the sketches, of the decision and of the spans; numbers of the texts removed."""
    reads, made = InMemory(corpus), dict[str, Any]()
    sketching = cpu_seconds(lambda: made.update(sketches=sketch(reads, params)))
    reads.tables["dedup/sketches"] = made["sketches"].files[".parquet"]
    deciding = cpu_seconds(lambda: made.update(verdicts.decide(reads, params)))
    spanning = cpu_seconds(lambda: find(reads, params))
    decided = made[f"verdicts/{UNIT}"].files[".parquet"].column("verdict").to_pylist()
    return sketching, deciding, spanning, [row for row, verdict in enumerate(decided) if verdict == DROP]


def theirs(name: str, corpus: list[str]) -> dict[str, Any] | None:
    """What a peer makes of a corpus; None where it is not there."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "texts.jsonl"
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in corpus), encoding="utf-8")
        return peer("peer_dedup.py", name, str(path))


def megabytes(corpus: list[str]) -> float:
    return sum(len(text.encode()) for text in corpus) / 1e6


def speeds(params: DedupParams) -> list[float]:
    """Print the figures of our own; CPU seconds a MB of the whole, by round."""
    corpus, timed = texts(TEXTS), Timed()
    size = megabytes(corpus)
    timed.seconds.clear()
    rounds = [ours(corpus, params) for _ in range(ROUNDS)]
    figure("dedup sketch", [size / one[0] for one in rounds], 150, "MB/cpu-s")
    figure("dedup whole", [size / (one[0] + one[1]) for one in rounds], 80, "MB/cpu-s")
    figure("dedup spans", [size / one[2] for one in rounds], 300, "MB/cpu-s")
    whole = sum(one[0] + one[1] for one in rounds)
    shares = {"sketches": sum(one[0] for one in rounds) / whole}
    shares |= {name: seconds / whole for name, seconds in timed.seconds.items()}
    for name, share in (shares | {"the rest": 1 - sum(shares.values())}).items():
        print(f"{'  of the whole, ' + name:44} {share:>14.1%}", file=sys.stderr)
    return [(one[0] + one[1]) / size for one in rounds]


def ratios(own: list[float]) -> None:
    """Print how many times the peers' seconds ours go into, by round."""
    few = texts(PEERS_TEXTS)
    for name, (version, goal) in PEERS.items():
        rounds = own[:1] if name == "datatrove" else own  # a minute each
        answers = [answer for answer in (theirs(name, few) for _ in rounds) if answer is not None]
        seconds = [answer["seconds"] / megabytes(few) for answer in answers]
        figure("dedup whole", [peers / mine for peers, mine in zip(seconds, own, strict=False)], goal, "x", version)


def quality(params: DedupParams) -> None:
    """Print recall, precision and speed of all on every corpus that has a truth."""
    made = texts(PEERS_TEXTS)
    corpora = [Corpus("made up", made, brute_force(made, THRESHOLD))]
    corpora += with_truth(Path(os.environ.get("GRISTMILL_CORPORA", "corpora")) / "dedup")
    recounted = {corpus.name: brute_force(corpus.texts, THRESHOLD) for corpus in corpora}
    gc.collect()
    gc.freeze()  # the peers are processes of their own: what the truth took is not to be looked through by ours
    print("\n| corpus | by | pairs | recall of pairs | precision of removals | removed | MB/cpu-s |", file=sys.stderr)
    print("| --- | --- | --- | --- | --- | --- | --- |", file=sys.stderr)
    for corpus in corpora:
        first = ours(corpus.texts, params)
        of = {"gristmill": (first[0] + first[1], first[3])}
        for name in PEERS:
            answer = theirs(name, corpus.texts)
            of |= {name: (answer["seconds"], answer["removed"])} if answer else {}
        near = sum(similarity >= THRESHOLD for similarity in corpus.pairs.values())
        for name, (seconds, removed) in of.items():
            recall, precision = judged(corpus, removed, THRESHOLD, recounted[corpus.name])
            speed = megabytes(corpus.texts) / seconds
            print(
                f"| {corpus.name} | {name} | {near} | {recall:.4f} | {precision:.4f} | {len(removed)} | {speed:.2f} |",
                file=sys.stderr,
            )
            if name == "gristmill":
                figure(f"dedup recall, {corpus.name}", [recall], 0.99, "of pairs")
                figure(f"dedup precision, {corpus.name}", [precision], 1.0, "of removals")


def main() -> None:
    """All figures."""
    recipe = yaml.safe_load((Path(__file__).parents[1] / "params.yaml").read_text(encoding="utf-8"))
    params = checked(DedupParams, "dedup", recipe["dedup"])
    versions = ", ".join(version for version, _ in PEERS.values())
    print(
        f"# python -m benchmarks dedup; {time.strftime('%Y-%m-%d')}; {platform.platform()}; {versions}", file=sys.stderr
    )
    ours([*texts(200), "\u5929\u5730" * 20], params)  # compiles, what text beyond ASCII wants too
    ratios(speeds(params))
    quality(params)


if __name__ == "__main__":
    main()
