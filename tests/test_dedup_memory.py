"""dedup's memory for each document: ranking and bands of many made-up sketches, in a process of its own."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tasks.artifacts.tables import write_table
from tasks.artifacts.verdicts import SKETCHES

ROOT = Path(__file__).parents[1]
PART, BYTES_PER_DOCUMENT = 100_000, 600
SCRIPT = """
import resource, sys, types
from pathlib import Path
import pyarrow as pa
from tasks.artifacts.tables import read_table
from tasks.dedup.documents import rank_documents

class Stored:
    def __init__(self, root, parts): self.root, self.parts = root, parts
    def units(self, folder): return [f"web-{n}" for n in range(self.parts)]
    def table(self, folder, columns, unit):
        number, size = int(unit[4:]), int(sys.argv[3])
        if folder == "dedup/sketches": return read_table(self.root / f"{number % 2}.parquet", columns)
        if folder == "filter/verdicts": return pa.table({"verdict": ["keep"] * size})
        ids = [f"{number * size + row:032x}" for row in range(size)]
        made = {"id": ids, "text_sha": [i * 2 for i in ids], "source": ["web"] * size, "kind": ["web"] * size}
        return pa.table(made | {"created": pa.nulls(size, pa.timestamp("us"))})

params = types.SimpleNamespace(
    bands=21, rows=6, source_priority=(), threshold=dict.fromkeys(("book", "chat", "code", "paper", "web"), 0.8)
)
def peak(parts):
    found = rank_documents(Stored(Path(sys.argv[1]), parts), params)
    assert len(found.texts_N) == parts * int(sys.argv[3])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
small = peak(1)
print((peak(int(sys.argv[2])) - small) / ((int(sys.argv[2]) - 1) * int(sys.argv[3])))
"""


def bytes_per_document(tmp_path, documents):
    rng = np.random.default_rng(1)
    for number in range(2):
        signatures = pa.array(rng.integers(0, 1 << 32, PART * 128, np.uint32))
        columns = {"characters": np.full(PART, 900), "words": np.full(PART, 150), "unit": ["words"] * PART}
        columns |= {"shingles": np.full(PART, 146), "signature": pa.FixedSizeListArray.from_arrays(signatures, 128)}
        write_table(tmp_path / f"{number}.parquet", pa.table(columns).cast(SKETCHES), SKETCHES)
    command = [sys.executable, "-c", SCRIPT, str(tmp_path), str(documents // PART), str(PART)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True, env={"PYTHONPATH": str(ROOT)})
    return float(done.stdout)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("documents", [500_000, 5_000_000])
def test_memory_for_each_document(tmp_path, documents):
    """Half of the documents have the signature of another, so that all bands are full."""
    assert bytes_per_document(tmp_path, documents) <= BYTES_PER_DOCUMENT
