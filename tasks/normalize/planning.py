"""Units of normalize: parts, each with the kind of its source, so that how another kind is cleaned makes it not anew.

In: the parts of ingest and the kinds of the sources in params.yaml. Out: units of work. It reads no text.
"""

from __future__ import annotations

from dataclasses import replace

from tasks.step import Folder, Plan, Unit, each_part


def plan_text(plan: Plan, folder: Folder) -> list[Unit]:
    """A unit for each part; its specification names the kind, but where the source is in params.yaml no more."""
    kinds = {source["name"]: source["kind"] for source in plan.section("ingest")["sources"]}
    named = ((unit, unit.name.partition("-")[0]) for unit in each_part(plan, folder))
    return [replace(unit, spec={"kind": kinds[source]}) if source in kinds else unit for unit, source in named]
