"""Documents out of a text file, a JSON Lines file or rows of a dataset, a little at a time.

In: a path, or rows (mappings; a datasets.Dataset is one). Out: pieces of documents, each with whether it ends its
document. Memory holds one block or one line. It cleans, drops and repairs nothing: what cannot be read is an
error that names the place, since a run that trains on less than it was given should not look well. The pipeline
(`gristmill build`) is for texts that need more.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

BLOCK_BYTES = 1 << 20
LINE_BYTES_MAX = 64 << 20
"""A longer line of JSON is refused: it would have to be held whole."""

FIELDS = ("text", "content")
PAIR = ("instruction", "input", "output")
SUFFIXES = {".txt": "text", ".jsonl": "lines", ".ndjson": "lines"}

SURROGATE = re.compile("[\ud800-\udfff]")

Piece = tuple[str, bool]


class TextsError(ValueError):
    """A file or row that holds no text that can be read; names the place and the mend."""


def pieces(source: Path | str | Iterable[Any]) -> Iterator[Piece]:
    """(text, whether its document ends here), in order. A .txt is one document, cut at line ends into blocks of
    about a mebibyte; a line of .jsonl, or a row, is one. Documents without a character are left out.

    Raises TextsError for another suffix, text that is no UTF-8, a line that is no JSON object, and a row without
    text; FileNotFoundError for no file.
    """
    if not isinstance(source, (str, Path)):
        return _of_rows(source)
    path = Path(source)
    kind = SUFFIXES.get(path.suffix.lower())
    if kind is None:
        raise TextsError(f"{path} is neither {', '.join(SUFFIXES)}; rename it, or pass rows with a text field")
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there; name a .txt or .jsonl file")
    return _of_text(path) if kind == "text" else _of_lines(path)


def text_of(row: Any, place: str) -> str:
    """The text of a row: `text`, else `content`, else instruction, input and output on lines of their own.

    The first of them that is text decides, be it empty. Raises TextsError naming `place`.
    """
    if not isinstance(row, Mapping):
        raise TextsError(f"{place} is a {type(row).__name__}, not an object with a text; mend it")
    texts = {name: row[name] for name in (*FIELDS, *PAIR) if isinstance(row.get(name), str)}
    for name in FIELDS:
        if name in texts:
            return _sound(texts[name], place)
    if "instruction" in texts and "output" in texts:
        return _sound("\n".join(texts[name] for name in PAIR if texts.get(name)), place)
    held = {name: type(row[name]).__name__ for name in sorted(map(str, row)) if name in row}
    raise TextsError(f"{place} has no text, content or instruction and output that are text; it has {held}")


def _sound(text: str, place: str) -> str:
    if found := SURROGATE.search(text):
        raise TextsError(f"{place} has half a surrogate pair at character {found.start()}; mend its escapes")
    return text


def _of_rows(rows: Iterable[Any]) -> Iterator[Piece]:
    for number, row in enumerate(rows):
        text = text_of({"text": row} if isinstance(row, str) else row, f"row {number}")
        if text:
            yield text, True


def _of_lines(path: Path) -> Iterator[Piece]:
    with path.open("rb") as file:
        number = 0
        while line := file.readline(LINE_BYTES_MAX + 1):
            number += 1
            place = f"{path}:{number}"
            if len(line) > LINE_BYTES_MAX:
                raise TextsError(f"{place} is longer than {LINE_BYTES_MAX} bytes; split the record")
            line = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
            if line.strip() and (text := text_of(_parsed(line, place), place)):
                yield text, True


def _parsed(line: bytes, place: str) -> Any:
    try:
        return json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError) as problem:
        raise TextsError(f"{place} is no JSON in UTF-8: {problem}; mend or remove the line") from problem


def _of_text(path: Path) -> Iterator[Piece]:
    """Each block but the last ends after a line feed, or without one in it, after a blank, or where it is full."""
    held, begun = "", False
    for text in _decoded(path):
        held += text
        if len(held) >= BLOCK_BYTES:
            cut = max(held.rfind("\n"), 0) or max(held.rfind(" "), 0) or len(held) - 1
            yield held[: cut + 1], False
            held, begun = held[cut + 1 :], True
    if held or begun:
        yield held, True


def _decoded(path: Path) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8-sig")("strict")
    done = 0
    with path.open("rb") as file:
        while True:
            block = file.read(BLOCK_BYTES)
            behind = len(decoder.getstate()[0])
            try:
                yield decoder.decode(block, final=not block)
            except UnicodeDecodeError as problem:
                at = done - behind + problem.start
                raise TextsError(f"{path} is no UTF-8 at byte {at}: {problem.reason}; convert it") from problem
            if not block:
                return
            done += len(block)
