"""The quick ways of ingest give the very rows of the long ones: the same tables, ids, places and counts."""

import datetime
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.ingest import gathering
from tasks.ingest.columns import lines_of
from tasks.ingest.containers import Opened, opened
from tasks.ingest.gathering import Limits, Reading
from tasks.ingest.how import How
from tasks.ingest.quick import quick_row
from tasks.ingest.ranges import Range
from tasks.ingest.records import records
from tasks.ingest.scans import as_rows, rows_of, stretches, write_scan

SHARED = Path(__file__).parents[2] / "shared"
LIMITS = Limits(1 << 20, {"book": 1000})
LINES = Opened("jsonl", True, iter(()))
ROWS = Opened("parquet", False, iter(()))


def rows(reading):
    tables = (reading.documents.table(), reading.places.table(), reading.rejects.table())
    return *(table.to_pylist() for table in tables), dict(reading.counted)


def the_long_way(data, kind="web", it=LINES):
    """Records one by one through tasks.ingest.fields alone."""
    reading = Reading("s", kind, How(), LIMITS)
    for record in records([data], "jsonl", "s", LIMITS.record):
        reading._look("f", it, record)
    return rows(reading)


def the_quick_way(data, folder, kind="web"):
    """Records as a scan finds them."""
    file, scan = folder / "data", folder / "scan"
    file.write_bytes(data)
    lines = Range(file, "s", LIMITS.record, 0, len(data))
    write_scan(scan, lines.rows(), lambda: lines.lines)
    reading = Reading("s", kind, How(), LIMITS)
    for stretch in stretches(file, rows_of(scan), LIMITS.record):
        reading.add_rows("f", LINES, stretch)
    return rows(reading)


def one_by_one(data, kind="web"):
    reading = Reading("s", kind, How(), LIMITS)
    for record in records([data], "jsonl", "s", LIMITS.record):
        reading.add("f", LINES, record)
    return rows(reading)


def agree(data, folder, kind="web"):
    wanted = the_long_way(data, kind)
    assert the_quick_way(data, folder, kind) == wanted
    assert one_by_one(data, kind) == wanted
    return wanted


ODD = [
    b'{"text": "a"}',
    b'{"text": ""}',
    b'{"text": null, "content": "c"}',
    b'{"content": "c", "url": "u", "n": 1}',
    b'{"content": "c", "text": ["a", "b"]}',
    b'{"text": "a", "url": null, "created": 3}',
    b'{"text": "a", "url": "", "created": "2020"}',
    b'{"url": "u", "text": "a", "z": [1, {"b": 1.0}], "a": {}}',
    b'{"text": "a", "score": 1e-7, "big": 123456789012345678901234567890}',
    b'{"text": "a", "score": NaN}',
    b'{"text": "a", "n": 18446744073709551615, "m": -9223372036854775808}',
    b'{"text": "a", "text": "b", "k": 1, "k": 2}',
    '{"text": "é Ã©Ã©Ã©Ã©Ã©Ã©Ã©Ã©Ã©"}'.encode(),
    '{"text": "Ã©Ã©Ã©Ã©Ã©Ã©Ã©Ã©Ã©", "n": 1}'.encode(),
    b'{"text": "\\ud83d"}',
    b'{"text": "\\ud83d\\ude00 \\u0000"}',
    b'{"text": "a", "k": "\\udc00"}',
    b'{"text": "a\xff"}',
    b'{"text": "a\x00"}',
    b'[{"role": "user", "content": "q"}]',
    b'{"messages": [{"role": "user", "content": "q"}]}',
    b'{"instruction": "i", "output": "o"}',
    b'{"text": 3}',
    b'"text"',
    b"7",
    b"{}",
    b"{",
    b"\xef\xbb\xbf{}",
    b'{"text": "' + b"x" * 3000 + b'"}',
    b'{"text": "' + b"long paragraph\\n\\n" * 300 + b'"}',
    b'{"text": "' + b"y" * LIMITS.record + b'"}',
    b" \t\r",
    b"",
    b' {"text": "blank before"} \r',
]


@pytest.mark.parametrize("kind", ["web", "code", "book", "chat"])
def test_odd_records(tmp_path, kind):
    documents, _, rejects, _ = agree(b"\n".join([*ODD, *reversed(ODD)]), tmp_path, kind)
    assert len(documents) > 20 and len(rejects) > 20


@pytest.mark.parametrize(
    "name", ["corpora/jsonl", "corpora/json-parsing", "corpora/derived-containers", "cases", "corpora/code"]
)
def test_real_records(tmp_path, name):
    folder = SHARED / name
    if not folder.exists():
        pytest.skip("the shared corpora are not here")
    files = [path for path in sorted(folder.rglob("*.json*")) if path.suffix in (".json", ".jsonl")]
    assert files
    for path in files:
        agree(path.read_bytes()[: 4 << 20], tmp_path)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(["text", "content", "url", "created", "n", "é", "messages"])
RECORDS = st.dictionaries(NAMES, st.text(max_size=20) | VALUES, max_size=5)


@given(st.lists(RECORDS, max_size=6), st.booleans(), st.sampled_from(["web", "code", "chat"]))
@settings(max_examples=300)
def test_any_record(tmp_path_factory, values, escaped, kind):
    data = b"\n".join(json.dumps(value, ensure_ascii=escaped).encode("utf-8", "surrogatepass") for value in values)
    agree(data, tmp_path_factory.getbasetemp(), kind)


BLANKS, KEYS = [b"", b" ", b"\t\r"], [b'"text"', b'"text"', b'"content"', b'"url"', b'"te\\u0078t"', '"é"'.encode()]
PIECES = [
    *(b'"' + b"y" * size + end + b'"' for size in (30, 31, 32, 64) for end in (b"\\n", b'\\"', b"\\u00e9", b"{]")),
    *(
        b'"x"',
        b'""',
        b"1",
        b"-0",
        b"1.5",
        b"1e19",
        b"null",
        b"[1,{}]",
        b'{"text":"in"}',
        b'"\\ud83d\\ude00"',
        b'"\\ud83d"',
    ),
    *(b'"\\', b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\", b'"\xff"', b'"\x01"', b"NaN", b'"\\u00z0"', b"\x00"),
]
FIELDS = st.tuples(*map(st.sampled_from, (BLANKS, KEYS, BLANKS, BLANKS, PIECES[:27], BLANKS))).map(
    lambda part: part[0] + part[1] + part[2] + b":" + b"".join(part[3:])
)
LINES_OF_ANY_KIND = st.builds(
    lambda fields, at, piece, cut: (
        (line := b"{" + b",".join(fields) + b"}")[: at or len(line)] + piece + line[(at or len(line)) + cut :]
    ),
    st.lists(FIELDS, max_size=4),
    st.integers(0, 60),
    st.sampled_from([b"", b"", b"", *PIECES]),
    st.integers(0, 2),
)


@given(st.lists(LINES_OF_ANY_KIND, max_size=6), st.sampled_from(["web", "code", "book"]))
@settings(max_examples=300)
def test_any_line(tmp_path_factory, lines, kind):
    """Objects with odd fields, whole and spoilt at some byte."""
    agree(b"\n".join(lines), tmp_path_factory.getbasetemp(), kind)


def test_lines_that_make_objects_only_together(tmp_path):
    """What is left of records is parsed in one go: no value may reach from a record into the next."""
    whole = b'{"text": "t", "n": 1}'
    for one, other in [
        (b'{"text": "a", "n": [1', b"2]}"),
        (b'{"text": "a"},{"text": "b"}', b""),
        (b'{"text": "a", "n": "', b'"}'),
        (b'{"text": "a"}]', b'[{"text": "b"}'),
    ]:
        documents, _, rejects, _ = agree(b"\n".join([whole, one, whole, other, whole]), tmp_path)
        assert len(documents) == 3 and len(rejects) == 1 + bool(other)


def test_the_quick_way_is_taken():
    """Else all of the above says nothing."""
    assert quick_row(b'{"text": "a", "n": 1, "url": "u"}', False) == ("a", None, None, "u", None, '{"n":1}', "text")
    assert quick_row(b'{"content": "a"}', False) == ("a", None, None, None, None, None, "content")


# Lines of a file, range by range


@given(
    st.lists(
        st.sampled_from([b"\n", b"\r", b"\r\n", b"ab", b" ", b"\t", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"x" * 30, b"\0"])
    ).map(b"".join),
    st.integers(1, 40),
    st.sampled_from([4, 16, 1 << 20]),
    st.integers(1, 50),
)
@settings(max_examples=300)
def test_ranges_hold_every_line_once(tmp_path_factory, data, step, block, limit):
    """Whatever the ranges and blocks, the records are those of one pass, place by place and digest by digest."""
    file = tmp_path_factory.mktemp("ranges") / "data"
    file.write_bytes(data)
    wanted = as_rows(list(records([data], "jsonl", "s", limit)))
    found, lines = [], 0
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("tasks.ingest.ranges.BLOCK", block)
        for start in range(0, max(1, len(data)), step):
            each = Range(file, "s", limit, start, start + step)
            for chunk in each.rows():
                chunk["number"] += lines
                found += chunk.tolist()
            lines += each.lines
    assert [row[:3] for row in found] == [row[:3] for row in wanted.tolist()]
    assert [bytes(row[3]) for row in found] == [bytes(row[3]) for row in wanted.tolist()]


# Rows of Arrow


def both_ways(table, kind="web"):
    quick, long = Reading("s", kind, How(), LIMITS), Reading("s", kind, How(), LIMITS)
    number = 0
    for batch in table.to_batches(max_chunksize=7):
        quick.add_batch("f", ROWS, batch, number)
        for record in records([lines_of(batch)], "jsonl", "s", LIMITS.record, 1, number):
            long._look("f", ROWS, record)
        number += batch.num_rows
    assert quick.documents.table().schema == long.documents.table().schema
    assert rows(quick) == rows(long)
    return rows(quick)


FLOATS = [1.5, float("nan"), float("inf"), None, 1e-7, 1e22, -0.0, 1e16, 0.1, 123456789.123]


@pytest.mark.parametrize("text", ["text", "content"])
@pytest.mark.parametrize(
    "values",
    [
        pa.array(FLOATS),
        pa.array(FLOATS, pa.float32()),
        pa.array(range(10), pa.int8()),
        pa.array([2**64 - 1] * 10, pa.uint64()),
        pa.array([True, None] * 5),
        pa.array(["é\n", None] * 5).dictionary_encode(),
        pa.array(["é", "b"] * 5, pa.string_view()),
        pa.array([datetime.datetime(2020, 1, 2, 3, n) for n in range(10)], pa.timestamp("us")),
        pa.array([datetime.datetime(2020, 1, 2, 3, n) for n in range(10)], pa.timestamp("ns", "UTC")),
        pa.array([datetime.date(2020, 1, 2)] * 10),
        pa.array([datetime.time(3, 4)] * 10, pa.time64("us")),
        pa.array([datetime.timedelta(3)] * 10),
        pa.array([[1.5]] * 10),
        pa.array([{"a": 1}] * 10),
        pa.array([b"\xff"] * 10),
        pa.nulls(10),
    ],
    ids=lambda values: str(values.type),
)
def test_columns_of_every_type(text, values):
    texts = pa.array([f"text {n} “x”" for n in range(10)])
    documents, places, _, _ = both_ways(pa.table({text: texts, "created": values, "url": values, "x": values}))
    assert len(documents) == 10 and [place["record"] for place in places] == list(range(10))


@pytest.mark.parametrize("kind", ["web", "code", "book", "chat"])
@pytest.mark.parametrize(
    "texts",
    [
        pa.array(["a", None, "", "c"] * 4),
        pa.array(["a", "Ã©Ã©Ã©Ã©Ã©Ã©Ã©Ã©Ã©"] * 8),
        pa.array(["para\n\n" * 400, "b"] * 8, pa.large_string()),
        pa.array(["y" * LIMITS.record, "b"] * 2),
        pa.array(["a", "b"] * 8).dictionary_encode(),
        pa.array([b"ok", b"\xff"] * 8, pa.binary()).view(pa.string()),
        pa.array([["a", "b"]] * 16),
    ],
    ids=range(7),
)
def test_texts_that_want_care(kind, texts):
    both_ways(pa.table({"text": texts, "n": pa.array(range(len(texts)))}), kind)
    both_ways(pa.table({"text": texts}), kind)


@given(st.lists(st.tuples(st.none() | st.text(max_size=9), st.none() | st.floats(), st.none() | st.text(max_size=4))))
def test_any_rows(values):
    texts, floats, urls = zip(*values, strict=True) if values else ((), (), ())
    columns = {
        "text": pa.array(texts, pa.string()),
        "f": pa.array(floats, pa.float64()),
        "url": pa.array(urls, pa.string()),
    }
    both_ways(pa.table(columns))


MENDED = "Ã©Ã©Ã©Ã©Ã©Ã©Ã©Ã©Ã©"


@pytest.mark.parametrize("kind", ["web", "code", "book"])
def test_rows_that_want_care_leave_the_others_alone(kind):
    """Nulls, empty, spoilt and long texts by turns, at the ends too; numbers, nulls and names in the way of sorting."""
    texts = [None, "a", "", "b “q”\n", MENDED, "c", "long " * 400, "long\n\n" * 300, "y" * (LIMITS.record - 9), None]
    many = pa.table(
        {
            "é": pa.array([None, *range(9)] * 3),
            "text": pa.array(texts * 3),
            "url": pa.array([None, "u\t", "", *"abcdefg"] * 3, pa.large_string()),
            "created": pa.array(["2020"] * 30).dictionary_encode(),
            'a"': pa.array([True, None] * 15),
        }
    )
    documents, places, rejects, counted = both_ways(many, kind)
    assert len({place["record"] for place in places}) + len(rejects) == counted["records_in"] == 30
    assert {reject["reason"] for reject in rejects} == {"no_text", "empty", "too_large"}
    assert [row["text"] for row in documents if row["text"] in ("a", "c")] == ["a", "c"] * 3


def test_times_beyond_the_calendar_are_read_as_numbers():
    """Arrow holds years that Python's calendar does not."""
    late = pa.array([2**62, 0], pa.timestamp("s"))
    documents, _, _, _ = both_ways(pa.table({"text": ["a", "b"], "late": late}))
    assert [json.loads(row["metadata"])["late"] for row in documents] == [2**62, 0]


def test_real_columns():
    files = [
        *(SHARED / "corpora/derived-containers").glob("*.parquet"),
        *(SHARED / "corpora/parquet").rglob("*.parquet"),
    ]
    if not files:
        pytest.skip("the shared corpora are not here")
    read = 0
    for path in sorted(files):
        try:
            table = pq.ParquetFile(path).read()
            lines_of(table.slice(0, 1).combine_chunks().to_batches()[0]) if table.num_rows else None
        except (pa.ArrowException, OSError, ValueError, IndexError, OverflowError):
            continue
        both_ways(table.slice(0, 400))
        read += 1
    assert read > 10


def test_texts_of_a_batch_stay_in_their_buffers():
    texts = pa.array(["a", "b"], pa.large_string())
    reading = Reading("s", "web", How(), LIMITS)
    reading.add_batch("f", ROWS, pa.RecordBatch.from_arrays([texts], ["text"]), 0)
    kept = reading.documents.table()["text"].chunk(0)
    assert [buffer.address for buffer in kept.buffers()[1:]] == [buffer.address for buffer in texts.buffers()[1:]]
    rows = gathering.quick_rows(pa.RecordBatch.from_arrays([texts], ["text"]), "s", "web", 9, None)
    assert rows is not None and not rows.known.any()


def test_a_packed_group_file_keeps_its_own_words():
    with pytest.raises(Exception, match="unpack it"):
        list(opened(pa.BufferReader(pa.compress(b"PAR1" * 9, "gzip", asbytes=True)), "parquet", "f").stream)
