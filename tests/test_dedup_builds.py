"""dedup as builds make it: in builds one after another, in many small blocks, and on any workers."""

import shutil

import pytest

from tasks import workers
from tasks.dedup import documents, matching
from tasks.perform import perform
from tasks.pipeline import STEPS
from tasks.project import Project
from tests.dedup_projects import build, lay, near_texts, tree

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
