"""Every reader against files that nobody sane would write: no crash, no hang, no memory beyond the limit.

Only documents, rejects, and damage by name may come of them. `make test-long` spends ten minutes on each reader, or the
seconds that GRISTMILL_FUZZ names; docs/logs/fuzz.log holds such a run.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.errors import SourceError
from tasks.ingest.containers import opened
from tasks.ingest.fields import Reject, read_fields
from tasks.ingest.page_sizes import check_pages
from tests import fuzz_readers
from tests.fuzz_targets import TARGETS, read, seeds
from tests.test_formats import LINES, packed, pdf, table_bytes

LONG = float(os.environ.get("GRISTMILL_FUZZ", "600"))
SMOKE = 2.0
ROOT = Path(__file__).parents[1]


def fuzzed(tmp_path, target, seconds):
    said = subprocess.run(
        [sys.executable, "-m", "tests.fuzz_readers", target, "--seconds", f"{seconds}", "--keep", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stdout + said.stderr
    assert f"{target} " in said.stdout and " inputs, " in said.stdout
    return said.stdout


@pytest.mark.parametrize("target", TARGETS)
def test_a_few_seconds_of_each_reader(target, tmp_path):
    assert seeds(target)
    fuzzed(tmp_path, target, SMOKE)


@pytest.mark.long
@pytest.mark.timeout(LONG + 300)
@pytest.mark.parametrize("target", TARGETS)
def test_ten_minutes_of_each_reader(target, tmp_path):
    print(fuzzed(tmp_path, target, LONG))


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("raise RuntimeError('nobody foresaw this')", "RuntimeError"),
        ("while True: pass", "hang: more than"),
        ("held = bytearray(b'x' * (300 << 20)); import time; time.sleep(30)", "MiB resident"),
        ("import os; os.abort()", "it died with status -6"),
    ],
)
def test_the_watch_finds_what_is_wrong(fault, told, tmp_path, monkeypatch):
    """A reader that raises, hangs, takes memory or dies is told, with its input kept."""
    (tmp_path / "sitecustomize.py").write_text(
        f"from tests import fuzz_targets\ndef faulty(target, data):\n    {fault}\nfuzz_targets.read = faulty\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(ROOT), str(ROOT / "tests")]))
    monkeypatch.setattr(fuzz_readers, "HANG", 2.0)
    monkeypatch.setattr(fuzz_readers, "RSS_MAX", 300 << 20)
    monkeypatch.setattr(fuzz_readers, "ENDINGS_MAX", 1)
    found = fuzz_readers.watch("csv", "mutate", 60, 1, tmp_path / "keep")["findings"]
    assert any(told in key for key in found), found
    assert list((tmp_path / "keep").iterdir())


# What was found


def test_a_damaged_packed_file_keeps_no_memory():
    """pyarrow's read() kept its buffer for ever where it raised: 80 KiB a file."""
    bad = b"\x00" + packed(LINES, "gz")[:-3]
    assert read("packed", bad) == "damaged"
    before = resident()
    for _ in range(1000):
        read("packed", bad)
    assert resident() - before < 20 << 20


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_time_zone_that_is_none_is_damage():
    table = pa.table({"text": ["a"], "when": pa.array([0], pa.timestamp("ms", tz="UTC"))})
    assert read("arrow", table_bytes(table, "arrow").replace(b"UTC", b"WTC")) == "damaged"


def test_a_pdf_under_a_lock_that_pypdf_does_not_know_is_a_reject():
    locked = pdf("A text.").replace(b"/Root 1 0 R", b"/Root 1 0 R /Encrypt << /Filter /Other /V 1 /R 2 >>")
    assert read("pdf", locked) == "reject pdf"


@pytest.mark.parametrize("size", [2**31 - 1, 2**37, 1 << 30])
def test_a_page_that_claims_gigabytes_takes_no_memory(size):
    """Arrow took the memory that a page's header asks for before it read the page: 2 GiB for a file of 300 bytes."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"text": ["one", "two"] * 20}), sink, use_dictionary=False, compression="none")
    raw = sink.getvalue().to_pybytes()
    at = pq.ParquetFile(pa.BufferReader(raw)).metadata.row_group(0).column(0).data_page_offset
    begin = at + 3  # a field of kind i32 with its type, then one with the unpacked size, then one with the packed size
    while raw[begin] & 128:
        begin += 1
    assert raw[at] == raw[at + 2] == raw[begin + 1] == 0x15
    stop = begin + 2
    while raw[stop] & 128:
        stop += 1
    spoilt = raw[: begin + 2] + varint(2 * size) + raw[stop + 1 :]
    with pytest.raises(SourceError, match=r"a page at byte 4 says that it takes \d+ bytes, \d+ are left"):
        list(opened(pa.BufferReader(spoilt), "parquet", "a file").stream)
    assert read("parquet", raw) == "documents"


def test_a_page_whose_header_is_none_takes_no_memory():
    """Arrow looked for the end of such a header and took up to 1.9 GiB (found by bytes changed in headers alone)."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"text": ["one", "two"] * 20}), sink, use_dictionary=False, compression="none")
    raw = sink.getvalue().to_pybytes()
    at = pq.ParquetFile(pa.BufferReader(raw)).metadata.row_group(0).column(0).data_page_offset
    for spoilt, said in ((b"\xff\xff\xff\x7f", "has a header that is none"), (b"\x00", "does not say how many bytes")):
        file = pa.BufferReader(raw[:at] + spoilt + raw[at + len(spoilt) :])
        with pytest.raises(SourceError, match=rf"a page at byte {at} {said}"):
            list(opened(file, "parquet", "a file").stream)


def test_pages_are_looked_at_however_long_the_footer_is():
    table, sink = pa.table({f"column{number}": [1] for number in range(60)}), pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, use_dictionary=False, compression="none") as writer:
        for _ in range(200):
            writer.write_table(table)
    raw = bytearray(sink.getvalue().to_pybytes())
    assert int.from_bytes(raw[-8:-4], "little") > 1 << 20
    check_pages(pa.BufferReader(bytes(raw)))
    last = raw.rindex(b"\x15\x00\x15", 0, len(raw) - 8 - int.from_bytes(raw[-8:-4], "little"))
    raw[last : last + 4] = b"\xff\xff\xff\x7f"
    with pytest.raises(ValueError, match=f"a page at byte {last // 100}.. has a header that is none"):
        check_pages(pa.BufferReader(bytes(raw)))


def test_a_reject_says_no_more_than_a_sentence():
    """A part's type of a mebibyte was told in full."""
    part = json.dumps({"type": "t" * 100_000, "text": "x"})
    with pytest.raises(Reject) as refused:
        read_fields(b'{"messages": [{"role": "user", "content": [' + part.encode() + b"]}]}", "jsonl", "chat")
    assert refused.value.reason == "type" and len(refused.value.detail) == 500


@pytest.mark.parametrize(
    "footer", [b"", b"\x19" * 5000, b"\x49\xfc\xff\xff\xff\x0f", b"\x49\x1c" * 400, b"\x15" + b"\xff" * 40, b"\x0f\x00"]
)
def test_a_footer_that_is_none_is_left_to_arrow(footer):
    """Of its chunks' metadata Arrow's Python ends the process; the look at pages must not ask it, and must not fail."""
    raw = b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    check_pages(pa.BufferReader(raw))
    assert read("parquet", raw) == "damaged"


def varint(value):
    held = []
    while value > 127:
        held.append(value & 127 | 128)
        value >>= 7
    return bytes([*held, value])
