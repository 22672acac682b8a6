"""Block lists: every boundary of what meets an entry, what is counted, what is in the key, and what is refused."""

import gzip
import hashlib
import json
import re
import resource
import shutil
import time
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from pydantic import ValidationError

from tasks.artifacts.tables import read_table
from tasks.errors import ParamsError, SourceError
from tasks.filter.blocklists import MATCHES, make, read_list
from tasks.perform import perform
from tasks.pipeline import STEPS
from tasks.project import Project
from tests.memory_reads import MemoryReads
from tests.test_filter import UNIT, params

ROOT = Path(__file__).parent.parent
DOCS = (ROOT / "docs" / "filter.md").read_text(encoding="utf-8")


def listed(tmp_path, text, match):
    data = text if isinstance(text, bytes) else text.encode()
    path = tmp_path / f"{hashlib.sha256(data).hexdigest()[:8]}.txt"
    path.write_bytes(data)
    return read_list(path, hashlib.sha256(data).hexdigest(), "bad", match)


def met(tmp_path, entries, match, url):
    return MATCHES[match](url, listed(tmp_path, entries, match))


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://example.com", "domain"),
        ("http://example.com/", "domain"),
        ("HTTPS://EXAMPLE.COM/Path?q#f", "domain"),
        ("example.com/page", "domain"),
        ("//example.com/page", "domain"),
        ("https://example.com:8443/x", "domain"),
        ("https://example.com./x", "domain"),
        ("https://user:pass@example.com/x", "domain"),
        ("https://www.example.com/x", "subdomain"),
        ("https://a.b.example.com?x", "subdomain"),
        ("https://badexample.com/", ""),
        ("https://example.com.evil.org/", ""),
        ("https://example.co/", ""),
        ("https://com/", ""),
        ("https://other.org/example.com", ""),
        ("https://other.org/?u=http://example.com/", ""),
        ("https://example.com@other.org/", ""),
        ("", ""),
        ("https://", ""),
        ("no url at all", ""),
    ],
)
def test_domains(tmp_path, url, reason):
    count, why = met(tmp_path, "other.example\n# a comment\n\n  Example.COM  \r\n", "domains", url)
    assert (count, why if count else "") == (int(bool(reason)), reason)


@pytest.mark.parametrize("entry", ["*.example.com", ".example.com", "example.com.", "EXAMPLE.com"])
def test_ways_to_write_a_domain(tmp_path, entry):
    assert met(tmp_path, entry, "domains", "https://a.example.com/") == (1, "subdomain")


@pytest.mark.parametrize("entry", ["bücher.example", "BÜCHER.example", "xn--bcher-kva.example"])
@pytest.mark.parametrize(
    "host", ["bücher.example", "www.Bücher.example", "xn--bcher-kva.example", "XN--BCHER-KVA.example"]
)
def test_unicode_and_punycode_are_one(tmp_path, entry, host):
    assert met(tmp_path, entry, "domains", f"https://{host}/x")[0] == 1


def test_addresses_meet_only_themselves(tmp_path):
    assert met(tmp_path, "2.3.4\n1.2.3.4", "domains", "http://1.2.3.4:80/") == (1, "address")
    assert met(tmp_path, "3.4\n2.3.4", "domains", "http://1.2.3.4/")[0] == 0
    assert met(tmp_path, "example.com", "domains", "http://[::1]:80/example.com")[0] == 0


@pytest.mark.parametrize(
    ("url", "count"),
    [
        ("https://example.com/a", 1),
        ("http://EXAMPLE.com/A", 1),
        ("https://example.com/a/", 1),
        ("https://example.com/a/b?c", 1),
        ("https://example.com/a?b", 1),
        ("https://example.com/a#b", 1),
        ("https://example.com/ab", 0),
        ("https://example.com/", 0),
        ("https://www.example.com/a", 0),
        ("https://whole.example", 1),
        ("https://whole.example/x", 1),
        ("https://whole.example.org/x", 0),
        ("https://slash.example/x/y", 1),
        ("https://slash.example/x", 0),
        ("https://other.org/?u=https://example.com/a", 0),
    ],
)
def test_urls(tmp_path, url, count):
    assert met(tmp_path, "https://example.com/a\nwhole.example\nslash.example/x/\n", "urls", url)[0] == count


@pytest.mark.parametrize(
    ("url", "words", "substrings"),
    [
        ("https://casino.example/poker", 2, 2),
        ("https://example.com/CASINO-night", 1, 1),
        ("https://example.com/casinos", 0, 1),
        ("https://example.com/?q=poker&q=poker", 1, 1),
        ("https://example.com/%70oker", 1, 1),
        ("https://example.com/my_poker_1", 1, 1),
        ("https://example.com/glücksspiel", 1, 1),
        ("https://example.com/gl%C3%BCcksspiel", 1, 1),
        ("https://example.com/", 0, 0),
    ],
)
def test_words_and_substrings(tmp_path, url, words, substrings):
    entries = "casino\nPoker\nglücksspiel\n"
    assert met(tmp_path, entries, "words", url) == (words, "word")
    assert met(tmp_path, entries, "substrings", url) == (substrings, "substring")


@pytest.mark.parametrize(
    ("text", "match", "words"),
    [
        (b"", "domains", "has no entry"),
        (b"# only a comment\n", "words", "has no entry"),
        (b"good.example\nhttp://x.example/\n", "domains", "line 2 of block list bad is no domain"),
        (b"two words\n", "words", "line 1 of block list bad is no word"),
        (b"\xff\xfe", "domains", "cannot be read"),
        (gzip.compress(b"a.example\n" * 999, mtime=0)[:30], "domains", "cannot be read"),
    ],
)
def test_lists_that_are_none(tmp_path, text, match, words):
    with pytest.raises(SourceError, match=re.escape(words)) as caught:
        listed(tmp_path, text, match)
    assert caught.value.mend


def test_a_list_may_be_packed(tmp_path):
    assert listed(tmp_path, gzip.compress("\ufeffa.example\nb.example".encode()), "domains") == {
        "a.example",
        "b.example",
    }


def test_a_list_that_changed_is_refused(tmp_path):
    (tmp_path / "list").write_text("a.example")
    with pytest.raises(SourceError, match="block list bad changed while filter ran; build again"):
        read_list(tmp_path / "list", "0" * 64, "bad", "domains")


def test_counts_by_list_and_reason_and_null_without_a_url(tmp_path):
    urls = ["https://a.example/", "https://b.a.example/", None, "", "https://other.example/poker"]
    lists = [{"name": "sites", "path": "s", "match": "domains"}, {"name": "games", "path": "g", "match": "words"}]
    reads = MemoryReads(UNIT, tables={"normalize/text": pa.table({"url": urls})})
    contents = {"sites": b"a.example", "games": b"poker"}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    reads.spec = {"blocklists": {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}}
    reads.path = lambda name: tmp_path / name
    made = make(reads, params(blocklists=lists))
    table = made.files[".parquet"]
    assert table["blocked.sites"].to_pylist() == [1, 1, None, None, 0]
    assert table["blocked.games"].to_pylist() == [0, 0, None, None, 1]
    assert made.counts == {
        "blocked|list=sites": 2,
        "blocked|list=games": 1,
        "blocked|reason=domain": 1,
        "blocked|reason=subdomain": 1,
        "blocked|reason=word": 1,
    }


def test_each_list_is_a_rule_in_front_of_the_others():
    lists = [
        {"name": "sites", "path": "s", "match": "domains", "kinds": ["web"]},
        {"name": "games", "path": "g", "match": "words", "entries_min": 2, "sources": ["crawl"]},
    ]
    found = params({"name": "short", "signal": "words", "min": 5}, blocklists=lists).rules
    assert [(rule.name, rule.max, rule.kinds, rule.sources) for rule in found] == [
        ("blocked.sites", 0, ("web",), None),
        ("blocked.games", 1, None, ("crawl",)),
        ("short", None, None, None),
    ]
    with pytest.raises(ValidationError, match="more than one block list is named sites"):
        params(blocklists=[lists[0], lists[0]])
    with pytest.raises(ValidationError, match="match"):
        params(blocklists=[lists[0] | {"match": "regex"}])
    with pytest.raises(ValidationError, match=r"no such signal as blocked\.other"):
        params({"name": "x", "signal": "blocked.other", "max": 0}, blocklists=lists)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Five pages, the lists of the docs' example, built as far as filter."""
    root = tmp_path_factory.mktemp("blocked")
    shutil.copytree(ROOT / "expectations", root / "expectations")
    (root / "texts").mkdir()
    (root / "lists").mkdir()
    sites = ["https://adult.example/a", "https://x.ADULT.example/b", "https://example.org/casino-poker"]
    sites += ["https://example.org/poker", None]
    pages = [{"text": f"Page {row} of the mill. " * 8, "url": url} for row, url in enumerate(sites)]
    (root / "texts/a.jsonl").write_text("".join(json.dumps(page) + "\n" for page in pages))
    (root / "lists/adult.txt.gz").write_bytes(gzip.compress(b"adult.example\n", mtime=0))
    (root / "lists/pages.txt").write_text("nowhere.example/x\n")
    (root / "lists/words.txt").write_text("casino\npoker\n")
    after = DOCS.partition("## Block lists")[2]
    section = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", after, re.S)[0])
    recipe = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    recipe["ingest"]["sources"] = [{"name": "web", "kind": "web", "path": "texts"}]
    recipe["filter"] |= section["filter"] | {"rules": []}
    (root / "params.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
    for step in ("ingest", "normalize", "filter"):
        perform(STEPS[step], Project(root))
    return Project(root)


def changed(project, **fields):
    """A report of filter with the first list changed; params.yaml stays so."""
    recipe = yaml.safe_load((project.root / "params.yaml").read_text())
    recipe["filter"]["blocklists"][0] |= fields
    (project.root / "params.yaml").write_text(yaml.safe_dump(recipe))
    return perform(STEPS["filter"], project)


def test_the_docs_example_drops_what_it_says(project):
    (file,) = (project.data / "filter/verdicts").glob("*.parquet")
    table = read_table(file, columns=["verdict", "rule", "value", "limit"]).to_pylist()
    assert [row["rule"] for row in table] == ["blocked.adult", "blocked.adult", "blocked.phrases", None, None]
    assert (table[2]["value"], table[2]["limit"]) == (2, 1)
    report = json.loads((project.root / "reports/filter.json").read_text())
    assert "blocked" in json.dumps(report)


def test_another_list_looks_up_anew_and_measures_nothing(project):
    (project.root / "lists/adult.txt.gz").write_bytes(gzip.compress(b"nobody.example\n", mtime=0))
    report = perform(STEPS["filter"], project)
    assert report.made == {"signals": 0, "own": 0, "blocked": 1, "verdicts": 1, "cuts": 1}
    assert report.counts["blocked|list=adult"] == 0 and report.counts["dropped|rule=blocked.phrases"] == 1
    (project.root / "lists/adult.txt.gz").write_bytes(gzip.compress(b"adult.example\n", mtime=0))
    assert perform(STEPS["filter"], project).counts["blocked|list=adult"] == 2
    shutil.copy(project.root / "lists/adult.txt.gz", project.root / "lists/moved.gz")
    moved = changed(project, path="lists/moved.gz")
    assert (moved.made["signals"], moved.made["verdicts"]) == (0, 0)
    assert changed(project, match="substrings").counts["blocked|reason=substring"] == 2
    assert changed(project, entries_min=2).counts["dropped|rule=blocked.adult"] == 0
    assert changed(project, entries_min=1, kinds=["book"]).counts["dropped|rule=blocked.adult"] == 0
    assert changed(project, kinds=["web"], match="domains").counts["dropped|rule=blocked.adult"] == 2


def test_a_list_that_is_not_there_is_named(project):
    before = (project.root / "params.yaml").read_bytes()
    for path, words in (("lists/none", "is not there: lists/none"), ("lists", "is no file: lists")):
        with pytest.raises(SourceError, match=f"block list adult {words}"):
            changed(project, path=path)
    with pytest.raises((ParamsError, SourceError), match="block list adult is a URL"):
        changed(project, path="s3://bucket/list")
    (project.root / "params.yaml").write_bytes(before)


def test_a_million_entries_cost_seconds_and_little_memory(tmp_path):
    data = "".join(f"site-{number}.example\n" for number in range(300_000)).encode()
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    entries = listed(tmp_path, data, "domains")
    spent = time.process_time() - began
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert len(entries) == 300_000
    assert spent < 6 and grown < 200 * 300_000, (spent, grown)
    print(f"{spent / 0.3:.2f} CPU seconds and {grown / 0.3 / 1e6:.0f} MB a million entries")
    began = time.process_time()
    for number in range(20_000):
        MATCHES["domains"](f"https://www.deep.site-{number * 30}.example/a/b?c=d", entries)
    assert time.process_time() - began < 2
