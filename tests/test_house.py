"""The plan of the house: one name for a step everywhere, each parameter in one role, small functions and files."""

import ast
import json
import re
import statistics
from pathlib import Path

import pytest
import yaml

from tasks.pipeline import STEPS
from tasks.step import StepParams

ROOT = Path(__file__).parent.parent
PACKAGES = ("flows", "tasks", "training", "audit")
ROLES = {"shapes", "names", "judges", "runs"}
NINE = ["ingest", "normalize", "filter", "dedup", "decontaminate", "tokenize", "pack", "shard", "mix"]


def modules():
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def functions():
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield path.relative_to(ROOT), node.name, node.end_lineno - node.lineno + 1


def test_there_are_nine_steps_in_their_order():
    assert list(STEPS) == NINE


@pytest.mark.parametrize("step", NINE)
def test_one_name_runs_through_the_house(step):
    recipe = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    stages = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    assert STEPS[step].name == step
    assert STEPS[step].params.__module__ == f"tasks.{step}"
    assert step in recipe
    assert json.loads((ROOT / "expectations" / f"{step}.json").read_text(encoding="utf-8"))
    assert (ROOT / "tests" / f"test_{step}.py").is_file()
    assert stages[step]["cmd"] == f"python -m tasks {step}"
    assert any(f"data/{step}" in out for out in stages[step]["outs"])
    assert any(f"reports/{step}.json" in metric for metric in stages[step]["metrics"])
    assert f"expectations/{step}.json" in stages[step]["deps"]


def test_dvc_has_the_nine_stages_and_sources():
    stages = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    assert list(stages) == ["sources", *NINE]


@pytest.mark.parametrize("step", NINE)
def test_each_folder_has_a_module_of_its_own_and_reads_what_is_there(step):
    known = {f"{name}/{folder}" for name in NINE for item in STEPS[name].folders for folder in (item.name, *item.also)}
    for folder in STEPS[step].folders:
        module = folder.function.partition(":")[0]
        assert module.startswith(f"tasks.{step}."), f"{folder.name} is made by {module}"
        assert set(folder.reads) <= known
        assert {read.partition("/")[0] for read in folder.reads} <= {step, *STEPS[step].inputs}


def roles_of(model: type[StepParams]) -> dict[str, str]:
    return {name: (info.json_schema_extra or {}).get("role") for name, info in model.model_fields.items()}


@pytest.mark.parametrize("step", NINE)
def test_each_parameter_shapes_judges_names_or_runs(step):
    """Case 48: nothing that shapes bytes is left out of the keys, nothing else is in them."""
    roles = roles_of(STEPS[step].params)
    assert set(roles.values()) <= ROLES, roles
    shaped = {name for folder in STEPS[step].folders for name in folder.shapes}
    assert shaped == {name for name, role in roles.items() if role == "shapes"}


@pytest.mark.parametrize("step", NINE)
def test_numbers_that_shape_stand_in_params_and_nowhere_else(step):
    for name, info in STEPS[step].params.model_fields.items():
        if (info.json_schema_extra or {}).get("role") == "shapes":
            assert info.is_required(), f"{step}.{name} has a default in code"


def test_functions_are_small():
    lengths = list(functions())
    assert [item for item in lengths if item[2] > 50] == []
    assert statistics.median(length for _, _, length in lengths) <= 10


def test_files_are_small():
    long = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in modules()}
    assert {name: lines for name, lines in long.items() if lines > 300} == {}


def test_no_room_is_called_utils_or_common():
    assert [path for path in modules() if re.search(r"util|common|helper|misc", path.name)] == []


def test_only_the_judges_import_great_expectations():
    users = [
        path for path in modules() if re.search(r"import great_expectations|from great_expectations", path.read_text())
    ]
    assert {path.relative_to(ROOT).parts[0] for path in users} == {"tasks"}
    assert len(users) <= 2


def test_no_builtin_hash_and_no_unpickling():
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in {"hash", "eval", "exec"}, f"{path}:{node.lineno}"
            if isinstance(node, ast.Import):
                assert not {"pickle", "marshal", "shelve"} & {alias.name for alias in node.names}, path


WHOLE = ("sorted", "sum", "min", "max", "any", "all", "set", "frozenset")
TAKES = (
    "list",
    "tuple",
    "enumerate",
    "zip",
    "map",
    "iter",
    "next",
    "array",
    "join",
    "fromiter",
    "from_iterable",
    "chain",
)


def is_a_set(node):
    """{a, b}, {x for ...}, set(...), frozenset(...), and what |, &, - and ^ make of one."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr | ast.BitAnd | ast.Sub | ast.BitXor):
        return is_a_set(node.left) or is_a_set(node.right)
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("set", "frozenset")
    return called or isinstance(node, ast.Set | ast.SetComp)


def walked_sets(function):
    """Lines of a function that go through a set in the order that a salted hash gives: those named there, too."""
    named = {
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and is_a_set(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    whole = [node for node in ast.walk(function) if isinstance(node, ast.SetComp)]
    calls = (node for node in ast.walk(function) if isinstance(node, ast.Call))
    whole += [each for call in calls if getattr(call.func, "id", "") in WHOLE for each in call.args]
    ordered = {id(part) for node in whole for part in getattr(node, "generators", ())}
    for node in ast.walk(function):
        if isinstance(node, ast.For) or (isinstance(node, ast.comprehension) and id(node) not in ordered):
            walked = [node.iter]
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            walked = node.args if name in TAKES else []
        else:
            continue
        for value in walked:
            if is_a_set(value) or (isinstance(value, ast.Name) and value.id in named):
                yield value.lineno


def test_no_set_is_walked_in_code_that_shapes_data():
    """PYTHONHASHSEED orders them; sorted() first."""
    assert list(walked_sets(ast.parse("found = {1, 2}\nfor one in found: pass\nlist(set(a) | b)"))) == [2, 3]
    assert not list(walked_sets(ast.parse("for one in sorted({1, 2}): pass\n{x for x in {1}}\nlen({1})")))
    found = [f"{path}:{line}" for path in modules() for line in walked_sets(ast.parse(path.read_text("utf-8")))]
    assert found == []


def kernels(tree):
    """Functions compiled by numba, by name."""
    return {
        node.name: node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and any("njit" in ast.unparse(item) for item in node.decorator_list)
    }


def test_a_kernel_uses_nothing_of_another_file_of_ours():
    """numba's cache on disk sees edits of a kernel's own file only: what lies elsewhere would stay as it was."""
    for path in modules():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        ours = [
            node for node in tree.body if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGES)
        ]
        foreign = {alias.asname or alias.name for node in ours for alias in node.names}
        for name, kernel in kernels(tree).items():
            used = {node.id for node in ast.walk(ast.Module(kernel.body, [])) if isinstance(node, ast.Name)}
            assert not used & foreign, f"{path}: {name} uses {sorted(used & foreign)}"
