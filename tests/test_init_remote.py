"""gristmill init over a URL: what lies behind it is told as in a folder."""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import replace

import pytest

from flows import found_remote
from flows.found import find_sources
from flows.found_remote import find_remote
from tasks import remote
from tasks.errors import ParamsError, SourceError


def pages(count):
    return "".join(json.dumps({"text": f"Page {n} of the mill. " * 8}) + "\n" for n in range(count)).encode()


def test_init_finds_behind_a_url_what_it_finds_in_a_folder(memory, tmp_path):
    chat = json.dumps({"messages": [{"role": "user", "content": "Hello?"}]}).encode() + b"\n"
    files = {
        "a/pages.jsonl": pages(5),
        "a/deep/more.jsonl": pages(3),
        "talk/day.jsonl.gz": gzip.compress(chat),
        "programs/main.py": b"print(1)\n",
        "odd/x.jsonl": b'{"turns": 3}\n',
        "README.md": b"About.",
        "loose.jsonl": pages(2),
        "picture.png": b"no text",
    }
    for name, data in files.items():
        memory.pipe_file(f"/corpus/{name}", data)
        (tmp_path / "here" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "here" / name).write_bytes(data)
    local, far = find_sources(tmp_path / "here", tmp_path / "corpus"), find_remote("memory://corpus/")
    assert [replace(item, path="") for item in far] == [replace(item, path="") for item in local]
    assert [item.path for item in far] == [
        f"memory://corpus/{name}" for name in ("a", "loose.jsonl", "odd", "programs", "talk")
    ]
    assert [item.path for item in find_remote("memory://corpus/loose.jsonl")] == ["memory://corpus/loose.jsonl"]
    assert [(item.kind, item.files) for item in find_remote("memory://corpus/a/deep")] == [("web", 1)]
    with pytest.raises(SourceError, match="no record in"):
        find_remote("memory://corpus/odd")
    with pytest.raises(SourceError, match="is not there"):
        find_remote("memory://corpus/none")
    with pytest.raises(ParamsError, match="may hold a credential"):
        find_remote("memory://me:secret@corpus")


def test_init_looks_at_the_head_of_a_large_file_behind_a_url(memory, monkeypatch):
    monkeypatch.setattr(found_remote, "WHOLE_BYTES", 4000)
    monkeypatch.setattr(found_remote, "HEAD_BYTES", 1000)
    monkeypatch.setattr(remote, "BLOCK", 512)
    memory.pipe_file("/corpus/large.jsonl", pages(100))
    memory.pipe_file("/corpus/packed.jsonl.gz", gzip.compress(os.urandom(9000).hex().encode()))
    large, packed = find_remote("memory://corpus")
    assert large.shape.startswith("text ") and 2 < int(large.shape.split()[1]) < 10 and large.fields == {"text": "text"}
    assert (packed.kind, packed.shape, packed.fields) == ("web", "", {})
