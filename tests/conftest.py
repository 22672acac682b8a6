"""Fixtures of more than one test module."""

import logging
import warnings

import fsspec
import pytest
from hypothesis import settings

from tasks import perform, workers
from tasks.errors import InvariantError

settings.register_profile("untimed", deadline=None)  # a kernel's first call compiles it; speed is benchmarks' matter
settings.load_profile("untimed")


def pytest_make_parametrize_id(val, argname):
    """Long bytes are called by their argument: those of a packed file may differ in each process that collects."""
    return argname if isinstance(val, bytes) and len(val) > 40 else None


@pytest.fixture
def cluster():
    """A Dask scheduler with two worker processes on the loopback; its address."""
    distributed = pytest.importorskip("distributed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=logging.CRITICAL
        ) as cluster:
            yield cluster.scheduler_address
            for place in [place for place in workers._POOLS if place[1]]:
                workers._POOLS.pop(place)._client.close()


@pytest.fixture
def no_suite(monkeypatch):
    """A step is held to its invariants alone; no suite of expectations is laid or run."""

    def judge(step, artifact, project, hands=1):
        for breach in step.invariants(artifact):
            raise InvariantError(breach)
        return []

    monkeypatch.setattr(perform, "judge", judge)
    monkeypatch.setattr(perform, "judge_digest", lambda *_: "judges")


@pytest.fixture
def memory():
    """fsspec's file system in memory, empty."""
    store = fsspec.filesystem("memory")
    store.store.clear()
    yield store
    store.store.clear()
