"""A corpus for the whole chain, and two tokenizers of its text.

In: a size; GRISTMILL_CORPORA may name a folder of real texts, whose books/ and papers/ are copied as they are. Out: a
project of sources web (benchmarks.text_corpus, in Parquet), code (programs of the installed distributions, a file
each) and those; the same at every call on one machine.
"""

from __future__ import annotations

import json
import os
import shutil
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import tokenizers
from benchmarks.text_corpus import ROOT, lay_project
from tasks.tokenizer_training import Recipe
from tasks.tokenizers import adopt, train

VOCABULARY, TRAINING_BYTES, CODE_SHARE = 50_000, 6_000_000, 0.3
LARGEST_FILE = 1 << 20
EOS = "<|end|>"
KINDS = {"books": "book", "papers": "paper"}
SUFFIXES = (".txt", ".md", ".rst", ".tex")
SETS = "samples/evaluation"


def lay_chain(root: Path, megabytes: float) -> float:
    """A project below `root` of about so much text, with its tokenizers; returns the megabytes of files' text."""
    real, code = _real_texts(megabytes), CODE_SHARE * megabytes
    size = lay_project(root, megabytes - code - _size(real.values()))
    for target, path in real.items():
        (root / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, root / target)
    size += _copy_programs(root / "code", code) + _size(real.values())
    shutil.copytree(ROOT / SETS, root / SETS)
    _write_params(root, sorted({target.parts[0] for target in real}))
    texts = list(_training_texts(root))
    _train_sentencepiece(root, texts)
    _train_json(root, texts)
    return size


def choose(root: Path, tokenizer: str) -> None:
    """Put a tokenizer's name into the recipe."""
    recipe = json.loads((root / "params.yaml").read_text(encoding="utf-8"))
    recipe["tokenize"]["tokenizer"] = tokenizer
    (root / "params.yaml").write_text(json.dumps(recipe), encoding="utf-8")


def _real_texts(megabytes: float) -> dict[Path, Path]:
    """Place in the project -> file, of the folders of real texts; none where they would fill half of a small corpus."""
    home = Path(os.environ.get("GRISTMILL_CORPORA", "none"))
    paths = [path for name in KINDS for path in sorted((home / name).rglob("*")) if path.suffix in SUFFIXES]
    return {path.relative_to(home): path for path in paths} if _size(paths) < megabytes / 2 else {}


def _size(paths: Iterable[Path]) -> float:
    return sum(path.stat().st_size for path in paths) / 1e6


def _copy_programs(folder: Path, megabytes: float) -> float:
    """Copies of installed programs, every seventh by turns so that distributions mix; returns their size."""
    home, left = Path(sysconfig.get_path("purelib")), megabytes * 1e6
    paths = sorted(path for path in home.rglob("*.py") if 0 < path.stat().st_size <= LARGEST_FILE)
    for at in sorted(range(len(paths)), key=lambda at: (at % 7, at)):
        if left <= 0:
            break
        target = folder / paths[at].relative_to(home)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(paths[at], target)
        left -= paths[at].stat().st_size
    return megabytes - left / 1e6


def _write_params(root: Path, others: list[str]) -> None:
    """Rule sets of web text as DataTrove's filters have them, sequences of 2,048, sources by their size."""
    recipe: dict[str, Any] = json.loads((root / "params.yaml").read_text(encoding="utf-8"))
    sources = {"code": "code"} | {name: KINDS[name] for name in others}
    recipe["ingest"]["sources"] += [{"name": name, "kind": kind, "path": name} for name, kind in sources.items()]
    recipe["filter"]["rules"] = [{"set": name, "kinds": ["web"]} for name in ("gopher-1", "c4-1", "fineweb-1")]
    recipe["pack"]["tokens_per_sequence"] = 2048
    recipe["mix"]["stages"] = [{"start": 0, "weights": "proportional"}]
    (root / "params.yaml").write_text(json.dumps(recipe), encoding="utf-8")


def _training_texts(root: Path) -> Iterator[str]:
    """Texts of web and code in turn, about TRAINING_BYTES."""
    web = (text for path in sorted((root / "texts").glob("*.parquet")) for text in _column(path))
    programs = (path.read_text(encoding="utf-8", errors="replace") for path in sorted((root / "code").rglob("*.py")))
    left = TRAINING_BYTES
    for pair in zip(web, programs, strict=False):
        for text in pair:
            yield text
            left -= len(text.encode())
        if left <= 0:
            return


def _column(path: Path) -> list[str]:
    texts: list[str] = pq.read_table(path, columns=["text"])["text"].to_pylist()
    return texts


def _train_sentencepiece(root: Path, texts: list[str]) -> None:
    recipe = Recipe(
        model="bpe",
        vocab_size=VOCABULARY,
        character_coverage=0.9995,
        line_bytes_max=4192,
        sample_bytes=TRAINING_BYTES,
        threads=1,
    )
    train("sentencepiece", texts, recipe, root)


def _train_json(root: Path, texts: list[str]) -> None:
    """A byte-level BPE as GPT-2's."""
    built = tokenizers.Tokenizer(tokenizers.models.BPE())
    built.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    built.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=[EOS], initial_alphabet=alphabet, show_progress=False
    )
    built.train_from_iterator(texts, trainer)
    path = root / "tokenizer.json"
    path.write_text(built.to_str(), encoding="utf-8")
    adopt("json", path, root, "tokenizers", {"roles": {"eos": EOS}})
