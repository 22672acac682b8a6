"""`python -m tests.kill_demo`: a build of the demo's corpus is killed at random moments and then finished.

In: nothing but this machine's texts. Out: a table and one JSON line. A corpus is laid as `make demo` lays it and built
undisturbed; a second one with the same sources and the same tokenizer is built under kill -9 of its main process. After
each kill every standing artifact is held against its digests, and whatever the build had started must be gone. At last
one run goes to the end: it must give the fingerprint of the undisturbed build. Two cores take about ten minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

import yaml

from tasks.artifacts.manifest import Manifest
from tasks.pipeline import STEPS
from tasks.project import Project

WORKERS_GONE_SECONDS = 3.0
ALL_GONE_SECONDS = 15.0  # Prefect's embedded server is asked to end first, and made to after some seconds
TOKEN = "GRISTMILL_KILL_DEMO"
KEPT_OUT = ("data", "reports", ".gristmill", ".prefect", "small", "pins")


@dataclass
class Kill:
    """One kill. stands: artifacts that stood afterwards; bad: files that were not as named; seconds: until ..."""

    moment: float
    step: str
    stands: int
    bad: list[str]
    workers_gone: float
    all_gone: float

    @property
    def survived(self) -> bool:
        return not self.bad and self.workers_gone <= WORKERS_GONE_SECONDS and self.all_gone <= ALL_GONE_SECONDS


def gristmill(root: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "flows.cli", "-C", str(root), *words]


def environment(token: str) -> dict[str, str]:
    """Prefect keeps its home in the project; every process of a build carries `token`."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "GRISTMILL_"))}
    return own | {TOKEN: token, "PREFECT_LOGGING_LEVEL": "ERROR"}


def run(root: Path, *words: str) -> dict:
    """A command to its end; what it printed as JSON. Ends this program with its error where it failed."""
    done = subprocess.run(
        gristmill(root, *words, "--json"), env=environment("undisturbed"), capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"gristmill {' '.join(words)} ended with {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout or "{}")


def lay_reference(root: Path, workers: int) -> tuple[str, float]:
    """A corpus of this machine's texts with a tokenizer, built undisturbed; its fingerprint and the build's seconds."""
    run(root.parent, "init", root.name)
    name = yaml.safe_load((root / "params.yaml").read_text(encoding="utf-8"))["tokenize"]["tokenizer"]
    run(root, "build", "--until", "decontaminate", "--workers", str(workers))
    run(root, "tokenizer", "train", name)
    for done in KEPT_OUT:
        shutil.rmtree(root / done, ignore_errors=True)
    return undisturbed(root, workers)


def undisturbed(root: Path, workers: int) -> tuple[str, float]:
    began = time.monotonic()
    built = run(root, "build", "--workers", str(workers))
    if not built["committed"]:
        sys.exit("the build did not write dvc.lock")
    return built["fingerprint"], time.monotonic() - began


def carriers(token: str) -> dict[int, str]:
    """pid -> command of every process whose environment carries `token`."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{TOKEN}={token}".encode() in path.read_bytes().split(b"\0"):
                command = (path.parent / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if command:
                    found[int(path.parent.name)] = command
        except OSError:
            continue
    return found


def gone(token: str) -> tuple[float, float]:
    """Seconds until no worker of the killed build was left, and until nothing of it was left (at most 30 each)."""
    began = time.monotonic()
    workers = None
    while time.monotonic() - began < 30:
        left = carriers(token).values()
        if workers is None and not any("spawn_main" in command for command in left):
            workers = time.monotonic() - began
        if not left:
            return workers or 0.0, time.monotonic() - began
        time.sleep(0.05)
    return 30.0 if workers is None else workers, 30.0


def damage(root: Path) -> tuple[int, list[str]]:
    """How many artifacts stand, and every file of theirs that is not the one that its manifest names."""
    stands, bad = 0, []
    for step in STEPS:
        home = Project(root).artifact(step)
        if home.exists():
            stands += 1
            manifest = Manifest.read(home)
            bad += [f"{step}: {each}" for each in manifest.verify(home)] if manifest else [f"{step}: no manifest"]
    return stands, bad


def kill_once(root: Path, workers: int, moment: float, step: str | None) -> Kill | None:
    """Start a build and kill its main process `moment` seconds after its start, or after `step` began to be made.

    None where it ended before.
    """
    token = uuid.uuid4().hex
    errors = root.parent / "stderr.txt"
    with errors.open("w") as file:
        process = subprocess.Popen(
            gristmill(root, "build", "--workers", str(workers)), env=environment(token), stdout=file, stderr=file
        )
        began = time.monotonic()
        while step and process.poll() is None and not (root / "data" / ".staging" / step).exists():
            time.sleep(0.005)
        try:
            code = process.wait(moment)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            moment = time.monotonic() - began
        else:
            if code:
                sys.exit(f"a build after a kill ended with {code}: {errors.read_text()}")
            return None
    working = sorted(path.name for path in (root / "data" / ".staging").glob("*")) or ["between steps"]
    workers_gone, all_gone = gone(token)
    return Kill(moment, working[-1], *damage(root), workers_gone, all_gone)


def kill_many(root: Path, kills: int, workers: int, seconds: float, chance: random.Random) -> list[Kill]:
    """`kills` kills: every other at a random moment of the build's length, the rest while a random step is made.

    Where all nine steps stand the next begins anew.
    """
    done: list[Kill] = []
    while len(done) < kills:
        step = chance.choice(list(STEPS)) if len(done) % 2 else None
        kill = kill_once(root, workers, chance.random() * (1.0 if step else seconds), step)
        if kill is None or kill.stands == len(STEPS):
            shutil.rmtree(root / "data")  # else the next kill would meet a build that has nothing to do
        if kill is None:
            print("      a build ended before its moment and is no kill: the next begins with nothing", flush=True)
            continue
        done.append(kill)
        print(
            f"{len(done):4}  {kill.moment:7.1f} s  {kill.step:15} {kill.stands:9}  {len(kill.bad):5}"
            f"  {kill.workers_gone:7.2f} s  {kill.all_gone:7.2f} s",
            flush=True,
        )
        for line in kill.bad:
            print(f"      {line}")
    return done


def main() -> int:
    """Exit status 0 where every kill was survived and the last run gave the fingerprint of the first."""
    asked = _parser().parse_args()
    with tempfile.TemporaryDirectory(prefix="kill-demo-") as folder:
        reference, victim = Path(folder) / "reference", Path(folder) / "victim"
        print("laying a corpus of this machine's texts, and building it undisturbed", flush=True)
        fingerprint, seconds = lay_reference(reference, asked.workers)
        raw = sum(path.stat().st_size for path in (reference / "sources").rglob("*") if path.is_file())
        print(f"{raw / 1e6:.1f} MB of raw text, {seconds:.1f} s, fingerprint {fingerprint[:16]}", flush=True)
        shutil.copytree(reference, victim, ignore=lambda at, _: KEPT_OUT if Path(at) == reference else ())
        print("kill     moment  at work          standing  files    workers    nothing")
        print("                                           damaged  gone after  left after", flush=True)
        kills = kill_many(victim, asked.kills, asked.workers, seconds, random.Random(asked.seed))
        last, rest = undisturbed(victim, asked.workers)
        print(f"one run to the end: {rest:.1f} s, fingerprint {last[:16]}")
        survived = sum(kill.survived for kill in kills)
        figure = {
            "figure": "kills survived",
            "value": survived,
            "of": asked.kills,
            "same_fingerprint": last == fingerprint,
        }
        figure |= {"workers_gone_max_s": round(max(kill.workers_gone for kill in kills), 2)}
        figure |= {"all_gone_max_s": round(max(kill.all_gone for kill in kills), 2), "raw_bytes": raw}
        print(json.dumps(figure))
    return 0 if survived == asked.kills and last == fingerprint else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.kill_demo", description=__doc__)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)), help="of the moments")
    return parser


if __name__ == "__main__":
    sys.exit(main())
