"""dedup at scale on made-up corpora with a known answer: python -m tests.dedup_scale SHAPE DOCUMENTS [DIR]

pairs   of eight documents one is a near copy of another in another part (1 to 4 of 30 words changed: similarities
        0.93, 0.86, 0.79 and 0.73) and one an exact copy
alike   all documents are at 0.93 to each other
below   all documents are at 0.78 to each other, just below the threshold

Makes the artifacts that dedup reads, sketches them, decides in a process of its own, holds the verdicts against the
truth and prints one JSON line: seconds, memory, recall and precision.
"""

import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import yaml

from tasks.artifacts.documents import TEXT
from tasks.artifacts.tables import write_payload, write_table
from tasks.artifacts.verdicts import DEDUP_VERDICTS, FILTER_VERDICTS, SKETCHES, SPANS
from tasks.dedup import DedupParams
from tasks.dedup.sketches import sketch
from tasks.dedup.verdicts import decide
from tasks.parts import FileReads
from tasks.project import checked

ROOT = Path(__file__).parents[1]
PART = 50_000
FOLDERS = {"normalize/text": TEXT, "filter/verdicts": FILTER_VERDICTS, "dedup/sketches": SKETCHES, "dedup/spans": SPANS}


def params():
    return checked(DedupParams, "dedup", yaml.safe_load((ROOT / "params.yaml").read_text())["dedup"])


def words_of(shape, numbers):
    """int64 [documents, words]: word numbers; equal numbers, equal words."""
    if shape == "alike":
        return np.concatenate([np.tile(np.arange(30), (len(numbers), 1)), 1000 + numbers[:, None]], axis=1)
    if shape == "below":
        return np.concatenate([np.tile(np.arange(11), (len(numbers), 1)), 1000 + numbers[:, None]], axis=1)
    near, exact = numbers % 8 == 1, numbers % 8 == 3
    origin = numbers - near - 3 * exact
    words = mixed(origin[:, None] * 64 + np.arange(30))
    changed = np.where(near, 1 + numbers // 8 % 4, 0)
    fresh = np.arange(30) >= 30 - changed[:, None]
    return np.where(fresh, mixed(numbers[:, None] * 64 + 32 + np.arange(30)), words)


def mixed(values):
    state = values.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return ((state ^ (state >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9) >> np.uint64(36)).astype(np.int64)


def texts_of(shape, numbers):
    """Words of seven letters and a space between them."""
    words = words_of(shape, numbers)
    digits = (words[:, :, None] >> (4 * np.arange(7))) & 15
    data = np.full((*words.shape, 8), ord(" "), np.uint8)
    data[:, :, :7] = digits + ord("a")
    length = 8 * words.shape[1]
    offsets = np.arange(len(numbers) + 1) * length
    return pa.LargeStringArray.from_buffers(len(numbers), pa.py_buffer(offsets), pa.py_buffer(data.tobytes()))


def quality(gone):
    """(recall, precision) of the shape pairs; of alike documents it does not matter which one stays.

    26 windows of 30 words: those that share 24 of 28 and more are at 0.8.
    """
    groups = gone[: len(gone) // 8 * 8].reshape(-1, 8)
    near = np.arange(len(groups)) % 4 < 2
    alike = groups[:, [0, 3]].sum(axis=1) + np.where(near, groups[:, 1], 0)
    right = np.minimum(alike, 1 + near).sum()
    return right / (1 + near).sum(), right / groups.sum()


def numbers_of(part, parts, documents):
    return np.arange(part, documents, parts)


def write(shape, documents, folder):
    """The tables of all parts; CPU seconds that the sketches took."""
    parts, wanted, seconds = max(2, documents // PART), params(), 0.0
    for name in FOLDERS:
        (folder / name).mkdir(parents=True, exist_ok=True)
    for part in range(parts):
        texts = texts_of(shape, numbers_of(part, parts, documents))
        digests = [hashlib.sha256(text.as_buffer()).hexdigest() for text in texts]
        number = [hashlib.sha256(f"{part} {row}".encode()).hexdigest()[:32] for row in range(len(texts))]
        columns = {"id": number, "text_sha": digests, "text": texts}
        columns |= {"source": ["web"] * len(texts), "kind": ["web"] * len(texts)}
        made = {name: columns.get(name, pa.nulls(len(texts))) for name in TEXT.names}
        keep = {"verdict": ["keep"] * len(texts), "rule": pa.nulls(len(texts)), "value": pa.nulls(len(texts))}
        tables = {"normalize/text": pa.table(made).cast(TEXT), "dedup/spans": SPANS.empty_table()}
        tables["filter/verdicts"] = pa.table({name: keep.get(name, keep["rule"]) for name in FILTER_VERDICTS.names})
        for name, table in tables.items():
            write_table(folder / name / f"web-{part:016x}.parquet", table, FOLDERS[name])
        began = time.process_time()
        table = sketch(reads_of(folder, f"web-{part:016x}"), wanted).files[".parquet"]
        seconds += time.process_time() - began
        write_payload(folder / "dedup/sketches" / f"web-{part:016x}.parquet", table, SKETCHES)
    return seconds


def reads_of(folder, name):
    files = {
        name: {path.stem: {".parquet": str(path)} for path in sorted((folder / name).glob("*.parquet"))}
        for name in FOLDERS
    }
    return FileReads(name, {}, files, {})


class Memory(threading.Thread):
    """The most anonymous memory that this process held, by looking every 50 ms."""

    def __init__(self):
        super().__init__(daemon=True)
        self.first, self.most = self.held(), 0

    def held(self):
        status = Path("/proc/self/status").read_text()
        return int(status.split("RssAnon:")[1].split()[0]) * 1024

    def run(self):
        while True:
            self.most = max(self.most, self.held())
            time.sleep(0.05)


def decided(shape, documents, folder):
    """Decide what lies in `folder` and say how it went."""
    for _ in decide(reads_of(Path(sys.argv[4]), "verdicts"), params()):
        pass  # compiled, and libraries' own memory taken
    memory, parts = Memory(), max(2, documents // PART)
    memory.start()
    began, cpu = time.monotonic(), time.process_time()
    removed, skipped, compared = np.zeros(documents, np.bool_), 0, 0
    for name, made in decide(reads_of(folder, "verdicts"), params()):
        if name.startswith("verdicts/"):
            table = made.files[".parquet"].cast(DEDUP_VERDICTS)
            gone = np.array(table.column("verdict").to_pylist()) == "drop"
            removed[numbers_of(int(name.split("-")[1], 16), parts, documents)] = gone
            skipped += made.counts["bucket_offers_skipped"]
            compared += made.counts["pairs_compared"]
    answer = {"shape": shape, "documents": documents, "removed": int(removed.sum())}
    answer |= {"seconds": round(time.monotonic() - began), "cpu_seconds": round(time.process_time() - cpu)}
    answer |= {"rss_peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}
    answer |= {"anonymous_mb": (memory.most - memory.first) >> 20}
    answer |= {"anonymous_bytes_a_document": round((memory.most - memory.first) / documents, 1)}
    answer |= {"compared": compared, "offers_skipped": skipped}
    if shape == "pairs":
        answer |= dict(zip(("recall", "precision"), (round(share, 6) for share in quality(removed)), strict=True))
    print(json.dumps(answer))


def measured(shape, documents, folder=None):
    """The JSON of one run, the deciding in a process of its own."""
    home = Path(tempfile.mkdtemp(prefix="dedup-scale-", dir=folder))
    try:
        write("pairs", 64, home / "warm")
        began = time.monotonic()
        sketching = write(shape, documents, home / "corpus")
        asked = ["decide", str(home / "corpus"), shape, str(home / "warm"), str(documents)]
        words = [sys.executable, "-m", "tests.dedup_scale", *asked]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr)
        made = {"prepared_seconds": round(time.monotonic() - began), "sketch_cpu_seconds": round(sketching)}
        return json.loads(done.stdout.splitlines()[-1]) | made
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    if sys.argv[1] == "decide":
        decided(sys.argv[3], int(sys.argv[5]), Path(sys.argv[2]))
    else:
        print(json.dumps(measured(sys.argv[1], int(sys.argv[2]), *sys.argv[3:4])), flush=True)
