"""The contamination scan against 10,000 items, beside DataTrove's n-gram filter: CPU seconds of one run, alternating.

In: the .txt files below the folder that GRISTMILL_TEXTS names, else those of samples/, in documents of about 3,000
characters; Chinese and code likewise below GRISTMILL_CORPORA (books/zh, code), where it is set. Out: figures, one JSON
line each. Items are passages of 20 to 60 words that no document holds, but for one in a hundred, which is planted in a
document.
"""

from __future__ import annotations

import codecs
import json
import os
import random
import tempfile
from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path

from benchmarks.decontaminate_recall import Corpus, found_in, lines_of, recipe
from benchmarks.figures import cpu_seconds, figure, peer
from tasks.decontaminate.matches import match

ROOT = Path(__file__).parents[1]
ITEMS, ROUNDS, DOCUMENT, MEGABYTES, PEER_MEGABYTES = 10_000, 3, 3000, 12, 0.6


def documents(paths: Sequence[Path], megabytes: float) -> list[str]:
    """Documents of the files' texts, repeated to that size."""
    texts = [text for path in paths for text in _texts_of(path)]
    pieces = [text[at : at + DOCUMENT] for text in texts for at in range(0, len(text), DOCUMENT)]
    size = sum(len(piece.encode()) for piece in pieces) / len(pieces)
    return list(islice(cycle(pieces), max(10, round(megabytes * 1e6 / size))))


def _texts_of(path: Path) -> list[str]:
    if path.suffix == ".jsonl":
        return [line["content"] for line in lines_of(path)]
    try:  # a character cut at the end is left out
        return [codecs.getincrementaldecoder("utf-8")().decode(path.read_bytes()[: 1 << 20])]
    except UnicodeDecodeError:
        return []


def items_like(texts: list[str], chinese: bool) -> list[str]:
    """ITEMS passages in shuffled words of the texts: the same vocabulary, other n-grams."""
    rng = random.Random(1)
    words = [word for text in texts[:200] for word in (text if chinese else text.split()) if word.strip()]
    return [("" if chinese else " ").join(rng.choices(words, k=rng.randint(20, 60))) for _ in range(ITEMS)]


def planted(texts: list[str], items: list[str]) -> list[str]:
    """The texts, and in each of the first an item after a third of it."""
    marked = list(texts)
    for number in range(0, min(len(texts), len(items)), 100):
        text = texts[number]
        marked[number] = f"{text[: len(text) // 3]} {items[number]} {text[len(text) // 3 :]}"
    return marked


def written(texts: list[str], path: Path) -> Path:
    path.write_text("".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts), encoding="utf-8")
    return path


def scan(name: str, texts: list[str], chinese: bool, folder: Path) -> tuple[list[float], list[str]]:
    """Print MB a CPU second and the share of planted items found; (CPU seconds a MB by round, the items)."""
    items = items_like(texts, chinese)
    marked = planted(texts, items)
    corpus, size = Corpus(marked, {"items": written(items, folder / "items.jsonl")}), sum(map(_bytes, marked)) / 1e6
    lines = found_in(corpus)  # builds the index, which a process does once
    params = recipe()
    rounds = [cpu_seconds(lambda: match(corpus, params)) / size for _ in range(ROUNDS)]  # type: ignore[arg-type]
    figure(f"contamination scan, {name}", [1 / seconds for seconds in rounds], 120, "MB/cpu-s", f"{ITEMS} items")
    wanted = {(number, f"{number + 1}:text") for number in range(0, min(len(texts), ITEMS), 100)}
    found = {(line["row"], line["item"]) for line in lines}
    figure(f"planted items found, {name}", [len(wanted & found) / len(wanted)], 1.0, "of planted")
    return rounds, items


def _bytes(text: str) -> int:
    return len(text.encode())


def main() -> None:
    """All figures; half a minute, and a minute with the peer."""
    named = os.environ.get("GRISTMILL_TEXTS")
    english = sorted(Path(named).rglob("*.txt")) if named else sorted((ROOT / "samples" / "prose").rglob("*.txt"))
    with tempfile.TemporaryDirectory() as at:
        folder = Path(at)
        texts = documents(english, MEGABYTES)
        own, items = scan("English", texts, False, folder)
        few = planted(documents(english, PEER_MEGABYTES), items)
        paths = str(written(items, folder / "items.jsonl")), str(written(few, folder / "few.jsonl"))
        answers = [answer for answer in (peer("peer_decontaminate.py", *paths) for _ in own) if answer is not None]
        seconds = [answer["seconds"] / (sum(map(_bytes, few)) / 1e6) for answer in answers]
        ratios = [theirs / mine for theirs, mine in zip(seconds, own, strict=False)]
        figure("contamination scan", ratios, 100, "x", "datatrove 0.10.1")
        corpora = os.environ.get("GRISTMILL_CORPORA")
        for name, pattern in (("Chinese", "books/zh/**/*.txt"), ("code", "code/*.jsonl")) if corpora else ():
            paths_of = sorted(Path(str(corpora)).glob(pattern))
            scan(name, documents(paths_of, MEGABYTES), name == "Chinese", folder)


if __name__ == "__main__":
    main()
