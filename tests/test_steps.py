"""All nine steps over a hundred documents: the same bytes whatever the workers, order and hash seed; kills; changes.

The suites are held once (they do not shape bytes, and importing their judge costs seconds a process).
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from tasks.artifacts.manifest import Manifest
from tasks.artifacts.tables import read_table
from tasks.pipeline import STEPS
from tasks.project import Project
from tasks.status import status
from tests.small_corpus import lay_corpus

ROOT = Path(__file__).parent.parent

BUILD = """
import sys
from pathlib import Path
from tasks import perform as module
from tasks.pipeline import STEPS
from tasks.project import Project
if "judged" not in sys.argv:
    module.judge = lambda *_: []
if __name__ == "__main__":
    for step in STEPS.values():
        module.perform(step, Project(Path(sys.argv[1])), workers=int(sys.argv[2]))
"""


def build(root, workers=1, seed="0", judged=False, wait=True):
    """Build all nine steps in a process of their own; returns the process or its exit status."""
    script = root / "build.py"
    script.write_text(BUILD)
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed}
    command = [sys.executable, str(script), str(root), str(workers), *(["judged"] if judged else [])]
    process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True)
    if not wait:
        return process
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return process


def manifests(root):
    return {step: Manifest.read(Project(root).artifact(step)) for step in STEPS}


def digests(root):
    return {step: (manifest.content, manifest.fingerprint) for step, manifest in manifests(root).items()}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    root = tmp_path_factory.mktemp("corpus")
    lay_corpus(root)
    build(root, judged=True)
    return root


@pytest.fixture
def copy(built, tmp_path):
    """The built corpus in a folder of its own, its artifacts with it."""
    root = tmp_path / "corpus"
    shutil.copytree(built, root)
    return root


@pytest.mark.parametrize(("workers", "seed"), [(2, "1"), (4, "random")])
def test_workers_hash_seed_and_the_order_of_files_change_no_byte(built, tmp_path, workers, seed):
    lay_corpus(tmp_path, shuffled=random.Random(workers))
    build(tmp_path, workers=workers, seed=seed)
    assert digests(tmp_path) == digests(built)


def test_every_file_is_the_one_its_manifest_names(built):
    for step, manifest in manifests(built).items():
        assert list(manifest.verify(Project(built).artifact(step))) == []


def test_parts_keep_their_names_and_rows_from_ingest_to_tokenize(built):
    found = manifests(built)
    rows = {name: entry.rows for name, entry in found["ingest"].folders["documents"].items()}
    assert len(rows) > 3 and sum(rows.values()) > 80
    for step, folder in [
        ("ingest", "places"),
        ("normalize", "text"),
        ("filter", "signals"),
        ("filter", "verdicts"),
        ("dedup", "sketches"),
        ("dedup", "verdicts"),
        ("decontaminate", "verdicts"),
        ("tokenize", "tokens"),
        ("pack", "splits"),
    ]:
        assert {name: entry.rows for name, entry in found[step].folders[folder].items()} == rows, (step, folder)


def test_characters_and_tokens_are_conserved(built):
    project = Project(built)
    characters = kept = cut = dropped = 0
    for path in sorted((project.artifact("tokenize") / "tokens").glob("*.parquet")):
        for row in read_table(path).to_pylist():
            characters += row["characters"]
            kept, cut = kept + row["characters_kept"], cut + row["characters_cut"]
            dropped += 0 if row["reason"] is None else row["characters"]
    text = sum(
        len(value.as_py())
        for path in sorted((project.artifact("normalize") / "text").glob("*.parquet"))
        for value in read_table(path, ["text"])["text"]
    )
    assert characters == text == kept + cut + dropped
    counts = {}
    for entry in manifests(built)["pack"].folders["sequences"].values():
        for name, number in entry.counts.items():
            counts[name] = counts.get(name, 0) + number
    assert counts["tokens_in"] == counts["tokens_packed"] + counts["tokens_dropped"]
    ids = sum(path.stat().st_size for path in (project.artifact("tokenize") / "tokens").glob("*.bin")) // 2
    assert counts["tokens_in"] == ids


def test_nothing_is_up_to_do_afterwards(built):
    assert [item.step for item in status(STEPS.values(), Project(built)) if not item.up_to_date] == []


def change_params(root, section, **changes):
    recipe = yaml.safe_load((root / "params.yaml").read_text())
    recipe[section] |= changes
    (root / "params.yaml").write_text(yaml.safe_dump(recipe))


def test_parameters_a_b_a_give_the_bytes_of_a(copy, built):
    change_params(copy, "pack", tokens_per_sequence=48)
    build(copy)
    changed = digests(copy)
    assert [step for step in STEPS if changed[step] != digests(built)[step]] == ["pack", "shard", "mix"]
    change_params(copy, "pack", tokens_per_sequence=64)
    build(copy)
    assert digests(copy) == digests(built)


def made(root, before):
    """(step, folder) -> units whose key was not there before."""
    known = {
        entry.key for manifest in before.values() for units in manifest.folders.values() for entry in units.values()
    }
    found = {}
    for step, manifest in manifests(root).items():
        for folder, units in manifest.folders.items():
            found[step, folder] = sum(entry.key not in known for entry in units.values())
    return found


def test_a_new_threshold_re_judges_and_measures_nothing_again(copy):
    before = manifests(copy)
    rules = yaml.safe_load((copy / "params.yaml").read_text())["filter"]["rules"]
    rules[0]["min"] = 100
    change_params(copy, "filter", rules=rules)
    build(copy)
    new = made(copy, before)
    assert new["filter", "signals"] == new["dedup", "sketches"] == new["decontaminate", "matches"] == 0
    assert new["filter", "verdicts"] > 0
    assert digests(copy)["mix"] != before["mix"].fingerprint


def test_one_new_file_changes_two_parts_and_its_group(copy):
    before = manifests(copy)
    (copy / "sources" / "prose" / "m_new.txt").write_text("A quite new story about the mill by the river. " * 12)
    ahead = {item.step: item for item in status(STEPS.values(), Project(copy))}
    assert not ahead["ingest"].up_to_date and "sources changed outside" in ahead["ingest"].why
    build(copy)
    new = made(copy, before)
    assert 1 <= new["ingest", "documents"] <= 2
    assert ahead["ingest"].make["documents"] == new["ingest", "documents"]
    for step, folder in [("normalize", "text"), ("filter", "signals"), ("dedup", "sketches"), ("tokenize", "tokens")]:
        assert ahead[step].make[folder] <= new[step, folder] <= 2, (step, folder)
    assert new["pack", "pieces"] <= 6


def test_a_removed_file_gives_back_the_old_bytes(copy, built):
    extra = copy / "sources" / "prose" / "m_new.txt"
    extra.write_text("A quite new story about the mill by the river. " * 12)
    build(copy)
    assert digests(copy) != digests(built)
    extra.unlink()
    build(copy)
    assert digests(copy) == digests(built)


def test_kill_at_any_moment_then_one_run_to_the_end(built, tmp_path):
    lay_corpus(tmp_path)
    chance = random.Random(7)
    for _ in range(4):
        process = build(tmp_path, workers=2, wait=False)
        time.sleep(chance.uniform(0.5, 6))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        for step in STEPS:
            home = Project(tmp_path).artifact(step)
            if home.exists():
                assert list(Manifest.read(home).verify(home)) == []
    build(tmp_path)
    assert digests(tmp_path) == digests(built)


@pytest.mark.parametrize(
    ("harm", "step", "message", "code"),
    [
        (lambda root: shutil.rmtree(root / "sources" / "prose"), "sources", "prose", 3),
        (lambda root: (root / "sources" / "web.jsonl").write_text(""), "sources", "source web is empty", 3),
        (lambda root: (root / "evaluation.jsonl").unlink(), "decontaminate", "evaluation.jsonl", 3),
        (lambda root: shutil.rmtree(root / "tokenizers"), "tokenize", "gristmill tokenizer train", 7),
    ],
)
def test_what_is_wanting_is_named_with_its_mend(copy, harm, step, message, code):
    harm(copy)
    ran = subprocess.run(
        [sys.executable, "-m", "tasks", step, "--workers", "1"],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == code, ran.stderr
    assert message in ran.stderr and len(ran.stderr.strip().splitlines()) == 1


def test_no_text_hides_in_a_manifest(built):
    """No host, path of a machine, clock or worker count enters an artifact."""
    for step in STEPS:
        text = (Project(built).artifact(step) / "manifest.json").read_text()
        assert str(built) not in text and os.uname().nodename not in text
        assert json.loads(text)["format"] == 1
