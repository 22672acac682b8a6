"""What the parts of benchmarks.loader share: figures as lines, rates in turns, a peer's rate from its own process.

In: things to read. Out: tokens a CPU second of this process, or of a peer's. It lays no data.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROUNDS, SECONDS, WARM_UP = 5, 0.3, 40
PATIENCE = 90
Read = Callable[[], Any]


def report(figure: str, value: float | None, **more: Any) -> None:
    """One figure, as a line of JSON and a line for people."""
    rounded = None if value is None else float(f"{value:.4g}")
    print(json.dumps({"figure": figure, "value": rounded, **more}), flush=True)
    goal = f"   goal {more['goal']}" if "goal" in more else ""
    shown = more.get("why", "") if rounded is None else f"{rounded:>10} {more.get('unit', '')}"
    print(f"{figure:<58} {shown}{goal}", file=sys.stderr, flush=True)


def rates(tokens: int, reads: dict[str, Read]) -> dict[str, list[float]]:
    """Tokens a CPU second of each, ROUNDS times, one after another in each round."""
    for read in reads.values():
        for _ in range(WARM_UP):
            read()
    found: dict[str, list[float]] = {name: [] for name in reads}
    for _ in range(ROUNDS):
        for name, read in reads.items():
            begun, turns = time.process_time(), 0
            while time.process_time() - begun < SECONDS:
                for _ in range(10):
                    read()
                turns += 10
            found[name].append(turns * tokens / (time.process_time() - begun))
    return found


def ratio(figure: str, value: float, goal: float, better: str, against: str) -> None:
    report(figure, value, goal=goal, better=better, unit="x", against=against, n=ROUNDS)


def peer_rates(
    python: str | None, name: str, folder: Path, batches: tuple[int, ...] = (8, 32)
) -> list[tuple[int, float | None, str]]:
    """(B, tokens a CPU second or None, why there is none) for each of `batches`."""
    if python is None:
        return [(batch, None, "no --peers environment") for batch in batches]
    home = Path(python).parents[1]
    own = home.with_name(f"{home.name}-{name}") / "bin" / "python"
    script = Path(__file__).with_name("loader_peers.py")
    command = [str(own) if own.is_file() else python, str(script), name, str(folder), *map(str, batches)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
        return [(batch, rate, "") for batch, rate in json.loads(done.stdout.splitlines()[-1])]
    except subprocess.TimeoutExpired as error:
        return [(batch, None, f"no answer in {error.timeout:.0f} s") for batch in batches]
    except (subprocess.SubprocessError, ValueError, IndexError) as error:
        told = getattr(error, "stderr", None) or str(error)
        last = (told if isinstance(told, str) else told.decode()).strip().splitlines()[-1:]
        return [(batch, None, " ".join(last)[:200]) for batch in batches]
