"""gristmill what-if dedup.threshold: what it says beside what a build with that threshold removes."""

import json
import random
import shutil
from collections import Counter
from pathlib import Path

import pytest
import yaml

from audit.what_if_dedup import what_if
from flows.cli import main
from tasks.artifacts.tables import read_table
from tasks.errors import GristmillError, ParamsError
from tasks.perform import perform
from tasks.pipeline import STEPS
from tasks.project import Project

ROOT = Path(__file__).parent.parent


def near_texts():
    """60 texts and, of each, a copy with 1 to 12 words changed of 120."""
    rng = random.Random(7)
    for number in range(60):
        words = [f"w{rng.randrange(4000)}" for _ in range(120)]
        yield " ".join(words)
        for place in rng.sample(range(120), 1 + number % 12):
            words[place] = f"x{place}y{number}"
        yield " ".join(words)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("what_if_dedup")
    shutil.copytree(ROOT / "expectations", root / "expectations")
    (root / "texts").mkdir()
    lines = [json.dumps({"text": text}) for text in near_texts()]
    (root / "texts" / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    recipe = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    recipe["ingest"]["sources"] = [{"name": "web", "kind": "web", "path": "texts"}]
    recipe["filter"]["rules"] = [{"name": "short", "signal": "words", "min": 3}]
    (root / "params.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
    for name in ("ingest", "normalize", "filter", "dedup"):
        perform(STEPS[name], Project(root))
    return root


def removed_by_a_build(root, where, threshold):
    shutil.copytree(root, where)
    recipe = yaml.safe_load((root / "params.yaml").read_text(encoding="utf-8"))
    recipe["dedup"]["threshold"] = dict.fromkeys(recipe["dedup"]["threshold"], threshold)
    (where / "params.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
    perform(STEPS["dedup"], Project(where))
    folder = Project(where).artifact("dedup") / "verdicts"
    return sum(Counter(read_table(p).column("verdict").to_pylist())["drop"] for p in folder.glob("*.parquet"))


def test_near_what_a_build_removes(root, tmp_path):
    lines = what_if(Project(root), ["dedup.threshold=0.7..0.9"])
    assert [line.threshold["web"] for line in lines] == [0.8, 0.8, 0.7, 0.75, 0.8, 0.85, 0.9]
    assert [line.measured for line in lines] == [True, *[False] * 6]
    said = {line.threshold["web"]: line.removed for line in lines[2:]}
    assert abs(said[0.8] - lines[0].removed) <= 6 and sorted(said.values(), reverse=True) == list(said.values())
    assert abs(said[0.9] - removed_by_a_build(root, tmp_path / "built", 0.9)) <= 6
    pair = lines[-1].pairs[0]
    assert 0.5 <= pair.similarity <= 1 and pair.text and pair.other_text


def test_one_kind_and_what_is_no_threshold(root, tmp_path):
    lines = what_if(Project(root), ["dedup.threshold.web=1"])
    assert lines[-1].threshold["web"] == 1 and lines[-1].threshold["book"] == 0.8 and lines[-1].removed == 0
    assert lines[-1].of_kinds == "0.8 (code 0.85, web 1)"
    for wrong in ("dedup.threshold", "dedup.threshold.poem=0.7", "dedup.threshold=0.9..0.7", "dedup.bands=3"):
        with pytest.raises(ParamsError, match="threshold"):
            what_if(Project(root), [wrong])
    shutil.copyfile(root / "params.yaml", tmp_path / "params.yaml")
    with pytest.raises(GristmillError, match="dedup does not stand"):
        what_if(Project(tmp_path), ["dedup.threshold=0.7"])


def test_the_command_shows_it(root, capsys):
    assert main(["-C", str(root), "what-if", "dedup.threshold=0.8", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [line["measured"] for line in shown] == [True, False, False]
    assert main(["-C", str(root), "what-if", "dedup.threshold=0.75..0.8"]) == 0
    said = capsys.readouterr().out
    assert "nothing was built" in said
    assert "21 bands of 6 rows compare" in said and "0.9983 of the pairs at 0.8" in " ".join(said.split())
