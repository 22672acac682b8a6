"""gristmill init: what it finds, what it writes, what it refuses."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from flows import init as init_module
from flows.found import Found, find_sources
from flows.init import init
from flows.machine_texts import documentation, lay_machine_texts, packages, standard_library
from flows.recipe import SETTINGS, weigh, write_recipe
from tasks.errors import ParamsError, SourceError, SpaceError

ROOT = Path(__file__).parent.parent
TEMPLATE = (ROOT / "params.yaml").read_text(encoding="utf-8")
STORIES = Found("stories", "book", "../texts/stories", 3, 640_000)
PAGES = Found("pages", "web", "/texts/my pages.jsonl", 1, 10_000)


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """A folder with a source of each kind, one file that is none, and names that need mending."""
    folder = tmp_path / "texts"
    page, chat = {"text": "A page."}, {"messages": [{"role": "user", "content": "Hello?"}]}
    files = {
        "Old Stories!/one.txt": b"Once.",
        "Old Stories!/two/two.md": b"Twice.",
        "programs/main.py": b"print('long enough to outweigh the note')\n",
        "programs/note.txt": b"See main.",
        "talk/day.jsonl.gz": gzip.compress(json.dumps(chat).encode() + b"\n", mtime=0),
        "crawl.jsonl": b"not json\n" + json.dumps(page).encode() + b"\n",
        "pictures/a.png": b"\x89PNG",
        ".hidden/x.txt": b"x",
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def run(folder: Path, *words: str) -> str:
    return subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def test_init_from_a_folder(texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole, with real git and DVC, in a home that knows no identity."""
    (tmp_path / "home").mkdir()
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    corpus = tmp_path / "corpus"
    laid = init(corpus, texts)

    assert [(item.name, item.kind) for item in laid.sources] == [
        ("old_stories", "book"),
        ("crawl", "web"),
        ("programs", "code"),
        ("talk", "chat"),
    ]
    assert set(laid.bytes_per_kind) == {"book", "chat", "code", "web"}
    assert laid.revision == run(corpus, "git", "rev-parse", "HEAD")
    assert run(corpus, "git", "log", "--format=%an %ae %s") == "gristmill gristmill@localhost Lay a corpus"
    assert run(corpus, "git", "status", "--porcelain") == ""
    held = run(corpus, "git", "ls-files").splitlines()
    assert {"params.yaml", "dvc.yaml", "prefect.yaml", ".dvc/config", "expectations/mix.json"} <= set(held)

    recipe = yaml.safe_load((corpus / "params.yaml").read_text(encoding="utf-8"))
    assert recipe["decontaminate"]["sets"] == []
    assert [item["path"] for item in recipe["ingest"]["sources"]][1:3] == [
        "../texts/crawl.jsonl",
        "../texts/programs",
    ]
    remote = run(corpus, sys.executable, "-m", "dvc", "remote", "list")
    assert remote.split()[:2] == ["local", str(corpus / ".remote")]
    assert "url = ../.remote" in (corpus / ".dvc" / "config").read_text(encoding="utf-8")

    with pytest.raises(ParamsError, match=r"holds a params.yaml and so a corpus already; build it with"):
        init(corpus, texts)
    before = (corpus / "params.yaml").read_bytes()
    (corpus / "params.yaml").write_text("ingest: {}\n", encoding="utf-8")
    assert init(corpus, texts, force=True).revision == laid.revision
    assert (corpus / "params.yaml").read_bytes() == before


@pytest.mark.parametrize("name", ["audit", "flows", "tasks", "training"])
def test_a_folder_that_would_shadow_us_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(ParamsError, match=f"holds {name}, which Python would import"):
        init(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "corpus").write_text("x", encoding="utf-8")
    with pytest.raises(ParamsError, match="is a file"):
        init(tmp_path / "corpus")
    with pytest.raises(SpaceError, match="cannot be made: Not a directory"):
        init(tmp_path / "corpus" / "below")


def test_no_texts_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="does not exist"):
        init(tmp_path / "corpus", tmp_path / "nowhere")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.png").write_bytes(b"x")
    with pytest.raises(SourceError, match="holds no file of a known format"):
        init(tmp_path / "corpus", tmp_path / "texts")
    assert not (tmp_path / "corpus" / "params.yaml").exists()


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(b'{"text": "x"}\n' * 1000, mtime=0)[:40])
    with pytest.raises(SourceError, match=r"cut.jsonl.gz is damaged"):
        find_sources(tmp_path, tmp_path / "corpus")


def test_a_damaged_file_does_not_hide_the_others(tmp_path: Path) -> None:
    cut = gzip.compress(b'{"text": "x"}\n' * 1000, mtime=0)[:40]
    for name, data in {"a/cut.jsonl.gz": cut, "b/cut.jsonl.gz": cut, "b/whole.jsonl": b'{"text": "x"}\n'}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    gone, kept = find_sources(tmp_path, tmp_path / "corpus")
    assert gone.unknown.startswith("cut.jsonl.gz is damaged: ") and gone.shape == gone.unknown
    assert kept.shape.startswith("text 1; cut.jsonl.gz is damaged: ")
    assert not kept.unknown and not kept.fields and kept.files == 2


def test_loose_texts_are_one_source(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text("text", encoding="utf-8")
    (found,) = find_sources(tmp_path, tmp_path / "corpus")
    assert (found.kind, found.files, found.bytes) == ("book", 3, 12)


def test_equal_names_get_numbers_and_our_folders_are_no_sources(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("about the others", encoding="utf-8")
    for name in ("A b", "a-b", "a_b", "data", "expectations", "§"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.txt").write_text("text", encoding="utf-8")
    found = find_sources(tmp_path, tmp_path)
    assert [(item.name, item.path) for item in found] == [
        ("a_b", "A b"),
        ("a_b_2", "a-b"),
        ("a_b_3", "a_b"),
        ("source", "§"),
    ]


def test_the_recipe_is_the_repositorys_but_for_sources_and_sizes() -> None:
    ours, new = yaml.safe_load(TEMPLATE), yaml.safe_load(write_recipe(TEMPLATE, [STORIES, PAGES], ["qa"]))
    assert new["ingest"].pop("sources") == [
        {"name": "stories", "kind": "book", "path": "../texts/stories"},
        {"name": "pages", "kind": "web", "path": "/texts/my pages.jsonl"},
    ]
    assert new["decontaminate"].pop("sets")[0]["path"] == "evaluation/qa.jsonl"
    assert new["mix"].pop("stages") == [{"start": 0, "weights": {"stories": 0.985, "pages": 0.015}}]
    for section, key in (("ingest", "sources"), ("decontaminate", "sets"), ("mix", "stages")):
        del ours[section][key]
    for setting in SETTINGS:
        value = yaml.safe_load(setting.value)
        assert taken(new[setting.section], setting.key) == value
        taken(ours[setting.section], setting.key)
    assert new == ours


def taken(section: dict[str, Any], key: str) -> Any:
    """The value of `key`, which may stand deeper; it is taken out."""
    holder = next(item for item in [section, *section.values()] if isinstance(item, dict) and key in item)
    return holder.pop(key)


def test_the_recipe_keeps_its_comments() -> None:
    written = write_recipe(TEMPLATE, [STORIES], [])
    comments = [line.strip() for line in TEMPLATE.splitlines() if line.startswith("  #")]
    assert len(comments) > 30
    assert [line for line in comments if line not in written] == []


def test_a_template_without_a_key_is_an_error() -> None:
    with pytest.raises(ParamsError, match="lacks group_bytes in pack; restore it"):
        write_recipe(TEMPLATE.replace("group_bytes:", "other:"), [STORIES], [])


def test_every_section_passes_its_step() -> None:
    from tasks.pipeline import STEPS

    recipe = yaml.safe_load(write_recipe(TEMPLATE, [STORIES, PAGES], []))
    for name, step in STEPS.items():
        step.params.model_validate_json(json.dumps(recipe[name] or {}))


def test_no_source_weighs_nothing() -> None:
    weights = weigh([STORIES, Found("tiny", "web", "t", 1, 1)])
    assert weights["tiny"] == 0.001


def test_the_samples_are_recognised(tmp_path: Path) -> None:
    found = find_sources(ROOT / "samples", tmp_path)
    kinds = {"chats": "chat", "code": "code", "prose": "book", "web": "web"}
    assert {item.name: item.kind for item in found if not item.unknown} == kinds
    assert {item.name for item in found if item.unknown} == {"evaluation", "truth"}


def test_programs_come_in_order_and_within_their_bound() -> None:
    programs = dict(standard_library(700_000))
    assert programs == dict(standard_library(700_000))
    assert list(programs) == sorted(programs)
    assert sum(len(text.encode()) for text in programs.values()) <= 700_000
    assert not any("site-packages" in path for path in programs)


def test_docstrings_are_read_and_not_run() -> None:
    method = '    def f(self):\n        """In f."""\n'
    program = '"""Top."""\nimport nothing_like_this\nclass A:\n    """In A."""\n' + method
    found = dict(documentation({"pack/__init__.py": program, "test/test_x.py": program, "broken.py": "def"}))
    modules = {path: text for path, text in found.items() if path.startswith("modules/")}
    assert modules == {"modules/pack.txt": "pack\n\nTop.\n\npack.A\n\nIn A.\n\npack.A.f\n\nIn f.\n"}
    assert any(path.startswith("topics/") and len(text) > 1000 for path, text in found.items())


def test_packages_describe_themselves_the_same_way_twice() -> None:
    first = dict(packages())
    assert first == dict(packages())
    licences = [json.loads(line) for line in first["licences.jsonl"].splitlines()]
    assert len({record["text"] for record in licences}) < len(licences), "no two packages share a licence"
    assert all(record["package"] != "gristmill" for record in licences)
    assert len(first["descriptions.jsonl"].splitlines()) > 50


def test_this_machine_has_four_kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flows.machine_texts.standard_library", lambda: standard_library(300_000))
    monkeypatch.setattr("flows.machine_texts.libraries", lambda most: iter(()))
    said: list[str] = []
    found = lay_machine_texts(tmp_path / "sources", ROOT / "samples", tmp_path, said.append)
    assert {item.name: item.kind for item in found} == {
        "chats": "chat",
        "code": "code",
        "docs": "book",
        "packages": "web",
        "prose": "book",
        "stdlib": "code",
        "web": "web",
    }
    assert [item.path for item in found] == [f"sources/{item.name}" for item in found]
    assert len(said) == 3


def test_what_is_shipped_is_there() -> None:
    for name in (*init_module.COPIED, "params.yaml"):
        assert (init_module.SHIPPED / name).exists()


def test_programs_of_packages_fill_up_a_small_standard_library() -> None:
    from flows.machine_texts import libraries

    assert list(libraries(999_999)) == []
    found = dict(libraries(1_500_000))
    assert 1_400_000 < sum(len(text.encode()) for text in found.values()) <= 1_500_000
    assert all(path.endswith(".py") and ".." not in path for path in found)
    assert found == dict(libraries(1_500_000))
