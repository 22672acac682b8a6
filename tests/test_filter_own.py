"""Signals of the user's own: the docs' example, metadata, what a function may give back, its digest in the key."""

import json
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from memory_reads import MemoryReads
from pydantic import ValidationError
from test_filter import UNIT, params

from tasks.artifacts.tables import read_table
from tasks.errors import ParamsError, SourceError
from tasks.filter import STEP
from tasks.filter.own import make
from tasks.perform import perform
from tasks.pipeline import STEPS
from tasks.project import Project

ROOT = Path(__file__).parent.parent
DOCS = (ROOT / "docs" / "filter.md").read_text(encoding="utf-8")


def example():
    """(code, section filter) of the docs."""
    after = DOCS.partition("## A signal of your own")[2]
    return re.findall(r"```python\n(.*?)```", after, re.S)[0], yaml.safe_load(
        re.findall(r"```yaml\n(.*?)```", after, re.S)[0]
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A corpus of five documents with the docs' own signal and rules, built as far as filter."""
    root = tmp_path_factory.mktemp("own")
    shutil.copytree(ROOT / "expectations", root / "expectations")
    (root / "texts").mkdir()
    texts = [
        "The mill and the miller.",
        "No such thing here.",
        "A mill, " + "far away " * 300,
        "A mill for all.",
        "A mill too.",
    ]
    scores = [5, 5, 5, 2.5, None]
    lines = [
        json.dumps({"text": text, "score": score, "n": row})
        for row, (text, score) in enumerate(zip(texts, scores, strict=True))
    ]
    (root / "texts" / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    code, section = example()
    (root / "my_rules.py").write_text(code, encoding="utf-8")
    recipe = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    recipe["ingest"]["sources"] = [{"name": "web", "kind": "web", "path": "texts"}]
    recipe["filter"] |= section["filter"]
    (root / "params.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
    project = Project(root)
    for name in ("ingest", "normalize", "filter"):
        perform(STEPS[name], project)
    return project


def test_the_example_is_short_and_does_what_the_docs_say(project):
    code, _ = example()
    assert len(code.strip().split("\n")) <= 15
    (part,) = (project.data / "filter" / "verdicts").glob("*.parquet")
    verdicts = read_table(part).to_pylist()
    (texts,) = (
        read_table(path)["text"].to_pylist() for path in (project.data / "normalize" / "text").glob("*.parquet")
    )
    rules = {text[:12]: item["rule"] for text, item in zip(texts, verdicts, strict=True)}
    assert rules == {
        "The mill and": None,
        "No such thin": "no_mill",
        "A mill, far ": "no_mill",
        "A mill for a": "low_score",
        "A mill too.": None,
    }
    own = read_table(project.data / "filter" / "own" / part.name)
    assert own.column_names == ["mills", "metadata.score"] and own["metadata.score"].null_count == 1


def test_an_edit_of_the_file_measures_it_anew_and_nothing_else(project):
    assert perform(STEP, project).outcome == "up_to_date"
    file = project.root / "my_rules.py"
    file.write_text(file.read_text(encoding="utf-8").replace("1000.0", "100000.0"), encoding="utf-8")
    again = perform(STEP, project)
    assert again.made == {"signals": 0, "own": 1, "blocked": 0, "verdicts": 1, "cuts": 1}
    assert again.counts["dropped|rule=no_mill"] == 1


WITH_MODEL = """
import json
from pathlib import Path

import pyarrow as pa

DATA_FILES = ("model.json",)


def mills(texts):
    model = json.loads((Path(__file__).parent / "model.json").read_text())
    return pa.array([model] * len(texts))
"""


def test_a_data_file_is_in_the_key_too(project, tmp_path):
    shutil.copytree(project.root, tmp_path / "copy")
    (tmp_path / "copy" / "my_rules.py").write_text(WITH_MODEL, encoding="utf-8")
    (tmp_path / "copy" / "model.json").write_text("3", encoding="utf-8")
    copy = Project(tmp_path / "copy")
    assert perform(STEP, copy).counts["dropped|rule=no_mill"] == 0
    assert perform(STEP, copy).outcome == "up_to_date"
    (tmp_path / "copy" / "model.json").write_text("0.5", encoding="utf-8")
    assert perform(STEP, copy).made["own"] == 1
    (tmp_path / "copy" / "model.json").unlink()
    with pytest.raises(SourceError, match=r"model\.json"):
        perform(STEP, copy)
    (tmp_path / "copy" / "my_rules.py").write_text("def mills(:", encoding="utf-8")
    with pytest.raises(SourceError, match=r"my_rules\.py, which filter\.signals names, cannot be read"):
        perform(STEP, copy)


def test_a_missing_file_is_named(project, tmp_path):
    shutil.copytree(project.root, tmp_path / "copy")
    (tmp_path / "copy" / "my_rules.py").unlink()
    with pytest.raises(SourceError, match=r"my_rules.py is not beside params.yaml"):
        perform(STEP, Project(tmp_path / "copy"))


def own(tmp_path, body, signals=("mine:score",), metadata=(), records=("{}", "{}")):
    (tmp_path / "mine.py").write_text("import pyarrow as pa\n" + body, encoding="utf-8")
    tables = {"normalize/text": pa.table({"text": ["a", "b"], "metadata": pa.array(records, pa.string())})}
    chosen = params(signals=list(signals), metadata=list(metadata))
    return make(MemoryReads(UNIT, tables, paths={"mine": tmp_path / "mine.py"}), chosen).files[".parquet"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("def other(texts): return texts", "has no such function"),
        ("score = 3", "has no such function"),
        ("def score(texts): return [1, 2]", "gave list for 2 texts"),
        ("def score(texts): return pa.array([1])", "gave 1 values for 2 texts"),
        ("def score(texts): return texts", "is no number"),
        ("def score(texts): return pa.array([1.0, float('nan')])", "NaN"),
    ],
)
def test_what_is_no_column_of_numbers_is_refused(tmp_path, body, said):
    with pytest.raises(ParamsError, match=said):
        own(tmp_path, body)


@pytest.mark.parametrize("given", ["[1, None]", "[True, False]", "[1.5, 2.5]"])
def test_integers_truth_values_and_nulls_are_numbers(tmp_path, given):
    table = own(tmp_path, f"def score(texts): return pa.chunked_array([pa.array({given})])")
    wanted = [None if item is None else float(item) for item in eval(given)]
    assert table["score"].to_pylist() == wanted and table["score"].type == pa.float64()


def test_metadata_fields_lead_into_objects_and_are_null_where_absent(tmp_path):
    records = ['{"a": {"b": 2}, "c": true}', '{"a": "text", "c": 1e400}']
    table = own(tmp_path, "", signals=(), metadata=("a.b", "c"), records=records)
    assert table.to_pydict() == {"metadata.a.b": [2.0, None], "metadata.c": [1.0, None]}
    assert own(tmp_path, "", signals=(), metadata=("a",), records=[None, "[1]"])["metadata.a"].null_count == 2


def test_names_that_clash_or_are_no_names_are_refused():
    with pytest.raises(ValidationError, match="more than one signal is named score"):
        params(signals=["a:score", "b:score"])
    with pytest.raises(ValidationError, match="more than one signal is named words"):
        params(signals=["a:words"])
    with pytest.raises(ValidationError, match="pattern"):
        params(signals=["../a:score"])
