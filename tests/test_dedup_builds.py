"""dedup as builds make it: in builds one after another, in many small blocks, and on any workers."""

import json
import shutil

import pytest
import yaml

from tasks import workers
from tasks.artifacts.tables import read_table
from tasks.dedup import documents, matching
from tasks.perform import perform
from tasks.pipeline import STEPS
from tasks.project import Project
from tests.dedup_projects import ROOT, build, lay, near_texts, tree, verdicts

TEXTS = list(near_texts(3, 24))


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """A project of two files, built by one process."""
    root = lay(tmp_path_factory.mktemp("alone"), {"web": {"a": TEXTS, "b": TEXTS[::3]}})
    build(root)
    return root


def again(alone, root, **hands):
    """The report and the files of dedup, made anew on the same inputs."""
    shutil.copytree(alone, root)
    shutil.rmtree(root / "data" / "dedup")
    report = perform(STEPS["dedup"], Project(root), **hands)
    assert not list((root / "data").rglob("*.scratch"))
    return report, tree(root)


def test_a_new_snapshot_sketches_its_own_parts_and_equals_a_build_from_scratch(alone, tmp_path):
    root, files = tmp_path / "grown", {"a": TEXTS, "b": TEXTS[::3], "c": [*near_texts(6, 4), *TEXTS[1::7]]}
    shutil.copytree(alone, root)
    report = build(lay(root, {"web": files}))
    assert 0 < report.made["sketches"] < report.carried["sketches"]
    assert tree(root) == again(root, tmp_path / "fresh")[1]


def test_case_19_short_texts_survive_and_an_empty_one_is_rejected_before(tmp_path):
    path = ROOT.parent / "shared/cases/19-shorter-than-ngram/docs.jsonl"
    if not path.is_file():
        pytest.skip("the shared cases are not here")
    root, wanted = lay(tmp_path, {"web": {}}), json.loads((path.parent / "expect.json").read_text())
    recipe = yaml.safe_load((root / "params.yaml").read_text())
    recipe["filter"]["rules"], recipe["ingest"]["rejects_max_share"] = [], 0.2
    (root / "params.yaml").write_text(yaml.safe_dump(recipe))
    shutil.copy(path, root / "texts/web/docs.jsonl")
    build(root)
    (rejects,) = (root / "data/ingest/rejects").glob("*.parquet")
    assert [line["reason"] for line in read_table(rejects).to_pylist()] == ["empty"] * len(wanted["rejected_empty"])
    found = [row[:2] for row in verdicts(root).values()]
    assert found.count(("keep", None)) == len(wanted["kept_ids"])
    assert found.count(("drop", "exact")) == len(wanted["exact_removed"]) == len(found) - len(wanted["kept_ids"])


def test_many_small_partitions_and_blocks_decide_alike(alone, tmp_path, monkeypatch):
    """What a corpus of many millions does: several partitions, blocks of ranks and sorted runs."""
    monkeypatch.setattr(documents, "AT_ONCE", 7)
    monkeypatch.setattr(matching, "AT_ONCE", 7)
    monkeypatch.setattr("tasks.dedup.ranking.RUN", 8)
    monkeypatch.setattr("tasks.dedup.ranking.STRIDE", 2)
    monkeypatch.setattr("tasks.dedup.scratch.BUFFER_BYTES", 100)
    monkeypatch.setattr("tasks.dedup.levels.SPANS_AT_ONCE", 3)
    monkeypatch.setattr(matching, "BLOCK", 5)
    monkeypatch.setattr("tasks.dedup.greedy.BLOCK", 5)
    _, files = again(alone, tmp_path / "small")
    wanted = tree(alone)
    assert files == wanted


@pytest.mark.filterwarnings("ignore")
def test_partitions_run_on_a_dask_cluster_and_give_the_same_bytes(alone, tmp_path, cluster, monkeypatch):
    monkeypatch.setattr(matching, "AT_ONCE", 1)
    executor, sent = workers.pool(1, cluster), []
    submit = executor.submit

    def noted(function, *arguments, **named):
        sent.append(function.__name__)
        return submit(function, *arguments, **named)

    monkeypatch.setattr(executor, "submit", noted)
    _, files = again(alone, tmp_path / "dask", cluster=cluster)
    assert files == tree(alone)
    assert sent.count("match_partitions") == 21 and sent.count("write_sets") >= 2


@pytest.mark.filterwarnings("ignore")
def test_partitions_run_on_worker_processes(alone, tmp_path):
    assert again(alone, tmp_path / "two", workers=2)[1] == tree(alone)
