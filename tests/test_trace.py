"""A batch traced back to raw records: the text that is found there encodes to the very ids of the batch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from audit.trace import trace
from flows import cli
from flows.fetch import from_data, pin_files
from flows.pins import lay_pin
from tasks.artifacts.manifest import Manifest
from tasks.artifacts.tables import read_table
from tasks.errors import ParamsError
from tasks.project import Project
from tasks.tokenizers import load
from tests.small_corpus import lay_corpus
from training.pin import Pin, open_pin
from training.pin_rows import rows_at

ROOT = Path(__file__).parents[1]
BUILD = """
import sys
from pathlib import Path
from tasks import perform as module
from tasks.pipeline import STEPS
from tasks.project import Project
module.judge = lambda *_: []
for step in STEPS.values():
    module.perform(step, Project(Path(sys.argv[1])))
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    root = tmp_path_factory.mktemp("corpus")
    lay_corpus(root)
    known = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", BUILD, str(root)], env=known, check=True, timeout=300)
    return Project(root)


@pytest.fixture(scope="module")
def pin(project: Project) -> Pin:
    fingerprint = Manifest.read(project.artifact("mix")).fingerprint
    lay_pin(project.root, fingerprint, "c1", pin_files(project), from_data(project))
    return open_pin("c1", project.root)


def test_documents_traced_encode_to_the_ids_of_the_batch(project: Project, pin: Pin) -> None:
    tokenizer = load(project.root / "tokenizers" / project.section("tokenize")["tokenizer"])
    positions = range(240, 300)
    found = trace(project, pin, positions)
    for one, ids in zip(found, rows_at(pin, np.array(positions)), strict=True):
        assert one.ids[1] - one.ids[0] == len(ids)
        made = []
        for document in one.documents:
            texts = read_table(project.data / "normalize" / "text" / f"{document.part}.parquet", ["text"])
            encoded, _ = tokenizer.encode_batch([texts["text"][document.row].as_py()])
            whole = [*encoded.tolist(), pin.schedule.eos_id]
            if len(whole) == document.of:
                made += whole[document.ids[0] : document.ids[1]]
            else:  # decontaminate cut a span out of it
                made += ids[len(made) : len(made) + document.ids[1] - document.ids[0]].tolist()
        assert made == ids.tolist()
    assert {one.source for one in found} == {"prose", "code", "web", "chats"}
    assert max(one.epoch for one in found) >= 1


def test_records_traced_are_those_of_the_raw_files(project: Project, pin: Pin) -> None:
    found = [document for one in trace(project, pin, range(100)) for document in one.documents]
    lines = (project.root / "sources" / "web.jsonl").read_text().splitlines()
    pages = [document for document in found if document.part.startswith("web-")]
    assert pages and all(0 <= document.ids[0] < document.ids[1] <= document.of for document in found)
    for document in pages:
        row = read_table(project.data / "ingest" / "documents" / f"{document.part}.parquet", ["text"])
        record = json.loads(lines[document.record])
        assert record["text"] == row["text"][document.row].as_py() and record.get("url") == document.url
    code = next(document for document in found if document.part.startswith("code-"))
    assert (project.root / "sources" / "code" / code.file).is_file()


def test_data_of_another_pin_is_refused(project: Project, pin: Pin, tmp_path: Path) -> None:
    with pytest.raises(ParamsError, match=r"data/ holds nothing, the pin is .*git checkout"):
        trace(Project(tmp_path), pin, [0])
    with pytest.raises(ValueError, match="positions"):
        trace(project, pin, [-1])


def test_the_command_names_a_steps_documents(project: Project, pin: Pin, monkeypatch, capsys) -> None:
    monkeypatch.setattr(cli.environment, "settle", lambda root, quiet=False: None)
    size = project.section("train")["batch_size"]
    assert cli.main(["-C", str(project.root), "inspect", "c1", "--step", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["position"] for one in found] == list(range(2 * size, 3 * size))
    assert cli.main(["-C", str(project.root), "inspect", "c1", "--step", "3"]) == 0
    assert found[0]["documents"][0]["id"][:12] in capsys.readouterr().out
