"""A server, a worker and a schedule on loopback: a deployment of prefect.yaml runs by itself, and its run can be seen.

Everything is Prefect's own: `prefect server start`, a work pool, `prefect deploy --all`, `prefect worker start`. Only
the nightly schedule is replaced by an interval, since nobody waits for the night. Two minutes on two idle cores.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from tasks.pipeline import STEPS
from tests.small_corpus import lay_corpus

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

ROOT = Path(__file__).parent.parent
TOKEN = "GRISTMILL_SCHEDULE_TEST"
EVERY_SECONDS = 60
WITHIN_SECONDS = 420


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


class Office:
    """A Prefect server with a home of its own, and what was started against it."""

    def __init__(self, home: Path, corpus: Path) -> None:
        self.home, self.corpus, self.port = home, corpus, free_port()
        self.started: list[subprocess.Popen[bytes]] = []
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
        self.environment = kept | {
            "PREFECT_HOME": str(home),
            "PREFECT_API_URL": f"http://127.0.0.1:{self.port}/api",
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "DO_NOT_TRACK": "1",
            "PYTHONPATH": str(ROOT),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            TOKEN: str(home),
            "PWD": str(corpus),  # as a shell has it that stands there; prefect.yaml takes it from here
        }

    def start(self, *words: str) -> None:
        with (self.home / f"{words[0]}.log").open("ab") as log:
            command = [sys.executable, "-m", "prefect", *words]
            self.started.append(
                subprocess.Popen(command, cwd=self.corpus, env=self.environment, stdout=log, stderr=log)
            )

    def run(self, *words: str) -> None:
        command = [sys.executable, "-m", "prefect", "--no-prompt", *words]
        done = subprocess.run(
            command, cwd=self.corpus, env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def ask(self, path: str, **filters: Any) -> Any:
        """A POST to the API."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/api/{path}",
            json.dumps(filters).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)

    def healthy(self) -> bool:
        place = f"http://127.0.0.1:{self.port}/api/health"
        with contextlib.suppress(OSError), urllib.request.urlopen(place, timeout=5) as answer:
            return answer.status == 200
        return False

    def left(self) -> list[int]:
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if f"{TOKEN}={self.home}".encode() in path.read_bytes().split(b"\0"):
                    found.append(int(path.parent.name))
        return found

    def close(self) -> None:
        """The worker first, then the server; what does not go when asked is made to."""
        for process in reversed(self.started):
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(30)
        for pid in self.left():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in self.started:
            process.wait()


def until(what, seconds: float):
    """The first truthy answer of `what`, asked every second; None after `seconds`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if answer := what():
            return answer
        time.sleep(1)
    return None


@pytest.fixture
def office(tmp_path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    lay_corpus(corpus)
    recipe = yaml.safe_load((ROOT / "prefect.yaml").read_text(encoding="utf-8"))
    recipe["deployments"][0]["schedules"] = [{"interval": EVERY_SECONDS, "active": True}]
    (corpus / "prefect.yaml").write_text(yaml.safe_dump(recipe))
    (tmp_path / "home").mkdir()
    office = Office(tmp_path / "home", corpus)
    office.start("server", "start", "--host", "127.0.0.1", "--port", str(office.port))
    try:
        yield office
    finally:
        office.close()
        shutil.rmtree(corpus / "data", ignore_errors=True)
    assert office.left() == []


def test_a_scheduled_deployment_runs_by_itself_and_shows_nine_task_runs_and_the_funnel(office):
    assert until(office.healthy, 240), (office.home / "server.log").read_text()
    office.run("work-pool", "create", "gristmill", "--type", "process")
    office.run("deploy", "--all")
    names = {deployment["name"] for deployment in office.ask("deployments/filter")}
    assert names == {"nightly", "weekly"}
    began = time.monotonic()
    office.start("worker", "start", "--pool", "gristmill")

    def done() -> list[dict]:
        runs = office.ask(
            "flow_runs/filter", flow_runs={"state": {"type": {"any_": ["COMPLETED", "FAILED", "CRASHED"]}}}
        )
        return [run for run in runs if run["auto_scheduled"]]

    found = until(done, WITHIN_SECONDS)
    assert found, (office.home / "worker.log").read_text()[-4000:]
    run = found[0]
    assert run["state"]["type"] == "COMPLETED", (office.home / "worker.log").read_text()[-4000:]
    mine = {"flow_runs": {"id": {"any_": [run["id"]]}}}
    tasks = office.ask("task_runs/filter", **mine)
    assert sorted(task["name"] for task in tasks) == sorted(STEPS)
    assert {task["state"]["type"] for task in tasks} == {"COMPLETED"}
    tables = {artifact["key"]: artifact for artifact in office.ask("artifacts/filter", **mine)}
    funnel = json.loads(tables["funnel"]["data"])
    assert [row["step"] for row in funnel] == list(STEPS)[:7]
    assert {f"{name}-counts" for name in STEPS} <= set(tables)
    assert (office.corpus / "data" / "mix" / "mixture.json").is_file()
    print(f"\na scheduled run of nightly ended {time.monotonic() - began:.0f} s after the worker's start")
    print(f"state {run['state']['name']}, created by {run['created_by']['type']}, {len(tasks)} task runs:")
    for task in sorted(tasks, key=lambda task: task["start_time"]):
        print(f"  {task['name']:14} {task['state']['name']:10} {task['total_run_time']:6.1f} s")
    print("artifact funnel:")
    for row in funnel:
        print(f"  {row['step']:14} {row['unit']:10} came {row['came']:5} kept {row['kept']:5}  {row['reasons']}")
