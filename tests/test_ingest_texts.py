"""Small files of text that are read together give the rows, units and errors of files that are read one by one."""

import gzip
import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.errors import SourceError
from tasks.ingest import reading as long
from tasks.ingest import texts as short
from tasks.ingest.gathering import WHOLE, Limits, Reading
from tasks.ingest.how import How
from tasks.ingest.texts import Texts

SHARED = Path(__file__).parents[2] / "shared"
LIMITS = Limits(2000, {"book": 1000})
MOST = {"whole_bytes_max": 5000}
KINDS = ["web", "code", "book", "chat"]


def rows(reading):
    tables = (reading.documents.table(), reading.places.table(), reading.rejects.table())
    return *(table.to_pylist() for table in tables), dict(reading.counted)


def one_by_one(files, kind, how, limits):
    reading, units = Reading("s", kind, how, limits), []
    for name, data in files.items():
        units.append(f"text\n{hashlib.sha256(data).hexdigest()}\n".encode())
        long._add_whole(reading, long.Span(name, "text", "", 0, WHOLE, 0), data, f"s: {name}", MOST["whole_bytes_max"])
    return rows(reading), units


def together(files, kind, how, limits):
    reading, units, texts = Reading("s", kind, how, limits), [], Texts()
    for name, data in files.items():
        texts.add(name, data)
    assert long._add_texts(reading, texts, MOST, units).files == []
    return rows(reading), units


def agree(files, kind="web", how=How(), limits=LIMITS):  # noqa: B008 - it is frozen
    found = together(files, kind, how, limits)
    assert found == one_by_one(files, kind, how, limits)
    return found[0]


ODD = [
    b"plain\n",
    b"",
    b" \n",
    "漢字 é".encode(),
    b"\xef\xbb\xbfwith a mark",
    b"\xef\xbb\xbf",
    "wide".encode("utf-16"),
    "wide without a mark".encode("utf-16-le"),
    b"a NUL \0 within",
    "日本語の文".encode("iso-2022-jp"),
    b"an escape \x1b[0m of a terminal",
    "größer als Münster, schöne Grüße".encode("latin-1"),
    b"no encoding \x81\x8d\xff\xfe\x00",
    "Ã© Ã¨ Ã¼ were letters".encode(),
    "Ã© and a right é".encode(),
    b"BZh is how bzip2 begins",
    b"PAR1 or Parquet",
    b"ARROW1",
    b"WARC/1.0 is how an archive begins",
    b"%PDF-1.4 and no PDF",
    b"filedesc:// of an old one",
    b"x" * 1001,
    ("é" * 1000).encode(),
    b"x" * 2001,
    b"y" * 2000,
    b"ends in a return\r",
    gzip.compress(b"packed under the name of a text", mtime=0),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("declared", [None, "gbk"])
def test_odd_files(kind, declared):
    read, how = {}, How(encoding=declared)
    for name, data in enumerate(ODD):
        try:
            one_by_one({str(name): data}, kind, how, LIMITS)
        except SourceError as error:
            with pytest.raises(SourceError) as found:
                together({str(name): data}, kind, how, LIMITS)
            assert str(found.value) == str(error)
        else:
            read[str(name)] = data
    assert len(ODD) - 5 <= len(read) <= len(ODD) - 2
    documents, places, rejects, counted = agree(read, kind, how)
    assert len(rejects) >= 3 and counted["records_in"] == len(read) and len(places) == len(documents) > 12


def test_a_file_is_a_document_named_by_its_bytes():
    documents, places, rejects, counted = agree({"a/b.txt": b"one\n", "c.txt": "zwei é".encode()})
    assert [row["text"] for row in documents] == ["one\n", "zwei é"] and not rejects
    assert [row["id"] for row in documents] == [
        hashlib.sha256(b"s\0" + data).hexdigest()[:32] for data in (b"one\n", "zwei é".encode())
    ]
    assert [tuple(row.values()) for row in places] == [("a/b.txt", 0, 0, 4, 0), ("c.txt", 0, 0, 7, 0)]
    assert counted == {"documents|shape=file": 2, "records_in": 2}


def test_a_file_above_the_bytes_of_a_part_is_refused_by_name():
    for way in (one_by_one, together):
        with pytest.raises(SourceError, match=r"s: large.txt unpacks to more than 5000 bytes"):
            way({"small.txt": b"x", "large.txt": b"y" * 5001}, "web", How(), Limits(1 << 20, {}))


@given(
    st.lists(
        st.lists(
            st.sampled_from(
                [b"a", b"\n", b"\r", "é".encode(), "Ã©".encode(), b"\xff", b"\0", b"\x1b$B", b"word " * 99]
            ),
            max_size=6,
        ).map(b"".join),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from(KINDS),
)
def test_both_ways_agree(files, kind):
    agree({str(number): data for number, data in enumerate(files)}, kind)


def test_real_files(monkeypatch):
    paths = [path for path in sorted((SHARED / "corpora/web/encodings").rglob("*")) if path.is_file()]
    if not paths:
        pytest.skip("the shared corpora are not here")
    monkeypatch.setitem(MOST, "whole_bytes_max", 1 << 20)
    for kind in ("web", "code"):
        agree({str(path): path.read_bytes() for path in paths[::7]}, kind, limits=Limits(1 << 20, {}))


def test_files_are_read_in_their_order_in_pieces_of_any_size(monkeypatch):
    files = {str(number): f"text {number} ".encode() * 9 for number in range(20)}
    monkeypatch.setattr(short, "TOGETHER", 100)
    parts, texts = [], Texts()
    for name, data in files.items():
        if texts.full:
            parts, texts = [*parts, texts], Texts()
        texts.add(name, data)
    assert len(parts) == 9
    assert agree(files)[0] == [
        row for one in [*parts, texts] for row in agree(dict(zip(one.names, one.files, strict=True)))[0]
    ]
