"""The command line: what is seen first, one-line errors, exit statuses, JSON, what must not be imported."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flows import actions, cli, guard, show
from tasks.errors import ExpectationError, LockedError, SpaceError

HOUSE = Path(__file__).parent.parent
FIRST_SIX = ["init", "build", "status", "release", "verify", "train"]
HEAVY = {"prefect", "dvc", "torch", "great_expectations", "pyarrow", "numba", "pandas"}


@pytest.fixture(autouse=True)
def settled(monkeypatch):
    """main settles the environment of its process; a test's must stay as it was."""
    monkeypatch.setattr(cli.environment, "settle", lambda root, quiet=False: None)


def run(*words: str) -> int:
    return cli.main([str(word) for word in words])


def test_help_shows_the_six_that_matter_first_and_the_exit_codes(capsys):
    assert run("--help") == 0
    text = capsys.readouterr().out
    places = [text.index(f"│ {name} ") for name in FIRST_SIX]
    assert places == sorted(places)
    assert places[-1] < text.index("│ fetch ") < text.index("│ demo ")
    for code in ("2 usage", "5 an", "28 no space", "75 another", "130 interrupted"):
        assert code in " ".join(text.split())


def test_help_is_quick_and_imports_nothing_heavy():
    script = (
        "import sys, time, json; from flows.cli import main; main(['--help']);"
        "names = sorted(name for name in sys.modules if '.' not in name);"
        "print(json.dumps([time.process_time(), names]), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=HOUSE, capture_output=True, text=True, check=True)
    seconds, modules = json.loads(done.stderr)
    assert seconds < 1.0
    assert not HEAVY & set(modules)


def test_the_common_options_go_anywhere():
    assert cli.hoisted(["build", "-C", "x", "--until", "mix", "--json"]) == [
        "-C",
        "x",
        "--json",
        "build",
        "--until",
        "mix",
    ]
    assert cli.hoisted(["train", "--", "--json"]) == ["train", "--", "--json"]
    assert cli.hoisted(["status", "-C"]) == ["-C", "status"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["nonsense"], 2, "No such command 'nonsense'"),
        (["build", "--workers", "0"], 2, "--workers"),
        (["build", "--limit", "3", "--fraction", "0.1"], 2, "both given; give one of them"),
        (["build", "--fraction", "2"], 2, "--fraction is 2.0, not above 0"),
        (["build", "--limit", "3", "--force", "mix"], 2, "--force goes with a whole build only"),
        (["status"], 2, "params.yaml is not there; run in a project's folder"),
        (["build"], 2, "params.yaml is not there"),
        (["release", "a b"], 2, "cannot name a release"),
        (["fetch", "nothing"], 1, "nothing is no release"),
        (["verify", "nothing"], 6, "no release, tag or pin is named nothing"),
    ],
)
def test_an_error_is_one_line_with_what_where_and_the_mend(tmp_path, capsys, words, code, said):
    assert run("-C", tmp_path, *words) == code
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("gristmill: ") and said in lines[0]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ExpectationError("x", "y"), 5),
        (LockedError("x", "y"), 75),
        (SpaceError("x", "y"), 28),
        (OSError(28, "No space left on device", "data/x"), 28),
        (PermissionError(13, "Permission denied", "data/x"), 28),
        (KeyboardInterrupt(), 130),
        (RuntimeError("a\nbug"), 1),
    ],
)
def test_every_error_has_its_exit_status_and_a_traceback_only_when_asked(monkeypatch, capsys, error, code):
    def fail(*_):
        raise error

    monkeypatch.setattr(actions, "status", fail)
    assert run("status") == code
    assert len(capsys.readouterr().err.splitlines()) == 1
    if code != 130:
        assert run("status", "--debug") == code
        assert "Traceback" in capsys.readouterr().err


def test_unlock_without_a_lock_and_as_json(tmp_path, capsys):
    assert run("-C", tmp_path, "unlock") == 0
    assert capsys.readouterr().out == "no lock is held\n"
    assert run("unlock", "--json", "-C", tmp_path) == 0
    assert json.loads(capsys.readouterr().out) == {}


def test_verify_where_nothing_stands(tmp_path, capsys):
    assert run("-C", tmp_path, "verify") == 0
    assert "nothing stands yet" in capsys.readouterr().out
    assert run("-C", tmp_path, "verify", "--json") == 0
    assert json.loads(capsys.readouterr().out) == []


def test_text_that_looks_like_markup_is_shown_as_it_is(capsys):
    show.table("T", ("why",), [("[bold]x[/bold] 1",)])
    assert "[bold]x[/bold]" in capsys.readouterr().out


def test_sizes_and_times_for_people():
    assert [show.size(n) for n in (12, 1500, 2_500_000, 7e12)] == ["12 B", "1.5 kB", "2.5 MB", "7.0 TB"]
    assert [show.seconds(n) for n in (3.21, 600, 7200)] == ["3.2 s", "10 min", "2.0 h"]


def test_a_build_on_no_terminal_says_a_line_a_step(capsys):
    with show.shown() as watcher:
        watcher.began("ingest")
        watcher.moved("ingest", 1, 2, "documents")
        watcher.ended("ingest", "built", {})
        watcher.said("a [warning]")
    assert capsys.readouterr().err == "ingest: built\na [warning]\n"


def test_what_a_killed_process_started_is_ended():
    script = (
        "import subprocess, sys, os, signal; from flows.guard import guard; guard(); guard();"
        "child = subprocess.Popen(['sleep', '100']); print(os.environ['GRISTMILL_GUARDED_BY'], flush=True);"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run([sys.executable, "-c", script], cwd=HOUSE, capture_output=True, text=True, check=False)
    assert killed.returncode == -9
    token = killed.stdout.strip()
    deadline = time.monotonic() + 20
    while guard.guarded(token) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert guard.guarded(token) == []
