"""What lies at the sources: digests, what is passed over, and every way a source can be wrong."""

import hashlib
import json
import os
import shutil
import time
from pathlib import Path

import pytest

from tasks import digests
from tasks.artifacts.canonical import canonical
from tasks.errors import ParamsError, SourceError
from tasks.project import Project
from tasks.sources import format_of, scan

SHARED = Path(__file__).parents[2] / "shared"


def lay(root, files, sources='[{"name": "web", "kind": "web", "path": "in"}]', more=""):
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content if isinstance(content, bytes) else content.encode())
    (root / "params.yaml").write_text(f"ingest:\n  sources: {sources}\n{more}")
    return Project(root)


def test_what_is_found(tmp_path):
    project = lay(
        tmp_path,
        {
            "in/b.txt": "b",
            "in/a/c.jsonl": "",
            "in/.hidden.txt": "x",
            "in/.git/d.txt": "x",
            "in/__pycache__/e.txt": "x",
            "in/f.xyz": "x",
            "eval/qa.json": "q",
            "tokenizers/toy/card.json": "{}",
        },
        more="decontaminate: {sets: [{name: qa, path: eval}]}\ntokenize: {tokenizer: toy}\n",
    )
    found = scan(project)
    digest = {"sha256": hashlib.sha256(b"b").hexdigest(), "bytes": 1}
    assert list(found["sources"]["web"]["files"]) == ["a/c.jsonl", "b.txt"]
    assert found["sources"]["web"]["kind"] == "web" and found["sources"]["web"]["files"]["b.txt"] == digest
    assert list(found["sets"]["qa"]["files"]) == ["qa.json"]
    assert list(found["tokenizers"]["toy"]["files"]) == ["card.json"]
    assert found["skipped"] == {"web": {".xyz": 1}}
    assert {"pyarrow", "numpy", "numba", "sentencepiece", "unicodedata"} <= set(found["versions"])
    assert str(tmp_path).encode() not in canonical(found)


@pytest.mark.parametrize("path", ["in", "memory://pile"])
def test_files_that_a_source_leaves_out_are_counted(tmp_path, memory, path):
    files = ["a.jsonl", "a.tmp", "old/a.jsonl", "old/b/c.jsonl", "x.jsonl"]
    for name in files:
        memory.pipe(f"/pile/{name}", name.encode())
    source = {"name": "web", "kind": "web", "path": path, "leave_out": ["old/*", "*.tmp", "*.gz", "old/b/*"]}
    project = lay(tmp_path, {f"in/{name}": name for name in files}, json.dumps([source]))
    found = scan(project)
    assert list(found["sources"]["web"]["files"]) == ["a.jsonl", "x.jsonl"]
    assert found["skipped"] == {"web": {"old/*": 2, "*.tmp": 1, "*.gz": 0, "old/b/*": 0}}
    assert set(found["sources"]["web"]) == {"kind", "files"}


@pytest.mark.parametrize(
    ("patterns", "words", "error"),
    [
        ("*.tmp", r"leave_out of source web is '\*.tmp'", ParamsError),
        ([7], r"leave_out of source web is \[7\]", ParamsError),
        (["*"], "no file of a known format among 0 in in, 1 left out", SourceError),
    ],
)
def test_leaving_out_what_is_no_pattern_or_everything(tmp_path, patterns, words, error):
    source = {"name": "web", "kind": "web", "path": "in", "leave_out": patterns}
    with pytest.raises(error, match=words) as caught:
        scan(lay(tmp_path, {"in/a.txt": "a"}, json.dumps([source])))
    assert caught.value.mend


def test_a_tokenizer_that_is_not_there_is_no_error(tmp_path):
    project = lay(tmp_path, {"in/a.txt": "a"}, more="tokenize: {tokenizer: toy}\n")
    assert scan(project)["tokenizers"] == {"toy": {"files": {}}}
    assert scan(lay(tmp_path, {}))["tokenizers"] == {} and scan(lay(tmp_path, {}))["sets"] == {}


def test_a_moved_source_and_another_order_of_making_are_the_same(tmp_path):
    files = {f"in/Part-{n}.txt": str(n) for n in (10, 2, 1)} | {"in/part-0.txt": "0"}
    one = scan(lay(tmp_path / "one", files))
    there = {f"else/where/{Path(path).name}": text for path, text in reversed(files.items())}
    other = scan(
        lay(
            tmp_path / "two",
            there,
            f'[{{"name": "web", "kind": "web", "path": "{tmp_path}/two/else/where"}}]',
        )
    )
    assert canonical(one) == canonical(other)
    assert list(one["sources"]["web"]["files"]) == ["Part-1.txt", "Part-10.txt", "Part-2.txt", "part-0.txt"]


def test_a_file_can_be_a_source(tmp_path):
    project = lay(tmp_path, {"in/a.txt": "a"}, '[{"name": "web", "kind": "web", "path": "in/a.txt"}]')
    assert list(scan(project)["sources"]["web"]["files"]) == ["a.txt"]


@pytest.mark.parametrize(
    ("path", "kind", "form"),
    [
        ("a.txt", "web", "text"),
        ("A.MD", "web", "text"),
        ("x/a.b.jsonl.gz", "web", "jsonl.gz"),
        ("a.jsonl.zst", "code", "jsonl.zst"),
        ("a.parquet", "web", "parquet"),
        ("a.py", "code", "text"),
        ("a.py", "web", None),
        ("a.gz", "web", None),
        ("jsonl", "web", None),
        ("Makefile", "code", None),
    ],
)
def test_formats(path, kind, form):
    assert format_of(path, kind) == form


def test_an_unchanged_file_is_not_read_again(tmp_path, monkeypatch):
    project = lay(tmp_path, {"in/a.txt": "a", "in/b.txt": "b"})
    old = time.time() - 100
    for name in ("a", "b"):
        os.utime(tmp_path / f"in/{name}.txt", (old, old))
    monkeypatch.setattr(digests, "FRESH_NS", 0)
    first = scan(project)
    read = []
    real = digests.file_digest
    monkeypatch.setattr(digests, "file_digest", lambda path: read.append(path.name) or real(path))
    assert scan(project) == first and read == []
    (tmp_path / "in/b.txt").write_text("c")
    os.utime(tmp_path / "in/b.txt", (old, old))  # equal size and mtime: ctime tells
    assert scan(project) != first and read == ["b.txt"]
    (tmp_path / ".gristmill/stamps/sources.json").write_text("no json")
    scan(project)
    assert read == ["b.txt", "a.txt", "b.txt"]


def test_a_file_changed_just_now_is_not_remembered(tmp_path):
    project = lay(tmp_path, {"in/a.txt": "a"})
    scan(project)
    assert json.loads((tmp_path / ".gristmill/stamps/sources.json").read_bytes()) == {}


def refused(project, *words, error=SourceError):
    with pytest.raises(error) as caught:
        scan(project)
    for word in words:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value) and caught.value.mend


def test_absent_and_empty_sources(tmp_path):
    refused(lay(tmp_path, {}), "source web", "not there", "in")
    (tmp_path / "in").mkdir()
    refused(lay(tmp_path, {}), "source web", "no file", ".jsonl")
    refused(lay(tmp_path, {"in/a.xyz": "x"}), "no file of a known format among 1")
    more = "decontaminate: {sets: [{name: qa, path: eval}]}\n"
    refused(lay(tmp_path, {"in/a.txt": "x"}, more=more), "evaluation set qa", "not there")


def test_links(tmp_path):
    outside = tmp_path / "outside.txt"
    outside.write_text("o")
    project = lay(tmp_path / "p", {"in/a.txt": "a", "in/sub/b.txt": "b"})
    here = tmp_path / "p/in"
    (here / "loop").symlink_to(".")
    (here / "again.txt").symlink_to("sub/b.txt")
    assert list(scan(project)["sources"]["web"]["files"]) == ["a.txt", "sub/b.txt"]
    (here / "out.txt").symlink_to(outside)
    refused(project, "source web", "out.txt", "out of the source")
    (here / "out.txt").unlink()
    (here / "sub/etc").symlink_to("/etc")
    refused(project, "sub/etc", "out of the source")
    (here / "sub/etc").unlink()
    (here / "gone.txt").symlink_to("nowhere")
    refused(project, "gone.txt", "a link to nothing")


def test_a_source_that_is_a_link_out_of_the_project(tmp_path):
    (tmp_path / "far").mkdir()
    project = lay(tmp_path / "p", {"x.txt": ""})
    (tmp_path / "p/in").symlink_to(tmp_path / "far")
    refused(project, "source web", "a link out of the project")


def test_overlapping_sources(tmp_path):
    files = {"in/a/b.txt": "x", "in/ab/c.txt": "x"}
    both = '[{{"name": "one", "kind": "web", "path": "{}"}}, {{"name": "two", "kind": "web", "path": "{}"}}]'
    refused(lay(tmp_path, files, both.format("in", "in/a")), "one and two overlap")
    refused(lay(tmp_path, files, both.format("in/a", "./in/a/../a")), "overlap")
    refused(lay(tmp_path, {**files, "data/x.txt": ""}, both.format("in", ".")), "overlap")
    assert len(scan(lay(tmp_path, files, both.format("in/a", "in/ab")))["sources"]) == 2
    refused(lay(tmp_path, files, '[{"name": "one", "kind": "web", "path": "data"}]'), "overlaps data/")


def test_names_and_paths_must_be_there(tmp_path):
    refused(lay(tmp_path, {}, '[{"name": "web"}]'), "ingest.sources", "name and path", error=ParamsError)
    twice = '[{"name": "web", "path": "a"}, {"name": "web", "path": "b"}]'
    refused(lay(tmp_path, {}, twice), "names web twice", error=ParamsError)


def test_a_name_that_is_not_utf8(tmp_path):
    project = lay(tmp_path, {"in/a.txt": "a"})
    (tmp_path / "in" / os.fsdecode(b"\xff.txt")).write_text("x")
    refused(project, "not UTF-8", "rename it")


def test_a_file_that_cannot_be_read(tmp_path, monkeypatch):
    def deny(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(digests, "file_digest", deny)
    refused(lay(tmp_path, {"in/a.txt": "a"}), "source web", "cannot be read", "a.txt")


def test_the_order_of_files_is_a_function_of_their_names(tmp_path):
    """Upper and lower case, a hidden file, an empty file, a loop, a link to /etc."""
    case = SHARED / "cases/10-file-order/in"
    if not case.exists():
        pytest.skip("the shared cases are not here")
    names = [
        "Part-3.jsonl",
        "empty.jsonl",
        "part-0.jsonl",
        "part-1.jsonl",
        "part-10.jsonl",
        "part-2.jsonl",
        "part-7.jsonl",
    ]
    for run, order in (("one", names), ("two", names[::-1])):
        (tmp_path / run / "in").mkdir(parents=True)
        for name in [*order, ".hidden.jsonl"]:
            shutil.copyfile(case / name, tmp_path / run / "in" / name)
        (tmp_path / run / "in/loop").symlink_to(".")
    one, two = (scan(lay(tmp_path / run, {})) for run in ("one", "two"))
    assert one == two and list(one["sources"]["web"]["files"]) == names
    assert one["sources"]["web"]["files"]["empty.jsonl"]["bytes"] == 0
    (tmp_path / "one/in/outside").symlink_to("/etc")
    refused(lay(tmp_path / "one", {}), "outside", "link out of the source")


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl"])
def test_a_source_of_empty_files_is_refused(tmp_path, name):
    refused(lay(tmp_path, {f"in/{name}": b""}), "0 bytes in 1 files", "is empty")
