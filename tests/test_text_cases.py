"""The cases of faults that concern reading text, run on their own inputs."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from tasks.artifacts.documents import DOCUMENTS
from tasks.artifacts.tables import read_table, write_table
from tasks.ingest import STEP
from tasks.perform import perform
from tasks.text.whitespace import normalize_texts
from tests.corpora import shared
from tests.ingest_projects import lay, read, rows

pytestmark = pytest.mark.usefixtures("no_suite")

PEAK = """
import resource, sys
import pyarrow as pa
from tasks.ingest.containers import opened
from tasks.ingest.records import records
import trafilatura, warcio.archiveiterator
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with pa.OSFile(sys.argv[1]) as file:
    it = opened(file, sys.argv[2], "a file")
    count = sum(1 for _ in records(it.stream, it.records, "s", 1 << 20))
print(count, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def made(case, folder, *arguments):
    subprocess.run([sys.executable, str(shared(f"cases/{case}/make_input.py")), *arguments], cwd=folder, check=True)


def peak(path, form):
    """Records of a file, and MiB that reading them took beyond what the process had."""
    said = subprocess.run(
        [sys.executable, "-c", PEAK, str(path), form], check=True, capture_output=True, cwd=Path(__file__).parents[1]
    )
    return tuple(map(int, said.stdout.split()))


def test_01_a_mark_at_the_beginning(tmp_path):
    folder = shared("cases/01-bom-jsonl")
    plain, marked = (
        read(tmp_path / name, {"a.jsonl": (folder / name).read_bytes()})[0] for name in ("plain.jsonl", "bom.jsonl")
    )
    assert [{**row, "part": ""} for row in plain] == [{**row, "part": ""} for row in marked]
    assert len(plain) == 2 and plain[0]["text"] == "one"


def test_07_a_huge_line_takes_no_more_memory_than_the_limit(tmp_path):
    made("07-huge-line", tmp_path, "4")
    small = peak(tmp_path / "in.jsonl", "jsonl")
    made("07-huge-line", tmp_path, "80")
    large = peak(tmp_path / "in.jsonl", "jsonl")
    assert small[0] == large[0] == 3
    assert large[1] < 40 and large[1] < small[1] + 16


def test_07_all_three_arrive_or_are_reported(tmp_path):
    made("07-huge-line", tmp_path, "2")
    data = (tmp_path / "in.jsonl").read_bytes()
    documents, _, rejects = read(tmp_path / "p", {"in.jsonl": data}, record_bytes_max=1 << 20, small_file_bytes=1)
    assert [row["text"] for row in documents] == ["small", "small too"]
    assert [(row["record"], row["reason"], row["bytes"]) for row in rejects] == [(1, "too_large", 2097175)]


def test_08_null_then_text(tmp_path):
    made("08-null-then-string", tmp_path)
    documents, _, _ = read(
        tmp_path / "p", {"in.jsonl": (tmp_path / "in.jsonl").read_bytes()}, part_bytes=1 << 20, part_bytes_max=1 << 23
    )
    langs = [json.loads(row["metadata"])["lang"] for row in documents]
    assert len(documents) == json.loads(shared("cases/08-null-then-string/expect.json").read_text())["docs"]
    assert langs == [None] * 9000 + ["en"]


def test_10_order_is_that_of_paths_whatever_was_written_first(tmp_path):
    folder = shared("cases/10-file-order/in")
    names = sorted(path.name for path in folder.iterdir())
    contents = []
    for root, order in (("one", names), ("two", names[::-1])):
        (tmp_path / root / "in").mkdir(parents=True)
        for name in order:
            shutil.copy(folder / name, tmp_path / root / "in" / name)
        contents.append(perform(STEP, lay(tmp_path / root, {})).content)
    documents = rows(lay(tmp_path / "two", {}), "documents")
    expect = json.loads(shared("cases/10-file-order/expect.json").read_text())
    assert contents[0] == contents[1] and len(documents) == expect["docs"]


def normalize(text: str, form: str, whitespace: str, marks_max: int) -> str:
    return str(normalize_texts(pa.array([text]), form, whitespace, marks_max)[0].as_py())


def test_12_only_what_params_say_is_changed():
    for line in shared("cases/12-lossy-normalise/in.jsonl").read_text().split("\n"):
        if line:
            text = json.loads(line)["text"]
            kept = normalize(text, "none", "keep", 30)
            assert kept == text.replace("\u200b", "").strip("\n"), text
            assert not set("²³½②ﬁ１２︰") & set(text) - set(normalize(text, "NFC", "keep", 30))


def test_38_text_beyond_two_gigabytes_has_offsets_of_64_bits(tmp_path):
    assert DOCUMENTS.field("text").type == pa.large_string()
    value = "x" * (1 << 16)
    column = pa.chunked_array([pa.array([value])] * 64, pa.string())
    schema = pa.schema([pa.field("text", pa.large_string())])
    write_table(tmp_path / "a.parquet", pa.table({"text": column}), schema)
    assert read_table(tmp_path / "a.parquet").column("text").type == pa.large_string()


def test_39_row_groups_of_any_size_take_little_memory(tmp_path):
    made("39-parquet-row-groups", tmp_path)
    most = json.loads(shared("cases/39-parquet-row-groups/expect.json").read_text())["peak_rss_over_baseline_mb_max"]
    for name, count in (("one_group", 40_000), ("tiny_groups", 50_000)):
        found = peak(tmp_path / f"{name}.parquet", "parquet")
        assert found[0] == count and found[1] < most, (name, found)
