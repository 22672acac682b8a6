"""Sources behind URLs: a real S3 server on loopback, a web server that breaks off, and fsspec's memory."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest
import yaml

from tasks import homes, remote
from tasks.errors import ParamsError, SourceError
from tasks.homes import Copies, Home, room_of
from tasks.perform import perform
from tasks.pipeline import STEPS
from tasks.project import Project
from tasks.remote import Remote
from tasks.sources import scan
from tests.s3_server import BUCKET, KEY, SECRET, S3Server
from tests.small_corpus import lay_corpus

s3fs = pytest.importorskip("s3fs", reason="NO S3: s3fs is not installed here (pip install 'gristmill[s3]')")
ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = S3Server(tmp_path_factory.mktemp("weed"))
    server.start()
    yield server
    server.kill()


@pytest.fixture(autouse=True)
def credentials(monkeypatch, tmp_path):
    """Credentials from the environment alone; no file of this user's, no waits."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "FSSPEC_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setattr(remote, "WAITS", (0.01, 0.01))
    s3fs.S3FileSystem.clear_instance_cache()


def lay(root, path, kind="web", storage=None, **more):
    root.mkdir(parents=True, exist_ok=True)
    source = {"name": "web", "kind": kind, "path": path, **({"storage": storage} if storage else {}), **more}
    recipe = yaml.safe_load((ROOT / "params.yaml").read_text())
    recipe["ingest"]["sources"] = [source]
    recipe["decontaminate"]["sets"] = []
    (root / "params.yaml").write_text(yaml.safe_dump(recipe))
    shutil.copytree(ROOT / "expectations", root / "expectations", dirs_exist_ok=True)
    return Project(root)


def pages(count, start=0):
    return "".join(json.dumps({"text": f"Page {n} of the mill. " * 8}) + "\n" for n in range(start, start + count))


def refused(project, *words, error=SourceError, work=scan):
    with pytest.raises(error) as caught:
        work(project)
    said = str(caught.value)
    for word in words:
        assert word in said, said
    assert "\n" not in said and caught.value.mend and SECRET not in said
    return said


def everything_below(folder):
    """Every byte of the project but the raw copies."""
    files = [path for path in folder.rglob("*") if path.is_file() and "copies" not in path.relative_to(folder).parts]
    return b"".join(path.read_bytes() for path in files)


def fetches(monkeypatch):
    """What is fetched from now on, by path."""
    read, real = [], Remote.blocks
    monkeypatch.setattr(Remote, "blocks", lambda self, path, size: read.append(path) or real(self, path, size))
    return read


# The whole, over S3


def test_a_corpus_in_a_bucket_has_the_content_of_the_same_corpus_on_disk(server, tmp_path):
    """All nine steps, the stages' own command for the sources, and no secret anywhere."""
    here, there = tmp_path / "here", tmp_path / "there"
    lay_corpus(here)
    server.put(here / "sources", "whole")
    shutil.copytree(here, there)
    recipe = yaml.safe_load((there / "params.yaml").read_text())
    for source in recipe["ingest"]["sources"]:
        source["path"] = source["path"].replace("sources/", f"s3://{BUCKET}/whole/")
        source["storage"] = {"endpoint_url": server.endpoint}
    (there / "params.yaml").write_text(yaml.safe_dump(recipe))
    shutil.rmtree(there / "sources")
    subprocess.run([sys.executable, "-m", "tasks", "sources"], cwd=there, check=True, env=environment())
    distant = {name: perform(step, Project(there)) for name, step in STEPS.items()}
    assert {report.outcome for report in distant.values()} == {"built"}
    assert SECRET.encode() not in everything_below(there)
    local = perform(STEPS["ingest"], Project(here))
    assert (local.content, local.fingerprint) == (distant["ingest"].content, distant["ingest"].fingerprint)
    assert json.loads((there / "data/sources.json").read_bytes()) == scan(Project(here))
    for name in ("params.yaml", "sources"):  # the corpus comes home: nothing is made anew
        shutil.copytree(here / name, there / name) if name == "sources" else shutil.copy(here / name, there / name)
    again = {name: perform(step, Project(there)) for name, step in STEPS.items()}
    assert {report.outcome for report in again.values()} == {"up_to_date"}
    assert [report.content for report in again.values()] == [report.content for report in distant.values()]


def environment():
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def test_what_changes_there_is_noticed_and_nothing_else_is_fetched(server, tmp_path, monkeypatch):
    store = server.store()
    for name in ("a", "b c", "sub/ü#?%20"):
        store.pipe_file(f"{BUCKET}/changing/{name}.txt", f"The text of {name}.".encode())
    store.pipe_file(f"{BUCKET}/changing2/z.txt", b"of a longer prefix")
    store.pipe_file(f"{BUCKET}/changing/.hidden/z.txt", b"x")
    store.pipe_file(f"{BUCKET}/changing/z.png", b"x")
    project = lay(tmp_path, f"s3://{BUCKET}/changing", storage={"endpoint_url": server.endpoint})
    first, read = scan(project), fetches(monkeypatch)
    files = first["sources"]["web"]["files"]
    assert list(files) == ["a.txt", "b c.txt", "sub/ü#?%20.txt"] and first["skipped"] == {"web": {".png": 1}}
    assert scan(project) == first and read == []
    store.pipe_file(f"{BUCKET}/changing/a.txt", b"The text of b.")  # as long as before
    second = scan(project)
    assert read == ["a.txt"] and second["sources"]["web"]["files"]["a.txt"] != files["a.txt"]
    store.rm_file(f"{BUCKET}/changing/b c.txt")
    store.pipe_file(f"{BUCKET}/changing/d.txt", b"new")
    assert list(scan(project)["sources"]["web"]["files"]) == ["a.txt", "d.txt", "sub/ü#?%20.txt"]
    assert read == ["a.txt", "d.txt"]
    (tmp_path / ".gristmill/stamps/remote.json").write_text("no json")
    assert scan(project)["sources"]["web"]["files"]["d.txt"]["bytes"] == 3 and len(read) == 5


def test_an_object_is_a_source(server, tmp_path):
    server.store().pipe_file(f"{BUCKET}/one/pages.jsonl", pages(3).encode())
    project = lay(tmp_path, f"s3://{BUCKET}/one/pages.jsonl", storage={"endpoint_url": server.endpoint})
    assert list(scan(project)["sources"]["web"]["files"]) == ["pages.jsonl"]
    assert perform(STEPS["ingest"], project).counts["documents_out"] == 3


def test_who_may_not_read_is_told_what_to_do(server, tmp_path, monkeypatch):
    server.store().pipe_file(f"{BUCKET}/kept/a.txt", b"text")
    there = {"endpoint_url": server.endpoint}
    project = lay(tmp_path, f"s3://{BUCKET}/kept", storage=there)
    s3fs.S3FileSystem.clear_instance_cache()
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-" + SECRET)
    refused(project, "source web", f"s3://{BUCKET}/kept is refused", "signature", "AWS_SECRET_ACCESS_KEY")
    s3fs.S3FileSystem.clear_instance_cache()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    refused(project, "is refused", "does not exist in our records")
    s3fs.S3FileSystem.clear_instance_cache()
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    refused(project, "no credentials for", "set AWS_ACCESS_KEY_ID", "storage.anon")
    refused(lay(tmp_path, f"s3://{BUCKET}/kept", storage={**there, "anon": True}), "refused: Access Denied")


def test_what_is_not_there_is_named(server, tmp_path):
    there = {"endpoint_url": server.endpoint}
    refused(lay(tmp_path, "s3://no-such-bucket/x", storage=there), "not there", "specified bucket does not exist")
    refused(lay(tmp_path, f"s3://{BUCKET}/nothing", storage=there), "not there", f"s3://{BUCKET}/nothing")
    nobody = {"endpoint_url": "http://127.0.0.1:9"}
    refused(lay(tmp_path, f"s3://{BUCKET}/x", storage=nobody), "cannot be reached", "127.0.0.1:9", "try again")


def test_the_endpoint_may_come_from_the_environment(server, tmp_path, monkeypatch):
    server.store().pipe_file(f"{BUCKET}/environment/a.txt", b"text")
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
    assert scan(lay(tmp_path, f"s3://{BUCKET}/environment"))["sources"]["web"]["files"]["a.txt"]["bytes"] == 4


def test_an_upload_that_was_cut_off_is_damage_by_name(server, tmp_path):
    whole = gzip.compress(pages(4000).encode(), mtime=0)
    for name, content in (("sound", whole), ("cut", whole[: len(whole) // 2])):
        server.store().pipe_file(f"{BUCKET}/{name}/pages.jsonl.gz", content)
    there = {"endpoint_url": server.endpoint}
    project = lay(tmp_path / "sound", f"s3://{BUCKET}/sound", storage=there)
    assert perform(STEPS["ingest"], project).counts["documents_out"] == 4000
    project = lay(tmp_path / "cut", f"s3://{BUCKET}/cut", storage=there)
    refused(project, "web: pages.jsonl.gz is damaged", "runcated", work=partial(perform, STEPS["ingest"]))
    assert not (tmp_path / "cut/data/ingest").exists()


def without_room(project):
    """Nothing is kept, so each part fetches its file."""
    recipe = yaml.safe_load((project.root / "params.yaml").read_text())
    recipe["run"]["remote_bytes_max"] = 0
    (project.root / "params.yaml").write_text(yaml.safe_dump(recipe))
    return project


def test_an_object_that_changes_between_listing_and_reading_is_noticed(server, tmp_path, monkeypatch):
    store = server.store()
    store.pipe_file(f"{BUCKET}/moving/pages.jsonl", pages(4).encode())
    project = without_room(lay(tmp_path, f"s3://{BUCKET}/moving", storage={"endpoint_url": server.endpoint}))
    scan(project)
    store.pipe_file(f"{BUCKET}/moving/pages.jsonl", pages(4, 1).encode())
    monkeypatch.setattr("tasks.build.scan", lambda project, wanted: known)
    known = scan(project)
    store.pipe_file(f"{BUCKET}/moving/pages.jsonl", pages(4, 2).encode())
    refused(project, "source web changed since it was listed: pages.jsonl", work=partial(perform, STEPS["ingest"]))


def test_an_object_that_changes_while_it_is_read_is_noticed(server, tmp_path, monkeypatch):
    store, real = server.store(), Remote.blocks
    store.pipe_file(f"{BUCKET}/restless/a.txt", b"before")

    def change(self, path, size):
        yield from real(self, path, size)
        store.pipe_file(f"{BUCKET}/restless/a.txt", b"after.")

    monkeypatch.setattr(Remote, "blocks", change)
    project = lay(tmp_path, f"s3://{BUCKET}/restless", storage={"endpoint_url": server.endpoint})
    refused(project, "source web changes while it is read: a.txt", "wait for its writer")
    assert list((tmp_path / ".gristmill/copies").iterdir()) == []


def test_a_server_that_is_killed_in_mid_build_costs_no_finished_part(server, tmp_path, monkeypatch):
    for number in range(6):
        server.store().pipe_file(f"{BUCKET}/killed/{number}.jsonl", pages(80, 80 * number).encode())
    there = {"endpoint_url": server.endpoint}
    calm = perform(STEPS["ingest"], lay(tmp_path / "calm", f"s3://{BUCKET}/killed", storage=there))
    project = without_room(lay(tmp_path / "killed", f"s3://{BUCKET}/killed", storage=there))
    scan(project)
    read, real = [], Remote.blocks

    def kill(self, path, size):
        read.append(path)
        if len(read) == 10:  # six scanned, three read
            server.kill()
        return real(self, path, size)

    monkeypatch.setattr(Remote, "blocks", kill)
    refused(
        project, "cannot be reached", "try again: what was finished is kept", work=partial(perform, STEPS["ingest"])
    )
    made = len(list((tmp_path / "killed/data/.staging/ingest/made/documents").iterdir()))
    assert made >= 3 and not (tmp_path / "killed/data/ingest").exists()
    server.start()
    again = perform(STEPS["ingest"], project)
    assert again.content == calm.content and again.carried["documents"] >= made


def test_init_writes_a_recipe_for_a_real_bucket(server, tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
    monkeypatch.setenv("HOME", str(tmp_path))
    server.store().pipe_file(f"{BUCKET}/init/a/pages.jsonl", pages(5).encode())
    words = ["init", str(tmp_path / "mine"), "--from", f"s3://{BUCKET}/init"]
    subprocess.run([sys.executable, "-c", "import flows.cli; flows.cli.main()", *words], check=True, env=environment())
    recipe = yaml.safe_load((tmp_path / "mine/params.yaml").read_text())
    assert recipe["ingest"]["sources"] == [
        {"name": "a", "kind": "web", "path": f"s3://{BUCKET}/init/a", "fields": {"text": "text"}}
    ]
    assert perform(STEPS["ingest"], Project(tmp_path / "mine")).counts["documents_out"] == 5


# Without a server


def test_any_protocol_of_fsspec(memory, tmp_path):
    memory.pipe_file("/corpus/a/pages.jsonl", pages(5).encode())
    memory.pipe_file("/corpus/b.txt", b"Text of a file that lies in memory.")
    project = lay(tmp_path, "memory://corpus")
    assert list(scan(project)["sources"]["web"]["files"]) == ["a/pages.jsonl", "b.txt"]
    assert perform(STEPS["ingest"], project).counts["documents_out"] == 6


def test_a_time_is_no_proof_until_it_is_old(memory, tmp_path, monkeypatch):
    memory.pipe_file("/corpus/b.txt", b"Text.")
    project, read = lay(tmp_path, "memory://corpus"), fetches(monkeypatch)
    scan(project), scan(project)
    assert read == ["b.txt", "b.txt"]
    monkeypatch.setattr("tasks.tags.FRESH", -10.0)
    scan(project), scan(project)
    assert read == ["b.txt"] * 3


@pytest.mark.parametrize(
    ("path", "storage", "what"),
    [
        (f"s3://{KEY}:{SECRET}@bucket/x", {}, "its URL"),
        (f"https://host/x.jsonl?sig={SECRET}", {}, "its URL"),
        ("s3://bucket/x", {"secret": SECRET}, "storage.secret"),
        ("s3://bucket/x", {"client_kwargs": {"aws_secret_access_key": SECRET}}, "storage.client_kwargs.aws_secret"),
        ("s3://bucket/x", {"endpoint_url": f"http://{KEY}:{SECRET}@host"}, "storage.endpoint_url"),
        ("https://host/x", {"client_kwargs": {"auth": SECRET}}, "storage.client_kwargs.auth"),
    ],
)
def test_credentials_in_params_are_refused_and_not_repeated(tmp_path, path, storage, what):
    said = refused(lay(tmp_path, path, storage=storage), what, "git and releases", "environment", error=ParamsError)
    assert KEY not in said.replace("AWS_ACCESS_KEY_ID", "")


@pytest.mark.parametrize(
    ("path", "storage", "words", "error"),
    [
        (
            "s3://bucket/x",
            {"endpoint": "http://h"},
            ("storage.endpoint is no option of s3", "endpoint_url"),
            ParamsError,
        ),
        ("bogus://bucket/x", {}, ("no protocol is known as bogus",), SourceError),
        ("gs://bucket/x", {}, ("nothing here can read gs://", "pip install 'gcsfs'"), SourceError),
        ("file:///tmp/x", {}, ("is no plain URL",), ParamsError),
        ("simplecache::s3://bucket/x", {}, ("is no plain URL",), ParamsError),
        ("in", {"anon": True}, ("has storage, but its path is no URL",), ParamsError),
    ],
)
def test_urls_that_cannot_be_sources(tmp_path, path, storage, words, error):
    refused(lay(tmp_path, path, storage=storage), *words, error=error)


def test_without_s3fs_the_command_that_installs_it_is_named(tmp_path, monkeypatch):
    def absent(protocol):
        raise ImportError("no module")

    monkeypatch.setattr("fsspec.get_filesystem_class", absent)
    refused(lay(tmp_path, "s3://bucket/x"), "nothing here can read s3:// URLs", "pip install 'gristmill[s3]'")


def test_sources_in_one_another_and_sets_behind_urls(memory, tmp_path):
    project = lay(tmp_path, "memory://corpus")
    recipe = yaml.safe_load((tmp_path / "params.yaml").read_text())
    other = {"name": "other", "kind": "web", "path": "memory://corpus/a/"}
    recipe["ingest"]["sources"].append(other)
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(recipe))
    refused(project, "web and other overlap")
    memory.pipe_file("/corpus/a.txt", b"x")
    recipe["ingest"]["sources"].pop()
    recipe["decontaminate"]["sets"] = [{"name": "qa", "path": "memory://qa", "fields": ["q"]}]
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(recipe))
    refused(project, "evaluation set qa is a URL", "fetch it")


# The web


class Pages(http.server.BaseHTTPRequestHandler):
    """Serves `files`; `faults` are met once each: a number of bytes after which it breaks off, or a status."""

    files, faults, asked, tagged = {}, [], [], True

    def do_HEAD(self):
        self.answer(body=False)

    def do_GET(self):
        self.asked.append((self.path, self.headers.get("Range")))
        self.answer(body=True)

    def answer(self, body):
        content = self.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        fault = self.faults.pop(0) if body and self.faults and self.path.endswith("l") else None
        if fault in (403, 503):
            self.send_error(fault)
            return
        asked = re.match(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        start, stop = (int(asked[1]), int(asked[2] or len(content)) + 1) if asked else (0, len(content))
        whole, content = len(content), content[start:stop]
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Accept-Ranges", "bytes")
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{start + len(content) - 1}/{whole}")
        if self.tagged:
            self.send_header("ETag", f'"{whole}"')
        self.end_headers()
        if body:
            self.wfile.write(content[:fault] if fault else content)
        self.close_connection = True

    def log_message(self, *words):
        pass


@pytest.fixture
def web():
    Pages.files, Pages.faults, Pages.asked, Pages.tagged = {}, [], [], True
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_what_breaks_off_is_tried_again_and_goes_on(web, tmp_path, monkeypatch):
    monkeypatch.setattr(remote, "BLOCK", 20_000)
    Pages.files = {"/x/pages.jsonl": pages(500).encode()}
    Pages.faults = [1000, 503, 0, 70, 7, 0]
    found = scan(lay(tmp_path, f"{web}/x/pages.jsonl"))["sources"]["web"]["files"]
    assert found["pages.jsonl"]["sha256"] == sha256(pages(500).encode()) and Pages.faults == []
    begins = [int(re.search(r"\d+", asked)[0]) for _, asked in Pages.asked if asked]
    assert begins.count(0) == 3 and sorted(begins) == begins and len(begins) == 9, "what came is not fetched twice"
    Pages.faults = [10, 10, 10, 10]
    refused(lay(tmp_path / "other", f"{web}/x/pages.jsonl"), "pages.jsonl cannot be reached", "try again")


def test_a_refusal_is_not_tried_again(web, tmp_path):
    Pages.files, Pages.faults = {"/x/pages.jsonl": pages(5).encode()}, [403, 403]
    refused(lay(tmp_path, f"{web}/x/pages.jsonl"), "is refused", "netrc")
    assert Pages.faults == [403]


def test_a_folder_of_a_web_server(web, tmp_path):
    links = '<a href="?C=N">Name</a> <a href="/">up</a> <a href="b%20c.txt">b</a> <a href="pages.jsonl">p</a>'
    Pages.files = {"/x/": links.encode(), "/x/b%20c.txt": b"Text", "/x/pages.jsonl": pages(2).encode()}
    Pages.files["/x"] = Pages.files["/x/"]
    project = lay(tmp_path, f"{web}/x/")
    assert list(scan(project)["sources"]["web"]["files"]) == ["b c.txt", "pages.jsonl"]
    assert perform(STEPS["ingest"], without_room(project)).counts["documents_out"] == 3


def test_a_server_that_gives_no_tag_is_read_each_time(web, tmp_path, monkeypatch):
    Pages.files, Pages.tagged = {"/x/a.txt": b"Text"}, False
    project, read = lay(tmp_path, f"{web}/x/a.txt"), fetches(monkeypatch)
    scan(project), scan(project)
    assert read == ["a.txt", "a.txt"]


def sha256(content):
    return hashlib.sha256(content).hexdigest()


# Copies


def test_copies_stay_within_their_room_and_those_in_use_stay(tmp_path):
    copies, contents = Copies(tmp_path, 25), [bytes([65 + number]) * 10 for number in range(4)]
    names = [sha256(content) for content in contents]
    with copies.held(names[0], lambda: [contents[0]]) as first:
        for name, content in zip(names[1:], contents[1:], strict=True):
            with copies.held(name, lambda content=content: [content]) as copy:
                assert copy.read_bytes() == content
        assert first.read_bytes() == contents[0]
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted([names[0], names[3]])
    with copies.held(names[3], lambda: pytest.fail("it is there")):
        pass
    big = b"z" * 99
    with copies.held(sha256(big), lambda: [big]) as copy:
        assert copy.read_bytes() == big
    assert [path.name for path in tmp_path.iterdir()] == [sha256(big)]


def test_a_copy_that_is_not_the_one_asked_for_is_never_there(memory, tmp_path):
    memory.pipe_file("/corpus/b.txt", b"Other text.")
    home = Home("memory://corpus", "source web", {}, str(tmp_path / "copies"))
    changed = pytest.raises(SourceError, match=r"source web changed since it was listed: b\.txt; build again")
    with changed, home.file("b.txt", sha256(b"Text.")):
        pass
    assert list((tmp_path / "copies").iterdir()) == []


def test_who_comes_while_another_fetches_waits_for_it(tmp_path):
    calls, got = [], []

    def slow():
        calls.append(1)
        time.sleep(0.2)
        yield b"text"

    def want():
        with Copies(tmp_path, 100).held(sha256(b"text"), slow) as copy:
            got.append(copy.read_bytes())

    threads = [threading.Thread(target=want) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [b"text"] * 6 and calls == [1]
    assert [path.name for path in tmp_path.iterdir()] == [sha256(b"text")]


def test_what_a_killed_run_left_is_swept(tmp_path):
    for name in ("a.lock", "a.partial", "b.fetched-999999999", f"c.fetched-{os.getpid()}", "0" * 64):
        (tmp_path / name).write_bytes(b"x")
    Copies(tmp_path, 100).sweep()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0" * 64, f"c.fetched-{os.getpid()}"]


def test_the_room_is_a_number_of_bytes():
    assert room_of(None) == room_of({}) == homes.ROOM and room_of({"remote_bytes_max": 5}) == 5
    for wrong in (-1, "1", True, 1.5):
        with pytest.raises(ParamsError, match="remote_bytes_max"):
            room_of({"remote_bytes_max": wrong})
