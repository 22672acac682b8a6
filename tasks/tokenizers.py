"""Tokenizers as inputs: tokenizers/<name>/ with a model and card.json. Making one, checking one, naming one.

In: texts and a recipe, or a model made elsewhere. Out: a folder. A tokenizer is pinned by the digest of its
model and is never made again because data changed. It does not encode a corpus (tasks.encoder,
tasks.tokenize).

card.json:
{
  "format": 1,
  "name": "demo",
  "engine": "sentencepiece",  or tokenizers (tokenizer.json), tiktoken (ranks.tiktoken); absent: sentencepiece
  "options": {},              what the engine needs beside its file, see tasks.engines
  "sha256": 64 hex,           of tokenizer.model, or the file of the other engines
  "vocab_size": 4096,         pieces, control pieces included
  "special": {"eos": {"id": 2, "piece": "</s>"}, ...},   null for one that the model lacks
  "library": {"sentencepiece": "0.2.3"},                 that made the card
  "probe": {"text": ..., "ids": [...]},                  what it does to a fixed text
  "recipe": {...},            how it was trained; null for one made elsewhere
  "seen": {"texts", "characters", "bytes", "lines", "lines_cut", "sha256"}   what it was trained on; or null
}
`seen.sha256` is over the texts in order, each as its length in bytes (8 bytes, little-endian) and its UTF-8.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tasks.artifacts.canonical import canonical, pretty
from tasks.encoder import PROBE, Tokenizer, absent, probe_ids
from tasks.engines import ENGINES, make_engine, open_model
from tasks.errors import ParamsError, TokenizerError
from tasks.tokenizer_training import Recipe, Seen, trained

FOLDER, CARD = "tokenizers", "card.json"
FORMAT = 1
NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
SPECIAL = ("unk", "bos", "eos", "pad")
CARD_KEYS = {"format": int, "sha256": str, "vocab_size": int, "special": dict, "library": dict, "probe": dict}


def train(name: str, texts: Iterable[str], recipe: Recipe, root: Path) -> dict[str, Any]:
    """Train a SentencePiece model on `texts` and lay root/tokenizers/<name>; gives back its card.

    The bytes of the model are a function of texts and recipe. Lossless by construction: no normalization,
    byte pieces for what has none, newline and tab as pieces of their own, runs of spaces as pieces. Ids: unk
    0, bos 1, eos 2, pad 3. Raises TokenizerError where the folder is there already, the texts are empty or
    the trainer refuses.
    """
    _free(name, root)
    seen = Seen()
    model = trained(name, texts, recipe, seen)
    return _lay(name, model, root, recipe.model_dump(mode="json"), seen.card())


def adopt(
    name: str, model: Path, root: Path, engine: str = "sentencepiece", options: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Lay root/tokenizers/<name> from a model made elsewhere; gives back its card. options: see tasks.engines."""
    _free(name, root)
    if not model.is_file():
        raise TokenizerError(f"{model} is not there", "name a model, a tokenizer.json or the ranks of tiktoken")
    return _lay(name, model.read_bytes(), root, None, None, engine, options or {})


def load(folder: Path) -> Tokenizer:
    """The tokenizer in `folder`, held against its card: digest, vocabulary, special pieces and the probe's
    ids.

    Raises TokenizerError where it is absent, or naming what differs with both values.
    """
    card = read_card(folder)
    engine, options = card.get("engine", "sentencepiece"), canonical(card.get("options", {})).decode()
    path = folder / ENGINES.get(engine, ENGINES["sentencepiece"])[0]
    tokenizer = open_model(str(path), card["sha256"], folder.name, engine, options)
    for what, expected, found in _compared(card, tokenizer):
        if expected != found:
            raise TokenizerError(
                f"tokenizers/{folder.name}: {what} is {expected} in its card, but {found} in its model",
                "restore both files, or the version of the library that made the card: " + json.dumps(card["library"]),
            )
    return tokenizer


def read_card(folder: Path) -> dict[str, Any]:
    """card.json as plain data; raises TokenizerError where it, or the folder, is absent or unreadable."""
    if not (folder / CARD).is_file():
        raise absent(folder.name)
    try:
        card = json.loads((folder / CARD).read_text(encoding="utf-8"))
    except ValueError as error:
        raise TokenizerError(f"tokenizers/{folder.name}/{CARD} is no card: {error}", "restore it") from None
    card = card if isinstance(card, dict) else {}
    wrong = [key for key, kind in CARD_KEYS.items() if not isinstance(card.get(key), kind)]
    if wrong or card["format"] != FORMAT:
        raise TokenizerError(
            f"tokenizers/{folder.name}/{CARD} has format {card.get('format')}, known is {FORMAT};"
            f" absent or of a wrong type: {', '.join(wrong) or 'nothing'}",
            "restore it",
        )
    return card


def _free(name: str, root: Path) -> None:
    if not NAME.fullmatch(name):
        raise ParamsError(f"{name!r} is no name for a tokenizer", "use a to z, 0 to 9, and . _ - after the first")
    if (root / FOLDER / name).exists():
        raise TokenizerError(f"tokenizers/{name} is there already", "choose another name, or remove it by hand")


def _lay(
    name: str, model: bytes, root: Path, recipe: Any, seen: Any, engine: str = "sentencepiece", options: Any = None
) -> dict[str, Any]:
    """Write the folder beside its place and rename it, so that it is there whole or not at all."""
    tokenizer = make_engine(engine, name, model, options or {})
    card = {"format": FORMAT, "name": name, "library": {engine: tokenizer.version}}
    if engine != "sentencepiece":
        card |= {"engine": engine, "options": options}
    card |= _facts(tokenizer) | {"probe": {"text": PROBE, "ids": probe_ids(tokenizer)}}
    card |= {"recipe": recipe, "seen": seen}
    partial = root / FOLDER / f".{name}.{os.getpid()}"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    (partial / ENGINES[engine][0]).write_bytes(model)
    (partial / CARD).write_text(pretty(card), encoding="utf-8")
    partial.rename(root / FOLDER / name)
    return card


def _facts(tokenizer: Tokenizer) -> dict[str, Any]:
    special = {word: _special(tokenizer, word) for word in SPECIAL}
    return {"sha256": tokenizer.sha256, "vocab_size": tokenizer.vocab_size, "special": special}


def _special(tokenizer: Tokenizer, word: str) -> dict[str, Any] | None:
    number: int = getattr(tokenizer, f"{word}_id")
    return {"id": number, "piece": tokenizer.piece(number)} if number >= 0 else None


def _compared(card: dict[str, Any], tokenizer: Tokenizer) -> Iterator[tuple[str, Any, Any]]:
    """(what, in the card, in the model) of all that must agree."""
    facts = _facts(tokenizer)
    yield "vocab_size", card["vocab_size"], facts["vocab_size"]
    for word in SPECIAL:
        yield word, card["special"].get(word), facts["special"][word]
    yield "the probe's ids", card["probe"].get("ids"), probe_ids(tokenizer)
