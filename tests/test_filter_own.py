"""Signals of the user's own: the docs' example, metadata, what a function may give back, its digest in the key."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import yaml
from pydantic import ValidationError

from tasks.artifacts.tables import read_table
from tasks.errors import ParamsError, SourceError
from tasks.filter import STEP
from tasks.filter.own import make
from tasks.perform import perform
from tasks.pipeline import STEPS
from tasks.project import Project
from tests.memory_reads import MemoryReads
from tests.model_maker import write_model
from tests.test_filter import UNIT, params

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


def lay_model(path, weight=4.0):
    """hq and lq; "mill" speaks for the one, "far" for the other, and nothing else is known."""
    path.parent.mkdir(exist_ok=True)
    rows, outputs = np.array([[1, 0], [0, 1]], np.float32), np.array([[weight, 0], [0, weight]], np.float32)
    return write_model(path, [("mill", 9), ("far", 8)], [("__label__hq", 9), ("__label__lq", 8)], rows, outputs)


def test_a_model_is_a_signal_as_the_docs_say(project, tmp_path):
    shutil.copytree(project.root, tmp_path / "copy")
    section = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", DOCS.partition("## A fastText model")[2], re.S)[0])
    recipe = yaml.safe_load((tmp_path / "copy" / "params.yaml").read_text(encoding="utf-8"))
    recipe["filter"] |= {"metadata": [], **section["filter"]}
    (tmp_path / "copy" / "params.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
    copy = Project(tmp_path / "copy")
    with pytest.raises(SourceError, match=r"models/quality\.ftz is not beside params\.yaml"):
        perform(STEP, copy)
    lay_model(copy.root / "models" / "quality.ftz")
    assert perform(STEP, copy).counts["dropped|rule=low_quality"] == 1  # "A mill, far away far away ..."
    (part,) = (copy.data / "filter" / "own").glob("*.parquet")
    values = read_table(part)["quality"].to_pylist()
    high = round(1 / (1 + np.exp(-4)) + 1e-5, 6)
    assert sorted(values, key=lambda value: (value is None, value))[1:] == [high, high, high, None]
    assert perform(STEP, copy).outcome == "up_to_date"
    lay_model(copy.root / "models" / "quality.ftz", weight=0.1)
    again = perform(STEP, copy)
    assert again.made["own"] == 1 and again.made["signals"] == 0 and again.counts["dropped|rule=low_quality"] == 0


def modelled(tmp_path, spelled, texts=("mill far far", None, "nothing")):
    tables = {"normalize/text": pa.table({"text": pa.array(texts, pa.large_string())})}
    reads = MemoryReads(UNIT, tables, paths={"m.bin": tmp_path / "m.bin"})
    return make(reads, params(signals=[spelled])).files[".parquet"]


def test_a_signal_of_a_model_has_its_labels_name_or_its_own(tmp_path):
    lay_model(tmp_path / "m.bin", 3.0)
    wanted = round(1 / (1 + float(np.exp(1))) + 1e-5, 6)  # the mean of the rows is (1/3, 2/3)
    assert modelled(tmp_path, "fasttext:m.bin:hq").to_pydict() == {"hq": [wanted, None, None]}
    assert modelled(tmp_path, "fasttext:m.bin:lq=junk").column_names == ["junk"]


def test_what_is_no_model_or_no_label_is_named(tmp_path):
    lay_model(tmp_path / "m.bin")
    with pytest.raises(ParamsError, match=r"m\.bin has no label good") as raised:
        modelled(tmp_path, "fasttext:m.bin:good")
    assert raised.value.mend == "its labels are hq, lq"
    (tmp_path / "m.bin").write_bytes(b"text")
    with pytest.raises(ParamsError, match=r"m\.bin, which filter\.signals names: it ends after 4 bytes"):
        modelled(tmp_path, "fasttext:m.bin:hq")


@pytest.mark.parametrize(
    "spelled", ["fasttext:/m.bin:hq", "fasttext:../m.bin:hq", "fasttext:m.bin:", "fasttext:m.bin:a=b=c"]
)
def test_a_model_lies_in_the_project(spelled):
    with pytest.raises(ValidationError, match="pattern"):
        params(signals=[spelled])


def test_models_names_clash_as_others_do():
    with pytest.raises(ValidationError, match="more than one signal is named hq"):
        params(signals=["fasttext:a.bin:hq", "fasttext:b.bin:hq"])
    assert len(params(signals=["fasttext:a.bin:hq", "fasttext:b.bin:hq=other"]).signals) == 2
