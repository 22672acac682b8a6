"""data/filter/blocked: which documents' URLs stand in the block lists that params.yaml names.

In: the URLs of a part and the lists, files of one entry a line, plain or gzip. Out: a float64 column blocked.<list> for
each, row-aligned: how many of its entries a URL meets, null without a URL. It judges nothing; each list has a rule of
its own, in front of the others (tasks.filter.blocking).

Entries and URLs are compared without case, hosts in punycode and without port or the dot of the root. What is empty or
begins with # is no entry. `match` says what meets an entry:
    domains     the host is the entry, or ends with a dot and the entry: a.example.com meets example.com, and
                badexample.com does not. An address (1.2.3.4) meets only itself. "*." before an entry changes nothing.
    urls        the URL without its scheme is the entry, or goes on from it at a border: after /, ? or #, or the next
                character is one of them. example.com/a is met by example.com/a/b and not by example.com/ab.
    words       letters and digits between other characters, anywhere in the URL, percent signs resolved (the "hard" and
                "soft" words of RefinedWeb, Penedo et al. 2023, arXiv 2306.01116, appendix G); each counts once
    substrings  anywhere in the URL, within words too (its "strict subwords"); each counts once
"""

from __future__ import annotations

import gzip
import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa

from tasks.errors import SourceError
from tasks.step import Made, Reads

if TYPE_CHECKING:
    from tasks.filter import FilterParams

BLOCKED = "blocked."
BORDERS = "/?#"
_SCHEME = re.compile(r"^[a-z][a-z0-9+.\-]*://")
_ADDRESS = re.compile(r"^[0-9.]+$|^\[.*\]$")
_WORD = re.compile(r"[^\W_]+")
_DOMAIN = re.compile(r"^[^\s/:@?#]+$")

Meets = Callable[[str, frozenset[str]], tuple[int, str]]


def make(reads: Reads, params: FilterParams) -> Made:
    """The columns of one part. Counts: blocked|list=..., documents that meet an entry of it; blocked|reason=..., how:
    domain, subdomain, address, url, word or substring. Raises SourceError where a list cannot be read or changed.
    """
    urls = reads.table("normalize/text", ["url"])["url"].to_pylist()
    columns: dict[str, pa.Array] = {}
    counts: Counter[str] = Counter({f"blocked|list={item.name}": 0 for item in params.blocklists})
    for item in params.blocklists:
        entries = read_list(reads.path(item.name), reads.spec["blocklists"][item.name], item.name, item.match)
        meets, values = MATCHES[item.match], []
        for url in urls:
            count, reason = meets(url, entries) if url else (None, "")
            values.append(count)
            if count:
                counts[f"blocked|list={item.name}"] += 1
                counts[f"blocked|reason={reason}"] += 1
        columns[BLOCKED + item.name] = pa.array(values, pa.float64())
    return Made({".parquet": pa.table(columns)}, dict(counts))


@lru_cache(maxsize=8)
def read_list(path: Path, sha256: str, name: str, match: str) -> frozenset[str]:
    """The entries of a list, folded as `match` wants them."""
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != sha256:
        raise SourceError(f"block list {name} changed while filter ran", "build again")
    try:
        text = (gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise SourceError(f"block list {name} cannot be read: {error}", "it is text in UTF-8, plain or gzip") from None
    entries = frozenset(_entries(text, name, match))
    if not entries:
        raise SourceError(f"block list {name} has no entry", "fill it, or take it out of filter.blocklists")
    return entries


def host_of(rest: str) -> str:
    """The host of a URL without its scheme: lower case, punycode, without user, port and the root's dot."""
    host = re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("@")[2]
    host = host if host.startswith("[") else host.partition(":")[0]
    return _punycode(host.rstrip(".")) if host else ""


def folded(url: str) -> str:
    """A URL without scheme, its host folded, the rest in lower case."""
    rest = _SCHEME.sub("", url.strip().lower().removeprefix("//"))
    return host_of(rest) + rest[len(re.split(r"[/?#]", rest, maxsplit=1)[0]) :]


def _entries(text: str, name: str, match: str) -> Iterator[str]:
    for number, line in enumerate(text.split("\n"), 1):
        entry = line.strip()
        if not entry or entry.startswith("#"):
            continue
        yield _entry(entry, f"line {number} of block list {name}", match)


def _entry(entry: str, where: str, match: str) -> str:
    if match == "domains":
        domain = entry.lower().removeprefix("*.").strip(".")
        if not _DOMAIN.match(domain):
            raise SourceError(
                f"{where} is no domain: {entry[:80]!r}", "one domain a line; whole URLs go with match: urls"
            )
        return _punycode(domain)
    if match == "urls":
        return folded(entry)
    if match == "words" and not _WORD.fullmatch(entry):
        raise SourceError(f"{where} is no word: {entry[:80]!r}", "letters and digits; others go with match: substrings")
    return entry.casefold()


def _punycode(host: str) -> str:
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return host.casefold()


def _domain(url: str, entries: frozenset[str]) -> tuple[int, str]:
    host = host_of(_SCHEME.sub("", url.strip().lower().removeprefix("//")))
    if _ADDRESS.match(host):
        return int(host in entries), "address"
    if host in entries:
        return 1, "domain"
    while "." in host:
        host = host.partition(".")[2]
        if host in entries:
            return 1, "subdomain"
    return 0, ""


def _url(url: str, entries: frozenset[str]) -> tuple[int, str]:
    whole = folded(url)
    borders = (place for place, letter in enumerate(whole) if letter in BORDERS)
    starts = {whole, *(start for place in borders for start in (whole[:place], whole[: place + 1]))}
    return int(not starts.isdisjoint(entries)), "url"


def _plainly(url: str) -> str:
    return unquote(_SCHEME.sub("", url.strip())).casefold()


def _words(url: str, entries: frozenset[str]) -> tuple[int, str]:
    return len(entries.intersection(_WORD.findall(_plainly(url)))), "word"


def _substrings(url: str, entries: frozenset[str]) -> tuple[int, str]:
    whole = _plainly(url)
    return sum(entry in whole for entry in entries), "substring"


MATCHES: dict[str, Meets] = {"domains": _domain, "urls": _url, "words": _words, "substrings": _substrings}
