"""From files on disk to mixture.json through all nine steps, every cost in, beside DataTrove's own chain.

In: a corpus of benchmarks.chain_corpus (GRISTMILL_MEGABYTES of text, 300 by default). Out: megabytes of text a CPU
second of all processes with a tokenizer.json and with SentencePiece, the ratio of each to DataTrove on a sample of the
same documents (benchmarks/peer_chain.py says which stage of its answers to what; GRISTMILL_PEERS names its
environment), the share of each step and what a small build costs, memory, and what a second worker brings. Each of
three rounds runs all three in turn. A run is a process of its own that has built a small project before, so that
imports and compiled kernels are there.
"""

from __future__ import annotations

import json
import os
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
WARM_MEGABYTES, PEERS_MEGABYTES, ROUNDS = 2, 3, 3
BESIDE = ("normalize", "language", "lines", "merge")
"""Stages of DataTrove's chain that its shortest recipe would leave out; the ratio is told without them too."""
GOALS = {"json": ("tokenizer.json", 12, 100), "sentencepiece": ("SentencePiece", 6, 50)}


def main() -> None:
    """Print the figures; six minutes with 300 MB."""
    megabytes = float(os.environ.get("GRISTMILL_MEGABYTES", "300"))
    with tempfile.TemporaryDirectory() as folder:
        root, warm = Path(folder) / "corpus", Path(folder) / "warm"
        size = lay_chain(root, megabytes)
        lay_chain(warm, WARM_MEGABYTES)
        rounds = [({name: _run(root, name, 1) for name in GOALS}, _theirs(root)) for _ in range(ROUNDS)]
        two = _run(root, "json", 2)
    theirs = [found for _, found in rounds if found]
    for name, (said, goal, times) in GOALS.items():
        runs = [ours[name] for ours, _ in rounds]
        speeds = [size / run["cpu"] for run in runs]
        figure(f"files to mixture.json, {said}", speeds, goal, "MB/cpu-s", f"{size:.0f} MB of text")
        _print_ratios(speeds, times, theirs)
        _print_shares(_middle(runs, "cpu"))
    one = _middle([ours["json"] for ours, _ in rounds], "wall")
    figure("two workers, wall", [one["wall"] / two["wall"]], None, "x", "one worker")
    figure("two workers, CPU", [two["cpu"] / one["cpu"]], None, "x", "one worker", better="lower")
    if theirs:
        _print_theirs(_middle(theirs, "speed"))


def _middle(runs: list[dict[str, Any]], by: str) -> dict[str, Any]:
    """The run in the middle of them."""
    return sorted(runs, key=lambda run: run[by])[len(runs) // 2]


def _print_shares(run: dict[str, Any]) -> None:
    for step, seconds in run["steps"].items():
        figure(f"  of it {step}", [100 * seconds / run["cpu"]], None, "%", f"{seconds:.1f} CPU s")
    fixed = run["fixed"]
    figure("  a build of 2 MB", [100 * fixed / run["cpu"]], None, "%", f"{fixed:.1f} CPU s, nearly all fixed")
    figure("  memory", [run["memory"]], None, "MB")


def _print_theirs(found: dict[str, Any]) -> None:
    figure("datatrove's chain", [found["speed"]], None, "MB/cpu-s", f"a sample of {found['size']:.1f} MB")
    for stage, seconds in found["seconds"].items():
        figure(f"  of it {stage}", [100 * seconds / sum(found["seconds"].values())], None, "%", f"{seconds:.2f} s")
    figure("  memory", [found["memory"]], None, "MB")


def _print_ratios(speeds: list[float], goal: float, theirs: list[dict[str, Any]]) -> None:
    """Round by round to DataTrove's chain with all stages, and without those of BESIDE."""
    pairs = list(zip(speeds, theirs, strict=False))
    figure("  ratio", [ours / found["speed"] for ours, found in pairs], goal, "x", "datatrove 0.10.1, the same steps")
    shorter = [ours / (found["size"] / _seconds(found)) for ours, found in pairs]
    figure("  ratio of the shorter", shorter, None, "x", f"without its {', '.join(BESIDE)}")


def _seconds(found: dict[str, Any]) -> float:
    """Of DataTrove's chain without the stages of BESIDE."""
    return sum(seconds for stage, seconds in found["seconds"].items() if stage not in BESIDE)


def _run(root: Path, tokenizer: str, workers: int) -> dict[str, Any]:
    """One build from nothing: the digests of sources are forgotten too. What stood is put aside, since for five minutes
    after files were removed ext4 takes longer over each new one (it passes over their inodes)."""
    aside = Path(tempfile.mkdtemp(dir=root.parent))
    for project in (root, root.parent / "warm"):
        choose(project, tokenizer)
        for name in ("data", ".gristmill"):
            if (project / name).exists():
                (project / name).rename(aside / f"{project.name}-{name}")
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
