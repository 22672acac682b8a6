"""ingest: parts, records, formats, rejects; what a change costs; what is damaged."""

import datetime
import gzip
import hashlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.artifacts.documents import DOCUMENTS, PLACES, REJECTS
from tasks.artifacts.manifest import Manifest
from tasks.errors import InvariantError, ParamsError, SourceError
from tasks.ingest import STEP, reading
from tasks.ingest.fields import Reject, read_fields
from tasks.ingest.planning import take
from tasks.ingest.records import records
from tasks.perform import perform
from tasks.project import Project
from tests.ingest_projects import SIZES, build, lay, lines, many, read, rows, texts

pytestmark = pytest.mark.usefixtures("no_suite")

SHARED = Path(__file__).parents[2] / "shared"


# Records


def test_a_document_and_its_place(tmp_path):
    line = lines({"text": "día\n", "url": "u", "created": "2020-01-01", "b": 1, "a": [None]})
    documents, places, rejects = read(tmp_path, {"a.jsonl": "\n" + line})
    document = documents[0]
    assert document["text"] == "día\n" and document["url"] == "u" and document["created"] == "2020-01-01"
    assert document["metadata"] == '{"a":[null],"b":1}' and document["messages"] is None
    assert (document["source"], document["kind"]) == ("s", "web")
    raw = line.rstrip("\n").encode()
    assert document["id"] == hashlib.sha256(b"s\0" + raw).hexdigest()[:32]
    assert places[0] | {"part": ""} == {
        "part": "",
        "file": "a.jsonl",
        "record": 1,
        "offset": 1,
        "bytes": len(raw),
        "piece": 0,
    }
    assert rejects == []


@pytest.mark.parametrize(
    ("raw", "kind", "text"),
    [
        ('{"content": "c"}', "web", "c"),
        ('{"text": null, "content": "c"}', "web", "c"),
        ('{"text": "t", "content": "c", "messages": []}', "web", "t"),
        ('{"text": "a", "text": "b"}', "web", "b"),
        (' {"text": "\\ud83c\\udf78 \\u0000"}\t', "web", "\U0001f378 \0"),
        (
            '{"messages": [{"role": "user", "content": "q"}, {"role": "bot", "content": "é"}]}',
            "web",
            "q\n\né",
        ),
        ('{"text": "t", "messages": [{"role": "user", "content": "q"}]}', "chat", "q"),
        ('[{"role": "user", "content": "q"}]', "chat", "q"),
        ('{"text": "\u2028 \ufeff"}', "web", "\u2028 \ufeff"),
    ],
)
def test_where_the_text_is(raw, kind, text):
    assert read_fields(raw.encode(), "jsonl", kind).text == text


@pytest.mark.parametrize(
    ("raw", "reason", "words"),
    [
        (b'{"text": "a\xff"}', "encoding", "byte 11 (0xff)"),
        (b'{"text": "a"', "json", "Expecting"),
        (b'{"text": "a"} x', "json", "Extra data"),
        (b'{"text": "a\x00b"}', "json", "control character"),
        (b"\x00\x00", "json", "Expecting value"),
        (b'{"text": "a", "score": NaN}', "json", "NaN is not JSON"),
        (b'{"text": "a", "score": -Infinity}', "json", "-Infinity is not JSON"),
        (b'{"text": "a", "score": 1e999}', "json", "1e999 is beyond 64-bit floats"),
        (b'{"text": "a", "n": ' + b"1" * 5000 + b"}", "json", "digits"),
        (b'{"text": "a", "m": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "json", "nested too deeply"),
        (b'{"text": "bad \\ud835 half"}', "surrogate", "U+D835"),
        (b'{"text": "a", "title": "\\ude00\\ud83d"}', "surrogate", "U+DE00"),
        (b'{"text": 3}', "type", "field text is a number"),
        (b'{"text": ["a", 1]}', "type", "field text is a list"),
        (b'{"text": []}', "type", "field text is a list"),
        (b"7", "type", "the record is a number"),
        (b'"text"', "type", "the record is text"),
        (b'{"body": "a", "id": 1}', "no_text", "its fields: body, id"),
        (b"{}", "no_text", "none"),
        (b'{"text": null}', "no_text", "text"),
        (b'{"text": ""}', "empty", "no characters"),
        (b'{"messages": []}', "empty", "no characters"),
        (b'{"messages": {}}', "type", "messages is an object"),
        (b'{"messages": [{"role": "user"}]}', "type", "message 0 has null as its content"),
        (b'{"messages": ["a"]}', "type", "message 0"),
    ],
)
def test_what_is_no_document(raw, reason, words):
    with pytest.raises(Reject) as caught:
        read_fields(raw, "jsonl", "web")
    assert caught.value.reason == reason and words in caught.value.detail


def test_what_a_message_holds_besides_is_kept():
    raw = b'{"messages": [{"role": "a", "content": "x", "name": "n"}, {"role": "b", "content": "y"}], "id": 7}'
    assert read_fields(raw, "jsonl", "chat").metadata == '{"id":7,"messages":[{"name":"n"},{}]}'


def test_json_is_as_strict_as_its_test_suite():
    suite = SHARED / "corpora/json-parsing"
    if not suite.exists():
        pytest.skip("the shared corpora are not here")

    def accepted(raw):
        try:
            read_fields(b'{"text": "t", "value": ' + raw + b"}", "jsonl", "web")
        except Reject as reject:
            assert reject.reason in ("json", "encoding", "surrogate")
            return False
        return True

    for file in sorted(suite.glob("[yn]_*.json")):
        raw = file.read_bytes()
        if not raw.startswith(b"\xef\xbb\xbf") and b'"' not in raw[:1] and b"//" not in raw:
            assert accepted(raw) == file.name.startswith("y_"), file.name


def split_by_the_words(data):
    """Lines as the docstring says: (number, offset, raw)."""
    begin = 3 if data.startswith(b"\xef\xbb\xbf") else 0
    found, offset = [], begin
    for number, line in enumerate(data[begin:].split(b"\n")):
        raw = line[:-1] if line.endswith(b"\r") else line
        if raw.strip(b" \t\r"):
            found.append((number, offset, raw))
        offset += len(line) + 1
    return found


@given(
    st.lists(st.sampled_from([b"\n", b"\r", b"\r\n", b"ab", b" ", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"x" * 30])).map(
        b"".join
    ),
    st.lists(st.integers(1, 7), min_size=1),
    st.integers(1, 40),
)
def test_records_are_lines_however_the_blocks_fall(data, steps, limit):
    blocks, at = [], 0
    while at < len(data):
        step = steps[len(blocks) % len(steps)]
        blocks.append(data[at : at + step])
        at += step
    found = list(records(blocks, "jsonl", "s", limit))
    wanted = split_by_the_words(data)
    assert [(r.number, r.offset, r.size) for r in found] == [(n, o, len(raw)) for n, o, raw in wanted]
    whole = list(records([data], "jsonl", "s", 1000))
    assert [r.digest for r in whole] == [r.digest for r in found]
    for record, (_, _, raw) in zip(found, wanted, strict=True):
        assert record.raw == (raw if len(raw) <= limit else None)
        assert record.raw is not None or raw.startswith(record.head)


def test_a_span_reads_as_the_whole_does():
    data = lines(*many(40)).encode()
    whole = list(records([data], "jsonl", "s", 1000))
    first, last = whole[10], whole[19]
    span = data[first.offset : last.offset + last.size]
    assert list(records([span], "jsonl", "s", 1000, first.offset, first.number)) == whole[10:20]


# Formats


def test_a_byte_order_mark_changes_nothing(tmp_path):
    plain = lines({"text": "a"}, {"text": "b\ufeff"})
    one, _, _ = read(tmp_path / "one", {"a.jsonl": plain, "t.txt": "text"})
    two, places, _ = read(tmp_path / "two", {"a.jsonl": "\ufeff" + plain, "t.txt": "\ufefftext"})
    assert [{**row, "part": ""} for row in one] == [{**row, "part": ""} for row in two]
    assert [place["offset"] for place in places] == [3, 3 + len(plain.split("\n")[0]) + 1, 3]


def test_a_byte_order_mark_of_a_larger_file(tmp_path):
    files = {
        "a.jsonl": "\ufeff" + lines(*many(40)),
        "b.txt": "\ufefftext",
        "c.jsonl.gz": gzip.compress(b"\xef\xbb\xbf{}"),
    }
    documents, places, rejects = read(tmp_path, files, small_file_bytes=1)
    assert [row["text"] for row in documents] == [row["text"] for row in many(40)] + ["text"]
    assert (places[0]["offset"], places[40]["offset"], places[40]["bytes"]) == (3, 3, 4)
    assert (rejects[0]["offset"], rejects[0]["bytes"]) == (3, 2)


def test_a_small_file_that_unpacks_to_too_much(tmp_path, monkeypatch):
    monkeypatch.setattr("tasks.ingest.planning.UNPACKED_MIN", 1024)
    bomb = gzip.compress(lines(*[{"text": "x" * 100}] * 1000).encode())
    with pytest.raises(SourceError, match=r"s: a\.jsonl\.gz unpacks to more than 65536 bytes.*small_file_bytes"):
        build(tmp_path, {"a.jsonl.gz": bomb})
    _, report = build(tmp_path, {}, small_file_bytes=len(bomb))
    assert report.counts["documents_out"] == 1000


def test_all_containers_give_the_same_documents(tmp_path):
    folder = SHARED / "corpora/derived-containers"
    if not folder.exists():
        pytest.skip("the shared corpora are not here")
    wanted = [json.loads(line)["text"] for line in (folder / "docs.jsonl").read_text().split("\n") if line]
    found = {}
    for name in (
        "jsonl",
        "multi-member.jsonl.gz",
        "multi-frame.jsonl.zst",
        "jsonl.bz2",
        "jsonl.xz",
        "csv",
        "none.parquet",
        "snappy.parquet",
        "gzip.parquet",
        "zstd.parquet",
    ):
        for small in (1, 1 << 20) if name in ("jsonl", "jsonl.xz", "csv", "zstd.parquet") else (1 << 20,):
            root = tmp_path / f"{name}-{small}"
            how = {"small_file_bytes": small, "part_bytes": 1 << 20, "part_bytes_max": 4 << 20}
            project, report = build(root, {f"docs.{name}": (folder / f"docs.{name}").read_bytes()}, **how)
            assert texts(project) == wanted and report.counts["records_in"] == 300
            found[name, small] = [row["id"] for row in rows(project, "documents")]
    assert len({tuple(ids) for (name, _), ids in found.items() if "jsonl" in name}) == 1
    assert len({tuple(ids) for (name, _), ids in found.items() if "parquet" in name}) == 1


def test_gzip_members(tmp_path):
    two = SHARED / "cases/04-gzip-multimember"
    if not two.exists():
        pytest.skip("the shared cases are not here")
    name = "two.jsonl.gz"
    documents, _, _ = read(tmp_path / "one", {name: (two / name).read_bytes()})
    assert len(documents) == 7
    with pytest.raises(SourceError, match=r"two_plus_garbage\.jsonl\.gz is damaged"):
        read(tmp_path / "two", {"two_plus_garbage.jsonl.gz": (two / "two_plus_garbage.jsonl.gz").read_bytes()})


@pytest.mark.parametrize("small", [1, 1 << 20])
@pytest.mark.parametrize("cut", [1, 9, 200])
def test_a_truncated_file_fails_by_name(tmp_path, small, cut):
    raw = lines(*many(200)).encode()
    files = {"b.jsonl.gz": gzip.compress(raw), "b.jsonl.zst": pa.compress(raw, "zstd", asbytes=True)}
    for name, data in files.items():
        with pytest.raises(SourceError, match=rf"s: {name} is damaged: .*; fetch it again"):
            build(
                tmp_path / name,
                {name: data[:-cut], "a.txt": "a"},
                small_file_bytes=small,
                part_bytes=1 << 20,
                part_bytes_max=1 << 22,
            )
        assert not (tmp_path / name / "data/ingest").exists()


@pytest.mark.parametrize("small", [1, 1 << 20])
@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl.gz", "a.jsonl.zst"])
def test_what_is_no_file_of_its_format_fails_by_name(tmp_path, name, small):
    empty = b"" if name == "a.parquet" else b"PAR1"
    for number, data in enumerate((b"", empty, b"no such \0file" * 300)):
        with pytest.raises(SourceError, match=f"{name} is damaged"):
            build(
                tmp_path / str(number),
                {name: data},
                small_file_bytes=small,
                part_bytes=1 << 20,
                part_bytes_max=1 << 22,
            )


def parquet(**columns):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue().to_pybytes()


def test_parquet_types(tmp_path):
    data = parquet(
        text=pa.array(["a", None, "c"]),
        when=pa.array([datetime.datetime(2020, 1, 2)] * 3, pa.timestamp("us")),
        score=pa.array([1.5, float("nan"), float("inf")]),
        tags=pa.array([["x"], [], None], pa.list_(pa.string())),
        label=pa.array(["p", "q", "p"]).dictionary_encode(),
    )
    documents, places, rejects = read(tmp_path, {"a.parquet": data})
    assert [row["text"] for row in documents] == ["a", "c"] and rejects[0]["reason"] == "no_text"
    assert documents[0]["metadata"] == '{"label":"p","score":1.5,"tags":["x"],"when":"2020-01-02T00:00:00"}'
    assert documents[1]["metadata"] == '{"label":"p","score":null,"tags":null,"when":"2020-01-02T00:00:00"}'
    assert [(place["record"], place["offset"]) for place in places] == [(0, -1), (2, -1)]


def test_parquet_text_that_is_none(tmp_path):
    binary = parquet(text=pa.array(["café".encode(), "caf\xe9".encode("latin1")], pa.binary()))
    listed = parquet(text=pa.array([["a"], ["b"]]))
    nothing = parquet(text=pa.nulls(2))
    invalid = pa.array([b"ok", b"\xff\xfe"], pa.binary()).view(pa.string())
    files = {
        "a.parquet": binary,
        "b.parquet": listed,
        "c.parquet": nothing,
        "d.parquet": parquet(text=invalid),
    }
    documents, _, rejects = read(tmp_path, files)
    assert [row["text"] for row in documents] == ["café", "a", "b", "ok"]
    assert [(row["file"][0], row["reason"]) for row in rejects] == [
        ("a", "encoding"), ("c", "no_text"), ("c", "no_text"), ("d", "encoding"),
    ]  # fmt: skip


def test_code_is_text_by_its_suffix(tmp_path):
    documents, places, _ = read(
        tmp_path, {"src/a.py": "def f():\r\n\treturn\n", "b.bin": "x", "c.rs": "fn"}, kind="code"
    )
    assert [row["text"] for row in documents] == ["fn", "def f():\r\n\treturn\n"]
    assert [place["file"] for place in places] == ["c.rs", "src/a.py"]


def test_null_then_string(tmp_path):
    """Types come from the schema, never from the first block."""
    values = [{"text": f"t{n}", "lang": None} for n in range(900)] + [{"text": "last", "lang": "en"}]
    documents, _, _ = read(tmp_path, {"a.jsonl": lines(*values)})
    assert [row["metadata"] for row in documents] == ['{"lang":null}'] * 900 + ['{"lang":"en"}']


def test_lone_surrogates_and_nul(tmp_path):
    case = SHARED / "cases/03-lone-surrogate/in.jsonl"
    if not case.exists():
        pytest.skip("the shared cases are not here")
    documents, _, rejects = read(tmp_path, {"in.jsonl": case.read_bytes()})
    assert [row["text"] for row in documents] == ["ok \U0001f378 pair", "nul \0 char", "plain"]
    assert [(row["record"], row["reason"]) for row in rejects] == [(0, "surrogate")]


# Rejects


def test_rejects_name_the_place_and_the_reason(tmp_path):
    good, bad = lines({"text": "ok"}), b'{"text": "\xff' + b"\xe9" * 300 + b'"}\n'
    documents, places, rejects = read(tmp_path, {"a.jsonl": good.encode() + bad + good.encode(), "empty.txt": ""})
    assert [row["text"] for row in documents] == ["ok", "ok"] and [place["record"] for place in places] == [
        0,
        2,
    ]
    assert [(row["file"], row["record"], row["offset"]) for row in rejects] == [
        ("a.jsonl", 1, len(good)), ("empty.txt", 0, 0),
    ]  # fmt: skip
    assert rejects[0]["reason"] == "encoding" and len(rejects[0]["sample"]) == 200 and "\ufffd" in rejects[0]["sample"]
    assert rejects[1]["reason"] == "empty"


@pytest.mark.parametrize("small", [1, 1 << 20])
def test_a_huge_record_is_rejected_and_its_neighbours_stay(tmp_path, small):
    files = {"a.jsonl": lines({"text": "before"}, {"text": "x" * 30_000}, {"text": "after"})}
    how = {
        "small_file_bytes": small,
        "record_bytes_max": 2048,
        "part_bytes": 1 << 20,
        "part_bytes_max": 1 << 21,
    }
    documents, _, rejects = read(tmp_path, files, **how)
    assert [row["text"] for row in documents] == ["before", "after"]
    assert rejects[0]["reason"] == "too_large" and "30012 bytes, record_bytes_max is 2048" in rejects[0]["detail"]
    assert rejects[0]["sample"].startswith('{"text": "xxx') and len(rejects[0]["sample"]) == 200


def test_too_many_rejects_fail_the_step(tmp_path):
    files = {"a.jsonl": lines({"text": "a"}, {"body": "b"}, 3)}
    with pytest.raises(
        InvariantError, match=r"source s: 2 of 3 records rejected \(0\.667: no_text 1, type 1\).* is 0\.5"
    ):
        build(tmp_path, files, rejects_max_share=0.5)
    with pytest.raises(InvariantError, match=r"The first is record 1 of a\.jsonl: no_text: .*; its fields: body"):
        build(tmp_path, files, rejects_max_share=0.5)
    _, report = build(tmp_path, files, rejects_max_share=0.7)
    assert report.counts["rejected"] == 2 and report.counts["rejected|reason=type"] == 1
    assert report.counts["records_in"] == report.counts["documents_out"] + report.counts["rejected"]


# Options of a source


def with_options(root, files, **options):
    project = lay(root, files)
    section = json.loads((root / "params.yaml").read_text())
    section["ingest"]["sources"][0] |= options
    (root / "params.yaml").write_text(json.dumps(section))
    return project


def test_a_changed_option_of_a_source_is_read_anew(tmp_path):
    files = {"a.jsonl": lines({"title": "T", "body": "B", "text": "t"}), "b.txt": "one\n\ntwo\n"}
    project, _ = build(tmp_path, files)
    assert texts(project) == ["t", "one\n\ntwo\n"]
    report = perform(STEP, with_options(tmp_path, {}, fields={"text": "{title}: {body}"}, records="paragraph"))
    assert report.outcome == "built" and texts(project) == ["T: B", "one", "two"]
    assert report.counts["documents|shape=template"] == 1 and report.counts["documents|shape=paragraph"] == 2
    assert perform(STEP, project).outcome == "up_to_date"
    perform(STEP, with_options(tmp_path, {"b.txt": "día".encode("utf-16-le")}, encoding="utf-16"))
    assert texts(project) == ["t", "día"]


@pytest.mark.parametrize("small", [1, 1 << 20])
def test_lines_of_a_packed_text_are_documents(tmp_path, small):
    project = with_options(tmp_path, {"a.txt.gz": gzip.compress(b"one\n\ntwo\r\n" * 3)}, records="line")
    params = json.loads((tmp_path / "params.yaml").read_text())
    params["ingest"]["small_file_bytes"] = min(small, 4096)
    (tmp_path / "params.yaml").write_text(json.dumps(params))
    perform(STEP, project)
    assert texts(project) == ["one", "two"] * 3
    assert [place["record"] for place in rows(project, "places")] == [0, 2, 3, 5, 6, 8]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"encoding": "base64"}, "encoding base64"),
        ({"fields": {"text": "a", "messages": "b"}}, "name text and messages"),
        ({"fields": {"body": "a"}}, "body"),
        ({"records": "page"}, "records"),
    ],
)
def test_options_that_are_none(tmp_path, options, words):
    with pytest.raises(ParamsError, match=words):
        perform(STEP, with_options(tmp_path, {"a.txt": "a"}, **options))


# Parts


def corpus():
    files = {f"small/{n:03}.txt": f"file {n} " * (20 + n % 50) for n in range(120)}
    return files | {"large.jsonl": lines(*many(400)), "large.txt": "one text " * 500}


def names(project, folder="documents"):
    return list(Manifest.read(project.artifact("ingest")).folders[folder])


def test_parts_hold_everything_once_in_order(tmp_path):
    project, report = build(tmp_path, corpus())
    documents, places = rows(project, "documents"), rows(project, "places")
    assert [row["part"] for row in documents] == [row["part"] for row in places]
    where = [(row["file"], row["record"]) for row in places]
    small = [f"small/{n:03}.txt" for n in range(120)]
    assert where == [("large.jsonl", n) for n in range(400)] + [("large.txt", 0)] + [(name, 0) for name in small]
    assert report.made["documents"] == len(names(project)) > 15
    sizes = {}
    for row in documents:
        sizes[row["part"]] = sizes.get(row["part"], 0) + len(row["text"].encode())
    assert max(sizes.values()) <= SIZES["part_bytes_max"]
    for folder, schema in (("documents", DOCUMENTS), ("places", PLACES), ("rejects", REJECTS)):
        for file in (project.artifact("ingest") / folder).iterdir():
            assert pq.read_schema(file).equals(schema)


def test_names_are_by_content_and_equals_are_numbered(tmp_path):
    twin = lines(*many(30))
    project, _ = build(
        tmp_path,
        {"a.jsonl": twin, "b.jsonl": twin},
        small_file_bytes=1,
        part_bytes=1 << 20,
        part_bytes_max=1 << 21,
    )
    first, second = names(project)
    assert second == f"{first}-2" and first.startswith("s-") and len(first) == 18
    documents = rows(project, "documents")
    assert [{**row, "part": ""} for row in documents[:30]] == [{**row, "part": ""} for row in documents[30:]]
    assert {row["part"]: row["file"] for row in rows(project, "places")} == {
        first: "a.jsonl",
        second: "b.jsonl",
    }


def test_workers_do_not_show(tmp_path):
    one = lay(tmp_path / "one", corpus())
    two = lay(tmp_path / "two", corpus())
    assert perform(STEP, one).content == perform(STEP, two, workers=2).content


@pytest.mark.parametrize("change", ["add", "remove", "edit"])
@pytest.mark.parametrize("where", ["small", "large"])
def test_a_change_makes_two_parts_at_most(tmp_path, change, where):
    project, first = build(tmp_path, corpus())
    if where == "small":
        if change == "add":
            (tmp_path / "in/small/060b.txt").write_text("new")
        elif change == "remove":
            (tmp_path / "in/small/060.txt").unlink()
        else:
            (tmp_path / "in/small/060.txt").write_text("edited")
    else:
        values = many(400)
        values[200:201] = {"add": [values[200], {"text": "new"}], "remove": [], "edit": [{"text": "edited"}]}[change]
        (tmp_path / "in/large.jsonl").write_text(lines(*values))
    second = perform(STEP, project)
    assert 1 <= second.made["documents"] <= 2, second.made
    assert second.carried["documents"] >= first.made["documents"] - 2
    assert (
        perform(
            STEP,
            lay(
                tmp_path / "fresh",
                {p.relative_to(tmp_path / "in").as_posix(): p.read_bytes() for p in (tmp_path / "in").rglob("*.*")},
            ),
        ).content
        == second.content
    )


def test_a_moved_file_costs_its_places_only(tmp_path):
    project, _ = build(tmp_path, corpus())
    (tmp_path / "in/large.jsonl").rename(tmp_path / "in/renamed.jsonl")
    moved = perform(STEP, project)
    assert moved.made["documents"] == 0 and moved.made["places"] > 3
    assert {row["file"] for row in rows(project, "places")} >= {"renamed.jsonl"}


def test_recompressing_costs_no_document(tmp_path):
    raw = lines(*many(400)).encode()
    project, _ = build(tmp_path, {"a.jsonl": raw}, small_file_bytes=1024)
    (tmp_path / "in/a.jsonl").unlink()
    (tmp_path / "in/a.jsonl.gz").write_bytes(gzip.compress(raw))
    assert perform(STEP, project).made["documents"] == 0


def test_a_file_is_scanned_once(tmp_path, monkeypatch):
    project, _ = build(tmp_path, corpus())
    kept = sorted(file.name for file in (tmp_path / ".gristmill/scans").iterdir())
    assert len(kept) == 2
    monkeypatch.setattr("tasks.ingest.scanning.scan_range", lambda *_: pytest.fail("scanned again"))
    assert perform(STEP, project, force=True).outcome == "built"


def test_a_file_that_changes_after_planning_is_refused(tmp_path, monkeypatch):
    project = lay(tmp_path, {"a.txt": "a" * 100, "b.txt": "b"})
    real = reading._bytes_of

    def changed(path):
        (tmp_path / "in/a.txt").write_text("other")
        return real(path)

    monkeypatch.setattr(reading, "_bytes_of", changed)
    with pytest.raises(SourceError, match="source s changed while it was read"):
        perform(STEP, project)


def test_a_part_is_read_once_and_its_places_are_found_by_any_process(tmp_path, monkeypatch):
    read, real = [], reading._read
    monkeypatch.setattr(reading, "_read", lambda reads, limits: read.append(reads.name) or real(reads, limits))
    _, report = build(tmp_path / "one", corpus())
    assert len(read) == len(set(read)) == report.made["documents"] == report.made["places"]
    assert not (tmp_path / "one/data/.staging/ingest").exists()
    monkeypatch.setattr(reading, "_recalled", lambda file: reading.pa.ipc.open_stream(b"half"))
    assert build(tmp_path / "two", corpus())[1].content == report.content
    assert len(read) == 4 * report.made["documents"]  # once more, and for places and rejects again


@pytest.mark.parametrize(
    ("count", "limit", "fraction", "taken"),
    [
        (10, None, None, 10),
        (10, 3, None, 3),
        (10, 30, None, 10),
        (10, None, 0.25, 3),
        (10, 2, 0.9, 2),
        (1, None, 0.01, 1),
        (0, 5, None, 0),
    ],
)
def test_take(count, limit, fraction, taken):
    assert take(count, limit, fraction) == taken


def test_small_runs_take_the_first_of_each_source(tmp_path):
    project = lay(tmp_path, corpus())
    perform(STEP, Project(tmp_path, "small", limit=130))
    few = rows(Project(tmp_path, "small", limit=130), "places")
    assert sorted(row["file"] for row in few).count("large.jsonl") == 10 and len(few) == 130
    perform(STEP, Project(tmp_path, "part", fraction=0.1))
    assert len(rows(Project(tmp_path, "part", fraction=0.1), "places")) == 53
    assert not project.artifact("ingest").exists()


# Files nobody sane would write


@pytest.fixture(scope="module")
def nasty(tmp_path_factory):
    script = SHARED / "corpora/nasty/make_nasty.py"
    if not script.exists() or importlib.util.find_spec("zstandard") is None:
        pytest.skip("the shared corpora, or zstandard to make them, are not here")
    folder = tmp_path_factory.mktemp("nasty")
    subprocess.run([sys.executable, str(script), str(folder), "--big-mb", "3"], check=True, capture_output=True)
    return folder


@pytest.mark.parametrize(
    ("name", "documents", "reasons"),
    [
        ("01-bom.jsonl", 3, {}),
        ("02-utf16le-bom.txt", 1, {}),
        ("03-utf16be-nobom.txt", 1, {}),
        ("04-mixed-2pct-gbk.txt", 1, {}),
        ("07-crlf-and-cr.jsonl", 4, {}),
        ("08-nul.jsonl", 2, {"json": 2}),
        ("09-lone-surrogates.jsonl", 2, {"surrogate": 2}),
        ("10-duplicate-keys.jsonl", 2, {}),
        ("11-nan-inf.jsonl", 1, {"json": 4}),
        ("12-one-huge-line.jsonl", 2, {"too_large": 1}),
        ("13-deep-nesting.jsonl", 2, {"json": 1}),
        ("14-empty.jsonl.gz", 0, {}),
        ("15-whitespace-docs.jsonl", 6, {"empty": 1}),
        ("17-null-text.parquet", 2, {"no_text": 1}),
        ("17-all-null-text.parquet", 0, {"no_text": 2}),
        ("18-list-text.parquet", 2, {}),
        ("18-binary-text.parquet", 1, {"encoding": 1}),
        ("19-array.json", 5, {}),
        ("19-array-named.jsonl", 5, {}),
        ("20-concatenated.jsonl.gz", 30, {}),
        ("20-split-record.jsonl.gz", 51, {}),
        ("21-double-escaped.html", 1, {}),
    ],
)
def test_nasty_files(tmp_path, nasty, name, documents, reasons):
    _, report = build(tmp_path, {name: (nasty / name).read_bytes()})
    assert report.counts["documents_out"] == documents
    found = {key.partition("=")[2]: n for key, n in report.counts.items() if key.startswith("rejected|")}
    assert found == reasons


@pytest.mark.parametrize("name", ["05-truncated.jsonl.gz", "06-truncated.jsonl.zst", "16-zero-byte.parquet"])
def test_nasty_files_that_are_damaged(tmp_path, nasty, name):
    with pytest.raises(SourceError, match=f"{name} is damaged"):
        build(tmp_path, {name: (nasty / name).read_bytes()})


def test_offsets_lead_to_the_record(tmp_path):
    """file, offset and bytes of a place hold the very record, in a plain file and in a compressed one."""
    raw = lines(*many(300)).encode()
    project, _ = build(tmp_path, {"a.jsonl": raw, "b.jsonl.gz": gzip.compress(raw)}, small_file_bytes=1)
    for row, place in zip(rows(project, "documents"), rows(project, "places"), strict=True):
        record = raw[place["offset"] : place["offset"] + place["bytes"]]
        assert json.loads(record)["text"] == row["text"]
    assert np.unique([place["record"] for place in rows(project, "places")]).size == 300
