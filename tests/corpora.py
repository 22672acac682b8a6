"""Where the shared corpora and cases lie, for tests that hold the house against real files."""

from pathlib import Path

import pytest

SHARED = Path(__file__).parents[2] / "shared"


def shared(path):
    """A file or folder of ../shared; skips the test, saying so, where it is not here."""
    found = SHARED / path
    if not found.exists():
        pytest.skip(f"../shared/{path} is not here: real files are not tried")
    return found
