"""ingest: what a file is by its content, how it is unpacked, and which records it holds."""

import base64
import bz2
import csv
import gzip
import io
import json
import lzma
import tracemalloc

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.errors import SourceError
from tasks.ingest.containers import opened
from tasks.ingest.fields import Reject, Skip, read_fields
from tasks.ingest.records import records
from tasks.ingest.values import one_a_line
from tasks.sources import format_of
from tests.corpora import shared

LIMIT = 1 << 25


def read(data, claim, encoding=None, limit=LIMIT, kind="web"):
    """(shape or reason, text or detail) of each record."""
    it = opened(pa.BufferReader(data), claim, "a file", encoding, limit)
    return [said(record, it, kind) for record in records(it.stream, it.records, "s", limit)]


def said(record, it, kind="web"):
    try:
        fields = read_fields(record.raw, it.records, kind)
    except Reject as reject:
        return reject.reason, reject.detail
    except Skip as skip:
        return "skip", skip.reason
    return fields.shape, fields.text


def texts(data, claim, **how):
    return [text for _, text in read(data, claim, **how)]


def packed(data, codec):
    if codec in ("gz", "bz2", "xz"):
        return {"gz": gzip, "bz2": bz2, "xz": lzma}[codec].compress(data)
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, {"zst": "zstd", "lz4": "lz4"}[codec]) as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def table_bytes(table, form):
    sink = pa.BufferOutputStream()
    if form == "parquet":
        pq.write_table(table, sink)
    else:
        opening = pa.ipc.new_file if form == "arrow" else pa.ipc.new_stream
        with opening(sink, table.schema) as writer:
            writer.write_table(table)
    return sink.getvalue().to_pybytes()


LINES = b'{"text":"one"}\n{"text":"two"}\n'
PACKERS = ("gz", "zst", "bz2", "xz", "lz4")


# Packed streams


@pytest.mark.parametrize("codec", PACKERS)
def test_all_members_are_read_and_damage_is_named(codec):
    one = packed(LINES, codec)
    assert texts(one + one, f"jsonl.{codec}") == ["one", "two"] * 2
    for damaged in (one[:-1], one[:-5], one + b"more", one + one[:-3], one[: len(one) // 2], b""):
        with pytest.raises(SourceError, match="a file is damaged"):
            read(damaged, f"jsonl.{codec}")


@pytest.mark.parametrize("codec", PACKERS)
def test_a_packed_file_has_its_codec_by_content(codec):
    assert texts(packed(LINES, codec), "jsonl") == ["one", "two"]
    assert texts(packed(packed(LINES, codec), "gz"), "jsonl.gz") == ["one", "two"]
    assert texts(LINES, f"jsonl.{codec}") == ["one", "two"]


def test_xz_streams_may_stand_apart_by_zeros():
    one = packed(LINES, "xz")
    assert texts(one + b"\0" * 8 + one + b"\0" * 4, "jsonl.xz") == ["one", "two"] * 2


@pytest.mark.parametrize("codec", ["gz", "xz"])
def test_a_bomb_is_unpacked_a_block_at_a_time(codec):
    bomb = packed(b"0" * (64 << 20), codec)
    tracemalloc.start()
    assert sum(map(len, opened(pa.BufferReader(bomb), f"jsonl.{codec}", "bomb").stream)) == 64 << 20
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16 << 20


def test_formats_by_name():
    names = ("JSON.bz2", "warc.wet.gz", "htm", "parquet.gz", "ndjson.lz4")
    assert [format_of(f"a.{name}", "web") for name in names] == [
        "json.bz2", "warc.gz", "html", None, "jsonl.lz4",
    ]  # fmt: skip
    assert [format_of(f"a.{name}", "code") for name in ("json", "html", "csv", "py.gz", "md")] == [
        None, "text", None, "text.gz", "text",
    ]  # fmt: skip


# What it is, whatever its name


def test_content_decides_where_the_name_lies():
    table = pa.table({"text": ["one", "two"]})
    for form in ("parquet", "arrow", "stream"):
        data = table_bytes(table, form)
        claim = "arrow" if form == "stream" else "jsonl"
        assert texts(data, claim) == ["one", "two"]
    with pytest.raises(SourceError, match="parquet file inside of a packed one"):
        read(packed(table_bytes(table, "parquet"), "gz"), "jsonl.gz")
    with pytest.raises(SourceError, match="page of HTML"):
        read(b"<!DOCTYPE html><html>404</html>", "jsonl")


@pytest.mark.parametrize("mark", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_records_in_utf_16(mark):
    text = "\ufeff" + LINES.decode().replace("one", "één\U0001f378")
    assert texts(text.encode(mark), "jsonl") == ["één\U0001f378", "two"]
    assert texts("\ufefftext\ntwo words\n".encode(mark), "csv") == ["two words"]
    with pytest.raises(SourceError, match="a file is damaged"):
        read(text.encode(mark)[:-1], "jsonl")


def test_records_in_a_declared_encoding():
    data = '{"text":"红楼梦"}\n'.encode("gb18030")
    assert texts(data, "jsonl", encoding="gb2312") == ["红楼梦"]
    assert texts('{"text":"红楼梦"}\n'.encode(), "jsonl", encoding="gb2312") == ["红楼梦"]
    assert texts(LINES, "jsonl", encoding="utf-16") == ["one", "two"]
    assert texts(LINES.decode().encode("utf-16-be"), "jsonl", encoding="utf-16-be") == ["one", "two"]
    assert read(data, "jsonl")[0][0] == "encoding"


# JSON


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.sampled_from('a"\\,[]{}\n\u2028é ')),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from('ab"\\]'), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(VALUES, max_size=5), st.integers(1, 9), st.sampled_from([None, 1]))
def test_an_array_is_its_items_however_the_blocks_fall(values, step, indent):
    data = json.dumps(values, indent=indent, ensure_ascii=False).encode()
    blocks = (data[at : at + step] for at in range(0, len(data), step))
    lines = b"".join(one_a_line(blocks, "array")).split(b"\n")
    assert [json.loads(line) for line in lines if line.strip()] == values


@pytest.mark.parametrize(
    "data",
    [b"[1,2", b"[1,]", b"[,1]", b"[1] x", b"x [1]", b"[1][2]", b"[1]]", b'["a', b"", b"[1,,2]", b'{"a":1}', b"["],
)
@pytest.mark.parametrize("step", [1, 100])
def test_an_array_that_is_none(data, step):
    with pytest.raises(OSError):
        b"".join(one_a_line((data[at : at + step] for at in range(0, len(data), step)), "array"))


@pytest.mark.parametrize("claim", ["json", "jsonl"])
@pytest.mark.parametrize("indent", [None, 1])
def test_json_in_any_form(claim, indent):
    values = [{"text": "one"}, {"text": "two", "n": [{}]}]
    assert texts(json.dumps(values, indent=1).encode(), claim) == ["one", "two"]
    several = "\n".join(json.dumps(value, indent=indent) for value in values)
    assert texts(several.encode(), claim) == ["one", "two"]
    assert texts(b"\xef\xbb\xbf" + several.encode(), claim) == ["one", "two"]


def test_a_list_a_line_is_a_chat_a_line():
    chat = json.dumps([{"role": "user", "content": "q"}])
    assert read(f"{chat}\n{chat}\n".encode(), "jsonl", kind="chat") == [("list", "q")] * 2
    assert read(f"{chat}\n{chat}\n".encode(), "json", kind="chat") == [("list", "q")] * 2
    assert texts(b'[{"text":"one"},{"text":"two"}]', "json") == ["one", "two"]


def test_an_item_is_the_line_it_would_be():
    ids = []
    for data, claim in ((LINES, "jsonl"), (b'[{"text":"one"},\n{"text":"two"}]', "json")):
        it = opened(pa.BufferReader(data), claim, "a file")
        ids.append([record.id for record in records(it.stream, it.records, "s", LIMIT)])
    assert ids[0] == ids[1]


def test_a_line_feed_in_a_string_stays_an_error():
    assert [reason for reason, _ in read(b'[\n{"text":"a\nb"},\n{"text":"two"}]', "json")] == ["json", "text"]


def test_the_json_test_suite():
    """y_ is accepted, n_ rejected: as a value in a record, in lines and in an array."""
    for file in sorted(shared("corpora/json-parsing").glob("[yn]_*.json")):
        raw = file.read_bytes()
        if b"\n" in raw or raw.startswith((b'"', b"\xef")) or b"//" in raw or b"/*" in raw:
            continue
        try:
            found = read(b'{"text":"t","value":' + raw + b"}", "jsonl")
        except SourceError:
            found = [("damaged", "")]
        assert (found == [("text", "t")]) == file.name.startswith("y_"), (file.name, found)


# Cells


def test_cells():
    rows = [["text", "url"], ["one\ntwo", "u"], ['say "x", y', ""]]
    sink = io.StringIO()
    csv.writer(sink).writerows(rows)
    assert texts(sink.getvalue().encode(), "csv") == ["one\ntwo", 'say "x", y']
    assert texts(b"text\turl\nh\xc3\xa9\tu\r\n", "tsv") == ["hé"]
    assert read(b"text,url\na\n\nb,u,v\n", "csv") == [
        ("csv", "a row of 1 cells, the first row of the csv file names 2"),
        ("csv", "a row of 3 cells, the first row of the csv file names 2"),
    ]
    assert read(b"text\ncaf\xe9\nok\n", "csv")[0][0] == "encoding"
    assert read(b"", "csv") == []


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'text\n"never closed\nx\n', "unexpected end of data"),
        (b"text,text\na,b\n", "names column 'text' twice"),
        (b"text\n" + b"x" * 5000, "more than 1000 bytes"),
        (b'text\n"' + b"x\n" * 5000 + b'"\n', "field limit"),
    ],
)
def test_cells_that_are_damaged(data, words):
    with pytest.raises(SourceError, match=words):
        read(data, "csv", limit=1000)


# Columns


@pytest.mark.parametrize("form", ["parquet", "arrow", "stream"])
def test_columns_of_text_of_every_type(form):
    plain = ["día", None, ""]
    columns = {
        "string": pa.array(plain, pa.string()),
        "large": pa.array(plain, pa.large_string()),
        "view": pa.array(plain, pa.string_view()),
        "dictionary": pa.array(plain).dictionary_encode(),
        "binary": pa.array([None if text is None else text.encode() for text in plain], pa.binary()),
        "large_binary": pa.array([None if text is None else text.encode() for text in plain], pa.large_binary()),
    }
    for name, column in columns.items():
        found = read(table_bytes(pa.table({"text": column}), form), "arrow" if form != "parquet" else form)
        assert [reason for reason, _ in found] == ["text", "no_text", "empty"], name
        assert found[0][1] == "día", name
    lists = pa.array([["a", "b"], [], None, ["c", None]], pa.list_(pa.string()))
    found = read(table_bytes(pa.table({"text": lists}), form), "arrow" if form != "parquet" else form)
    assert found[0] == ("text", "a\n\nb") and [reason for reason, _ in found[1:]] == ["type", "no_text", "type"]


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "dictionary"])
def test_columns_that_are_no_utf_8(kind):
    raw = pa.array([b"ok", b"\xff\xfe"], pa.binary())
    column = raw.cast(pa.large_binary()).view(pa.large_string()) if kind == "large_string" else raw.view(pa.string())
    if kind == "string_view":
        column = pa.array([b"ok", b"\xff\xfe"], pa.binary_view()).view(pa.string_view())
    if kind == "dictionary":
        column = pa.DictionaryArray.from_arrays(pa.array([0, 1]), column)
    found = read(table_bytes(pa.table({"text": column}), "arrow"), "arrow")
    assert [reason for reason, _ in found] == ["text", "encoding"]


def test_the_fast_lines_are_the_plain_ones():
    from tasks.ingest.columns import json_line, lines_of

    rows = [
        {"b": 'día \x00\x1f\x7f\u2028"\\/\U0001f378', "a": 2**63 - 1, "c": True, "d": None},
        {"b": "", "a": -(2**63), "c": False, "d": None},
    ]
    batch = pa.RecordBatch.from_pylist(rows)
    assert lines_of(batch) == b"".join(json_line(row, ()) for row in rows)


def test_an_image_beside_the_text_costs_no_document():
    image = {"image": [{"bytes": b"\x89PNG\xff", "path": "a.png"}], "raw": pa.array([b"\xff"], pa.binary())}
    data = table_bytes(pa.table({"text": ["caption"], **image}), "parquet")
    it = opened(pa.BufferReader(data), "parquet", "a file")
    fields = read_fields(next(records(it.stream, it.records, "s", LIMIT)).raw, it.records, "web")
    held = json.loads(fields.metadata)
    assert fields.text == "caption" and held["image"]["bytes"]["bytes"] == 5 and held["raw"]["bytes"] == 1
    assert read(table_bytes(pa.table({"text": image["raw"]}), "parquet"), "parquet") == [
        ("encoding", "field text holds 1 bytes that are not UTF-8")
    ]


def test_a_map_is_an_object_and_columns_have_names_of_their_own():
    from tasks.ingest.columns import lines_of

    column = pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64()))
    assert json.loads(lines_of(pa.RecordBatch.from_arrays([column], ["m"]))) == {"m": {"k": 1}}
    with pytest.raises(ValueError, match="one name"):
        lines_of(pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"]))


ROWS = {
    "alltypes_plain": 8, "alltypes_plain.snappy": 2, "binary": 12, "byte_array_decimal": 24,
    "concatenated_gzip_members": 513, "delta_binary_packed": 200, "dict-page-offset-zero": 39,
    "fixed_length_byte_array": 1000, "float16_zeros_and_nans": 3, "hadoop_lz4_compressed": 4, "list_columns": 3,
    "lz4_raw_compressed": 4, "map_no_value": 3, "nan_in_stats": 2, "nested_maps.snappy": 6, "null_list": 1,
    "plain-dict-uncompressed-checksum": 1000, "repeated_no_annotation": 6, "rle-dict-snappy-checksum": 1000,
}  # fmt: skip


def test_the_parquet_test_files():
    folder = shared("corpora/parquet/apache-testing")
    for name, rows in ROWS.items():
        with pa.OSFile(str(folder / f"data__{name}.parquet")) as file:
            found = list(records(opened(file, "parquet", name).stream, "jsonl", "s", LIMIT))
        assert len(found) == rows, name
        assert all(record.raw.startswith(b"{") for record in found), name
    damaged = [*folder.glob("bad_data__*"), folder / "data__rle-dict-uncompressed-corrupt-checksum.parquet"]
    assert len(damaged) == 4
    for path in damaged:
        with pa.OSFile(str(path)) as file, pytest.raises(SourceError, match=f"{path.name} is damaged"):
            list(opened(file, "parquet", path.name).stream)


# Web archives


def archive(path):
    """(documents, skipped, rejected) of a WARC or ARC file, or the words of its damage."""
    claim = "arc" if ".arc" in path.name else "warc"
    try:
        with pa.OSFile(str(path)) as file:
            it = opened(file, claim, path.name, None, LIMIT)
            found = [said(record, it)[0] for record in records(it.stream, it.records, "s", LIMIT)]
    except SourceError as error:
        assert path.name in str(error)
        return "damaged"
    skipped = found.count("skip")
    rejected = sum(found.count(reason) for reason in ("empty", "encoding", "http", "html", "too_large"))
    return len(found) - skipped - rejected, skipped, rejected


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("cc-whirlwind/whirlwind.warc", (1, 3, 0)),
        ("cc-whirlwind/whirlwind.warc.gz", (1, 3, 0)),
        ("cc-whirlwind/whirlwind.warc.wat.gz", (0, 2, 0)),
        ("cc-whirlwind/whirlwind.warc.wet.gz", (1, 1, 0)),
        ("cc_net/sample.warc.txt", "damaged"),
        ("jwarc/gzip_extra_sl.warc.gz", (0, 1, 0)),
        ("resiliparse/clipped.warc.gz", "damaged"),
        ("warcio/bad.arc", (0, 1, 3)),
        ("warcio/example.arc", (1, 1, 0)),
        ("warcio/example.arc.gz", (1, 1, 0)),
        ("warcio/example-space-in-url.arc", "damaged"),
        ("warcio/example.warc", (1, 5, 0)),
        ("warcio/example-bad.warc.gz.bad", (1, 5, 0)),
        ("warcio/example-trunc.warc", "damaged"),
        ("warcio/example-iana.org-chunked.warc", (1, 2, 0)),
        ("warcio/post-test.warc.gz", (0, 6, 0)),
    ],
)
def test_real_web_archives(name, outcome):
    assert archive(shared(f"corpora/web/warc/{name}")) == outcome


def test_one_archive_packed_in_three_ways_is_one():
    folder = shared("corpora/web/warc/resiliparse")
    found = {}
    for name in ("warcfile.warc", "warcfile.warc.gz", "warcfile.warc.lz4"):
        with pa.OSFile(str(folder / name)) as file:
            it = opened(file, "warc", name)
            found[name] = [record.id for record in records(it.stream, it.records, "s", LIMIT)]
    assert len(set(map(tuple, found.values()))) == 1 and len(found["warcfile.warc"]) == 50


def warc(*payloads, kind="response", content="text/html; charset=utf-8", status="200 OK", cut=0):
    """A WARC file of HTTP answers."""
    whole = b""
    for number, payload in enumerate(payloads):
        http = f"HTTP/1.1 {status}\r\nContent-Type: {content}\r\n\r\n".encode() + payload
        head = (
            f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://a.b/{number}\r\n"
            f"WARC-Date: 2020-01-02T03:04:05Z\r\nWARC-Record-ID: <urn:uuid:{number}>\r\n"
            f"Content-Type: application/http; msgtype=response\r\n"
            f"Content-Length: {len(http)}\r\n\r\n"
        )
        whole += head.encode() + http + b"\r\n\r\n"
    return whole[: len(whole) - cut]


PAGE = "<html><body><article><p>{}</p></article></body></html>".format("A paragraph of main text in a page. " * 10)


def test_a_page_of_an_archive_and_its_headers():
    it = opened(pa.BufferReader(warc(PAGE.encode())), "warc", "a file")
    record = next(records(it.stream, it.records, "s", LIMIT))
    fields = read_fields(record.raw, it.records, "web")
    assert fields.text.startswith("A paragraph of main text") and fields.shape == "response"
    assert (fields.url, fields.created) == ("http://a.b/0", "2020-01-02T03:04:05Z")
    assert base64.b64decode(json.loads(record.raw)["payload"]) == PAGE.encode()


def test_what_of_an_archive_is_no_document():
    assert read(warc(PAGE.encode(), content="image/png"), "warc") == [("skip", "content_type")]
    assert read(warc(PAGE.encode(), status="404 Not Found"), "warc") == [("skip", "status_404")]
    assert read(warc(PAGE.encode(), kind="request"), "warc") == [("skip", "request")]
    assert read(warc(b"plain", content="text/plain"), "warc") == [("response", "plain")]
    assert read(warc(b"caf\xe9 \x81\x8d", content="text/plain"), "warc")[0][0] == "encoding"
    assert read(warc("красный дом стоит".encode("cp1251"), content="text/plain; charset=windows-1251"), "warc") == [
        ("response", "красный дом стоит")
    ]
    assert read(warc(b"x" * 50_000, content="text/plain"), "warc", limit=60_000)[0][0] == "too_large"
    assert read(warc(b"x" * 40_000, content="text/plain"), "warc", limit=60_000)[0][0] == "response"


@pytest.mark.parametrize("cut", [5, 30, 200])
def test_a_truncated_archive_is_damage(cut):
    with pytest.raises(SourceError, match="a file is damaged"):
        read(warc(PAGE.encode(), PAGE.encode(), cut=cut), "warc")
    with pytest.raises(SourceError, match="a file is damaged"):
        read(packed(warc(PAGE.encode()), "gz")[: -cut // 4], "warc.gz")
    with pytest.raises(SourceError, match="holds no record"):
        read(b"", "warc")


# Text


@given(
    st.lists(st.sampled_from(["a", "bc", " ", "\t", "\r", "\n", "\r\n", "\u2028", "\n\n", "é"])).map("".join),
    st.integers(1, 5),
)
def test_paragraphs_however_the_blocks_fall(text, step):
    data = text.encode()
    blocks = [data[at : at + step] for at in range(0, len(data), step)]
    found = list(records(blocks, "paragraphs", "s", 1000))
    lines, wanted = data.split(b"\n"), []
    for number, line in enumerate(lines):
        if line.strip(b" \t\r"):
            if wanted and wanted[-1][1] == number - 1:
                wanted[-1] = (wanted[-1][0], number)
            else:
                wanted.append((number, number))
    joined = [b"\n".join(lines[first : last + 1]).removesuffix(b"\r") for first, last in wanted]
    assert [record.raw for record in found] == joined
    assert [record.number for record in found] == [first for first, _ in wanted]
    assert all(data[record.offset : record.offset + record.size] == record.raw for record in found)


def test_lines_and_paragraphs_of_a_text():
    text = b"one\nstill one\n\n \ntwo\n"
    assert read(text, "paragraphs") == [("paragraph", "one\nstill one"), ("paragraph", "two")]
    assert read(packed(text, "bz2"), "lines.bz2") == [("line", "one"), ("line", "still one"), ("line", "two")]
    assert read(b"caf\xe9\nok\n", "lines") == [("encoding", read(b"caf\xe9\nok\n", "lines")[0][1]), ("line", "ok")]


# PDF


def pdf(text):
    """A PDF of one page, with `text` as its text layer, or none."""
    stream = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET".encode() if text else b""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources "
        b"<< /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    whole, places = b"%PDF-1.4\n", []
    for number, held in enumerate(objects, 1):
        places.append(len(whole))
        whole += b"%d 0 obj\n%s\nendobj\n" % (number, held)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return whole + b"xref\n0 6\n0000000000 65535 f \n%strailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (
        table,
        len(whole),
    )


def test_pdf():
    assert read(pdf("A text layer."), "pdf") == [("pdf", "A text layer.")]
    assert read(pdf(""), "pdf")[0][0] == "no_text_layer"
    assert read(b"%PDF-1.4 nothing more", "pdf")[0][0] == "pdf"
    assert read(b"plain", "pdf")[0][0] == "pdf"
