"""A stream of JSON that is not one record a line, as one that is.

In: the bytes of a JSON array, or of objects that go over several lines. Out: the same bytes with one value a line: line
feeds outside of strings become carriage returns, which JSON takes for white space (in a string neither may stand, so
such a record is rejected as it was). It holds a block at a time, whatever the size of a value, and checks the array's
own brackets and commas; the values are checked where they are parsed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

BLANKS = b" \t\r\n"
_OUTSIDE = re.compile(rb'["\[\]{},]')
_INSIDE = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
_OPEN = (b",", b"{", b"[")


def shape_of(head: bytes, whole: bool, named_json: bool) -> str:
    """lines: a value a line; array: one array of records; values: records over several lines.

    head: the stream's first bytes; whole: there are no more; named_json: the file's name ends with .json, so that an
    array on one line holds records (in .jsonl it is a record: a list of messages).
    """
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip(BLANKS)
    first, line_end, rest = text.partition(b"\n")
    first, kind = first.rstrip(BLANKS), {b"[": "array", b"{": "values"}.get(text[:1], "lines")
    if named_json and kind == "array":
        several = line_end and rest.lstrip(BLANKS).startswith(b"[") and _is_value(first)
        return "lines" if several else "array"
    if named_json and kind == "values" and (line_end or whole):
        return "lines" if _is_value(first) else "values"
    return kind if kind != "lines" and line_end and first.endswith(_OPEN) else "lines"


def one_a_line(stream: Iterator[bytes], shape: str) -> Iterator[bytes]:
    """The stream's values, one a line; shape: array or values. Raises OSError where the array ends early or late."""
    yield from _Splitter(shape == "array").split(stream)


def _is_value(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


class _Splitter:
    """depth: brackets open; an array's own counts. state: before, inside and after an array."""

    def __init__(self, array: bool) -> None:
        self._array, self._depth, self._in_string, self._state = array, 0, False, "before"
        self._empty, self._carried, self._items = True, b"", 0

    def split(self, stream: Iterator[bytes]) -> Iterator[bytes]:
        first = True
        for block in stream:
            block = self._carried + (block.removeprefix(b"\xef\xbb\xbf") if first else block)
            self._carried, first = b"", False
            yield b"".join(self._pieces(block.replace(b"\n", b"\r")))
        if self._depth or self._in_string or (self._array and self._state != "after"):
            raise OSError("it ends inside of its JSON, as a file does that was cut off")

    def _pieces(self, block: bytes) -> Iterator[bytes]:
        begin = at = 0
        while at < len(block):
            if self._in_string:
                at = self._through_string(block, at)
                continue
            found = _OUTSIDE.search(block, at)
            if found is None:
                break
            at = found.end()
            if cut := self._seen(block[found.start() : at]):
                stop = at if cut == "after" else found.start()
                yield from self._piece(block[begin:stop])
                begin = at
                if self._array or cut == "after":
                    yield self._ended()
        yield from self._piece(block[begin : len(block) - len(self._carried)])

    def _through_string(self, block: bytes, at: int) -> int:
        """Where the string that holds `at` ends in the block; a backslash at its end waits for the next one."""
        inside = _INSIDE.match(block, at)
        at = inside.end() if inside else at
        if block[at : at + 1] == b'"':
            self._in_string = False
        elif at < len(block):
            self._carried = block[at:]
            return len(block)
        return at + 1

    def _seen(self, mark: bytes) -> str:
        """What a mark outside of strings means: "before" cuts in front of it, "after" behind it, "" not at all."""
        if mark == b'"':
            self._in_string = True
        elif mark in (b"[", b"{"):
            self._depth += 1
            if self._array and self._depth == 1:
                return "before" if self._opens(mark) else ""
        elif mark in (b"]", b"}"):
            self._depth -= 1
            if self._depth < 0:
                raise OSError(f"a {mark.decode()} closes nothing")
            if self._depth == 0:
                return "before" if self._array else "after"
        elif self._array and self._depth == 1:
            return "before"
        return ""

    def _opens(self, mark: bytes) -> bool:
        if mark != b"[" or self._state != "before":
            raise OSError("something stands beside its one array of records")
        return True

    def _ended(self) -> bytes:
        """What stands at a cut: the end of a line, after an item of the array."""
        if not self._array:
            self._empty = True
            return b"\n"
        if self._state == "before":
            self._state = "inside"
            return b""
        if self._depth == 0:
            self._state = "after"
        if self._empty and (self._depth or self._items):
            raise OSError(f"item {self._items} of its array is empty: two commas, or one before the end")
        self._items, self._empty = self._items + 1, True
        return b"\n"

    def _piece(self, piece: bytes) -> Iterator[bytes]:
        """A part of a value; blanks before a value are left out, so that an item is the line it would be."""
        begun = piece.lstrip(BLANKS) if self._empty else piece
        if begun and self._array and self._state != "inside":
            raise OSError("something stands beside its one array of records")
        self._empty = self._empty and not begun
        yield begun
