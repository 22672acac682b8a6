"""What the fuzzers read: for each reader its first inputs and the words that mean something to it.

In: ../shared/corpora where it is here, files made on the spot, and a folder that GRISTMILL_FUZZ_SEEDS names (a folder a
target). Out: (name, claim) -> how one input is read. A read gives the word for its outcome or raises what nobody
foresaw.
"""

import gzip
import io
import json
import os
import zlib
from collections import Counter
from pathlib import Path

import pyarrow as pa

from tasks.errors import SourceError
from tasks.ingest.containers import opened
from tasks.ingest.fields import Reject, Skip, read_fields
from tasks.ingest.how import How
from tasks.ingest.records import records
from tests.corpora import SHARED
from tests.test_formats import LINES, PAGE, packed, pdf, table_bytes, warc

LIMIT = 1 << 20
SEED_BYTES = 96 << 10
PACKERS = ("gz", "zst", "bz2", "xz", "lz4")
TARGETS = ("text", "html", "jsonl", "json", "csv", "parquet", "arrow", "warc", "pdf", "packed", "fields")
INSTRUMENTED = ("text", "jsonl", "json", "csv", "warc", "pdf", "fields")
"""Targets whose readers are Python, in which coverage can be seen."""

TABLE = pa.table({"text": ["one", "two"] * 20, "n": [1.5, None] * 20, "tags": [["x"], []] * 20})
ARC = (
    b"filedesc://a 127.0.0.1 20140216050221 text/plain 22\n1 0 x\nURL IP-address\n\n\n"
    b"http://a.b/ 1.2.3.4 20140216050221 text/html 45\nHTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nab\n\n"
)
ZIPPED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n4\r\nabcd"
)
CHAT = b'{"messages":[{"role":"u","content":"a"}],"n":1e300}\n{"conversations":[{"from":1}]}\n[{"role":"user"}]\n'
WORDS = {
    "text": [b"\x1b$B", b"\x1b(B", b"~{", b"\xef\xbb\xbf", b"\xff\xfe", b"\0\0\xfe\xff", b"\x8e\xa2", b"\r\n"],
    "html": [
        *(b"<div>", b"</div>", b"<table><tr><td>", b"<pre>", b"<ul><li>", b"<!--", b"]]>", b"<svg>", b"<script>"),
        *(b"&#x110000;", b"&#0;", b'<meta charset="utf-16">', b"<a><b></a></b>", b"<p ", b"<template>", b"<br>"),
    ],
    "jsonl": [b"{", b"[", b'"', b"\\ud800", b"1e999", b"-0", b"null", b"\xe2\x80\xa8", b'{"text":', b"9" * 400],
    "json": [b"[", b"]", b"{", b"}", b",", b'"', b"\\", b'[{"text":"a"},', b"\n", b"\xef\xbb\xbf"],
    "csv": [b'"', b'""', b",", b"\r\n", b"\r", b"\t", b"text", b"\0", b'"\n'],
    "parquet": [b"PAR1", b"\x15\x00", b"\x19\x2c", b"\x4c\x15", b"\xff\xff\xff\xff\x07"],
    "arrow": [b"ARROW1", b"\xff\xff\xff\xff", b"\0\0\0\0\xff\xff\xff\x7f"],
    "warc": [
        *(b"WARC/1.0\r\n", b"Content-Length: ", b"Transfer-Encoding: chunked\r\n", b"Content-Encoding: gzip\r\n"),
        *(
            b"HTTP/1.1 200 OK\r\n",
            b"Content-Type: text/html\r\n",
            b"\r\n\r\n",
            b"Content-Encoding: br\r\n",
            b"filedesc:",
        ),
    ],
    "pdf": [
        *(b"<<", b">>", b"[", b"]", b"/Kids [2 0 R]", b"/Prev 9", b"/Length 99999999", b"/Filter /FlateDecode"),
        *(b"/Filter [/ASCII85Decode /LZWDecode]", b"endstream", b"endobj", b"/Parent 2 0 R", b"/Type /ObjStm"),
        *(b"/Predictor 15 /Columns 99999", b"/Encrypt 3 0 R", b"BT", b"Tj", b"Do", b"/ToUnicode 4 0 R", b"/W [1 2 1]"),
    ],
    "packed": [b"\x1f\x8b\x08\0", b"\x28\xb5\x2f\xfd", b"BZh9", b"\xfd7zXZ\0", b"\x04\x22\x4d\x18", b"\0" * 12],
    "fields": [
        b'"text"',
        b'"messages"',
        b'{"role":"user","content":"a"}',
        b"null",
        b"[]",
        b"{}",
        b"1e400",
        b"{a}{b.0}",
    ],
}
MAPPINGS = (
    *({"text": "text"}, {"text": "a.b.0.c"}, {"text": "{title}\n\n{body}"}, {"text": "{a.b}{a}{x}", "url": "a.b"}),
    *({"messages": "data.turns"}, {"url": "u.0", "created": "c", "language": "l.l"}, {"messages": "messages"}),
)


def seeds(target):
    """The first inputs of a target, in an order that is always the same."""
    more = Path(os.environ.get("GRISTMILL_FUZZ_SEEDS", "/nonexistent")) / target
    found = [*_made(target), *_real(target), *(path.read_bytes() for path in sorted(more.glob("*")))]
    return [data for data in found if len(data) < 8 * SEED_BYTES]


def read(target, data):
    """The outcome of one input: "documents", "rejects:reason, ...", "damaged". Raises whatever else happens."""
    how, claim, kind = How(), target, "web"
    if target == "packed":
        claim, data = f"jsonl.{PACKERS[data[0] % 5] if data else 'gz'}", data[1:]
    elif target == "warc":
        claim = "arc" if data.startswith(b"filedesc") else "warc"
    elif target == "fields":
        number = data[0] if data else 0
        claim, kind, data = "jsonl", ("web", "chat", "code")[number % 3], data[1:]
        how = How(MAPPINGS[number // 3 % len(MAPPINGS)] if number >= 128 else {})
    try:
        return _read(data, claim, kind, how)
    except SourceError as error:
        assert str(error).startswith("a file is damaged: "), error
        return "damaged"


def _read(data, claim, kind, how):
    it = opened(pa.BufferReader(data), claim, "a file", None, LIMIT)
    seen = Counter()
    for record in records(it.stream, it.records, "s", LIMIT):
        assert record.raw is None or len(record.raw) <= LIMIT
        seen[_of_record(record, it, kind, how) if record.raw is not None else "too_large"] += 1
    return max(seen, key=seen.get) if seen else "no records"


def _of_record(record, it, kind, how):
    try:
        fields = read_fields(record.raw, it.records, kind, how)
    except Reject as reject:
        assert reject.reason and reject.detail and len(reject.detail) < 2000, reject
        reject.detail.encode()
        return f"reject {reject.reason}"
    except Skip:
        return "skipped"
    assert fields.text
    fields.text.encode()
    (fields.metadata or "").encode()
    json.dumps([fields.url, fields.created, fields.messages], ensure_ascii=False).encode()
    return "documents"


def _files(pattern, most=40, size=SEED_BYTES):
    paths = [path for path in sorted((SHARED / "corpora").glob(pattern)) if path.is_file()]
    return [path.read_bytes()[:size] for path in paths[:: max(1, len(paths) // most)][:most]]


def _real(target):
    if target == "html":
        pages = sorted((SHARED / "corpora/web/html/article-extraction-benchmark").glob("*.html.gz"))[::6]
        return [gzip.decompress(path.read_bytes())[:SEED_BYTES] for path in pages]
    if target == "packed":
        some = [bytes([PACKERS.index("gz")]) + data for data in _files("derived-containers/*.gz", size=1 << 20)]
        return [data for data in some if len(data) < 4 * SEED_BYTES]
    if target == "arrow":
        return []
    if target == "fields":
        return [b"\x01" + data for data in _files("jsonl/*/*.jsonl", size=4096)]
    patterns = {
        "text": ["web/encodings/*/*", "web/encodings/chardet/*/*"],
        "jsonl": ["jsonl/*/*.jsonl", "json-parsing/*.json"],
        "json": ["jsonl/*/*.json", "json-parsing/*.json"],
        "csv": ["derived-containers/*.csv", "eval/*/*.csv"],
        "parquet": ["parquet/*/*.parquet"],
        "warc": ["web/warc/*/*"],
        "pdf": [],
    }
    size = {"parquet": 4 * SEED_BYTES, "warc": 4 * SEED_BYTES, "csv": 8000, "text": 20_000}.get(target, 16_000)
    return [data for pattern in patterns[target] for data in _files(pattern, size=size)]


def _made(target):
    made = {
        "text": ["día".encode(), "\ufeffdía\0".encode("utf-16-le"), "\u7b2c\u4e00".encode("gb18030") * 50],
        "html": [PAGE.encode(), b"<pre><table><td>&#xd800;</pre><!DOCTYPE", b"<p>" + b"<div>" * 3000 + b"a"],
        "jsonl": [LINES, CHAT, b'{"text":' + b"[" * 2000],
        "json": [b'[{"text":"a"},\n {"text":"b\\\\"}]', b'{\n"text":[]}{"text":""}', b"[" * 100_000],
        "csv": [b'text,url\n"a\nb",u\nc,\n', b"text\n" + b"x" * 5000],
        "parquet": [table_bytes(TABLE, "parquet")],
        "arrow": [*_arrows()],
        "warc": [warc(PAGE.encode(), b"x"), warc(ZIPPED), b"WARC/1.0\r\nWARC-Type: response\r\n\r\n", ARC, *_coded()],
        "pdf": [pdf("A text layer."), *_pdfs()],
        "packed": [bytes([number]) + packed(LINES, codec) * 2 for number, codec in enumerate(PACKERS)],
        "fields": [b"\x01" + CHAT, b"\xff" + LINES, b"\xb0" + b'{"a":{"b":[{"c":"x"}]},"title":"t","body":null}\n'],
    }
    return made[target]


def _arrows():
    yield table_bytes(TABLE, "arrow")
    yield table_bytes(TABLE, "stream")
    several = pa.table(
        {
            "text": pa.array(["a", None, "c"]).dictionary_encode(),
            "view": pa.array(["a" * 40, None, "c"], pa.string_view()),
            "map": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
            "struct": pa.array([{"x": [1.5]}, None, {"x": None}]),
            "when": pa.array([0, 1, None], pa.timestamp("ms", tz="UTC")),
        }
    )
    yield table_bytes(several, "arrow")
    yield table_bytes(several, "stream")


def _coded():
    for coding, body in (
        ("gzip", gzip.compress(b"abc" * 50)),
        ("deflate", zlib.compress(b"abc" * 50)),
        ("br", b"\x0b"),
    ):
        http = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: {coding}\r\n".encode()
        whole = http + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n"
        head = b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: <u:v>\r\nContent-Type: application/http\r\n"
        yield head + b"Content-Length: %d\r\n\r\n" % len(whole) + whole + b"\r\n\r\n"


def _pdfs():
    """The plain one as pypdf writes it again: packed streams, streams of objects, an encrypted one."""
    from pypdf import PdfReader, PdfWriter

    for change in ("plain", "compress", "encrypt"):
        writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf("A text layer."))))
        if change == "compress":
            for page in writer.pages:
                page.compress_content_streams()
        if change == "encrypt":
            writer.encrypt("", algorithm="RC4-128")
        out = io.BytesIO()
        writer.write(out)
        yield out.getvalue()
