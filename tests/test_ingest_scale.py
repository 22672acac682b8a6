"""ingest of large files: cut by ranges and row groups, resumed inside the file, at the memory of a part."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks import perform as module
from tasks.artifacts.manifest import Manifest
from tasks.errors import SourceError
from tasks.ingest import STEP, planning, scanning
from tasks.perform import perform
from tasks.project import Project
from tests.ingest_projects import lay, lines, rows

pytestmark = pytest.mark.usefixtures("no_suite")

ROOT = Path(__file__).parent.parent
RANGE = 10_000
SIZES = {"part_bytes": 8192, "part_bytes_max": 32768, "small_file_bytes": 1024}
BUILD = """
import re, resource, sys
from pathlib import Path
from tasks import perform as module
from tasks.ingest import STEP, scanning
from tasks.project import Project
if __name__ == "__main__":
    module.judge, module.judge_digest = (lambda *_: []), (lambda *_: "judges")
    scanning.RANGE_BYTES = int(sys.argv[2])
    report = module.perform(STEP, Project(Path.cwd()), workers=int(sys.argv[1]))
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    if sys.argv[1] == "1":  # its own ru_maxrss begins with that of the process which started it
        peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]
    print(report.content, report.made["documents"], report.carried["documents"], peak)
"""


def records(count, start=0):
    return lines(*[{"text": f"{n} " + "word " * (n * 7919 % 90), "n": n} for n in range(start, start + count)])


def command(root, workers=1, ranges=RANGE):
    (root / "build.py").write_text(BUILD)
    return [sys.executable, str(root / "build.py"), str(workers), str(ranges)]


def run(root, workers=1, ranges=RANGE):
    """Build in a process of its own: content, documents made and carried over, peak KiB of it or its largest worker."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command(root, workers, ranges), cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    content, *numbers = done.stdout.split()
    return content, *map(int, numbers)


def parts(project):
    return Manifest.read(project.artifact("ingest")).folders["documents"]


# Ranges


def test_ranges_do_not_show(tmp_path, monkeypatch):
    data = "\ufeff" + records(300) + "\n \n" + records(50, 300).rstrip("\n")
    whole = perform(STEP, lay(tmp_path / "whole", {"a.jsonl": data}, **SIZES)).content
    for size in (4999, RANGE):
        monkeypatch.setattr(scanning, "RANGE_BYTES", size)
        project = lay(tmp_path / str(size), {"a.jsonl": data}, **SIZES)
        assert perform(STEP, project).content == whole
    found = rows(project, "places")
    assert [row["record"] for row in found] == [*range(300), *range(302, 352)]
    assert run(lay(tmp_path / "two", {"a.jsonl": data}, **SIZES).root, workers=2)[0] == whole


def test_a_scan_that_died_goes_on_where_it_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(scanning, "RANGE_BYTES", RANGE)
    data, real, scanned = records(900), scanning.scan_range, []

    def dies(asked, found, size):
        scanned.append(int(found.name))
        if len(scanned) == 4:
            found.write_bytes(b"half of one")
            raise KeyboardInterrupt
        real(asked, found, size)

    project = lay(tmp_path / "died", {"a.jsonl": data}, **SIZES)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(scanning, "scan_range", dies)
        perform(STEP, project)
    again = []

    def goes_on(asked, found, size):
        again.append(int(found.name))
        real(asked, found, size)

    monkeypatch.setattr(scanning, "scan_range", goes_on)
    content = perform(STEP, project).content
    assert scanned == [0, RANGE, 2 * RANGE, 3 * RANGE]
    assert again == [start for start in range(0, len(data), RANGE) if start not in scanned[:3]]
    assert content == perform(STEP, lay(tmp_path / "fresh", {"a.jsonl": data}, **SIZES)).content


def test_records_at_the_end_make_the_last_parts_anew(tmp_path):
    project = lay(tmp_path, {"a.jsonl": records(2000)}, **SIZES)
    first = perform(STEP, project)
    with (tmp_path / "in/a.jsonl").open("a") as file:
        file.write(records(3, 2000))
    second = perform(STEP, project)
    assert first.made["documents"] > 30
    assert 1 <= second.made["documents"] <= 2 and second.carried["documents"] >= first.made["documents"] - 2


def test_a_file_changed_while_its_parts_are_read(tmp_path, monkeypatch):
    """No part is left behind under the key of bytes that it does not hold, whoever ends the run."""
    project, real = lay(tmp_path, {"a.jsonl": records(900)}, **SIZES), module.Build.job

    def changed(build, folder, unit):
        file = tmp_path / "in/a.jsonl"
        file.write_bytes(file.read_bytes().replace(b"word", b"WORD"))
        return real(build, folder, unit)

    with monkeypatch.context() as patched, pytest.raises(SourceError, match=r"s: a\.jsonl changed while it was read"):
        patched.setattr(module.Build, "job", changed)
        perform(STEP, project)
    assert not list(project.staging("ingest").rglob("entry.json"))
    assert perform(STEP, project).outcome == "built"
    assert "WORD" in rows(project, "documents")[1]["text"]


def test_what_was_planned_is_looked_at_again(tmp_path):
    """In one process: .gristmill deleted, a file touched. The parts laid before lead nowhere, so they are laid anew."""
    project = lay(tmp_path, {"a.jsonl": records(300)}, **SIZES)
    content = perform(STEP, project).content
    os.utime(tmp_path / "in/a.jsonl")
    assert perform(STEP, project, force=True).content == content
    for file in (tmp_path / ".gristmill/scans").iterdir():
        file.unlink()
    assert perform(STEP, project, force=True).content == content
    for file in (tmp_path / ".gristmill/scans").iterdir():
        file.write_bytes(file.read_bytes()[:-56])
    planning._KNOWN.clear()
    assert perform(STEP, project, force=True).content == content


@pytest.mark.parametrize("workers", [1, 2])
def test_kill_9_inside_a_file(tmp_path, workers):
    """What was made of a file before is not made again, and the bytes are those of a run that nobody ended."""
    data = records(2500)
    project = lay(tmp_path / "killed", {"a.jsonl": data}, **SIZES)
    process = subprocess.Popen(
        command(project.root, workers, 1 << 20),
        cwd=project.root,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
    )
    made, deadline = project.staging("ingest") / "made/documents", time.monotonic() + 100
    while len(list(made.glob("*/entry.json"))) < 8:
        assert process.poll() is None and time.monotonic() < deadline, "it ended before it was killed"
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    content, anew, carried, _ = run(project.root, workers, 1 << 20)
    assert carried >= 8 and anew + carried == len(parts(project)) > 25
    assert content == run(lay(tmp_path / "fresh", {"a.jsonl": data}, **SIZES).root, ranges=1 << 26)[0]


# Row groups


def table(count, start=0):
    texts = [f"{n} é\n" + "word " * (n * 7919 % 90) for n in range(start, start + count)]
    numbers = list(range(start, start + count))
    return pa.table({"text": texts, "n": numbers, "score": [n / 7 for n in numbers], "url": [f"u{n}" for n in numbers]})


def packed(*tables, size=50, **how):
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, tables[0].schema, **how) as writer:
        for each in tables:
            writer.write_table(each, row_group_size=size)
    return sink.getvalue().to_pybytes()


def documents(project):
    return [{name: row[name] for name in row if name != "part"} for row in rows(project, "documents")]


@pytest.mark.parametrize("how", [{}, {"compression": "zstd"}, {"use_dictionary": False, "data_page_version": "2.0"}])
def test_row_groups_are_the_units(tmp_path, how):
    """Cut between row groups, as lines, or read whole: the same documents and places."""
    data = packed(table(900), **how)
    ways = {
        "groups": lay(tmp_path / "groups", {"a.parquet": data}, **SIZES),
        "lines": lay(tmp_path / "lines", {"a.parquet": data}, **SIZES | {"part_bytes": 1024, "part_bytes_max": 1500}),
    }
    ways["whole"] = lay(
        tmp_path / "whole",
        {"a.parquet": data},
        part_bytes=1 << 20,
        part_bytes_max=1 << 21,
        small_file_bytes=1 << 20,
    )
    for project in ways.values():
        perform(STEP, project)
    found = {name: documents(project) for name, project in ways.items()}
    assert found["groups"] == found["lines"] == found["whole"] and len(found["groups"]) == 900
    places = {name: [{**row, "part": ""} for row in rows(project, "places")] for name, project in ways.items()}
    assert places["groups"] == places["lines"] == places["whole"]
    spans = {name: len(parts(project)) for name, project in ways.items()}
    assert spans["whole"] == 1 and 3 < spans["groups"] <= 18 < spans["lines"]
    two = run(lay(tmp_path / "two", {"a.parquet": data}, **SIZES).root, workers=2)
    assert two[0] == Manifest.read(ways["groups"].artifact("ingest")).content


def test_a_row_group_more_makes_the_last_parts_anew(tmp_path):
    project = lay(tmp_path, {"a.parquet": packed(table(2000))}, **SIZES)
    first = perform(STEP, project)
    (tmp_path / "in/a.parquet").write_bytes(packed(table(2000), table(20, 2000)))
    second = perform(STEP, project)
    assert first.made["documents"] > 10
    assert 1 <= second.made["documents"] <= 2 and second.carried["documents"] >= first.made["documents"] - 2
    assert len(documents(project)) == 2020
    fresh = lay(tmp_path / "fresh", {"a.parquet": packed(table(2000), table(20, 2000))}, **SIZES)
    assert perform(STEP, fresh).content == second.content


def test_equal_bytes_under_another_schema_are_other_groups(tmp_path):
    one = pa.table({"text": ["a" * 400] * 300, "kind": ["b" * 400] * 300})
    first = perform(STEP, lay(tmp_path / "one", {"a.parquet": packed(one)}, **SIZES))
    swapped = one.rename_columns(["kind", "text"])
    second = lay(tmp_path / "one", {"a.parquet": packed(swapped)}, **SIZES)
    assert perform(STEP, second).made["documents"] == first.made["documents"]
    assert {row["text"] for row in rows(second, "documents")} == {"b" * 400}


def test_a_small_run_takes_the_first_row_groups(tmp_path):
    lay(tmp_path, {"a.parquet": packed(table(900))}, **SIZES)
    small = Project(tmp_path, "small", limit=60)
    perform(STEP, small)
    assert len(documents(small)) == 100
    tenth = Project(tmp_path, "tenth", fraction=0.1)
    perform(STEP, tenth)
    assert len(documents(tenth)) == 100


def test_a_damaged_row_group_fails_by_name(tmp_path):
    data = bytearray(packed(table(900), compression="zstd", write_page_checksum=True))
    column = pq.read_metadata(pa.BufferReader(bytes(data))).row_group(3).column(0)
    data[column.dictionary_page_offset + 200] ^= 255
    with pytest.raises(SourceError, match=r"s: a\.parquet is damaged"):
        perform(STEP, lay(tmp_path, {"a.parquet": bytes(data)}, **SIZES))


# Memory


def peak_of(root, line_bytes):
    """KiB that a build takes of a file with one line of `line_bytes` between two plain ones."""
    project = lay(root, {"a.jsonl": ""}, record_bytes_max=1 << 20, part_bytes=1 << 20, part_bytes_max=1 << 22)
    with (root / "in/a.jsonl").open("wb") as file:
        file.write(b'{"text": "before"}\n{"text": "')
        for _ in range(line_bytes >> 20):
            file.write(b"x" * (1 << 20))
        file.write(b'"}\n{"text": "after"}\n')
    _, made, _, peak = run(root, ranges=1 << 24)
    assert made >= 1 and [row["text"] for row in rows(project, "documents")] == ["before", "after"]
    reject = rows(project, "rejects")[0]
    assert reject["reason"] == "too_large" and reject["bytes"] == (line_bytes >> 20 << 20) + 12
    return peak


def test_a_huge_line_takes_no_memory(tmp_path):
    few, much = peak_of(tmp_path / "few", 8 << 20), peak_of(tmp_path / "much", 160 << 20)
    assert much - few < 16 << 10, (few, much)


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_a_line_of_3_gib_takes_no_memory(tmp_path):
    """Case 38 at full size: sizes and offsets beyond 32 bits, in the scan and in places."""
    few, much = peak_of(tmp_path / "few", 8 << 20), peak_of(tmp_path / "much", 3 << 30)
    print(f"\na line of 8 MiB: {few >> 10} MiB; of 3 GiB: {much >> 10} MiB")
    assert much - few < 16 << 10, (few, much)


def corpus_of(root, megabytes, **sizes):
    """A plain file of records of about 3 kB that differ, some millions of words drawn anew."""
    chance, words = np.random.default_rng(1), [f"w{n:x}" for n in range(40_000)]
    project = lay(root, {"a.jsonl": ""}, **{"part_bytes": 1 << 22, "part_bytes_max": 1 << 24, **sizes})
    with (root / "in/a.jsonl").open("w") as file:
        while file.tell() < megabytes * 1_000_000:
            drawn = chance.zipf(1.3, (200, 500)) % len(words)
            for row in drawn.tolist():
                file.write(json.dumps({"text": " ".join(words[n] for n in row), "n": row[0]}) + "\n")
    return project


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_ten_times_the_data(tmp_path):
    """Ten times the CPU seconds, no more memory, the same bytes with two workers and nearly twice their speed."""

    def timed(root, workers=1):
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        content, _, _, peak = run(root, workers, scanning.RANGE_BYTES)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return content, spent, time.monotonic() - began, peak

    empty = timed(corpus_of(tmp_path / "none", 1).root)[1]
    small, large = corpus_of(tmp_path / "small", 60), corpus_of(tmp_path / "large", 600)
    one, ten = timed(small.root), timed(large.root)
    again = timed(corpus_of(tmp_path / "again", 600).root, workers=2)
    print(
        f"\nstart {empty:.2f} cpu-s; 60 MB {one[1]:.2f} cpu-s, {one[3] >> 10} MiB; "
        f"600 MB {ten[1]:.2f} cpu-s, {ten[3] >> 10} MiB"
    )
    print(f"600 MB: one worker {ten[2]:.1f} s, two {again[2]:.1f} s, {again[1]:.2f} cpu-s")
    assert again[0] == ten[0]
    assert 9 <= (ten[1] - empty) / (one[1] - empty) <= 11
    assert ten[3] <= 1.1 * one[3] and ten[3] < 1 << 20
