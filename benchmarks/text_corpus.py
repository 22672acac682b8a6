"""Texts for benchmarks of the text steps, the same at every call, made of the sentences of samples/prose.

In: languages and a size, or the .txt files below the folder that GRISTMILL_TEXTS names. Out: documents of whole
paragraphs, about 3,000 characters each; or a corpus of Parquet files with no document twice.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import unicodedata
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

ROOT = Path(__file__).parent.parent
DOCUMENT = 3000
ENGLISH, MIXED = ("english",), ("chinese", "english", "french", "german", "spanish")
WORD = re.compile(r"[a-zA-Z\u00c0-\u024f'’]+|[\u4e00-\u9fff]|[^a-zA-Z\u00c0-\u024f\u4e00-\u9fff]+")
PARAGRAPH, FILE_BYTES = 5, 20e6  # sentences of a paragraph; text of a Parquet file


def prose(languages: tuple[str, ...], megabytes: float) -> list[str]:
    """Documents as they stand in clean UTF-8, from the languages by turns, repeated up to the size."""
    known = [list(_documents(_texts(language))) for language in languages]
    found, size = list[str](), 0
    for turn in cycle(range(max(map(len, known)) * len(known))):
        documents = known[turn % len(known)]
        found.append(documents[turn // len(known) % len(documents)])
        size += len(found[-1].encode())
        if size >= megabytes * 1e6 and len(found) >= 10:
            return found
    return found


def hard(megabytes: float) -> list[str]:
    """The mixed ones as the worst sources hold them: decomposed accents, ligatures, numbers in circles, zero-width
    spaces, double blanks, tabs, and line ends of two characters."""
    changes = (("fi", "ﬁ"), (". ", ".  "), ("\n", "\r\n"), (", ", ",\t"), ("e ", "e\u200b "), ("1", "①"))
    made = []
    for text in prose(MIXED, megabytes):
        changed = unicodedata.normalize("NFD", text)
        for old, new in changes:
            changed = changed.replace(old, new)
        made.append(changed)
    return made


def lay_project(root: Path, megabytes: float) -> float:
    """A project of one source of Parquet files with so much text, on this repository's recipe with parts of 16 MiB;
    returns the megabytes of text. Every document is another, of 300 to 20,000 characters, 3,000 in the mean."""
    shutil.rmtree(root, ignore_errors=True)
    (root / "texts").mkdir(parents=True)
    shutil.copytree(ROOT / "expectations", root / "expectations")
    recipe = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    recipe["ingest"] |= {
        "sources": [{"name": "web", "kind": "web", "path": "texts"}],
        "part_bytes": 16 << 20,
        "part_bytes_max": 64 << 20,
        "small_file_bytes": 1 << 20,
    }
    (root / "params.yaml").write_text(json.dumps(recipe), encoding="utf-8")
    size, documents, left = 0.0, _unlike(), megabytes
    while left > 0:
        texts, bytes_here = list[str](), 0
        while bytes_here < min(left * 1e6, FILE_BYTES):
            texts.append(next(documents))
            bytes_here += len(texts[-1].encode())
        table = pa.table({"text": texts, "url": [f"https://example.org/{size:.6f}/{at}" for at in range(len(texts))]})
        pq.write_table(table, root / "texts" / f"{size:012.6f}.parquet", compression="zstd")
        size, left = size + bytes_here / 1e6, left - bytes_here / 1e6
    return size


def _unlike() -> Iterator[str]:
    """Documents of sentences drawn by chance, four in five English; every second word of them is another one of the
    language, so that they compress about as prose does."""
    chance = random.Random(1)
    sentences = {language: _sentences(language) for language in MIXED}
    words = {
        name: [word for text in said for word in WORD.findall(text) if word[0].isalpha()]
        for name, said in sentences.items()
    }
    while True:
        language = "english" if chance.random() < 0.8 else chance.choice(MIXED)
        length, said = min(20_000, max(300, int(chance.lognormvariate(7.6, 0.9)))), list[str]()
        between = "" if language == "chinese" else " "
        while length > 0:
            picked = between.join(chance.choices(sentences[language], k=PARAGRAPH))
            said.append("".join(_another(chance, words[language], word) for word in WORD.findall(picked)))
            length -= len(said[-1])
        yield "\n\n".join(said)


def _another(chance: random.Random, words: list[str], word: str) -> str:
    return word if not word[0].isalpha() or chance.random() < 0.5 else words[int(chance.random() * len(words))]


def _sentences(language: str) -> list[str]:
    text = " ".join(" ".join(_texts(language)).split())
    return [sentence for sentence in re.split(r"(?<=[.!?]) |(?<=[。！？])", text) if len(sentence) > 8]


def _texts(language: str) -> list[str]:
    named = os.environ.get("GRISTMILL_TEXTS")
    folder = Path(named) if named else ROOT / "samples" / "prose" / language
    paths: list[Any] = sorted(path for path in folder.rglob("*") if path.suffix in (".txt", ".md"))
    return [path.read_bytes()[: 1 << 20].decode("utf-8", "replace").replace("\r\n", "\n") for path in paths]


def _documents(texts: list[str]) -> Iterator[str]:
    for text in texts:
        held, characters = list[str](), 0
        for paragraph in filter(None, map(str.strip, text.split("\n\n"))):
            held.append(paragraph)
            characters += len(paragraph)
            if characters >= DOCUMENT:
                yield "\n\n".join(held)
                held, characters = [], 0
        if held:
            yield "\n\n".join(held)
