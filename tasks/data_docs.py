"""Data Docs on disk: the pages of Great Expectations, made fit to be opened from disk, and an index of them.

In goes a page as Great Expectations renders it, out come reports/docs/<step>/<table>.html and
reports/docs/index.html. The pages fetch style sheets, scripts and a counted logo from ten hosts; whoever
reads them must not have to ask anybody, so those go and a few lines of style stand in their place. Nothing is
judged here.
"""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

OUTSIDE = re.compile(
    r"""<script\b[^>]*>.*?</script> | <link\b[^>]*> | <img\b[^>]*https?:[^>]*> | url\('https?:[^)]*\)""",
    re.DOTALL | re.VERBOSE,
)
ELSEWHERE = re.compile(r'href="(?:\.\./)+[^"]*"')
HEAD = """<head>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>
body { font: 15px/1.45 sans-serif; margin: 1rem 2rem; color: #222; background: #fff; }
table { border-collapse: collapse; margin: .5rem 0; } td, th { border: 1px solid #ccc; padding: .3rem .6rem; }
.card, .ge-breadcrumbs { display: none; } .badge { background: #eee; padding: 0 .3rem; }
.fa-times::before { content: "\\2717"; color: #b00; }
.fa-check-circle::before { content: "\\2713"; color: #080; }
.fa-exclamation-triangle::before { content: "!"; color: #b60; }
</style>"""
INDEX = """<!DOCTYPE html>
<html><head><meta charset="utf-8"><title>Data Docs</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'"></head>
<body><h1>Data Docs</h1><ul>
{items}
</ul></body></html>
"""
PASSED, BROKEN = "all expectations hold", "expectations are broken"


def write_page(docs: Path, step: str, table: str, page: str, success: bool) -> None:
    """Write docs/<step>/<table>.html and docs/index.html anew; raises OSError as writing does."""
    folder = docs / step
    folder.mkdir(parents=True, exist_ok=True)
    title = f"<title>{step}/{table}: {PASSED if success else BROKEN}</title>"
    page = ELSEWHERE.sub('href="../index.html"', OUTSIDE.sub("", page)).replace("<head>", HEAD + title, 1)
    (folder / f"{table}.html").write_text(page, encoding="utf-8")
    (docs / "index.html").write_text(_index(docs), encoding="utf-8")


def escaped(value: Any) -> Any:
    """`value` with every string in it, keys left out, escaped for HTML."""
    if isinstance(value, str):
        return html.escape(value)
    if isinstance(value, dict):
        return {key: escaped(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(escaped(item) for item in value)
    return value


def _index(docs: Path) -> str:
    """One line a page, with its title, which says whether it held."""
    lines = []
    for page in sorted(docs.glob("*/*.html")):
        title = re.search(r"<title>(.+?)</title>", page.read_text(encoding="utf-8"))
        name = html.escape(page.relative_to(docs).as_posix())
        lines.append(f'<li><a href="{name}">{title[1] if title else name}</a></li>')
    return INDEX.format(items="\n".join(lines))
