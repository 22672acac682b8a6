"""`python -m tests.fuzz_readers [TARGET...] [--seconds N]`: every reader against spoilt files, as long as you like.

A child process reads one input after another; this one watches it. A finding is what the child did not foresee: an
exception that is neither a reject nor damage by name, text that no file can hold, a process that dies, more than
HANG CPU seconds for an input, more than RSS_MAX bytes resident. The input of each is kept in --keep.

Where atheris is installed, targets whose readers are Python are led by coverage (--engine atheris); else, and for
readers in C++, changes are drawn at random from a seed.
"""

import argparse
import faulthandler
import json
import mmap
import os
import random
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

RSS_MAX = 1 << 30
"""Bytes a reader may take, whatever it reads: the limit of a worker."""
ADDRESSES_MAX = 24 << 30
HANG = 20.0
"""CPU seconds for one input of at most 2 MiB (beside other work, wall time says nothing)."""
CELL = 4 << 20
EVERY = 2.0
ENDINGS_MAX = 50
"""Children that were ended or died, before their reader is given up."""


class Board:
    """What the child is about: number of the input, its length, its bytes, in a file that both map."""

    def __init__(self, path):
        path.touch()
        os.truncate(path, CELL)
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), CELL)

    def say(self, number, data):
        self._map[16 : 16 + len(data)] = data
        self._map[:16] = struct.pack("<QQ", number, len(data))

    def heard(self):
        number, size = struct.unpack("<QQ", self._map[:16])
        return number, bytes(self._map[16 : 16 + size])


class Trial:
    """Reads inputs of one target and keeps count."""

    def __init__(self, target, folder, began_at=0):
        self.target, self.folder, self.number = target, folder, began_at
        self.board = Board(folder / "board")
        self.outcomes, self.findings, self.slowest, self.written = Counter(), {}, 0.0, 0.0
        self.rss_early = 0

    def one(self, data):
        from tests.fuzz_targets import read

        self.number += 1
        self.board.say(self.number, data)
        began = time.process_time()
        try:
            self.outcomes[read(self.target, data)] += 1
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            self._found(error, data)
        self.slowest = max(self.slowest, time.process_time() - began)
        if time.monotonic() - self.written > EVERY:
            self.write()

    def _found(self, error, data):
        frames = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in frames if "/tasks/" in frame.filename] or frames
        last = frames[-1]
        where = f"{Path(ours[-1].filename).name}:{ours[-1].name} > {Path(last.filename).name}:{last.lineno}"
        key = f"{type(error).__name__} at {where}"
        self.outcomes["FINDING"] += 1
        if key not in self.findings and len(self.findings) < 200:
            name = f"{self.target}-{sha256(data).hexdigest()[:10]}"
            (self.folder / "found" / name).write_bytes(data)
            self.findings[key] = f"{name}: {str(error)[:200]}"

    def write(self):
        self.written = time.monotonic()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        rss = pages * resource.getpagesize()
        if not self.rss_early and self.number > 500:
            self.rss_early = rss
        stats = {
            "tried": self.number, "outcomes": dict(self.outcomes), "findings": self.findings, "rss": rss,
            "slowest": round(self.slowest, 2), "rss_early": self.rss_early,
        }  # fmt: skip
        partial = self.folder / "stats.part"
        partial.write_text(json.dumps(stats))
        partial.rename(self.folder / "stats.json")


def child(target, engine, seconds, seed, folder):
    """Read until the time is over."""
    faulthandler.register(signal.SIGUSR1, (folder / "stack").open("w"))
    faulthandler.enable((folder / "crash").open("w"))
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES_MAX, ADDRESSES_MAX))
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", DeprecationWarning)
    if engine == "atheris":
        import atheris

        with atheris.instrument_imports(include=["tasks", "pypdf", "warcio", "chardet", "json", "csv"]):
            import chardet  # noqa: F401
            import pypdf  # noqa: F401
            import warcio.archiveiterator  # noqa: F401

            import tasks.ingest.fields  # noqa: F401
    from tests.fuzz_changes import changed
    from tests.fuzz_targets import WORDS, seeds

    trial, first, words = Trial(target, folder), seeds(target), WORDS[target]
    if engine == "atheris":
        led(trial, first, words, seconds, seed)
        return
    chance, until = random.Random(seed), time.monotonic() + seconds
    for data in first:
        trial.one(data)
    while time.monotonic() < until:
        trial.one(changed(chance.choice(first), first, words, chance))
    trial.write()


def led(trial, first, words, seconds, seed):
    """Inputs by coverage; half of the changes are ours, half libFuzzer's."""
    import atheris

    from tests.fuzz_changes import changed

    corpus = trial.folder / "corpus"
    corpus.mkdir(exist_ok=True)
    for data in first:
        (corpus / sha256(data).hexdigest()[:16]).write_bytes(data)

    def change(data, size_max, number):
        chance = random.Random(number)
        if chance.random() < 0.5:
            return atheris.Mutate(data, size_max)
        return changed(data, first, words, chance)[:size_max]

    options = [
        f"-max_total_time={int(seconds)}",
        f"-seed={seed}",
        "-max_len=400000",
        "-rss_limit_mb=0",
        "-timeout=3600",
    ]
    atheris.Setup([sys.argv[0], *options, "-print_final_stats=0", str(corpus)], trial.one, custom_mutator=change)
    atheris.Fuzz()


def watch(target, engine, seconds, seed, keep):
    """Run the child over and over until the time is over; what it found."""
    until, all_found, tried, outcomes, peak, slowest = time.monotonic() + seconds, {}, 0, Counter(), 0, 0.0
    first_rss = last_rss = endings = 0
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        (folder / "found").mkdir()
        while (left := until - time.monotonic()) > 1 and endings < ENDINGS_MAX:
            ended, rss = _child_watched(folder, [target, engine, str(left), str(seed)], left)
            peak, seed = max(peak, rss), seed + 1000
            stats = json.loads((folder / "stats.json").read_text()) if (folder / "stats.json").exists() else {}
            tried, slowest = tried + stats.get("tried", 0), max(slowest, stats.get("slowest", 0))
            outcomes.update(stats.get("outcomes", {}))
            first_rss, last_rss = first_rss or stats.get("rss_early", 0), stats.get("rss", 0)
            all_found |= stats.get("findings", {})
            (folder / "stats.json").unlink(missing_ok=True)
            if ended:
                endings += 1
                data = Board(folder / "board").heard()[1]
                name = f"{target}-{sha256(data).hexdigest()[:10]}"
                (folder / "found" / name).write_bytes(data)
                stack = "".join((folder / file).read_text() for file in ("crash", "stack"))
                all_found[f"{ended} ({name})"] = f"{name}: {stack[:1500]}"
        keep.mkdir(parents=True, exist_ok=True)
        for path in (folder / "found").iterdir():
            (keep / path.name).write_bytes(path.read_bytes())
    return {
        "target": target, "engine": engine, "seconds": seconds, "tried": tried,
        "outcomes": dict(outcomes.most_common()),
        "peak_rss": peak, "rss_early": first_rss, "rss_end": last_rss, "slowest": slowest, "findings": all_found,
    }  # fmt: skip


def _child_watched(folder, arguments, left):
    """Why the child was ended, "" where it ended by itself as it should, and its peak RSS."""
    command = [sys.executable, str(HERE / "fuzz_readers.py"), "--child", *arguments, str(folder)]
    with (folder / "said").open("w") as said:
        running = subprocess.Popen(command, stdout=said, stderr=said, cwd=HERE.parent)
    board, number, cpu_then, peak = Board(folder / "board"), 0, 0.0, 0
    began, ended = time.monotonic(), ""
    while running.poll() is None:
        time.sleep(0.2)
        cpu, rss = _usage(running.pid)
        peak = max(peak, rss)
        now = board.heard()[0]
        if now != number:
            number, cpu_then = now, cpu
        if cpu - cpu_then > HANG and number:
            ended = f"hang: more than {HANG:g} CPU seconds"
        elif rss > RSS_MAX:
            ended = f"memory: {rss >> 20} MiB resident, {RSS_MAX >> 20} is the limit"
        elif time.monotonic() - began > left + 120:
            break
        if ended:
            running.send_signal(signal.SIGUSR1)
            time.sleep(0.3)
            break
    if running.poll() is None:
        running.kill()
    status = running.wait()
    if not ended and status not in (0, -9):
        ended = f"it died with status {status}: {(folder / 'said').read_text()[-300:]}"
    return ended, peak


def _usage(pid):
    """CPU seconds and resident bytes of a process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0, 0
    ticks = os.sysconf("SC_CLK_TCK")
    return (int(fields[11]) + int(fields[12])) / ticks, int(fields[21]) * resource.getpagesize()


def told(result):
    """A target's result, for people."""
    shares = ", ".join(f"{name} {count}" for name, count in result["outcomes"].items())
    early, end, peak = (result[name] >> 20 for name in ("rss_early", "rss_end", "peak_rss"))
    lines = [
        f"{result['target']:8} {result['seconds']:.0f} s by {result['engine']}: {result['tried']} inputs, "
        f"slowest {result['slowest']:g} CPU s, RSS {early} MiB early, {end} at the end, {peak} at the peak",
        f"         {shares}",
    ]
    return "\n".join([*lines, *(f"  FOUND  {key}\n         {held}" for key, held in result["findings"].items())])


def engine_for(target, asked):
    """mutate, or atheris where it is there and the readers are Python."""
    from importlib.util import find_spec

    from tests.fuzz_targets import INSTRUMENTED

    if asked != "auto":
        return asked
    return "atheris" if target in INSTRUMENTED and find_spec("atheris") else "mutate"


def main():
    """Exit status 1 where anything was found."""
    if sys.argv[1:2] == ["--child"]:
        target, engine, seconds, seed, folder = sys.argv[2:]
        child(target, engine, float(seconds), int(seed), Path(folder))
        return
    from tests.fuzz_targets import TARGETS

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("targets", nargs="*")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", default="auto", choices=["auto", "mutate", "atheris"])
    parser.add_argument("--keep", type=Path, default=Path("fuzz-found"))
    asked = parser.parse_args()
    found = 0
    for target in asked.targets or TARGETS:
        result = watch(target, engine_for(target, asked.engine), asked.seconds, asked.seed, asked.keep)
        found += len(result["findings"])
        print(told(result), flush=True)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
