"""An artifact and a step held in memory, for tests of suites."""

from types import SimpleNamespace

import pyarrow as pa

from tasks.step import Folder, Step, StepParams


class FakeArtifact:
    """tables and counts by "step/folder", then by unit."""

    def __init__(self, tables=None, counts=None, **params):
        self._tables, self._counts = tables or {}, counts or {}
        self.params = SimpleNamespace(**params)

    def units(self, folder):
        return list(self._tables.get(folder, {}))

    def table(self, folder, columns=None, unit=None):
        table = self._tables[folder][unit]
        return table if columns is None else table.select(list(columns))

    def counts(self, folder):
        return self._counts.get(folder, {})


def fake_step(name="filter", folders=("verdicts",), also=()):
    """A step whose rows are the tables of its last folder."""
    made = tuple(Folder(folder, "nowhere:nothing") for folder in folders[:-1])
    made += (Folder(folders[-1], "nowhere:nothing", also=also),)
    rows_of = f"{name}/{folders[-1]}"

    def rows(artifact, unit):
        return artifact.table(rows_of, unit=unit)

    return Step(name, StepParams, made, (), rows, rows_of, lambda artifact: iter(()))


def of_units(*tables):
    """unit -> table, for units of two sources named as parts are."""
    return {f"{source}-{number:016x}": pa.table(table) for number, (source, table) in enumerate(tables)}
