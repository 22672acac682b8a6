"""Recipes of `gristmill init`: what they say, what is recognised, and each of them built as far as shards."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from flows.cli import app
from flows.found import find_sources
from flows.init import init
from flows.presets import load_preset, preset_names
from flows.recipe import write_recipe
from tasks.artifacts.manifest import Manifest
from tasks.artifacts.tables import read_table
from tasks.errors import ParamsError, SourceError
from tasks.filter.named import names as sets_there_are
from tasks.perform import perform
from tasks.pipeline import STEPS
from tasks.project import Project
from tests.corpora import shared
from tests.test_shapes import SHAPES

ROOT = Path(__file__).parent.parent
TEMPLATE = (ROOT / "params.yaml").read_text(encoding="utf-8")
NAMES = ["chinese", "code", "multilingual", "sft", "web"]


def written(sources, name):
    return yaml.safe_load(write_recipe(TEMPLATE, sources, [], name))


def lines(path, count):
    with path.open("rb") as file:
        return b"".join(islice(file, count))


def lay_web(texts):
    (texts / "pages.jsonl").write_bytes(lines(shared("corpora/derived-containers/docs.jsonl"), 80))


def lay_code(texts):
    for name in ("requests-2.31.0", "lz4-4.3.3"):
        for number, line in enumerate(lines(shared(f"corpora/code/{name}.jsonl"), 40).splitlines()):
            record = json.loads(line)
            if record["path"].endswith((".py", ".c", ".h")):
                (texts / f"{number:02}_{Path(record['path']).name}").write_text(record["content"])


def lay_chinese(texts):
    stories = sorted(path for path in shared("corpora/books").rglob("*.txt") if _is_chinese(path))
    for number, path in enumerate(stories[:2]):
        text = path.read_text(encoding="utf-8")[:40_000]
        pages = [{"text": text[start : start + 2000]} for start in range(0, len(text), 2000)]
        records = "".join(json.dumps(page, ensure_ascii=False) + "\n" for page in pages)
        (texts / f"pages{number}.jsonl").write_text(records, encoding="utf-8")


def _is_chinese(path):
    try:
        text = path.read_text(encoding="utf-8")[:2000]
    except UnicodeDecodeError:
        return False
    return len(text) > 1000 and sum("\u4e00" <= letter <= "\u9fff" for letter in text) > 1000


def lay_multilingual(texts):
    folder = shared("corpora/web/langid")
    for path in sorted(folder.rglob("*.txt"))[:60]:
        text = path.read_text(encoding="utf-8")
        (texts / f"{path.stem}.jsonl").write_text(json.dumps({"text": text[:4000]}) + "\n")


def lay_sft(texts):
    folder = shared("corpora/jsonl")
    for name in ("llama-factory/v1_sft_demo.jsonl", "self-instruct/seed_tasks.jsonl", "xtuner/openai_sft.jsonl"):
        (texts / Path(name).name).write_bytes(lines(folder / name, 60))


LAID = {
    "web": (lay_web, "web"),
    "code": (lay_code, "code"),
    "chinese": (lay_chinese, "web"),
    "multilingual": (lay_multilingual, "web"),
    "sft": (lay_sft, "chat"),
}


def test_the_recipes_there_are():
    assert preset_names() == NAMES
    for name in NAMES:
        preset = load_preset(name)
        assert 50_000 <= preset.values["tokenize.vocab_size"] <= 100_000 and preset.about
    with pytest.raises(ParamsError, match="there is no recipe cod; there are chinese, code,"):
        load_preset("cod")


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_is_the_repositorys_but_for_what_it_names(name, tmp_path):
    plain, own = written([], None), written([], name)
    preset = load_preset(name)
    assert own["filter"].pop("rules") == yaml.safe_load(preset.rules)
    plain["filter"].pop("rules")
    for section, key in preset.keys:
        found = own[section] if key in own[section] else own[section]["train"]
        assert found.pop(key) == preset.values[f"{section}.{key}"]
        (plain[section] if key in plain[section] else plain[section]["train"]).pop(key)
    assert own == plain
    used = [rule["set"] for rule in yaml.safe_load(preset.rules) if "set" in rule]
    assert used and set(used) <= set(sets_there_are())


def test_sft_learns_the_answers_alone_one_conversation_a_sequence():
    recipe = written([], "sft")
    assert recipe["tokenize"]["chat"] == {"template": "chatml", "loss": "assistant"}
    assert (recipe["pack"]["strategy"], recipe["pack"]["long"]) == ("document", "leave_out")
    assert {"<|im_start|>", "<|im_end|>"} <= set(recipe["tokenize"]["train"]["reserved"])


@pytest.mark.parametrize("name", NAMES)
def test_each_recipe_builds_as_far_as_shards(name, tmp_path):
    """With the samples' tokenizer, since so little text has no 50,000 pieces."""
    lay, kind = LAID[name]
    texts, root = tmp_path / "texts" / "own", tmp_path / "corpus"
    texts.mkdir(parents=True), root.mkdir()
    lay(texts)
    found = find_sources(tmp_path / "texts", root)
    assert [(item.name, item.kind) for item in found] == [("own", kind)]
    recipe = written(found, name)
    recipe["tokenize"]["tokenizer"] = "samples"
    (root / "params.yaml").write_text(yaml.safe_dump(recipe))
    for folder in ("expectations", "tokenizers"):
        shutil.copytree(ROOT / folder, root / folder)
    reports = {step: perform(STEPS[step], Project(root)) for step in [*STEPS][:8]}
    counts = reports["filter"].counts
    assert 0 < counts["documents_kept"] <= counts["documents_in"]
    assert reports["shard"].counts["tokens"] > 1000


def test_init_with_a_recipe(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "texts/talk").mkdir(parents=True)
    talk = [{"from": "human", "value": "Who grinds?"}, {"from": "gpt", "value": "The miller."}]
    (tmp_path / "texts/talk/a.jsonl").write_text(json.dumps({"conversations": talk}) + "\n")
    said = []
    init(tmp_path / "corpus", tmp_path / "texts", recipe="sft", say=said.append)
    assert "talk: chat; conversations 1" in said
    text = (tmp_path / "corpus/params.yaml").read_text()
    assert "# Recipe sft. " in text and "    # talk: conversations 1\n" in text
    words = ["init", str(tmp_path / "other"), "--from", str(tmp_path / "texts"), "--recipe", "x"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code and isinstance(done.exception, ParamsError) and not (tmp_path / "other/params.yaml").exists()


def test_rules_are_shown_as_they_judge_with_their_sets_resolved(tmp_path):
    (tmp_path / "params.yaml").write_text(write_recipe(TEMPLATE, [], [], "chinese"))
    done = CliRunner().invoke(app, ["-C", str(tmp_path), "--json", "what-if"])
    rules = {rule["name"]: rule for rule in json.loads(done.stdout)}
    assert rules["language"]["languages"] == ["zh"] and rules["basic.repetition"]["max"] == 0.7
    assert {"languages": ["zh"], "min": 0.692} in rules["fineweb2.unclear_language"]["where"]
    done = CliRunner().invoke(app, ["-C", str(tmp_path), "what-if"])
    assert done.exit_code == 0 and f"{len(rules)} rules, in their order" in done.stdout


# What is recognised


def test_every_shape_of_thirty_one_files_is_counted_document_by_document(tmp_path):
    """No mapping is given; what ingest recognised is in its counts, file by file and shape by shape."""
    folder = shared("corpora/jsonl")
    recipe = yaml.safe_load(TEMPLATE)
    source = {"name": "all", "kind": "web", "path": str(folder)}
    recipe["ingest"] |= {"sources": [source], "rejects_max_share": 0.5, "part_bytes": 262_144}
    recipe["ingest"]["part_bytes_max"] = 1_048_576
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(recipe))
    shutil.copytree(ROOT / "expectations", tmp_path / "expectations")
    report = perform(STEPS["ingest"], Project(tmp_path))
    truth = sum((Counter(shapes) for shapes in SHAPES.values()), Counter())
    shapes = {name: count for name, count in truth.items() if not name.startswith("!")}
    assert {name: report.counts[f"documents|shape={name}"] for name in shapes} == shapes
    assert report.counts["documents_out"] == sum(shapes.values())
    assert report.counts["rejected"] == truth.total() - sum(shapes.values())
    places = files_of(tmp_path / "data/ingest", "places")
    for name, wanted in SHAPES.items():
        held = sum(count for shape, count in wanted.items() if not shape.startswith("!"))
        assert places[name] == held, name


def files_of(home, folder):
    """File of the source -> rows."""
    rows = Counter()
    for entry in Manifest.read(home).folders[folder].values():
        rows.update(read_table(home / entry.suffixes()[".parquet"], columns=["file"])["file"].to_pylist())
    return rows


def test_a_folder_of_thirty_one_files_is_recognised_aloud():
    folder = shared("corpora/jsonl")
    found = {item.name: item for item in find_sources(folder, folder.parent / "corpus")}
    kinds = {"data_juicer": "web", "dolma": "web", "llama_factory": "chat", "self_instruct": "chat", "xtuner": "chat"}
    assert {name: item.kind for name, item in found.items() if not item.unknown} == kinds
    assert sum(item.files for item in found.values()) == len(SHAPES)
    assert (
        found["fastchat"].unknown == "the fields seen in vicuna_bench_question.jsonl are category, question_id, turns"
    )
    for name, item in found.items():
        truth = Counter()
        for path, shapes in SHAPES.items():
            if path.partition("/")[0].replace("-", "_") == name:
                truth.update({shape: min(count, 100) for shape, count in shapes.items() if not shape.startswith("!")})
        assert set(item.shape.partition(";")[0].replace(",", "").split(" ")[::2]) == set(truth) or item.unknown
    text = write_recipe(TEMPLATE, list(found.values()), [])
    named = [item["name"] for item in yaml.safe_load(text)["ingest"]["sources"]]
    assert named == [name for name in found if name != "fastchat"]
    assert "# Left out, since no record of it has a shape that is known: the fields seen in vicuna" in text


CHATS = {
    "messages": {"messages": [{"role": "user", "content": "q"}]},
    "conversations": {"conversations": [{"from": "human", "value": "q"}]},
    "list": [{"role": "user", "content": "q"}],
    "instruction": {"instruction": "i", "input": "x", "output": "o"},
    "instances": {"instruction": "i", "instances": [{"input": "x", "output": "o"}]},
    "pair": {"prompt": "p", "completion": "c"},
    "prompt": {"prompt": [{"role": "user", "content": "p"}]},
    "preference": {"prompt": "p", "chosen": "good", "rejected": "bad"},
}


@pytest.mark.parametrize("shape", CHATS)
@pytest.mark.parametrize("array", [False, True])
def test_every_shape_of_a_chat_is_seen(tmp_path, shape, array):
    records = [CHATS[shape]] * 3
    if array:
        (tmp_path / "a.json").write_text(json.dumps(records))
    else:
        (tmp_path / "a.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    (found,) = find_sources(tmp_path, tmp_path / "corpus")
    assert (found.kind, found.shape) == ("chat", f"{shape} 3")
    assert found.fields == ({"messages": "messages"} if shape == "messages" else {})


@pytest.mark.parametrize(
    ("records", "fields", "shape"),
    [
        ([{"content": "c"}] * 2, {"text": "content"}, "content 2"),
        ([{"text": "t"}, {"content": "c"}], {}, "content 1, text 1"),
        ([{"text": "t", "messages": [{"role": "user", "content": "q"}]}], {"text": "text"}, "text 1"),
    ],
)
def test_a_mapping_is_written_only_where_all_records_are_alike(tmp_path, records, fields, shape):
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    (found,) = find_sources(tmp_path, tmp_path / "corpus")
    assert (found.kind, found.fields, found.shape) == ("web", fields, shape)
    source = written([found], None)["ingest"]["sources"][0]
    assert source.get("fields", {}) == fields


def test_an_unknown_shape_is_an_error_that_lists_the_fields_seen(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"body": "b", "id": 1}\n{"other": 2}\n')
    with pytest.raises(SourceError, match=r"the fields seen in a\.jsonl are body, id, other; known are text, content,"):
        find_sources(tmp_path, tmp_path / "corpus")


def test_names_from_files_cannot_break_out_of_their_comment(tmp_path):
    (tmp_path / "ok").mkdir()
    (tmp_path / "odd").mkdir()
    (tmp_path / "ok/a.jsonl").write_text('{"text": "t"}\n')
    (tmp_path / "odd/a.jsonl").write_text('{"x\\nrun: {workers: 9}": 1}\n')
    text = write_recipe(TEMPLATE, find_sources(tmp_path, tmp_path / "corpus"), [])
    assert yaml.safe_load(text)["run"] == {"workers": 0} and "x\\nrun" in text
