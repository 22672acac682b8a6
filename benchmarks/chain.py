"""From files on disk to mixture.json through all nine steps, every cost in, beside DataTrove's own chain.

In: a corpus of benchmarks.chain_corpus (GRISTMILL_MEGABYTES of text, 300 by default). Out: megabytes of text a CPU
second of all processes with a tokenizer.json and with SentencePiece, the ratio of each to DataTrove on a sample of the
same documents (benchmarks/peer_chain.py says which stage of its answers to what; GRISTMILL_PEERS names its
environment), the share of each step and what a small build costs, memory, and what a second worker brings. A run is a
process of its own that has built a small project before, so that imports and compiled kernels are there.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import Any

from benchmarks.chain_corpus import SETS, choose, lay_chain
from benchmarks.figures import figure, peer
from benchmarks.measured_build import measured_build
from tasks.artifacts.tables import read_table
from tasks.pipeline import STEPS
from tasks.text.languages import MODEL, MODEL_PACKAGE

ROOT = Path(__file__).parent.parent
WARM_MEGABYTES, PEERS_MEGABYTES = 2, 3
BESIDE = ("normalize", "language", "lines", "merge")
"""Stages of DataTrove's chain that its shortest recipe would leave out; the ratio is told without them too."""
GOALS = {"json": ("tokenizer.json", 12, 100), "sentencepiece": ("SentencePiece", 6, 50)}


def main() -> None:
    """Print the figures; four minutes with 300 MB."""
    megabytes = float(os.environ.get("GRISTMILL_MEGABYTES", "300"))
    with tempfile.TemporaryDirectory() as folder:
        root, warm = Path(folder) / "corpus", Path(folder) / "warm"
        size = lay_chain(root, megabytes)
        lay_chain(warm, WARM_MEGABYTES)
        runs = {name: _run(root, name, 1) for name in GOALS}
        two = _run(root, "json", 2)
        theirs = _theirs(root)
    for name, (said, goal, times) in GOALS.items():
        speed = size / runs[name]["cpu"]
        figure(f"files to mixture.json, {said}", [speed], goal, "MB/cpu-s", f"{size:.0f} MB of text")
        _print_ratios(speed, times, theirs)
        for step, seconds in runs[name]["steps"].items():
            figure(f"  of it {step}", [100 * seconds / runs[name]["cpu"]], None, "%", f"{seconds:.1f} CPU s")
        fixed = runs[name]["fixed"]
        figure(
            "  a build of 2 MB", [100 * fixed / runs[name]["cpu"]], None, "%", f"{fixed:.1f} CPU s, nearly all fixed"
        )
        figure("  memory", [runs[name]["memory"]], None, "MB")
    figure("two workers, wall", [runs["json"]["wall"] / two["wall"]], None, "x", "one worker")
    figure("two workers, CPU", [two["cpu"] / runs["json"]["cpu"]], None, "x", "one worker", better="lower")
    if theirs:
        figure("datatrove's chain", [theirs["speed"]], None, "MB/cpu-s", f"a sample of {theirs['size']:.1f} MB")
        for stage, seconds in theirs["seconds"].items():
            figure(f"  of it {stage}", [100 * seconds / sum(theirs["seconds"].values())], None, "%", f"{seconds:.2f} s")
        figure("  memory", [theirs["memory"]], None, "MB")


def _print_ratios(speed: float, goal: float, theirs: dict[str, Any] | None) -> None:
    """To DataTrove's chain with all stages, and without those of BESIDE."""
    figure("  ratio", [speed / theirs["speed"]] if theirs else [], goal, "x", "datatrove 0.10.1, the same steps")
    if theirs:
        shorter = sum(seconds for stage, seconds in theirs["seconds"].items() if stage not in BESIDE)
        said = f"without its {', '.join(BESIDE)}"
        figure("  ratio of the shorter", [speed / (theirs["size"] / shorter)], None, "x", said)


def _run(root: Path, tokenizer: str, workers: int) -> dict[str, Any]:
    for project in (root, root.parent / "warm"):
        choose(project, tokenizer)
        shutil.rmtree(project / "data", ignore_errors=True)
    command = [sys.executable, "-m", "benchmarks.chain", str(root), str(workers)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _theirs(root: Path) -> dict[str, Any] | None:
    """DataTrove's chain over a sample of the corpus as ingest read it, spread over all parts."""
    paths = sorted((root / "data" / "ingest" / "documents").glob("*.parquet"))
    whole = sum(read_table(path, ["text"])["text"].nbytes for path in paths)
    step = max(1, round(whole / PEERS_MEGABYTES / 1e6))
    texts = [text for path in paths for text in read_table(path, ["text"])["text"].to_pylist()[::step]]
    with tempfile.TemporaryDirectory() as folder:
        documents, items = Path(folder) / "documents.jsonl", Path(folder) / "items.jsonl"
        documents.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
        records = (root / SETS / "qa.jsonl").read_text(encoding="utf-8").splitlines()
        wanted = [text for record in records for text in json.loads(record).values() if isinstance(text, str)]
        items.write_text("".join(json.dumps({"text": text}) + "\n" for text in wanted), encoding="utf-8")
        found = peer(
            "peer_chain.py", str(documents), str(items), str(root / "tokenizer.json"), str(files(MODEL_PACKAGE) / MODEL)
        )
    if found is None:
        return None
    size = sum(len(text.encode()) for text in texts) / 1e6
    return found | {"size": size, "speed": size / sum(found["seconds"].values())}


if __name__ == "__main__":
    print(json.dumps(measured_build(Path(sys.argv[1]), STEPS, int(sys.argv[2]))))
