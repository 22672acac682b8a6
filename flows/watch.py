"""Who watches a build: the seam between a flow and a terminal.

In: what a flow tells (a step began, moved on, ended; something to warn of). Out: whatever the watcher makes
of it. A flow's parameters must be plain data, so a watcher is not passed but stands in a context variable; by
default nobody watches.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar


class Watch:
    """A watcher that does nothing; a terminal overrides what it shows."""

    def began(self, step: str) -> None:
        """`step` starts."""

    def moved(self, step: str, done: int, total: int, folder: str) -> None:
        """`done` of `total` units of `folder` are made."""

    def ended(self, step: str, outcome: str, counts: dict[str, int]) -> None:
        """`step` is there. outcome: cached, up_to_date, judged or built.

        Counts are empty where it was cached.
        """

    def said(self, text: str) -> None:
        """Something that people should know: a wait, a retry, a warning."""


_WATCH: ContextVar[Watch | None] = ContextVar("watch", default=None)


def watch() -> Watch:
    """The watcher of this context."""
    return _WATCH.get() or Watch()


@contextlib.contextmanager
def watched_by(watcher: Watch) -> Iterator[None]:
    """Let `watcher` see what flows called inside tell."""
    token = _WATCH.set(watcher)
    try:
        yield
    finally:
        _WATCH.reset(token)
