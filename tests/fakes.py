"""An artifact and a step held in memory, for tests of suites."""

import json
from types import SimpleNamespace

import pyarrow as pa

from tasks.step import Folder, Step, StepParams
from tasks.validate import validate


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


DROP_SHARE = {"drop_share": {"of": ["documents_dropped"], "by": ["documents_in"]}}


def expect(type, why="a reason", severity="critical", empty=None, where=None, **kwargs):
    if where:
        kwargs |= {"row_condition": where, "condition_parser": "pandas"}
    meta = {"why": why} | ({"empty_when_zero": empty} if empty else {})
    return {"type": f"expect_{type}", "kwargs": kwargs, "severity": severity, "meta": meta}


NOT_EMPTY = expect("table_row_count_to_be_between", min_value=1)


def lay(folder, profile=(NOT_EMPTY,), rows=(NOT_EMPTY,), **more):
    path = folder / "expectations" / "filter.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"profile": list(profile), "rows": list(rows), **more}))
    return path


def check(tmp_path, table, *rows, docs=None, counts=None, **more):
    """Validation of one part of source `a` with these rows."""
    units = of_units(("a", table))
    counts = counts or {unit: {"documents_in": 10, "documents_dropped": 1} for unit in units}
    artifact = FakeArtifact({"filter/verdicts": units}, {"filter/verdicts": counts}, **more.pop("params", {}))
    return validate(fake_step(), artifact, lay(tmp_path, rows=rows or (NOT_EMPTY,), **more), docs)


def the_only(sentences):
    assert len(sentences) == 1, sentences
    return sentences[0]
