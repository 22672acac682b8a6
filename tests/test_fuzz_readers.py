"""Every reader against bytes that nobody sane would write: no crash, only documents, rejects, and damage by name.

Each format starts from a good file that is cut, spliced and overwritten. `make test-long` runs many thousand of them.
"""

import os

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_formats import LINES, PAGE, packed, pdf, table_bytes, warc

from tasks.errors import SourceError
from tasks.ingest.containers import opened
from tasks.ingest.fields import Reject, Skip, read_fields
from tasks.ingest.records import records

EXAMPLES = int(os.environ.get("GRISTMILL_FUZZ", "60"))
"""Files tried of each format; GRISTMILL_FUZZ=20000 takes about ten minutes for all."""

TABLE = pa.table({"text": ["one", "two"] * 20, "n": [1.5, None] * 20, "tags": [["x"], []] * 20})
ARC = (
    b"filedesc://a 127.0.0.1 20140216050221 text/plain 22\n1 0 x\nURL IP-address\n\n\n"
    b"http://a.b/ 1.2.3.4 20140216050221 text/html 45\nHTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nab\n\n"
)
ZIPPED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n4\r\nabcd"
)
SEEDS = {
    "text": ["día".encode(), "\ufeffdía\0".encode("utf-16-le"), "\u7b2c\u4e00".encode("gb18030") * 50, b"\x1b$B\x1b(B"],
    "html": [PAGE.encode(), b"<pre><table><td>&#xd800;</pre><!DOCTYPE"],
    "jsonl": [LINES, b'{"messages":[{"role":"u","content":"a"}],"n":1e300}\n{"conversations":[{"from":1}]}\n'],
    "json": [b'[{"text":"a"},\n {"text":"b\\\\"}]', b'{\n"text":[]}{"text":""}'],
    "csv": [b'text,url\n"a\nb",u\nc,\n'],
    "parquet": [table_bytes(TABLE, "parquet")],
    "arrow": [table_bytes(TABLE, "arrow"), table_bytes(TABLE, "stream")],
    "warc": [warc(PAGE.encode(), b"x"), warc(ZIPPED, content="text/html"), b"WARC/1.0\r\nWARC-Type: response\r\n\r\n"],
    "arc": [ARC],
    "pdf": [pdf("A text layer.")],
    "lines": [b"a\n\n b\r\n\xff\n"],
    "paragraphs": [b"a\nb\n\n\n c\r\n\r\n"],
    **{f"jsonl.{codec}": [packed(LINES, codec) * 2] for codec in ("gz", "zst", "bz2", "xz", "lz4")},
}


@st.composite
def spoilt(draw, seeds):
    data = bytearray(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        size = draw(st.integers(0, 8))
        how = draw(st.sampled_from(["cut", "put", "over", "copy", "end"]))
        if how == "cut":
            del data[at : at + size]
        elif how == "put":
            data[at:at] = draw(st.binary(max_size=8))
        elif how == "over":
            data[at : at + size] = draw(st.binary(min_size=size, max_size=size))
        elif how == "copy":
            data[at:at] = data[max(0, at - 40) : at]
        else:
            del data[at:]
    return bytes(data)


@pytest.mark.parametrize("form", SEEDS)
def test_no_file_breaks_a_reader(form):
    @settings(max_examples=EXAMPLES, deadline=20_000, suppress_health_check=list(HealthCheck), database=None)
    @given(spoilt(SEEDS[form]))
    def read(data):
        try:
            it = opened(pa.BufferReader(data), form, "a file", None, 10_000)
            for record in records(it.stream, it.records, "s", 10_000):
                _fields(record, it)
        except SourceError as error:
            assert str(error).startswith("a file is damaged: ")

    read()


def _fields(record, it):
    try:
        fields = read_fields(record.raw or b"", it.records, "chat")
    except (Reject, Skip):
        return
    fields.text.encode()
    (fields.metadata or "").encode()
    assert fields.text
