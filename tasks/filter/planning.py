"""Units of filter: parts; the user's own signals only where there are some.

In: the parts, and the files and models of the user's own signals. Out: units of work. It measures and judges nothing.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tasks.errors import ParamsError, SourceError
from tasks.filter.own import Spelled
from tasks.step import Folder, Plan, Unit, each_part
from tasks.text.segmentation import PACKAGES, library_version

OWN, BLOCKED = "filter/own", "filter/blocked"


def plan_measured(plan: Plan, folder: Folder) -> list[Unit]:
    """A unit for each part, with the versions of the libraries that tell words, if any are asked for."""
    libraries = sorted(set(plan.params.segmentation.values()))
    try:
        versions = {library: library_version(library) for library in libraries}
    except ModuleNotFoundError as error:
        raise ParamsError(
            f"filter.segmentation asks for {error.name}, which is not installed",
            f"pip install {PACKAGES.get(error.name or '', 'gristmill[segmentation]')}, or take it out",
        ) from None
    spec = {"segmentation": versions} if versions else {}
    return [replace(unit, spec=spec) for unit in each_part(plan, folder)]


def plan_own(plan: Plan, folder: Folder) -> list[Unit]:
    """A unit for each part, with the digests of the user's files; none where no such signal is named."""
    named = {signal.source: signal for signal in map(Spelled.of, plan.params.signals)}
    if not named and not plan.params.metadata:
        return []
    digests, files = {}, {}
    for source, signal in sorted(named.items()):
        file = source if signal.is_model else f"{source}.py"
        found = plan.sources()["signals"].get(source, {}).get("files", {})
        if file not in found:
            raise SourceError(f"filter.signals names {source}, but {file} is not beside params.yaml", "put it there")
        digests[source] = {name: facts["sha256"] for name, facts in sorted(found.items())}
        files[source] = str(Path(plan.root) / file)
    return [replace(unit, spec={"signals": digests}, files=files) for unit in each_part(plan, folder)]


def plan_judged(plan: Plan, folder: Folder) -> list[Unit]:
    """A unit for each part; it reads own signals and block lists where there are some."""
    absent = {read for read in (OWN, BLOCKED) if not plan.entries(read)}
    return each_part(plan, replace(folder, reads=tuple(read for read in folder.reads if read not in absent)))
