"""The digest of code changes with what can change bytes, and with nothing else (case 45 of the field's faults)."""

import pytest

from tasks import code


@pytest.fixture
def house(tmp_path, monkeypatch):
    """A small house of modules: tasks.step_a uses tasks.helper, which uses tasks.deep; TYPE_CHECKING names wiring."""
    monkeypatch.setattr(code, "HOUSE", tmp_path)
    package = tmp_path / "tasks"
    package.mkdir()
    (package / "__init__.py").write_text('"""Docstring only."""\n')
    (package / "wiring.py").write_text("LIMIT = 1\n")
    (package / "deep.py").write_text("LIMIT = 3\n")
    (package / "helper.py").write_text("def helper(x):\n    from tasks import deep\n\n    return x + deep.LIMIT\n")
    (package / "step_a.py").write_text(
        "from typing import TYPE_CHECKING\n\nfrom tasks.helper import helper\n\n"
        "if TYPE_CHECKING:\n    from tasks.wiring import LIMIT\n\n\ndef make(x):\n    return helper(x)\n"
    )
    return package


def test_closure_follows_imports_in_functions_but_not_type_checking(house):
    assert code.modules_of("tasks.step_a") == ["tasks.deep", "tasks.helper", "tasks.step_a"]


@pytest.mark.parametrize("edited", ["deep.py", "helper.py", "step_a.py"])
def test_editing_any_reached_module_changes_the_digest(house, edited):
    before = code.function_digest("tasks.step_a:make")
    path = house / edited
    path.write_text(path.read_text() + "\n\nANOTHER = 5\n")
    assert code.function_digest("tasks.step_a:make") != before


def test_a_constant_in_a_helper_changes_the_digest(house):
    before = code.function_digest("tasks.step_a:make")
    (house / "deep.py").write_text("LIMIT = 5\n")
    assert code.function_digest("tasks.step_a:make") != before


def test_comments_docstrings_and_blank_lines_change_nothing(house):
    before = code.function_digest("tasks.step_a:make")
    path = house / "helper.py"
    path.write_text('"""Über helper."""\n\n\n# why: é\n' + path.read_text().replace("x):\n", 'x):\n    """Doc é."""\n'))
    (house / "deep.py").write_text('LIMIT = 3  # a comment\n"""what the limit means\nand why"""\n')
    (house / "wiring.py").write_text("LIMIT = 2\n")
    assert code.function_digest("tasks.step_a:make") == before


def test_a_data_file_is_part_of_the_code(house):
    (house / "words.json").write_text("[1]")
    (house / "deep.py").write_text('DATA_FILES = ("words.json",)\nLIMIT = 3\n')
    before = code.function_digest("tasks.step_a:make")
    (house / "words.json").write_text("[2]")
    assert code.function_digest("tasks.step_a:make") != before


def test_a_string_that_is_no_docstring_stays():
    assert "#no comment" in code.blanked('x = "#no comment"\n')


def test_blanked_keeps_code_beside_what_it_blanks():
    assert code.blanked('def f(): "doc"; return 1\n') == "def f(): ; return 1"


def test_a_planner_among_the_declarations_is_digested_by_itself(house):
    step = house / "step.py"
    step.write_text('def each_part(plan):\n    """Doc."""\n    return plan\n\n\nLIMIT = 1\n')
    before = code.function_digest("tasks.step:each_part")
    step.write_text('def each_part(plan):\n    """Other words."""\n    return plan  # why\n\n\nLIMIT = 2\n')
    assert code.function_digest("tasks.step:each_part") == before
    step.write_text("def each_part(plan):\n    return list(plan)\n")
    assert code.function_digest("tasks.step:each_part") != before
