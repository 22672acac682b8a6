"""The repository's own corpus: its content digest is golden. It changes when bytes do, and with nothing else.

The digest is SHA-256 over the nine content digests in order (docs/architecture.md). What `dvc repro` gives under
constraints.txt on any machine must be what README.md names; dvc.lock in git must be of the same recipe.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.artifacts.canonical import digest
from tasks.artifacts.manifest import Manifest
from tasks.pipeline import STEPS
from tasks.project import Project
from tests.repository_copy import copy_repository

ROOT = Path(__file__).parent.parent
GOLDEN = "c2291ed8928b124bf992c6a6ee423dd5e069b4da93a23e9e837a529f936c41fc"


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A clean copy of the repository in which `dvc repro` has run from an empty data/."""
    root = copy_repository(tmp_path_factory.mktemp("repository"))
    ran = subprocess.run([sys.executable, "-m", "dvc", "repro"], cwd=root, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return root


def content_of(root):
    return digest([Manifest.read(Project(root).artifact(step)).content for step in STEPS])


def test_dvc_repro_gives_the_golden_content(repository):
    found = content_of(repository)
    assert found == GOLDEN, (
        f"the bytes of samples/ changed: {found}; if that was meant, set GOLDEN here and in README.md, note it under "
        "Data in CHANGELOG.md, and run: make lock"
    )


def test_the_readme_names_the_golden_digest():
    assert GOLDEN in re.findall(r"\b[0-9a-f]{64}\b", (ROOT / "README.md").read_text(encoding="utf-8"))


def test_the_flow_finds_the_work_of_dvc_done(repository):
    """One truth: after `dvc repro` every step's manifest has the recipe that a flow would ask for."""
    from tasks.status import status

    assert [item for item in status(STEPS.values(), Project(repository)) if not item.up_to_date] == []


def test_dvc_status_is_clean_but_for_sources(repository):
    ran = subprocess.run(
        [sys.executable, "-m", "dvc", "status"], cwd=repository, capture_output=True, text=True, check=True
    )
    assert [line.strip() for line in ran.stdout.splitlines() if line.strip()] == ["sources:", "always changed"]
