"""What DVC's first stage writes, and what it refuses before anything is read."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tasks.errors import ParamsError
from tasks.pipeline import STEPS
from tasks.project import Project
from tasks.sourcing import code_digests, refuse_unknown_sections, write_sources
from tests.small_corpus import lay_corpus

ROOT = Path(__file__).parent.parent


@pytest.fixture
def project(tmp_path):
    lay_corpus(tmp_path)
    return Project(tmp_path)


def misspell(project):
    recipe = yaml.safe_load((project.root / "params.yaml").read_text())
    (project.root / "params.yaml").write_text(yaml.safe_dump(recipe | {"fitler": recipe["filter"]}))


def test_a_section_that_nobody_reads_is_refused_by_name(project):
    refuse_unknown_sections(project)
    misspell(project)
    with pytest.raises(
        ParamsError, match=r"unknown sections: fitler; the sections are: ingest, .*, train, run"
    ) as caught:
        write_sources(project)
    assert caught.value.code == 2 and not project.data.exists()


@pytest.mark.parametrize("command", [["-m", "tasks", "sources"], ["-m", "flows.cli", "build"]])
def test_both_ways_of_building_refuse_it(project, command):
    misspell(project)
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        [sys.executable, *command], cwd=project.root, env=env, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 2 and "unknown sections: fitler" in ran.stderr and len(ran.stderr.splitlines()) == 1


def test_both_files_are_written_and_left_alone_when_nothing_changed(project):
    write_sources(project)
    files = [project.data / name for name in ("sources.json", "code.json")]
    stamps = [path.stat().st_mtime_ns for path in files]
    assert json.loads(files[1].read_text()) == code_digests() and list(code_digests()) == list(STEPS)
    write_sources(project)
    assert [path.stat().st_mtime_ns for path in files] == stamps
