"""Executors: inline, processes and a real Dask cluster give the same bytes; a dead scheduler is an error for people."""

import subprocess
import sys
from pathlib import Path

import pytest

from tasks import workers
from tasks.errors import GristmillError
from tests import test_perform
from tests.toy import TOY

project = test_perform.project
ROOT = Path(__file__).parent.parent


@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster_gives_the_same_bytes(project, cluster):
    alone = test_perform.perform(TOY, project)
    files = test_perform.files_of(project)
    test_perform.shutil.rmtree(project.data)
    report = test_perform.perform(TOY, project, cluster=cluster)
    assert report.made["words"] == 6 and report.fingerprint == alone.fingerprint
    assert test_perform.files_of(project) == files


@pytest.mark.filterwarnings("ignore")
def test_a_dead_scheduler_is_named(project, monkeypatch):
    monkeypatch.setattr(workers, "CONNECT_SECONDS", 1)
    with pytest.raises(GristmillError, match=r"tcp://127\.0\.0\.1:9 within 1 s; start one"):
        test_perform.perform(TOY, project, cluster="tcp://127.0.0.1:9")


def test_a_killed_worker_is_an_error_for_people(project, monkeypatch):
    monkeypatch.setenv("TOY", "die")
    workers._POOLS.clear()
    with pytest.raises(GristmillError, match="a worker process was killed"):
        test_perform.perform(TOY, project, workers=2)
    monkeypatch.delenv("TOY")
    assert test_perform.perform(TOY, project, workers=2).outcome == "built"


def test_a_worker_does_not_run_the_main_module(tmp_path):
    """A script without a guard is no endless chain of workers, and what it imports is not imported again by each."""
    script = tmp_path / "script.py"
    script.write_text(
        "import os\nfrom tasks.workers import pool\n"
        "print('main', len({pool(2).submit(os.getpid).result(), os.getpid()}))\n"
    )
    done = subprocess.run([sys.executable, script], env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("main 2\n", 0), done.stderr
