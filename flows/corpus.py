"""build_corpus: the whole DAG on one screen, one line per step.

In: a project's folder (params.yaml and its sources). Out: nine artifacts that stand, dvc.lock that names
them, and the funnel. How a step runs is flows.building; what it does is tasks.<step>; whether it has anything
to do, its manifest says.
"""

from __future__ import annotations

from typing import Any

from prefect import flow

from flows.building import building
from flows.dashboard import show_funnel
from flows.funnel import funnel


@flow(name="build_corpus", persist_result=False)
def build_corpus(
    project: str = ".",
    until: str | None = None,
    workers: int | None = None,
    force: list[str] | None = None,
    cluster: str | None = None,
) -> dict[str, Any]:
    """Let every artifact of `project` stand as its params.yaml wants it, up to the step `until`.

    workers: processes per step, None for run.workers of params.yaml. force: steps to make anew in any case.
    cluster: a Dask scheduler, "tcp://host:port", whose workers share this file system and make the parts instead.
    Returns {"fingerprint", "steps": [{"step", "fingerprint", "cached"}], "committed", "funnel"}. Raises
    GristmillError.
    """
    with building(project, until, workers, cluster, force or []) as step:
        ingest = step("ingest")
        normalize = step("normalize", ingest)
        filtered = step("filter", normalize)
        dedup = step("dedup", normalize, filtered)
        decontaminate = step("decontaminate", normalize, dedup)
        tokenize = step("tokenize", normalize, filtered, dedup, decontaminate)
        pack = step("pack", tokenize)
        shard = step("shard", tokenize, pack)
        step("mix", shard)
    rows = funnel(step.project)
    show_funnel(rows)
    return step.summary() | {"funnel": [row.plain() for row in rows]}
