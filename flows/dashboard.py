"""What Prefect's UI shows of a build: progress bars, the counts of each step, the funnel.

In: numbers. Out: Prefect artifacts. An artifact is a courtesy: where the server does not take it, the build
goes on.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any, cast
from uuid import UUID

import httpx
from prefect.artifacts import create_progress_artifact, create_table_artifact, update_progress_artifact
from prefect.exceptions import PrefectException

from flows.funnel import Row
from flows.watch import watch

# One update costs 10 ms of a server that also serves others.
UPDATE_SECONDS = 3.0
COURTESY = (httpx.HTTPError, PrefectException)


class Progress:
    """Called as tasks.perform makes units; tells the watcher at once and Prefect every few seconds."""

    def __init__(self, step: str) -> None:
        self.step = step
        self.artifact: UUID | None = None
        self.told = 0.0

    def __call__(self, done: int, total: int, folder: str) -> None:
        watch().moved(self.step, done, total, folder)
        if time.monotonic() - self.told >= UPDATE_SECONDS:
            self.told = time.monotonic()
            self.show(100.0 * done / max(total, 1), folder)

    def show(self, percent: float, folder: str) -> None:
        """Put `percent` on the step's progress bar."""
        with contextlib.suppress(*COURTESY):
            if self.artifact is None:
                made = create_progress_artifact(percent, f"{self.step}-progress", folder)
                self.artifact = cast(UUID, made)
            else:
                update_progress_artifact(self.artifact, percent, folder)


@contextlib.contextmanager
def step_progress(step: str) -> Iterator[Progress]:
    """A progress bar for `step` that appears with its first unit and is full at its end."""
    progress = Progress(step)
    yield progress
    if progress.artifact:
        progress.show(100.0, "all")


def show_counts(step: str, counts: dict[str, int]) -> None:
    """The step's counts as a table artifact."""
    table = [{"measure": name, "count": count} for name, count in sorted(counts.items())]
    _table(table, f"{step}-counts", f"What {step} counted")


def show_funnel(rows: list[Row]) -> None:
    """The funnel as a table artifact: documents and tokens that came, stayed and went, by step and reason."""
    table = [
        {"step": row.step, "unit": row.unit, "came": row.came, "kept": row.kept, "dropped": row.dropped}
        | {"reasons": ", ".join(f"{reason} {n}" for reason, n in row.reasons.items())}
        for row in rows
    ]
    _table(table, "funnel", "What came to each step and what it kept")


def show_losses(losses: list[list[float]]) -> None:
    """The losses of a training run as a table artifact: nat per target at each logged step."""
    _table([{"step": step, "loss": loss} for step, loss in losses], "loss", "Loss in nat per target")


def _table(table: list[dict[str, Any]], key: str, description: str) -> None:
    if table:
        with contextlib.suppress(*COURTESY):
            create_table_artifact(table, key=key, description=description)
