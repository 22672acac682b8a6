"""docs/failures.md names tests that exist, for every failure or with the reason why not."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROWS = [
    line for line in (ROOT / "docs" / "failures.md").read_text(encoding="utf-8").splitlines() if line[2:3].isdigit()
]


@cache
def known_in(name: str) -> set[str]:
    path = ROOT / "tests" / name
    if not path.is_file():
        return set()
    return {
        node.name for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.FunctionDef)
    }


def test_all_36_stand_in_their_order() -> None:
    assert [int(row.split("|")[1]) for row in ROWS] == [*range(1, 37)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_each_names_a_test_that_exists(row: str) -> None:
    caught = row.split("|")[4]
    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", caught)
    assert named or "cannot exist:" in caught, "neither a test nor a reason"
    for file, test in named:
        assert test in known_in(file), f"{file} has no {test}"
