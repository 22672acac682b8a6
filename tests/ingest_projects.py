"""Small projects whose ingest is built for real, without a suite; and what stands in its tables."""

import json

from tasks.artifacts.manifest import Manifest
from tasks.artifacts.tables import read_table
from tasks.ingest import STEP
from tasks.perform import perform
from tasks.project import Project

SIZES = {
    "part_bytes": 4096,
    "part_bytes_max": 16384,
    "small_file_bytes": 2048,
    "record_bytes_max": 1 << 20,
    "piece_characters_max": {},
    "rejects_max_share": 1.0,
}


def lay(root, files, kind="web", name="s", **sizes):
    for path, content in files.items():
        (root / "in" / path).parent.mkdir(parents=True, exist_ok=True)
        (root / "in" / path).write_bytes(content if isinstance(content, bytes) else content.encode())
    section = {"sources": [{"name": name, "kind": kind, "path": "in"}], **SIZES, **sizes}
    (root / "params.yaml").write_text(json.dumps({"ingest": section}))
    return Project(root)


def build(root, files, **how):
    project = lay(root, files, **how)
    return project, perform(STEP, project)


def rows(project, folder):
    """Rows of every part in the order of the manifest, with the part's name."""
    home = project.artifact("ingest")
    parts = Manifest.read(home).folders[folder]
    return [
        {"part": part, **row} for part in parts for row in read_table(home / folder / f"{part}.parquet").to_pylist()
    ]


def read(root, files, **how):
    project, _ = build(root, files, **how)
    return rows(project, "documents"), rows(project, "places"), rows(project, "rejects")


def texts(project):
    return [row["text"] for row in rows(project, "documents")]


def lines(*values):
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)


def many(count, start=0, width=300):
    return [{"text": f"record {n} " + "x" * (n * 37 % width), "n": n} for n in range(start, start + count)]
