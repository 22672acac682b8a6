"""Reading against what others say of the same files: test suites, expected.json, and the cases of faults, in full.

Where CASE.md says so, documents go on through normalize and filter.
"""

import gzip
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import unicodedata
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from tasks.artifacts.manifest import Manifest
from tasks.artifacts.tables import read_table
from tasks.errors import SourceError
from tasks.ingest.containers import opened
from tasks.ingest.fields import read_fields
from tasks.ingest.parsing import parsed
from tasks.ingest.records import records
from tasks.ingest.refusals import Reject
from tasks.perform import perform
from tasks.pipeline import STEPS
from tasks.project import Project
from tasks.sources import scan
from tests.corpora import SHARED, shared
from tests.ingest_projects import build, read, rows
from tests.test_formats import LIMIT, archive

pytestmark = pytest.mark.usefixtures("no_suite")

ROOT = Path(__file__).parents[1]
FEW = ("ingest", "normalize", "filter")


def through(root, files, kind="web", upto=FEW, **changes):
    """The documents after normalize with filter's verdicts, and the project."""
    for path, content in files.items():
        (root / "in" / path).parent.mkdir(parents=True, exist_ok=True)
        (root / "in" / path).write_bytes(content)
    recipe = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    recipe["ingest"] |= {"sources": [{"name": "s", "kind": kind, "path": "in"}], "rejects_max_share": 1.0} | changes
    (root / "params.yaml").write_text(yaml.safe_dump(recipe))
    project = Project(root)
    for step in upto:
        perform(STEPS[step], project)
    texts, verdicts = table(project, "normalize", "text"), table(project, "filter", "verdicts")
    assert len(texts) == len(verdicts)
    return [text | verdict for text, verdict in zip(texts, verdicts, strict=True)], project


def table(project, step, folder):
    home = project.artifact(step)
    parts = Manifest.read(home).folders[folder]
    return [row for part in parts for row in read_table(home / folder / f"{part}.parquet").to_pylist()]


# Suites


def test_every_file_of_the_json_test_suite_by_itself():
    """y_ is accepted, n_ refused by name, i_ either; none crashes."""
    seen = Counter()
    for file in sorted(shared("corpora/json-parsing").glob("*.json")):
        try:
            parsed(file.read_bytes())
            outcome = "accepted"
        except Reject as reject:
            assert reject.reason in ("json", "encoding", "surrogate") and reject.detail, file.name
            outcome = "refused"
        seen[file.name[0], outcome] += 1
        assert {"y": "accepted", "n": "refused"}.get(file.name[0], outcome) == outcome, file.name
    assert (
        seen["y", "accepted"] == 47
        and seen["n", "refused"] == 97
        and seen["i", "accepted"] + seen["i", "refused"] == 21
    )


OTHERWISE = {
    "bad_data__ARROW-GH-41317": "columns do not have the same size",
    "bad_data__ARROW-GH-47662": "Unexpected end of stream",
    "bad_data__ARROW-RS-GH-6229-DICTHEADER": "a page at byte 421 says that it takes 322 bytes, 100 are left",
    "data__nation.dict-malformed": 25,
    "data__repeated_no_annotation": 6,  # its footer says 0
    "data__rle-dict-uncompressed-corrupt-checksum": "could not verify page",
}
"""Damage, or rows, where a file's footer is no truth."""


def test_every_parquet_test_file_has_the_rows_of_its_footer():
    files = sorted(shared("corpora/parquet/apache-testing").glob("*.parquet"))
    assert len(files) > 30
    for file in files:
        try:
            with pa.OSFile(str(file)) as source:
                found = list(records(opened(source, "parquet", file.name).stream, "jsonl", "s", LIMIT))
        except SourceError as error:
            damage = OTHERWISE.get(file.stem)
            assert isinstance(damage, str) and f"{file.name} is damaged: {damage}" in str(error), (file.name, error)
            continue
        wanted = OTHERWISE.get(file.stem, pq.ParquetFile(file).metadata.num_rows)
        assert len(found) == wanted, file.name
        assert all(isinstance(json.loads(record.raw), dict) for record in found), file.name


def test_a_time_beyond_all_calendars_costs_no_row():
    far = pa.table({"text": ["a", "b"], "when": pa.array([253402300800 * 10**6, 0], pa.timestamp("us"))})
    sink = pa.BufferOutputStream()
    pq.write_table(far, sink)
    it = opened(pa.BufferReader(sink.getvalue()), "parquet", "a file")
    fields = [read_fields(record.raw, it.records, "web") for record in records(it.stream, it.records, "s", LIMIT)]
    assert [(one.text, one.metadata) for one in fields] == [("a", '{"when":253402300800000000}'), ("b", '{"when":0}')]


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("cc-whirlwind/whirlwind.warc.wat", (0, 2, 0)),
        ("cc-whirlwind/whirlwind.warc.wet", (1, 1, 0)),
        ("dolma/sample-0000.warc.gz", (24, 24, 0)),
        ("jwarc/cc.warc.gz", (1, 0, 0)),
        ("resiliparse/warcfile.warc.gz", (15, 34, 1)),
        ("warcio/example.warc.gz", (1, 5, 0)),
        ("warcio/example-bad-non-chunked.warc.gz", (1, 5, 0)),
        ("warcio/example-digest.warc", (0, 4, 0)),
        ("warcio/example-resource.warc.gz", (1, 2, 0)),
        ("warcio/example-space-in-target-uri.warc.gz", (0, 2, 0)),
        ("warcio/example-wget-bad-target-uri.warc.gz", (3, 3, 0)),
        ("warcio/example-wrong-chunks.warc.gz", (1, 1, 0)),
    ],
)
def test_the_other_web_archives(name, outcome):
    """(documents, skipped, rejected)."""
    assert archive(shared(f"corpora/web/warc/{name}")) == outcome


def test_a_capture_is_the_same_page_as_warc_and_as_wet():
    """Of one address, the text of the WET and ours from the WARC hold the same words in the main."""
    found = []
    for name in ("whirlwind.warc.gz", "whirlwind.warc.wet.gz"):
        with pa.OSFile(str(shared(f"corpora/web/warc/cc-whirlwind/{name}"))) as file:
            it = opened(file, "warc", name)
            for record in records(it.stream, it.records, "s", LIMIT):
                if "payload" in json.loads(record.raw) and json.loads(record.raw)["url"].startswith("http"):
                    found.append(read_fields(record.raw, it.records, "web"))
    main, whole = (Counter(re.findall(r"\w+", fields.text)) for fields in found)
    assert found[0].url == found[1].url
    assert (main & whole).total() > 0.95 * main.total()


# Files that nobody sane would write, by their own account


@pytest.fixture(scope="module")
def nasty(tmp_path_factory):
    if importlib.util.find_spec("zstandard") is None:
        pytest.skip("zstandard is not here: the nasty files cannot be made")
    script, folder = shared("corpora/nasty/make_nasty.py"), tmp_path_factory.mktemp("nasty")
    subprocess.run([sys.executable, str(script), str(folder), "--big-mb", "3"], check=True, capture_output=True)
    return folder


def counts_allowed(said):
    """Document counts that an entry of expected.json allows."""
    numbers = [int(number) for number in re.findall(r"\d+", str(said))]
    if ".." in str(said) or "<" in str(said):
        return range(numbers[0], numbers[1] + 1)
    return numbers


def entries():
    file = SHARED / "corpora/nasty/expected.json"
    return json.loads(file.read_text()) if file.exists() else []


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry["file"])
def test_each_nasty_file_gives_what_is_expected_of_it(tmp_path, nasty, entry):
    name = entry["file"]
    try:
        _, report = build(tmp_path, {name: (nasty / name).read_bytes(), "good.txt": b"A file beside it."})
    except SourceError as error:
        assert name in str(error) and ("truncated" in name or name == "16-zero-byte.parquet"), error
        return
    assert "truncated" not in name and entry.get("error") is not True
    documents = report.counts["documents_out"] - 1
    if name == "15-whitespace-docs.jsonl":
        documents += report.counts["rejected|reason=empty"]
    if "docs" in entry:
        assert documents in counts_allowed(entry["docs"]), (documents, entry)
    if "bad" in entry:
        assert report.counts.get("rejected", 0) in counts_allowed(entry["bad"]), (report.counts, entry)
    assert all("\ufeff" not in row["text"] for row in rows(Project(tmp_path), "documents") if name.startswith("01"))


def test_what_nasty_texts_hold(tmp_path, nasty):
    """Not only how many: no NUL-interleaved UTF-16, no mojibake of the mixed file, no "None", no markup made."""
    names = ("02-utf16le-bom.txt", "04-mixed-2pct-gbk.txt", "17-null-text.parquet", "18-list-text.parquet")
    texts = {}
    for name in (*names, "21-double-escaped.html", "03-utf16be-nobom.txt"):
        documents, _, _ = read(tmp_path / name, {name: (nasty / name).read_bytes()})
        texts[name] = [row["text"] for row in documents]
    assert "\0" not in texts["02-utf16le-bom.txt"][0] + texts["03-utf16be-nobom.txt"][0]
    mixed = (nasty / "04-mixed-2pct-gbk.txt").read_bytes().split(b"\n")
    for line, raw in zip(texts["04-mixed-2pct-gbk.txt"][0].split("\n"), mixed, strict=True):
        try:
            assert line == raw.decode()
        except UnicodeDecodeError:
            assert line == raw.decode("gb18030")
    assert "None" not in texts["17-null-text.parquet"] and not any(
        "[" in text for text in texts["18-list-text.parquet"]
    )
    assert "&amp;" in texts["21-double-escaped.html"][0] and "<b>" not in texts["21-double-escaped.html"][0]


# Cases


def test_case_01_marks_through_normalize(tmp_path):
    folder = shared("cases/01-bom-jsonl")
    plain, marked = (
        through(tmp_path / name, {"a.jsonl": (folder / name).read_bytes()})[0] for name in ("plain.jsonl", "bom.jsonl")
    )
    assert [(row["id"], row["text"], row["verdict"]) for row in plain] == [
        (row["id"], row["text"], row["verdict"]) for row in marked
    ]
    assert len(plain) == 2 and not any("\ufeff" in row["text"] for row in marked)
    middle = '\ufeff{"text":"first"}\n{"text":"\ufeffkept \ufeff here"}\n'.encode()
    documents, _, _ = read(tmp_path / "middle", {"a.jsonl": middle})
    assert [row["text"] for row in documents] == ["first", "\ufeffkept \ufeff here"]


def test_case_03_surrogates_through_filter(tmp_path):
    documents, project = through(tmp_path, {"in.jsonl": shared("cases/03-lone-surrogate/in.jsonl").read_bytes()})
    expect = json.loads(shared("cases/03-lone-surrogate/expect.json").read_text())
    ids = [json.loads(row["metadata"])["id"] for row in table(project, "ingest", "documents")]
    assert set(expect["must_survive"]) <= set(ids) and ids == ["2", "3", "4"]
    assert documents[0]["text"] == expect["text_2"]
    assert [(row["record"], row["reason"]) for row in table(project, "ingest", "rejects")] == [(0, "surrogate")]
    assert '"id":"1"' in table(project, "ingest", "rejects")[0]["sample"]
    for row in documents:
        row["text"].encode()


def test_case_04_members_through_filter(tmp_path):
    folder = shared("cases/04-gzip-multimember")
    documents, _ = through(tmp_path / "a", {"two.jsonl.gz": (folder / "two.jsonl.gz").read_bytes()})
    assert len(documents) == json.loads((folder / "expect.json").read_text())["two.jsonl.gz"]["docs"] == 7
    first = gzip.decompress((folder / "two.jsonl.gz").read_bytes()).split(b"\n")
    assert [row["text"] for row in documents] == [json.loads(line)["text"].strip() for line in first if line]
    with pytest.raises(SourceError, match=r"two_plus_garbage\.jsonl\.gz is damaged: .+"):
        name = "two_plus_garbage.jsonl.gz"
        through(tmp_path / "b", {name: (folder / name).read_bytes()})


def test_case_08_null_then_text_through_filter(tmp_path):
    script = shared("cases/08-null-then-string/make_input.py")
    subprocess.run([sys.executable, str(script)], cwd=tmp_path, check=True)
    raw = (tmp_path / "in.jsonl").read_bytes()
    documents, project = through(tmp_path / "p", {"in.jsonl": raw}, part_bytes=1 << 20, part_bytes_max=1 << 23)
    langs = Counter(json.loads(row["metadata"])["lang"] for row in table(project, "ingest", "documents"))
    assert len(documents) == 9001 and langs == {None: 9000, "en": 1}


def test_case_10_a_copy_in_another_order_with_links_and_empty_files(tmp_path):
    """The fingerprint is that of paths and contents; what is empty is told, what is hidden or leads out is not read."""
    folder, contents = shared("cases/10-file-order/in"), []
    for run, turned in (("one", False), ("two", True)):
        names = sorted((path.name for path in folder.iterdir()), reverse=turned)
        (tmp_path / run / "in").mkdir(parents=True)
        for name in names:
            shutil.copy(folder / name, tmp_path / run / "in" / name)
        (tmp_path / run / "in/loop").symlink_to(".")
        documents, project = through(tmp_path / run, {})
        contents.append([Manifest.read(project.artifact(step)).content for step in FEW])
    assert contents[0] == contents[1]
    assert len(documents) == json.loads(shared("cases/10-file-order/expect.json").read_text())["docs"]
    listed = scan(Project(tmp_path / "one"), ["sources"])["sources"]["s"]["files"]
    assert listed["empty.jsonl"]["bytes"] == 0 and ".hidden.jsonl" not in listed and len(listed) == 7
    (tmp_path / "two/in/outside").symlink_to("/etc")
    with pytest.raises(SourceError, match="outside"):
        through(tmp_path / "two", {})


def test_case_12_the_default_loses_nothing_through_normalize(tmp_path):
    raw = shared("cases/12-lossy-normalise/in.jsonl").read_bytes()
    for kind in ("web", "code"):
        documents, project = through(tmp_path / kind, {"in.jsonl": raw}, kind)
        given = {json.loads(line)["id"]: json.loads(line)["text"] for line in raw.split(b"\n") if line}
        ids = [json.loads(row["metadata"])["id"] for row in table(project, "ingest", "documents")]
        assert ids == list(given) and len(documents) == 6
        for name, row in zip(ids, documents, strict=True):
            blanks = (
                "\t\xa0" if kind == "web" else ""
            )  # params.yaml says so: inside of lines of web, blanks are one space
            lost = set(unicodedata.normalize("NFC", given[name])) - set(row["text"]) - set("\u200b\ufeff" + blanks)
            assert lost == set(), (kind, name, lost)
            if kind == "code":  # of web one blank line in a row is kept
                assert row["text"].count("\n") == given[name].strip("\n").count("\n"), name
        code = next(row["text"] for row in documents if "def " in row["text"])
        assert re.search(r"\n {4}\S", code), code


def test_case_39_a_group_of_one_row_and_of_all_are_written_anew_alike(tmp_path):
    """However a Parquet file was cut, what ingest writes is cut by rows and bytes: one artifact for both."""
    values = pa.table({"text": [f"row {number} " + "x" * 200 for number in range(3000)]})
    made = {}
    for name, size in (("one", 3000), ("tiny", 1)):
        sink = pa.BufferOutputStream()
        pq.write_table(values, sink, row_group_size=size)
        project, _ = build(
            tmp_path / name, {"a.parquet": sink.getvalue().to_pybytes()}, part_bytes=1 << 22, part_bytes_max=1 << 23
        )
        home = project.artifact("ingest")
        files = sorted(home.glob("documents/*.parquet"))
        assert [pq.ParquetFile(file).num_row_groups for file in files] == [1] * len(files)
        made[name] = [row["text"] for row in rows(project, "documents")]
    assert made["one"] == made["tiny"] == values["text"].to_pylist()
