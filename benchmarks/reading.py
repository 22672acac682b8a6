"""How well text is read, beside peers: `python -m benchmarks reading FOLDER`, or GRISTMILL_CORPORA names the folder.

The folder holds web/html/article-extraction-benchmark (pages and ground-truth.json), web/langid/udhr2 (a text a
language) and web/encodings. Prints the tables of docs/reading.md: undeclared encodings by length, main text of pages
against what people marked, languages of short texts. Peers: GRISTMILL_PEERS (benchmarks/requirements.txt).
"""

from __future__ import annotations

import gzip
import json
import os
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.figures import peer
from benchmarks.reading_corpus import KNOWN, legacy_samples, outcome
from tasks.text.html import main_text
from tasks.text.languages import detect_languages

CORPORA = Path(os.environ.get("GRISTMILL_CORPORA", "../shared/corpora"))
SIZES = (60, 300, 3000)
LENGTHS = (80, 300, 1000)


def main() -> None:
    """Print the three tables; two minutes, and one more with the peers."""
    if not CORPORA.is_dir():
        print(f"no folder {CORPORA}: GRISTMILL_CORPORA names one", file=sys.stderr)
        return
    _encodings(CORPORA / "web/langid/udhr2")
    _pages(CORPORA / "web/html/article-extraction-benchmark")
    _languages(CORPORA / "web/langid/udhr2")


def _encodings(folder: Path) -> None:
    print("| characters | samples | right | refused | wrong | CPU ms a sample |\n| --- | --- | --- | --- | --- | --- |")
    for size in SIZES:
        samples = list(legacy_samples(folder, size))
        began = time.process_time()
        found = Counter(map(outcome, samples))
        cost = (time.process_time() - began) / len(samples) * 1000
        shares = " | ".join(f"{100 * found[name] / len(samples):.1f} %" for name in ("right", "refused", "wrong"))
        print(f"| {size} | {len(samples)} | {shares} | {cost:.1f} |", flush=True)


def marked_pages(folder: Path) -> dict[str, tuple[str, str]]:
    """Name -> (HTML, the article as people marked it)."""
    marked = json.loads((folder / "ground-truth.json").read_text(encoding="utf-8"))
    names = sorted(name for name in marked if (folder / f"{name}.html.gz").exists())
    pages = {
        name: gzip.decompress((folder / f"{name}.html.gz").read_bytes()).decode("utf-8", "replace") for name in names
    }
    return {name: (page, marked[name]["articleBody"]) for name, page in pages.items()}


def agreement(found: str, wanted: str) -> tuple[float, float, float]:
    """(precision, recall, F1) of bags of words."""
    ours, theirs = Counter(re.findall(r"\w+", found)), Counter(re.findall(r"\w+", wanted))
    both = (ours & theirs).total()
    precision, recall = both / max(1, ours.total()), both / max(1, theirs.total())
    return precision, recall, 2 * both / max(1, ours.total() + theirs.total())


def _pages(folder: Path) -> None:
    pages = marked_pages(folder)
    size = sum(len(page.encode()) for page, _ in pages.values()) / 1e6
    print("\n| library | precision | recall | F1 | MB of HTML a CPU second |\n| --- | --- | --- | --- | --- |")
    main_text(next(iter(pages.values()))[0])
    began = time.process_time()
    ours = {name: main_text(page) for name, (page, _) in pages.items()}
    _row("Gristmill", ours, pages, size / (time.process_time() - began))
    with tempfile.TemporaryDirectory() as home:
        file = Path(home) / "pages.json"
        file.write_text(json.dumps({name: page for name, (page, _) in pages.items()}), encoding="utf-8")
        for library in ("trafilatura, precision", "trafilatura", "resiliparse"):
            answer = peer("peer_reading.py", library, str(file))
            if answer:
                _row(answer["library"], answer["texts"], pages, size / answer["seconds"])


def _row(library: str, texts: dict[str, str], pages: dict[str, tuple[str, str]], speed: float) -> None:
    scores = [agreement(texts[name], wanted) for name, (_, wanted) in pages.items()]
    means = " | ".join(f"{sum(score[part] for score in scores) / len(scores):.4f}" for part in range(3))
    print(f"| {library} | {means} | {speed:.1f} |", flush=True)


def language_samples(folder: Path, size: int, most: int = 10) -> list[tuple[str, str]]:
    """(language, text) of the languages that the model knows."""
    found = []
    for path in sorted(folder.glob("*.txt")):
        if (code := KNOWN.get(path.stem)) is not None:
            text = " ".join(path.read_text(encoding="utf-8").split())
            step = max(size, (len(text) - size) // most)
            found += [(code, text[at : at + size]) for at in range(0, max(1, len(text) - size), step)][:most]
    return found


def _ours(texts: list[str]) -> list[str]:
    return [str(code) for code in detect_languages(pa.array(texts), max(LENGTHS))[0].to_pylist()]


def _languages(folder: Path) -> None:
    print("\n| characters | library | languages | samples | right | MB a CPU second |\n" + "| --- " * 6 + "|")
    for size in LENGTHS:
        samples = language_samples(folder, size)
        answer = _peers_languages([text for _, text in samples])
        both = [code in (answer or {}).get("known", ()) for code, _ in samples]
        _ours(["warm"])
        began = time.process_time()
        ours = _ours([text for _, text in samples])
        speed = sum(len(text.encode()) for _, text in samples) / 1e6 / (time.process_time() - began)
        _told(size, "Gristmill (lid.176, compressed)", samples, ours, [True] * len(samples), speed)
        if answer:
            _told(size, "the same, languages that both know", samples, ours, both, speed)
            _told(size, answer["library"], samples, answer["codes"], both, answer["speed"])


def _told(size: int, library: str, samples: list[Any], found: list[str], counted: list[bool], speed: float) -> None:
    pairs = [(code, one) for (code, _), one, counts in zip(samples, found, counted, strict=True) if counts]
    right = 100 * sum(code == one for code, one in pairs) / len(pairs)
    print(
        f"| {size} | {library} | {len({code for code, _ in pairs})} | {len(pairs)} | {right:.1f} % | {speed:.1f} |",
        flush=True,
    )


def _peers_languages(texts: list[str]) -> dict[str, Any] | None:
    with tempfile.TemporaryDirectory() as home:
        file = Path(home) / "texts.json"
        file.write_text(json.dumps(texts), encoding="utf-8")
        return peer("peer_reading.py", "py3langid", str(file))
