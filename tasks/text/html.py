"""The main text of a page of HTML: paragraphs, lists, code and tables, without navigation.

In: HTML as text. Out: plain text. It fetches nothing and follows no link.

trafilatura finds the main content (precision preferred, no comments); what it gives back is a small tree, laid out
here: blocks stand a blank line apart, white space inside a paragraph is one space, code keeps its lines and
indentation, a row of a table is a line of cells between " | ", an item of a list begins with "- ". Why trafilatura:
docs/decisions.md.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from typing import Any

_SPACE = re.compile(r"[ \t\r\n\f]+")
_BLOCKS = frozenset({"p", "head", "quote", "list", "table", "code", "div", "ab", "item"})


def main_text(page: str) -> str:
    """The main text of a page, empty where none is found. 8 MB of HTML a CPU second."""
    from trafilatura import bare_extraction

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    found = bare_extraction(page, include_comments=False, favor_precision=True, with_metadata=False)
    body = getattr(found, "body", None)
    return "" if body is None else "\n\n".join(block for block in _blocks(body) if block)


def _blocks(element: Any) -> Iterator[str]:
    """The blocks of an element, each without blank space around it."""
    run = [element.text or ""]
    for child in element:
        if child.tag in _BLOCKS and not _inline(child):
            yield _flowing(run)
            yield from _block(child)
            run = [child.tail or ""]
        else:
            run += [_line(child), child.tail or ""]
    yield _flowing(run)


def _inline(element: Any) -> bool:
    """Code within a line of text is no block of its own."""
    return (
        element.tag == "code" and "\n" not in "".join(element.itertext()).strip() and element.getparent().tag != "body"
    )


def _block(element: Any) -> Iterator[str]:
    if element.tag == "code":
        yield _verbatim(element)
    elif element.tag == "table":
        yield "\n".join(row for row in map(_row, element.iter("row")) if row)
    elif element.tag == "list":
        yield "\n".join(_item(item) for item in element if len(item) or item.text)
    else:
        yield from _blocks(element)


def _verbatim(element: Any) -> str:
    lines = [line.rstrip() for line in "".join(_code(element)).expandtabs(8).split("\n")]
    while lines and not lines[0]:
        del lines[0]
    return "\n".join(lines).rstrip()


def _code(element: Any) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        yield "\n" if child.tag == "lb" else ""
        yield from _code(child)
        yield child.tail or ""


def _row(row: Any) -> str:
    cells = [_SPACE.sub(" ", " ".join(_blocks(cell))).strip() for cell in row.iter("cell")]
    return " | ".join(cells) if any(cells) else ""


def _item(item: Any) -> str:
    first, *others = [block for block in _blocks(item) if block] or [""]
    return "\n".join([f"- {first}", *("  " + line for block in others for line in block.split("\n"))])


def _line(element: Any) -> str:
    """The text of an element within a line; lb is a line's end."""
    if element.tag == "lb":
        return "\n\0"
    return "".join([element.text or "", *(_line(child) + (child.tail or "") for child in element)])


def _flowing(run: list[str]) -> str:
    """White space as one space, a line's end (marked by NUL, which HTML cannot hold) as itself; the pilcrow that
    Sphinx links to headings is left out."""
    lines = "".join(run).replace("¶", "").split("\n\0")
    return "\n".join(line for line in (_SPACE.sub(" ", line).strip() for line in lines) if line)
