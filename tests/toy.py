"""A toy step over ROOT/input/*.txt for tests of perform: part-wise, dependent and spread folders."""

import hashlib
import os
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from tasks.step import Folder, Made, Step, StepParams, Unit, each_part, runs, shapes, the_whole

SCHEMA = pa.schema([("word", pa.string()), ("count", pa.int64())])
SCHEMAS = {"decisions": pa.schema([("keep", pa.bool_())]), "extras": pa.schema([("note", pa.string())])}


class ToyParams(StepParams):
    times: int = shapes(ge=1)
    keep_longest: int = shapes()
    workers: int = runs(1)


def plan_files(plan, folder):
    units = []
    for path in sorted((plan.root / "input").glob("*.txt")):
        sha = hashlib.sha256(path.read_bytes()).hexdigest()
        units.append(Unit(f"toy-{sha[:16]}", spec={"sha": sha}, files={"text": str(path)}, origin=(path.name, 0)))
    return units


def count(reads, params):
    if "slow" in os.environ.get("TOY", ""):
        time.sleep(0.3)
    if "die" in os.environ.get("TOY", ""):
        os._exit(1)
    text = Path(reads.path("text")).read_text()
    if "poison" in text:
        raise ValueError("poison in the text")
    words = [word for word in text.split() for _ in range(params.times)]
    table = pa.table({"word": words, "count": [len(word) for word in words]}, schema=SCHEMA)
    return Made({".parquet": table, ".bin": np.arange(len(words), dtype="<u2")}, {"documents_in": len(words)})


def peek(reads, params):
    return Made({".npy": np.array([params.keep_longest])})


def decide(reads, params):
    longest = sorted(
        (-length, unit, row)
        for unit in reads.units("toy/words")
        for row, length in enumerate(reads.table("toy/words", ["count"], unit=unit)["count"].to_pylist())
    )[: params.keep_longest]
    kept = {(unit, row) for _, unit, row in longest}
    for unit in reads.units("toy/words"):
        rows = reads.table("toy/words", [], unit=unit).num_rows
        keep = pa.table({"keep": [(unit, row) in kept for row in range(rows)]}, schema=SCHEMAS["decisions"])
        yield f"decisions/{unit}", Made({".parquet": keep}, {"documents_kept": sum(keep["keep"].to_pylist())})
        yield f"extras/{unit}", Made({".parquet": pa.table({"note": ["x"]}, schema=SCHEMAS["extras"])})


OFFERED = []


def copied(reads, params):
    """Notes whether the previous artifact was offered; the bytes must not depend on it."""
    OFFERED.append(reads.previous() is not None and reads.previous().table("toy/copies").num_rows)
    return Made({".parquet": reads.table("toy/words").slice(0, 1)})


def scan(project, *_):
    """What lies at the toy's sources."""
    files = sorted((project.root / "input").glob("*.txt"))
    return {"sources": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}}


TOY = Step(
    name="toy",
    params=ToyParams,
    folders=(
        Folder("words", "tests.toy:count", shapes=("times",), plan=plan_files),
        Folder(
            "decisions",
            "tests.toy:decide",
            ("toy/words",),
            ("keep_longest",),
            plan=the_whole,
            spread=True,
            also=("extras",),
        ),
        Folder("copies", "tests.toy:copied", ("toy/words", "toy/decisions"), plan=each_part),
    ),
    inputs=(),
    rows=lambda artifact, unit: artifact.table("toy/words", unit=unit),
    rows_of="toy/words",
    invariants=lambda artifact: iter(()),
    outside=("sources",),
)
