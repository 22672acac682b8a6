"""What a change costs, on a source of 400 files in twenty parts and more; and the same bytes however it is built.

The files are programs of Python's standard library, which every machine has, cut to about 50 kB each where they are
longer: 20 MB in all. Two minutes on two cores. Run it with `python -m pytest -m long tests/test_long.py -s` to see the
table.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest
import yaml

from tasks.artifacts.manifest import Manifest
from tasks.pipeline import STEPS
from tasks.project import Project
from tests.small_corpus import lay_corpus

pytestmark = [pytest.mark.long, pytest.mark.timeout(1500)]

ROOT = Path(__file__).parent.parent
FILES = 400
FILE_BYTES = 51_000
PART_BYTES = 1 << 19
AT_MOST = {"pack": 6, "shard": 6}  # two groups for each of three splits
ONCE = {"boilerplate", "certificate", "mixture", "tokenizer"}  # of the whole corpus, by nature
BUILD = """
import json, sys
from pathlib import Path
from tasks.perform import perform
from tasks.pipeline import STEPS
from tasks.project import Project
if __name__ == "__main__":
    reports = [perform(step, Project(Path.cwd()), workers=int(sys.argv[1])) for step in STEPS.values()]
    print(json.dumps({each.step: {"made": each.made, "carried": each.carried} for each in reports}))
"""


def programs() -> list[str]:
    """400 texts of 50 kB: the standard library's programs end to end, cut at line ends."""
    home = Path(sysconfig.get_paths()["stdlib"])
    paths = sorted(path for path in home.rglob("*.py") if "site-packages" not in path.parts)
    whole, texts, size = [], [], 0
    for path in paths:
        for line in path.read_text(encoding="utf-8", errors="ignore").splitlines(keepends=True):
            whole.append(line)
            size += len(line.encode())
            if size >= FILE_BYTES:
                texts.append("".join(whole))
                whole, size = [], 0
                if len(texts) == FILES:
                    return texts
    pytest.skip(f"this machine's standard library gives {len(texts)} of {FILES} files")
    return []


def a_new_program() -> str:
    """50 kB of code that stands nowhere else and repeats nothing."""
    chance = random.Random(3)
    names = ["".join(chance.choice("abcdefghijklmnop") for _ in range(7)) for _ in range(400)]
    lines = [f"{chance.choice(names)} = {chance.choice(names)} * {chance.randrange(99)}" for _ in range(2200)]
    return "\n".join(lines) + "\n"


def lay(root: Path, shuffled: random.Random) -> None:
    """The corpus, its files created in `shuffled` order."""
    root.mkdir(parents=True)
    lay_corpus(root)
    shutil.rmtree(root / "sources")
    names = [(f"{number:03}.py", text) for number, text in enumerate(programs())]
    shuffled.shuffle(names)
    (root / "sources" / "library").mkdir(parents=True)
    for name, text in names:
        (root / "sources" / "library" / name).write_text(text, encoding="utf-8")
    recipe = yaml.safe_load((root / "params.yaml").read_text())
    recipe["ingest"] |= {
        "sources": [{"name": "library", "kind": "code", "path": "sources/library"}],
        "part_bytes": PART_BYTES,
        "part_bytes_max": 4 * PART_BYTES,
        "small_file_bytes": PART_BYTES // 4,
    }
    recipe["pack"] |= {"tokens_per_sequence": 512, "group_bytes": 1 << 20}
    recipe["mix"] |= {"stages": [{"start": 0, "weights": {"library": 1}}]}
    (root / "params.yaml").write_text(yaml.safe_dump(recipe))


def environment(seed: str = "0") -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed}


def build(root: Path, workers: int = 2, seed: str = "0") -> dict[str, dict]:
    done = subprocess.run(
        [sys.executable, "-c", BUILD, str(workers)]
        if workers == 1
        else [sys.executable, str(_script(root)), str(workers)],
        cwd=root,
        env=environment(seed),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _script(root: Path) -> Path:
    """Worker processes are spawned, so they want a file to import."""
    path = root / "build.py"
    path.write_text(BUILD)
    return path


def status(root: Path) -> dict[str, dict]:
    done = subprocess.run(
        [sys.executable, "-m", "flows.cli", "status", "--json"],
        cwd=root,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {row["step"]: row for row in json.loads(done.stdout)}


def fingerprints(root: Path) -> dict[str, str]:
    return {name: Manifest.read(Project(root).artifact(name)).fingerprint for name in STEPS}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    root = tmp_path_factory.mktemp("long") / "corpus"
    lay(root, random.Random(1))
    began = time.monotonic()
    build(root)
    size = sum(path.stat().st_size for path in (root / "sources").rglob("*.py"))
    print(f"\n{FILES} files, {size / 1e6:.1f} MB, built in {time.monotonic() - began:.0f} s with 2 workers")
    assert size >= 20_000_000
    return root


def test_one_file_more_makes_two_parts_and_two_groups_of_a_split_at_most(built, tmp_path):
    root = tmp_path / "corpus"
    shutil.copytree(built, root)
    parts = len(Manifest.read(Project(root).artifact("ingest")).folders["documents"])
    assert parts >= 20
    assert [name for name, row in status(root).items() if not row["up_to_date"]] == []
    (root / "sources" / "library" / "200_new.py").write_text(a_new_program())
    ahead = status(root)
    assert not any(row["up_to_date"] for row in ahead.values())
    began = time.monotonic()
    done = build(root)
    seconds = time.monotonic() - began
    print(f"\none file more, built in {seconds:.0f} s\nstep           folder        status said  made  carried over")
    for name, found in done.items():
        for folder, made in found["made"].items():
            said = ahead[name]["make"].get(folder, 0)
            print(f"{name:14} {folder:13} {said:11}  {made:4}  {found['carried'][folder]:12}")
    for name, found in done.items():
        for folder, made in found["made"].items():
            if not made + found["carried"][folder]:
                continue
            at_most = 1 if folder in ONCE else AT_MOST.get(name, 2)
            assert made <= at_most, (name, folder, made)
            assert ahead[name]["make"][folder] <= made, (name, folder)
            assert (
                folder in ONCE
                or made + found["carried"][folder] >= (parts if name not in AT_MOST else 1)
                or (name == "dedup" and folder == "verdicts")
            )
    for name in ("pack", "shard"):
        for folder, units in Manifest.read(Project(root).artifact(name)).folders.items():
            before = Manifest.read(Project(built).artifact(name)).folders.get(folder, {})
            known = {entry.key for entry in before.values()}
            for split in ("train", "validation", "test"):
                new = [unit for unit, entry in units.items() if split in unit and entry.key not in known]
                assert len(new) <= 2, (name, folder, split, new)


@pytest.mark.parametrize(("workers", "seed"), [(1, "1"), (2, "random")])
def test_workers_hash_seed_and_the_order_of_files_change_no_byte(built, tmp_path, workers, seed):
    root = tmp_path / "corpus"
    lay(root, random.Random(workers + 10))
    began = time.monotonic()
    build(root, workers, seed)
    print(f"\n{workers} workers, PYTHONHASHSEED {seed}, files in another order: {time.monotonic() - began:.0f} s")
    assert fingerprints(root) == fingerprints(built)
