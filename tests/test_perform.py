"""perform: keys, carrying over, adoption of a dead run's parts, whole or not at all; on a toy step."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tasks import perform as module
from tasks.artifacts.manifest import Manifest
from tasks.errors import InvariantError, ParamsError, SpaceError
from tasks.perform import perform
from tasks.project import Project
from tests.toy import OFFERED, TOY, scan

PARAMS = "toy:\n  times: {times}\n  keep_longest: {keep}\n  workers: {workers}\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "judge", lambda *_: [])
    monkeypatch.setattr(module, "judge_digest", lambda *_: "judges")
    monkeypatch.setattr("tasks.build.scan", scan)
    (tmp_path / "input").mkdir()
    for number in range(6):
        (tmp_path / "input" / f"{number}.txt").write_text("word " * number + f"long{number}")
    set_params(tmp_path)
    return Project(tmp_path)


def set_params(root, times=1, keep=3, workers=1):
    (root / "params.yaml").write_text(PARAMS.format(times=times, keep=keep, workers=workers))


def files_of(project):
    home = project.artifact("toy")
    return {path.relative_to(home).as_posix(): path.read_bytes() for path in home.rglob("*") if path.is_file()}


def test_a_second_run_has_nothing_to_do(project):
    first = perform(TOY, project)
    assert first.outcome == "built" and first.made == {"words": 6, "decisions": 1, "copies": 6}
    second = perform(TOY, project)
    assert second.outcome == "up_to_date" and second.fingerprint == first.fingerprint
    assert first.counts["documents_in"] == sum(number + 1 for number in range(6))
    assert first.counts["documents_kept"] == 3


def test_the_manifest_names_every_file_and_its_digest(project):
    perform(TOY, project)
    manifest = Manifest.read(project.artifact("toy"))
    assert list(manifest.verify(project.artifact("toy"))) == []
    assert set(files_of(project)) == {*manifest.files, "manifest.json"}
    assert [entry.origin[0] for entry in manifest.folders["words"].values()] == [f"{n}.txt" for n in range(6)]


@pytest.mark.parametrize("workers", [2, 4])
def test_the_same_bytes_for_any_number_of_workers(project, workers):
    perform(TOY, project)
    alone = files_of(project)
    shutil.rmtree(project.data)
    perform(TOY, project, workers=workers)
    assert files_of(project) == alone


def test_a_late_decision_remakes_no_early_folder(project):
    perform(TOY, project)
    set_params(project.root, keep=1)
    report = perform(TOY, project)
    assert report.made["words"] == 0 and report.made["decisions"] == 1
    assert report.carried["words"] == 6


def test_parameters_a_b_a_give_the_bytes_of_a(project):
    perform(TOY, project)
    a = files_of(project)
    set_params(project.root, times=2)
    perform(TOY, project)
    assert files_of(project) != a
    set_params(project.root, times=1)
    perform(TOY, project)
    assert files_of(project) == a


def test_a_parameter_that_only_runs_changes_nothing(project):
    perform(TOY, project)
    set_params(project.root, workers=7)
    assert perform(TOY, project).outcome == "up_to_date"


def test_one_new_file_makes_one_part(project):
    perform(TOY, project)
    (project.root / "input" / "25.txt").write_text("quite new")
    report = perform(TOY, project)
    assert report.made["words"] == 1 and report.carried["words"] == 6


def test_a_removed_file_leaves_no_trace(project):
    perform(TOY, project)
    before = files_of(project)
    (project.root / "input" / "9.txt").write_text("passing guest")
    perform(TOY, project)
    (project.root / "input" / "9.txt").unlink()
    perform(TOY, project)
    assert files_of(project) == before


@pytest.mark.parametrize("harm", ["delete", "truncate", "flip", "stray"])
def test_a_damaged_artifact_is_mended_not_believed(project, harm):
    perform(TOY, project)
    before = files_of(project)
    victim = sorted((project.artifact("toy") / "words").glob("*.bin"))[-1]
    if harm == "delete":
        victim.unlink()
    elif harm == "truncate":
        victim.write_bytes(victim.read_bytes()[:-2])
    elif harm == "flip":
        victim.write_bytes(bytes([victim.read_bytes()[0] ^ 1]) + victim.read_bytes()[1:])
    else:
        (project.artifact("toy") / "words" / "stray.bin").write_bytes(b"x")
    report = perform(TOY, project)
    assert report.outcome == "built" and report.made["words"] == (0 if harm == "stray" else 1)
    assert files_of(project) == before


def test_a_deleted_artifact_is_rebuilt(project):
    perform(TOY, project)
    before = files_of(project)
    shutil.rmtree(project.artifact("toy"))
    assert perform(TOY, project).outcome == "built"
    assert files_of(project) == before


def test_a_report_that_died_unwritten_is_written(project):
    perform(TOY, project)
    report = project.report("toy")
    wanted = report.read_text()
    assert json.loads(wanted)["totals"]["documents_in"] == 21
    report.write_text("{}")
    perform(TOY, project)
    assert report.read_text() == wanted


def test_touched_files_are_verified_by_digest_and_believed(project):
    perform(TOY, project)
    for path in project.artifact("toy").rglob("*.parquet"):
        os.utime(path, ns=(1, 1))
    assert perform(TOY, project).outcome in ("judged", "up_to_date")


def test_force_makes_every_part_and_the_same_bytes(project):
    first = perform(TOY, project)
    report = perform(TOY, project, force=True)
    assert report.made["words"] == 6 and report.fingerprint == first.fingerprint


def test_a_failure_leaves_what_stood_and_a_retry_computes(project):
    """Case 49: neither the exception nor a half result is kept under a key."""
    perform(TOY, project)
    before = files_of(project)
    bad = project.root / "input" / "7.txt"
    bad.write_text("poison")
    for workers in (1, 2):
        with pytest.raises(ValueError, match="poison"):
            perform(TOY, project, workers=workers)
        assert files_of(project) == before
    bad.write_text("cured")
    assert perform(TOY, project).outcome == "built"


def test_a_breach_stops_before_anything_appears(project, monkeypatch):
    def breach(*_):
        raise InvariantError("7 rows, expected 8")

    monkeypatch.setattr(module, "judge", breach)
    with pytest.raises(InvariantError):
        perform(TOY, project)
    assert not project.artifact("toy").exists()


def test_a_changed_limit_judges_again_and_changes_no_byte(project, monkeypatch):
    perform(TOY, project)
    before = files_of(project)
    judged = []
    monkeypatch.setattr(module, "judge", lambda *_: judged.append(1) or ["a warning"])
    monkeypatch.setattr(module, "judge_digest", lambda *_: "tighter")
    report = perform(TOY, project)
    assert (report.outcome, report.warnings, judged) == ("judged", ["a warning"], [1])
    assert files_of(project) == before
    assert perform(TOY, project).outcome == "up_to_date"


def test_row_wise_reuse_is_offered_only_under_equal_settings(project):
    perform(TOY, project)
    OFFERED.clear()
    set_params(project.root, keep=1)
    perform(TOY, project)
    assert [1] * len(OFFERED) == OFFERED and OFFERED
    OFFERED.clear()
    for path in (project.artifact("toy") / "copies").glob("*.parquet"):
        path.write_bytes(path.read_bytes()[:-1] + b"x")
    set_params(project.root, keep=2)
    perform(TOY, project)
    assert OFFERED == [False] * 6
    OFFERED.clear()
    shutil.rmtree(project.artifact("toy"))
    perform(TOY, project)
    assert OFFERED == [False] * 6


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("toy:\n  times: 0\n  keep_longest: 1\n", "toy.times is 0"),
        ("toy:\n  times: '3'\n  keep_longest: 1\n", "toy.times is '3'"),
        ("toy:\n  keep_longest: 1\n", "toy.times is missing"),
        ("toy:\n  times: 1\n  keep_longest: 1\n  tims: 2\n", "toy.tims is an unknown key"),
        ("other: {}\n", "no section toy"),
        ("toy: [", "is not YAML"),
        ("- 1\n", "not sections"),
    ],
)
def test_bad_params_are_named(project, text, message):
    (project.root / "params.yaml").write_text(text)
    with pytest.raises(ParamsError, match=message.replace("[", r"\[")) as caught:
        perform(TOY, project)
    assert caught.value.code == 2 and "\n" not in str(caught.value)


RUN = """
import pathlib, sys
from tasks import perform as module
from tasks.project import Project
from tasks import build
from tests.toy import TOY, scan
build.scan = scan
module.judge = lambda *_: []
module.judge_digest = lambda *_: "judges"
if __name__ == "__main__":
    module.perform(TOY, Project(pathlib.Path(sys.argv[1])), workers=int(sys.argv[2]))
"""


def start(project, workers, env=None):
    script = project.root / "run.py"
    script.write_text(RUN)
    here = str(Path.cwd())
    return subprocess.Popen(
        [sys.executable, str(script), str(project.root), str(workers)],
        env={**os.environ, "PYTHONPATH": here, **(env or {})},
    )


def test_a_killed_run_is_resumed_part_by_part_and_leaves_no_worker(project):
    process = start(project, 2, {"TOY": "slow"})
    made = project.staging("toy") / "made" / "words"
    deadline = time.monotonic() + 60
    while not list(made.glob("*/entry.json")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.kill()
    process.wait()
    left = len(list(made.glob("*/entry.json")))
    assert left and not project.artifact("toy").exists()
    time.sleep(2.5)
    found = subprocess.run(["pgrep", "-f", str(project.root)], capture_output=True, text=True, check=False)
    assert found.stdout == ""
    left = len(list(made.glob("*/entry.json")))
    report = perform(TOY, project)
    assert report.made["words"] == 6 - left


def test_half_written_leftovers_are_not_adopted(project):
    perform(TOY, project)
    before = files_of(project)
    key = next(iter(Manifest.read(project.artifact("toy")).folders["words"].values())).key
    shutil.rmtree(project.data)
    home = project.staging("toy") / "made" / "words" / key
    home.mkdir(parents=True)
    entry = {"key": key, "setting": "", "files": {"words-0.bin": {"sha256": "00", "bytes": 2}}, "rows": 0, "counts": {}}
    (home / "words-0.bin").write_bytes(b"xx")
    (home / "entry.json").write_text(
        json.dumps([{"folder": "words", "unit": "toy", "entry": entry | {"origin": ["", 0]}}])
    )
    perform(TOY, project)
    assert files_of(project) == before


def test_a_full_disk_is_named_and_leaves_nothing_half(project):
    """Case 53: a write limit stops the run with the path; the next run completes to the same bytes."""
    perform(TOY, project)
    before = files_of(project)
    shutil.rmtree(project.data)
    (project.root / "run.py").write_text(RUN)
    (project.root / "input" / "5.txt").write_text("w " * 4000)
    limited = subprocess.run(
        ["bash", "-c", f"ulimit -f 1; exec {sys.executable} {project.root}/run.py {project.root} 1"],
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        capture_output=True,
        text=True,
        check=False,
    )
    assert limited.returncode != 0 and "no space left" in limited.stderr
    assert not project.artifact("toy").exists()
    (project.root / "input" / "5.txt").write_text("word " * 5 + "long5")
    perform(TOY, project)
    assert files_of(project) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_an_unwritable_data_folder_is_named(project):
    project.data.mkdir()
    project.data.chmod(0o500)
    with pytest.raises(SpaceError, match="cannot write"):
        perform(TOY, project)
