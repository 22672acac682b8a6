"""Errors for people: one sentence that holds the value, the limit and the mend, and an exit code.

Exit codes: 1 anything else, 2 parameters, 3 sources, 4 a broken invariant, 5 a failed expectation, 6 damaged files,
7 a missing or unfit tokenizer, 28 no space, 75 another build holds the lock (EX_TEMPFAIL).
"""

from __future__ import annotations


class GristmillError(Exception):
    """Something a person can mend. `mend` says how; `code` is the exit status of the command that met it."""

    code = 1

    def __init__(self, message: str, mend: str | None = None) -> None:
        self.message, self.mend = message, mend
        super().__init__(message, mend)

    def __str__(self) -> str:
        return f"{self.message}; {self.mend}" if self.mend else self.message


class ParamsError(GristmillError):
    """params.yaml holds an unknown key, a wrong type or a value out of range."""

    code = 2


class SourceError(GristmillError):
    """A source or an evaluation set is absent, empty, unreadable or damaged."""

    code = 3


class InvariantError(GristmillError):
    """A staged artifact breaks a promise of the house; it was not published."""

    code = 4


class ExpectationError(GristmillError):
    """A staged artifact fails a critical expectation of its suite; it was not published."""

    code = 5


class IntegrityError(GristmillError):
    """A file on disk is not the one its manifest names."""

    code = 6


class TokenizerError(GristmillError):
    """A tokenizer is absent or does not fit its card."""

    code = 7


class SpaceError(GristmillError):
    """The disk is full or the folder cannot be written."""

    code = 28


class LockedError(GristmillError):
    """Another build holds the project's lock."""

    code = 75
