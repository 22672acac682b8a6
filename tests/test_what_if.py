"""gristmill what-if: the documents that change sides are those that a build with the changed limit drops or keeps."""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from audit.what_if import what_if
from flows.cli import main
from tasks.artifacts.tables import read_table
from tasks.errors import GristmillError, ParamsError
from tasks.perform import perform
from tasks.pipeline import STEPS
from tasks.project import Project

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("what_if")
    shutil.copytree(ROOT / "expectations", root / "expectations")
    (root / "texts").mkdir()
    texts = [f"Number {n} has {'many ' * n}words and one more" for n in range(30)] + ["Le moulin est " * 3 + "vieux"]
    lines = [json.dumps({"text": text}) for text in texts]
    (root / "texts" / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    recipe = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    recipe["ingest"]["sources"] = [{"name": "web", "kind": "web", "path": "texts"}]
    recipe["filter"]["rules"] = [
        {"name": "short", "signal": "words", "min": 8},
        {"set": "code-1", "kinds": ["code"]},
        {"name": "scripts", "signal": "javascript_lines", "max": 0, "action": "cut"},
    ]
    (root / "params.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
    project = Project(root)
    for name in ("ingest", "normalize", "filter"):
        perform(STEPS[name], project)
    return root


def verdicts(root):
    return {
        (path.stem, row): item["verdict"]
        for path in sorted((root / "data/filter/verdicts").glob("*.parquet"))
        for row, item in enumerate(read_table(path).to_pylist())
    }


def test_what_changes_sides_is_what_a_build_changes(root, tmp_path):
    answer = what_if(Project(root), ["filter.short.min=12"])
    assert answer.changed == ["filter.short.min: 8.0 -> 12.0"] and answer.documents == 31
    assert all((move.before, move.after) == ("keep", "drop") for move in answer.moves)
    shutil.copytree(root, tmp_path / "built")
    recipe = yaml.safe_load((root / "params.yaml").read_text(encoding="utf-8"))
    recipe["filter"]["rules"][0]["min"] = 12
    (tmp_path / "built" / "params.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
    perform(STEPS["filter"], Project(tmp_path / "built"))
    before, after = verdicts(root), verdicts(tmp_path / "built")
    assert sum(move.documents for move in answer.moves) == sum(before[key] != after[key] for key in before) > 0


def test_counts_by_source_and_language_and_the_examples(root):
    answer = what_if(Project(root), ["filter.short.min=none"])
    moves = {(move.source, move.language): (move.before, move.after, move.documents) for move in answer.moves}
    assert set(moves) and all(move[:2] == ("drop", "keep") for move in moves.values())
    example = answer.examples[0]
    assert (example.rule, example.limit) == ("short", 8.0) and example.value < 8 and example.text.startswith("Number")
    assert sum(move.characters for move in answer.moves) > 0
    assert len(what_if(Project(root), ["filter.short.min=100"]).examples) == 10


def test_a_signal_may_name_the_limit_of_a_set(root):
    project = Project(root)
    assert what_if(project, ["filter.code.max_max_line_length=5"]).changed == [
        "filter.code.max_line.max: 1000.0 -> 5.0"
    ]
    assert what_if(project, ["filter.code.max_line.max=5"]).moves == []


@pytest.mark.parametrize(
    ("spelled", "said"),
    [
        ("filter.shirt.min=3", "names no limit of one rule"),
        ("filter.short.min", "names no limit of one rule"),
        ("filter.short.signal=3", "names no limit of one rule"),
        ("filter.short.min=many", "'many' is no number"),
    ],
)
def test_what_names_no_limit_is_refused(root, spelled, said):
    with pytest.raises(ParamsError, match=said):
        what_if(Project(root), [spelled])


def test_without_signals_there_is_no_answer(tmp_path):
    shutil.copyfile(ROOT / "params.yaml", tmp_path / "params.yaml")
    with pytest.raises(GristmillError, match="filter does not stand"):
        what_if(Project(tmp_path), ["filter.too_short.min=3"])


def test_the_command_answers_as_a_table_and_as_json(root, capsys):
    assert main(["-C", str(root), "what-if", "filter.short.min=12"]) == 0
    shown = capsys.readouterr().out
    assert "keep" in shown and "drop" in shown and "Number" in shown
    assert main(["-C", str(root), "--json", "what-if", "filter.short.min=12"]) == 0
    assert json.loads(capsys.readouterr().out)["documents"] == 31
    assert main(["-C", str(root), "what-if", "filter.shirt.min=1"]) == 2
