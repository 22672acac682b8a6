"""A trainer with a package `training` of its own installs and imports ours: failure of generic names."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.pin_maker import lay_pin
from training.wheel import VERSION, main, make_wheel, renamed

TRAINER = """
import sys, training, tasks
assert training.__file__.startswith({own!r}) and training.MINE == 1 and tasks.MINE == 2
from gristmill_training.training import build_dataloader, open_pin, verify_pipeline, LLMDataCollator
from gristmill_training.tasks.artifacts.schedule import Schedule
pin = open_pin("v1")
assert type(pin.schedule) is Schedule
loader = build_dataloader(pin, batch_size=4, labels="shifted", isolate_documents=True)
found = verify_pipeline(loader, 3, labels="shifted", vocab_size=100)
assert found.ok and found.rows == 12, found
assert LLMDataCollator(2)([[5, 6], [7]])["input_ids"].tolist() == [[5, 6], [2, 7]]
ours = [name for name in sys.modules if name.split(".")[0] in ("training", "tasks", "flows", "audit")]
assert sorted(ours) == ["tasks", "training"], ours
print("trained")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_wheel(tmp_path_factory.mktemp("dist"))


def test_a_trainer_with_its_own_package_training_uses_ours(wheel: Path, tmp_path: Path) -> None:
    site, own = tmp_path / "site", tmp_path / "trainer"
    pip = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    subprocess.run([sys.executable, *pip, "--target", str(site), str(wheel)], check=True, timeout=120)
    own.mkdir()
    (own / "training.py").write_text("MINE = 1\n")
    (own / "tasks.py").write_text("MINE = 2\n")
    (own / "main.py").write_text(TRAINER.format(own=str(own)))
    lay_pin(own, {"a": {"train": [[[5, 6, 7, 2] * 30]]}}, vocab_size=100, name="v1")
    paths = {"PYTHONPATH": str(site), "NUMBA_CACHE_DIR": str(tmp_path / "numba")}
    done = subprocess.run(
        [sys.executable, "main.py"], cwd=own, env={**os.environ, **paths}, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.strip().endswith("trained"), done.stderr


def test_the_wheel_holds_all_of_training_and_the_formats(wheel: Path, tmp_path: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    root = Path(__file__).parents[1]
    for folder in ("training", "tasks/artifacts"):
        held = {f"gristmill_training/{folder}/{path.name}" for path in (root / folder).glob("*.py")}
        assert held - names <= {"gristmill_training/training/wheel.py"}
    assert not [name for name in names if "/flows" in name or "/audit" in name]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == VERSION
    assert make_wheel(tmp_path).read_bytes() == wheel.read_bytes()


def test_imports_are_moved_and_nothing_else() -> None:
    source = (
        'from training.pin import Pin\n    from tasks.artifacts import a\nimport training.pin as p\n"from training"\n'
    )
    assert renamed(source, "g").splitlines() == [
        "from g.training.pin import Pin",
        "    from g.tasks.artifacts import a",
        "import g.training.pin as p",
        '"from training"',
    ]
    assert renamed("from trainings import x\nimport tasksets\n", "g") == "from trainings import x\nimport tasksets\n"
    with pytest.raises(ValueError, match="binds the name of a package"):
        renamed("import training.pin\n", "g")


@pytest.mark.parametrize("name", ["training", "flows", "My-Name", ""])
def test_names_that_cannot_be_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="cannot be the package"):
        make_wheel(tmp_path, name)


def test_the_command(tmp_path: Path, capsys) -> None:
    main([str(tmp_path), "--name", "mill"])
    assert capsys.readouterr().out.strip() == str(tmp_path / "mill-0.1.0-py3-none-any.whl")
