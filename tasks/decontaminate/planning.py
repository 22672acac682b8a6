"""Which units decontaminate makes: one for each part, one for the corpus's boilerplate, one certificate.

In: the plan. Out: units that name each evaluation set's digest, fields and roles, and where its file lies. Its code
stands in the recipe, not in units' keys.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from tasks.decontaminate.sets import format_of
from tasks.errors import SourceError
from tasks.step import Folder, Plan, Unit, each_part, the_whole

BOILERPLATE = "decontaminate/boilerplate"


def plan_matches(plan: Plan, folder: Folder) -> list[Unit]:
    """A unit for each part; each depends on every set."""
    spec, files = _sets(plan)
    return [replace(unit, spec=spec, files=files) for unit in each_part(plan, folder)]


def plan_judged(plan: Plan, folder: Folder) -> list[Unit]:
    """A unit for each part; each reads the corpus's boilerplate too."""
    aligned = replace(folder, reads=tuple(read for read in folder.reads if read != BOILERPLATE))
    return [replace(unit, reads=(*unit.reads, (BOILERPLATE, "boilerplate"))) for unit in each_part(plan, aligned)]


def plan_certificate(plan: Plan, folder: Folder) -> list[Unit]:
    """The single unit of certificate.json."""
    spec, files = _sets(plan)
    return [replace(unit, spec=spec, files=files) for unit in the_whole(plan, folder)]


def _sets(plan: Plan) -> tuple[dict[str, Any], dict[str, str]]:
    """(spec, files): each set's digest and fields, by name; where its file lies.

    Raises SourceError for a set that is not exactly one file.
    """
    found = plan.sources()["sets"]
    spec, files = [], {}
    for one in sorted(plan.params.sets, key=lambda one: one.name):
        parts = found[one.name]["files"] if one.name in found else {}
        if len(parts) != 1:
            raise SourceError(
                f"evaluation set {one.name} at {one.path} is {len(parts)} files, not one",
                "name one file for each set: JSON Lines, CSV, TSV or Parquet",
            )
        ((name, facts),) = parts.items()
        path = Path(plan.root) / one.path
        file = path / name if path.is_dir() else path
        files[one.name] = str(file)
        fields = list(one.fields)
        roles = {"answers": list(one.answers), "passages": list(one.passages)}
        spec.append(
            {"name": one.name, "sha256": facts["sha256"], "fields": fields, **roles, "format": format_of(file.name)}
        )
    return {"sets": spec}, files
