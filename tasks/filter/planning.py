"""Units of filter: parts; the user's own signals only where there are some.

In: the parts and the files of the user's own signals. Out: units of work. It measures and judges nothing.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tasks.errors import SourceError
from tasks.step import Folder, Plan, Unit, each_part

OWN, BLOCKED = "filter/own", "filter/blocked"


def plan_own(plan: Plan, folder: Folder) -> list[Unit]:
    """A unit for each part, with the digests of the user's files; none where no such signal is named."""
    modules = sorted({spelled.partition(":")[0] for spelled in plan.params.signals})
    if not modules and not plan.params.metadata:
        return []
    digests, files = {}, {}
    for module in modules:
        found = plan.sources()["signals"].get(module, {}).get("files", {})
        if f"{module}.py" not in found:
            raise SourceError(
                f"filter.signals names {module}, but {module}.py is not beside params.yaml", "put it there"
            )
        digests[module] = {file: facts["sha256"] for file, facts in sorted(found.items())}
        files[module] = str(Path(plan.root) / f"{module}.py")
    return [replace(unit, spec={"signals": digests}, files=files) for unit in each_part(plan, folder)]


def plan_judged(plan: Plan, folder: Folder) -> list[Unit]:
    """A unit for each part; it reads own signals and block lists where there are some."""
    absent = {read for read in (OWN, BLOCKED) if not plan.entries(read)}
    return each_part(plan, replace(folder, reads=tuple(read for read in folder.reads if read not in absent)))
