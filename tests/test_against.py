"""dedup.against: documents of earlier releases win, are named, and must be the very ones of the release."""

import shutil

import pytest
import yaml

from flows.against import fetch_documents
from tasks.artifacts.manifest import Manifest
from tasks.artifacts.tables import read_table
from tasks.dedup import planning
from tasks.dedup.planning import releases
from tasks.errors import IntegrityError, ParamsError, SourceError
from tasks.perform import perform, recipe_key
from tasks.pipeline import STEPS
from tasks.project import Project
from tests.dedup_projects import build, lay, near_texts, record, tree, verdicts

OLD = list(near_texts(1, 12))
NEW = [*OLD[1::4], *near_texts(2, 6), *(f"{text} and more of it" for text in OLD[::3])]


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """A project with OLD, whose data a release holds."""
    root = lay(tmp_path_factory.mktemp("released"), {"old": {"a": OLD}})
    build(root)
    record(root, "corpus-1", root)
    return root


def follow(root, released, **dedup):
    """A project with NEW against that release, fetched."""
    lay(root, {"new": {"b": NEW}}, against=["corpus-1"], **dedup)
    record(root, "corpus-1", released)
    if not (root / "against").is_dir():
        assert fetch_documents(released, "corpus-1") == released / "against" / "corpus-1"
        shutil.copytree(released / "against", root / "against")
    return root


def test_the_same_from_a_release_as_from_within(released, tmp_path):
    root = follow(tmp_path / "against", released)
    build(root)
    within = lay(tmp_path / "within", {"old": {"a": OLD}, "new": {"b": NEW}}, source_priority=["old"])
    build(within)
    units = [unit for unit in Manifest.read(within / "data/dedup").folders["verdicts"] if unit.startswith("new-")]
    assert units == list(Manifest.read(root / "data/dedup").folders["verdicts"])
    named = 0
    for folder, other in (("verdicts", "survivor_part"), ("pairs", "other_part")):
        for unit in units:
            tables = [read_table(home / "data/dedup" / folder / f"{unit}.parquet") for home in (root, within)]
            found, wanted = (table.to_pylist() for table in tables)
            named += sum((line[other] or "").startswith("corpus-1/old-") for line in found)
            found = [line | {other: (line[other] or "").removeprefix("corpus-1/") or None} for line in found]
            assert sorted(found, key=str) == sorted(wanted, key=str)
    assert named > 20
    old = {line[2] for line in verdicts(root).values() if line[0] == "drop"}
    assert any(str(name).startswith("corpus-1/old-") for name in old)


def test_another_release_is_another_recipe_and_none_leaves_the_key_alone(released, tmp_path):
    root = follow(tmp_path, released)
    project = Project(root)
    build(root)
    against = recipe_key(STEPS["dedup"], project)
    keys = {entry.key for entry in Manifest.read(root / "data/dedup").folders["verdicts"].values()}
    lay(root, {"new": {"b": NEW}})
    assert recipe_key(STEPS["dedup"], project) != against
    build(root)
    assert keys.isdisjoint(entry.key for entry in Manifest.read(root / "data/dedup").folders["verdicts"].values())


def test_a_release_sketched_otherwise_is_sketched_again(released, tmp_path, monkeypatch):
    root = follow(tmp_path, released)
    build(root)
    stored, files = tree(root), "against/corpus-1/dedup/sketches"
    monkeypatch.setattr(planning, "releases", lambda *asked: releases(*asked[:2], {"another setting"}))
    for path in (root / files).glob("*.parquet"):
        path.unlink()  # they are not read
    monkeypatch.setattr("tasks.against._hold", lambda *_: None)
    shutil.rmtree(root / "data" / "dedup")
    perform(STEPS["dedup"], Project(root))
    again = tree(root)
    assert {path for path in again if again[path] != stored[path]} == {"manifest.json"}, "another key, equal bytes"


def test_what_is_absent_or_another_is_named_with_its_mend(released, tmp_path):
    root = lay(tmp_path, {"new": {"b": NEW}}, against=["corpus-1"])
    with pytest.raises(SourceError, match="corpus-1, of which releases/ has no record; bring the commit"):
        recipe_of(root)
    record(root, "corpus-1", released)
    with pytest.raises(SourceError, match="against/corpus-1/normalize holds nothing; gristmill fetch corpus-1 --docu"):
        recipe_of(root)
    follow(root, released)
    build(root)
    file = next((root / "against/corpus-1/normalize/text").glob("*.parquet"))
    file.chmod(0o644)
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(IntegrityError, match=rf"{file.name}: expected [0-9a-f]{{64}}, found [0-9a-f]{{64}}"):
        recipe_of(root)
    file.unlink()
    with pytest.raises(SourceError, match=r"is not there, and 0 more; gristmill fetch corpus-1 --documents"):
        recipe_of(root)
    for wrong in ("corpus-1", [1], ["../corpus"]):
        params = yaml.safe_load((root / "params.yaml").read_text())
        params["dedup"]["against"] = wrong
        (root / "params.yaml").write_text(yaml.safe_dump(params))
        with pytest.raises(ParamsError, match=r"dedup\.against"):
            recipe_of(root)


def recipe_of(root):
    """The recipe of dedup, which holds what lies in against/ to the record."""
    for name in ("ingest", "normalize", "filter"):
        if Manifest.read(root / "data" / name) is None:
            perform(STEPS[name], Project(root))
    return recipe_key(STEPS["dedup"], Project(root))
