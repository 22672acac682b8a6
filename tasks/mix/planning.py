"""How mix is cut into units: there is one, over all shards.

In: what the manifests say of the shards, and sections of params.yaml. Out: the unit. It opens no file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasks.artifacts.manifest import Entry
from tasks.step import Folder, Plan, Unit

STREAM, BOUNDS, CLASSES, TOKENIZER = "shard/stream", "shard/sequences", "shard/classes", "shard/tokenizer"
UNIT = "mixture"


def plan_mixture(plan: Plan, folder: Folder) -> list[Unit]:
    """One unit over all shards. spec: their names, counts and digests, and what other sections say of
    them."""
    reads = tuple((read, name) for read in folder.reads for name in plan.entries(read))
    streams, bounds, classes = plan.entries(STREAM), plan.entries(BOUNDS), plan.entries(CLASSES)
    spec = {
        "tokens_per_sequence": plan.section("pack")["tokens_per_sequence"],
        "tokenizer": plan.section("tokenize")["tokenizer"],
        "shards": {name: _facts(streams[name], bounds[name], classes.get(name)) for name in streams},
    }
    return [Unit(UNIT, reads, spec)]


def _facts(stream: Entry, bounds: Entry, classes: Entry | None) -> dict[str, Any]:
    files: Mapping[str, Any] = {**stream.files, **bounds.files, **(classes.files if classes else {})}
    return {
        "sequences": bounds.counts["sequences"],
        "tokens": stream.counts["tokens"],
        "files": {path.rpartition("/")[2]: facts["sha256"] for path, facts in files.items()},
    }
