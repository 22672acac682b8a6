"""The tokenize step beside the bare libraries that its ids are those of: `python -m benchmarks tokens`.

Texts are those of samples/ and of Python's own library, or the .txt, .md and .py files below the folder that
GRISTMILL_TEXTS names, for two processes those of the libraries beside it too; no document is used twice. CPU seconds of
all threads, both in one run, alternating. The step is the folder's own function, with verdicts and cuts read, rows
keyed, ids checked and files written and digested.
"""

from __future__ import annotations

import hashlib
import os
import resource
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import sentencepiece

import tokenizers
from benchmarks.figures import figure
from tasks.artifacts.canonical import canonical, file_digest
from tasks.artifacts.tables import write_payload
from tasks.artifacts.tokens import TOKEN_ROWS
from tasks.artifacts.verdicts import CUTS, FILTER_CUTS
from tasks.encoder import SentencePiece
from tasks.engines import HuggingFace, open_model
from tasks.tokenize.tokenizer import facts
from tasks.tokenize.tokens import make
from tasks.tokenizer_training import Recipe, Seen, trained

ROOT = Path(__file__).parent.parent
TIMES, PAIRS, MEGABYTES, BARE_MEGABYTES, DOCUMENT, VOCABULARY = 3, 7, 32, 2, 6000, 32_000
PAIRED_MEGABYTES = 200
"""For two processes: 32 MB take a third of a second, and what a process learns anew is a fifth of that; builds are of
gigabytes."""
SUFFIXES = (".txt", ".md", ".py", ".rst")
JSON_OPTIONS = {"roles": {"eos": "<|end|>"}}


class Held:
    """One part in memory as the folder's function reads it."""

    def __init__(self, texts: list[str], spec: dict[str, Any], model: Path) -> None:
        self.name, self.spec, self._model = "web-0000000000000000", spec, model
        keep = pa.table({"verdict": pa.array(["keep"] * len(texts)), "rule": pa.nulls(len(texts), pa.string())})
        shas = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
        self._tables = {f"{step}/verdicts": keep for step in ("filter", "dedup", "decontaminate")}
        self._tables |= {"dedup/cuts": CUTS.empty_table(), "decontaminate/cuts": CUTS.empty_table()}
        self._tables["filter/cuts"] = FILTER_CUTS.empty_table()
        self._tables["normalize/text"] = pa.table({"text_sha": shas, "text": pa.array(texts, pa.large_string())})

    def table(self, folder: str, columns: list[str] | None = None, unit: str | None = None) -> pa.Table:
        held = self._tables[folder]
        return held if columns is None else held.select(columns)

    def path(self, folder: str, suffix: str = "", unit: str | None = None) -> Path:
        return self._model

    def previous(self) -> None:
        return None


def main() -> None:
    """Print every figure; about two minutes on a quiet core."""
    texts = _texts(MEGABYTES)
    with tempfile.TemporaryDirectory() as folder:
        _sentencepiece(texts, Path(folder))
        _tokenizer_json(texts, Path(folder))
        _two_cores(_texts(PAIRED_MEGABYTES, Path(sysconfig.get_path("purelib"))), Path(folder))


def _texts(megabytes: float, *more: Path) -> list[str]:
    """Documents of about DOCUMENT characters, none twice, every seventh, so that kinds of text are mixed. more: folders
    beside those that are there always."""
    named = os.environ.get("GRISTMILL_TEXTS")
    folders = [Path(named)] if named else [ROOT / "samples", Path(sysconfig.get_path("stdlib")), *more]
    paths = [path for folder in folders for path in sorted(folder.rglob("*")) if path.suffix in SUFFIXES]
    order = sorted(range(len(paths)), key=lambda at: (at % 7, at))
    documents: dict[str, None] = {}
    size = 0
    for at in order:
        text = paths[at].read_bytes()[: 1 << 22].decode("utf-8", "replace").replace("\r\n", "\n")
        for start in range(0, len(text), DOCUMENT):
            if documents.setdefault(text[start : start + DOCUMENT]) is None:
                size += len(text[start : start + DOCUMENT].encode())
        if size > megabytes * 1e6:
            break
    return list(documents)


def _size(texts: list[str]) -> float:
    return sum(len(text.encode()) for text in texts) / 1e6


def _cpu(work: Callable[[], Any]) -> float:
    """CPU seconds of all threads of this process."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    work()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _fresh(tokenizer: Any, model: Path) -> None:
    """The step's own tokenizer loaded, as it is once a process, but with no text seen."""
    open_model.cache_clear()
    known = facts(tokenizer)
    options = canonical(known["options"]).decode()
    opened: Any = open_model(str(model), known["sha256"], model.parent.name, known["engine"], options)
    opened._segmented  # noqa: B018 - builds its tables


def _step(texts: list[str], tokenizer: Any, model: Path, folder: Path) -> None:
    """The part made, written and digested."""
    spec = {"tokenizer": facts(tokenizer), "template": "plain", "bos_each": False}
    params = SimpleNamespace(min_characters=50, chat=SimpleNamespace(loss="all"))
    step: Any = (Held(texts, spec, model), params)
    made = make(*step)
    for suffix, payload in made.files.items():
        write_payload(folder / f"part{suffix}", payload, TOKEN_ROWS)
        file_digest(folder / f"part{suffix}")


def _compared(
    name: str, texts: list[str], tokenizer: Any, model: Path, bare: Callable[[list[str]], Any]
) -> list[float]:
    """The step's speed and its ratios to the bare library, which gets a share of the same texts."""
    some = texts[:: max(1, round(_size(texts) / BARE_MEGABYTES))]
    _step(texts[:40], tokenizer, model, model.parent)  # compiles, and loads what is loaded once
    ours, theirs = list[float](), list[float]()
    for _ in range(TIMES):
        theirs.append(_size(some) / _cpu(lambda: bare(some)))
        _fresh(tokenizer, model)
        ours.append(_size(texts) / _cpu(lambda: _step(texts, tokenizer, model, model.parent)))
    figure(f"{name}: the library alone", theirs, None, "MB/cpu-s")
    figure(f"{name}: the step, files and digests in", ours, None, "MB/cpu-s")
    return [fast / slow for fast, slow in zip(ours, theirs, strict=True)]


def _sentencepiece(texts: list[str], folder: Path) -> None:
    recipe = Recipe(
        model="bpe",
        vocab_size=VOCABULARY,
        character_coverage=0.9995,
        line_bytes_max=4192,
        sample_bytes=1 << 30,
        threads=1,
    )
    path = folder / "trained" / "tokenizer.model"
    path.parent.mkdir()
    path.write_bytes(trained("trained", texts[::8], recipe, Seen()))
    bare = sentencepiece.SentencePieceProcessor(model_proto=path.read_bytes())
    tokenizer = SentencePiece("trained", path.read_bytes())

    def alone(some: list[str]) -> Any:
        return bare.encode(some, out_type="numpy", num_threads=1)

    ratios = _compared("SentencePiece BPE", texts, tokenizer, path, alone)
    figure("SentencePiece BPE, ratio", ratios, 2.3, "x", "sentencepiece, encode alone")
    tokenizer.__dict__["_segmented"] = None
    whole = _whole(texts, tokenizer, alone)
    figure("SentencePiece BPE through the library, share", whole, 0.95, "of it", "sentencepiece, encode alone")


def _whole(texts: list[str], tokenizer: Any, bare: Callable[[list[str]], Any]) -> list[float]:
    """The step without segments: all that it does beside encoding."""
    from tasks.tokenize import tokens

    some, kept = texts[:: max(1, round(_size(texts) / BARE_MEGABYTES))], tokens.open_model
    shares = []
    try:
        tokens.open_model = lambda *given: tokenizer  # type: ignore[assignment]
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(TIMES):
                alone = _cpu(lambda: bare(some))
                shares.append(alone / _cpu(lambda: _step(some, tokenizer, Path(folder) / "none", Path(folder))))
    finally:
        tokens.open_model = kept
    return shares


def _tokenizer_json(texts: list[str], folder: Path) -> None:
    """A byte-level BPE as GPT-2's, trained on the same texts."""
    built = tokenizers.Tokenizer(tokenizers.models.BPE())
    built.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    built.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=["<|end|>"], initial_alphabet=alphabet, show_progress=False
    )
    built.train_from_iterator(texts[::8], trainer)
    path = folder / "json" / "tokenizer.json"
    path.parent.mkdir()
    path.write_text(built.to_str(), encoding="utf-8")
    tokenizer = HuggingFace("json", path.read_bytes(), JSON_OPTIONS)
    ratios = _compared("tokenizer.json", texts, tokenizer, path, lambda some: built.encode_batch(some))
    figure("tokenizer.json, ratio", ratios, 10, "x", "tokenizers, encode_batch")


def _two_cores(texts: list[str], folder: Path) -> None:
    """Seconds of one process with all texts and of two with half of them each: by the clock, and CPU seconds of the
    slower half, which other work on the machine does not touch."""
    listed = folder / "texts.parquet"
    write_payload(listed, pa.table({"text": pa.array(texts, pa.large_string())}), None)
    for name, said in (("trained", "SentencePiece BPE"), ("json", "tokenizer.json")):
        gains, spared = [], []
        for _ in range(PAIRS):  # three were seen to say 1.3 or 2.4 where seven say 2.0
            seconds = []
            for processes in (1, 2):
                command = [sys.executable, "-m", "benchmarks.tokens", str(folder), name, str(processes)]
                running = [
                    subprocess.Popen([*command, str(number)], stdout=subprocess.PIPE, text=True)
                    for number in range(processes)
                ]
                said_each = [[float(word) for word in one.communicate()[0].split()] for one in running]
                seconds.append([max(column) for column in zip(*said_each, strict=True)])
            gains.append(seconds[0][0] / seconds[1][0])
            spared.append(seconds[0][1] / seconds[1][1])
        against = f"one process, wall seconds after the start, {_size(texts):.0f} MB in all"
        figure(f"two processes, {said}", gains, 1.8, "x", against)
        figure("  by CPU seconds", spared, None, "x", "what a process learns anew, without other work's part")


def _half(folder: Path, name: str, processes: int, number: int) -> None:
    """What one of `processes` does in _two_cores; prints its wall and its CPU seconds."""
    from tasks.artifacts.tables import read_table

    texts = read_table(folder / "texts.parquet")["text"].to_pylist()[number::processes]
    model = folder / name / ("tokenizer.json" if name == "json" else "tokenizer.model")
    content = model.read_bytes()
    tokenizer: Any = HuggingFace(name, content, JSON_OPTIONS) if name == "json" else SentencePiece(name, content)
    own = folder / f"made-{name}-{processes}-{number}"
    own.mkdir(exist_ok=True)
    _step(texts[:40], tokenizer, model, own)
    _fresh(tokenizer, model)
    began, spent = time.perf_counter(), time.process_time()
    _step(texts, tokenizer, model, own)
    print(time.perf_counter() - began, time.process_time() - spent)


if __name__ == "__main__":
    _half(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
