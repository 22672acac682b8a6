"""A new snapshot's dedup beside one from scratch, at size: python -m tests.dedup_growth DOCUMENTS [DIR]

Documents of the shape `pairs` (tests.dedup_scale) in 21 files, of which the last, a twentieth, comes after a first
build; its documents have near and exact copies in all others. Prints one JSON line: CPU seconds of dedup with what
stands carried over and from scratch, what was sketched, and whether the files are the same bytes.
"""

import hashlib
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import yaml

from tasks.perform import perform
from tasks.pipeline import STEPS
from tasks.project import Project
from tests.dedup_projects import UNTIL_DEDUP, build, lay
from tests.dedup_scale import texts_of

FILES = 21


def write(root, documents, file):
    texts = pa.array(texts_of("pairs", np.arange(file, documents, FILES))).to_pylist()
    lines = (json.dumps({"text": text}) for text in texts)
    (root / "texts" / "web" / f"{file:02}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def digests(root):
    """path -> SHA-256 of the artifact's files."""
    home = root / "data" / "dedup"
    paths = sorted(path for path in home.rglob("*") if path.is_file())
    return {path.relative_to(home).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def measured(documents, folder=None):
    """The JSON of one run."""
    home = Path(tempfile.mkdtemp(prefix="dedup-growth-", dir=folder))
    try:
        root = lay(home, {"web": {}})
        recipe = yaml.safe_load((root / "params.yaml").read_text(encoding="utf-8"))
        recipe["ingest"] |= {"part_bytes": 16 << 20, "part_bytes_max": 64 << 20, "small_file_bytes": 4 << 20}
        (root / "params.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
        for file in range(FILES - 1):
            write(root, documents, file)
        build(root)
        write(root, documents, FILES - 1)
        for name in UNTIL_DEDUP[:-1]:
            perform(STEPS[name], Project(root))
        carried, seconds = deduplicated(root)
        grown = digests(root)
        shutil.rmtree(root / "data" / "dedup")
        scratch, all_seconds = deduplicated(root)
        assert scratch.carried["sketches"] == 0
        return {
            "documents": documents,
            "parts_sketched": carried.made["sketches"],
            "parts": scratch.made["sketches"],
            "carried_cpu_seconds": round(seconds, 1),
            "scratch_cpu_seconds": round(all_seconds, 1),
            "same_bytes": grown == digests(root),
        }
    finally:
        shutil.rmtree(home, ignore_errors=True)


def deduplicated(root):
    """(the report, CPU seconds)."""
    began = time.process_time()
    report = perform(STEPS["dedup"], Project(root))
    return report, time.process_time() - began


if __name__ == "__main__":
    print(json.dumps(measured(int(sys.argv[1]), *sys.argv[2:3])), flush=True)
