"""How mix is cut into units: there is one, over all shards.

In: what the manifests say of the shards, and sections of params.yaml. Out: the unit. It opens no file, but for the
manifests of earlier steps where a source is weighed that they left empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasks.artifacts.manifest import Entry
from tasks.errors import ParamsError
from tasks.mix.emptied import emptied_by
from tasks.step import Folder, Plan, Unit

STREAM, BOUNDS, CLASSES, TOKENIZER = "shard/stream", "shard/sequences", "shard/classes", "shard/tokenizer"
UNIT = "mixture"


def plan_mixture(plan: Plan, folder: Folder) -> list[Unit]:
    """One unit over all shards. spec: their names, counts and digests, and what other sections say of
    them; "empty": sources that are weighed and have nothing to train on, where their stages allow it.

    Raises ParamsError for such a source where it does not, and for one that nobody named in any case.
    """
    reads = tuple((read, name) for read in folder.reads for name in plan.entries(read))
    streams, bounds, classes = plan.entries(STREAM), plan.entries(BOUNDS), plan.entries(CLASSES)
    spec = {
        "tokens_per_sequence": plan.section("pack")["tokens_per_sequence"],
        "tokenizer": plan.section("tokenize")["tokenizer"],
        "shards": {name: _facts(streams[name], bounds[name], classes.get(name)) for name in streams},
    }
    empty = _empty(plan, spec["shards"])
    return [Unit(UNIT, reads, spec | ({"empty": empty} if empty else {}))]


def _empty(plan: Plan, shards: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The sources that a stage weighs and no shard has sequences of, sorted."""
    trained = (unit.split("/")[0] for unit, own in shards.items() if own["sequences"] and unit.split("/")[1] == "train")
    held = sorted(set(trained))
    given = [stage for stage in plan.params.stages if stage.weights != "proportional"]
    empty = sorted({name for stage in given for name in stage.weights}.difference(held))
    refused = {name for stage in given if not stage.allow_empty for name in stage.weights}
    for name in empty:
        why, mend = _why_empty(plan, name)
        if mend or name in refused:
            raise ParamsError(
                f"mix.stages weigh {name!r}, which has no sequences to train on: {why} (sources that have:"
                f" {', '.join(held) or 'none'})",
                mend or "take it out of the weights, mend what emptied it, or say allow_empty: true in the stage",
            )
    return empty


def _why_empty(plan: Plan, name: str) -> tuple[str, str]:
    """(what is known of a source without sequences, how to mend one that nobody named)."""
    if name in (own["name"] for own in plan.section("ingest")["sources"]):
        return emptied_by(name, plan.standing), ""
    if name in (own["name"] for own in plan.section("pack").get("domains", ())):
        return "no row that is kept for training is of that domain", ""
    return "ingest.sources and pack.domains do not name it", "mend its name or take it out"


def _facts(stream: Entry, bounds: Entry, classes: Entry | None) -> dict[str, Any]:
    files: Mapping[str, Any] = {**stream.files, **bounds.files, **(classes.files if classes else {})}
    return {
        "sequences": bounds.counts["sequences"],
        "tokens": stream.counts["tokens"],
        "files": {path.rpartition("/")[2]: facts["sha256"] for path, facts in files.items()},
    }
