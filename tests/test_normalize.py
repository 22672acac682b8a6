"""normalize: clean text, aligned rows, chats message by message, what must hold."""

import hashlib
import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks import ingest
from tasks.artifacts.documents import DOCUMENTS, TEXT
from tasks.artifacts.manifest import Manifest
from tasks.artifacts.tables import read_table
from tasks.errors import IntegrityError, ParamsError
from tasks.normalize import STEP, NormalizeParams, invariants, rows
from tasks.normalize.text import SCHEMA, make
from tasks.parts import narrowed
from tasks.perform import perform
from tasks.project import Project
from tests.memory_reads import MemoryReads

KINDS = {
    "web": {"form": "NFC", "whitespace": "inside"},
    "book": {"form": "NFC", "whitespace": "collapse"},
    "code": {"form": "NFC", "whitespace": "keep"},
    "paper": {"form": "NFKC", "whitespace": "keep"},
    "chat": {"form": "NFC", "whitespace": "keep"},
}
PARAMS = NormalizeParams(kinds=KINDS, combining_marks_max=30)


def documents(*items):
    """items: (kind, text) or (kind, [(role, content), ...])."""
    found = []
    for number, (kind, said) in enumerate(items):
        row = dict.fromkeys(DOCUMENTS.names) | {
            "id": f"{number:032x}",
            "source": "s",
            "kind": kind,
            "text": said,
        }
        if isinstance(said, list):
            row["text"] = "\n\n".join(content for _, content in said)
            row["messages"] = [{"role": role, "content": content} for role, content in said]
            row["offsets"] = [0] * len(said)
        found.append(row)
    return pa.Table.from_pylist(found, DOCUMENTS)


def made(*items):
    return make(MemoryReads("s-0", {"ingest/documents": documents(*items)}), PARAMS)


def test_each_kind_has_its_own_way():
    text = "\u200bx²  ½\r\n    a  b \n\n\n\nc\n"
    table = made(*((kind, text) for kind in KINDS)).files[".parquet"]
    assert table["text"].to_pylist() == [
        "x² ½\n    a b\n\nc",
        "x² ½\n a b\n\nc",
        "x²  ½\n    a  b\n\n\nc",
        "x2  1⁄2\n    a  b\n\n\nc",
        "x²  ½\n    a  b\n\n\nc",
    ]


def test_rows_stay_and_text_sha_is_right():
    result = made(("web", "a\r\nb"), ("web", " \u200b\n"), ("book", "é"))
    table = result.files[".parquet"]
    assert table.schema.names == TEXT.names and table.cast(TEXT).schema.equals(SCHEMA)
    assert table["text"].to_pylist() == ["a\nb", "", "é"]
    assert table["id"].to_pylist() == [f"{n:032x}" for n in range(3)]
    assert table["text_sha"].to_pylist() == [hashlib.sha256(t.encode()).hexdigest() for t in ("a\nb", "", "é")]
    assert result.counts == {"documents_in": 3, "documents_out": 3, "characters_in": 8, "characters_out": 4}


def test_equal_texts_have_equal_digests_whatever_they_came_from():
    table = made(("web", "a\r\nb"), ("web", "a\nb "), ("web", "\ufeffa\n\u00adb")).files[".parquet"]
    assert len(set(table["text_sha"].to_pylist())) == 1


def test_a_chat_is_cleaned_message_by_message():
    table = made(("chat", [("user", "  é?\r\n"), ("bot", "\u200b"), ("user", "e\u0301")])).files[".parquet"]
    row = table.to_pylist()[0]
    assert row["messages"] == [
        {"role": "user", "content": "  é?"}, {"role": "bot", "content": ""}, {"role": "user", "content": "é"},
    ]  # fmt: skip
    assert row["text"] == "  é?\n\n\n\né" and row["offsets"] == [0, 7, 9]
    assert row["text_sha"] == hashlib.sha256(row["text"].encode()).hexdigest()


def test_a_chat_of_nothing_is_a_row_without_text():
    row = made(("chat", [("user", " "), ("bot", "\n")])).files[".parquet"].to_pylist()[0]
    assert row["text"] == "" and row["offsets"] == [0, 0] and len(row["messages"]) == 2


def test_no_rows():
    result = made()
    assert result.files[".parquet"].num_rows == 0 and result.counts["characters_out"] == 0
    assert result.files[".parquet"].cast(TEXT).schema.equals(TEXT)


TEXTS = st.text(st.sampled_from("ab \t\n\r\u200b\u0301é\u3000\x00"), max_size=20)


@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(KINDS)), TEXTS | st.lists(st.tuples(TEXTS, TEXTS), max_size=4)),
        max_size=6,
    )
)
def test_rows_are_aligned_and_offsets_lead_to_messages(items):
    table = made(*items).files[".parquet"].cast(TEXT)
    assert table.num_rows == len(items)
    for row, (kind, said) in zip(table.to_pylist(), items, strict=True):
        assert row["kind"] == kind
        assert (row["messages"] is not None) == isinstance(said, list)
        raw = row["text"].encode()
        for message, begin in zip(row["messages"] or [], row["offsets"] or [], strict=True):
            assert raw[begin:].startswith(message["content"].encode())
        assert not any(letter in row["text"] for letter in "\r\u200b\x00")


class Held:
    """An artifact of one part."""

    def __init__(self, before, after):
        self.tables = {"ingest/documents": before, "normalize/text": after}

    def units(self, folder):
        return ["s-0"]

    def table(self, folder, columns=None, unit=None):
        return self.tables[folder].select(columns or self.tables[folder].column_names)


def test_invariants_hold_and_break():
    before = documents(("web", "a"), ("web", "b"))
    after = make(MemoryReads("s-0", {"ingest/documents": before}), PARAMS).files[".parquet"]
    assert list(invariants(Held(before, after))) == []
    assert "its 1 ids are not the 2" in next(invariants(Held(before, after.slice(1))))
    assert "ids" in next(invariants(Held(before, after.take([1, 0]))))
    place = TEXT.get_field_index("text")
    other = after.set_column(place, "text", pa.array(["a\x07", "b"], pa.large_string()))
    found = list(invariants(Held(before, other)))
    assert "row 0: text_sha is" in found[0] and "U+0007 at character 1" in found[1]


def test_rows_have_lengths_and_no_text():
    after = made(("web", "é"), ("web", "")).files[".parquet"]
    table = rows(Held(None, after), "s-0")
    assert "text" not in table.column_names
    assert table.select(["part", "row", "characters", "bytes"]).to_pylist() == [
        {"part": "s-0", "row": 0, "characters": 1, "bytes": 2},
        {"part": "s-0", "row": 1, "characters": 0, "bytes": 0},
    ]


def test_every_kind_must_be_named():
    with pytest.raises(ValueError, match="kinds says nothing of chat"):
        NormalizeParams(kinds={name: how for name, how in KINDS.items() if name != "chat"}, combining_marks_max=30)


# The step on the core


@pytest.fixture
def project(tmp_path, no_suite):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.jsonl").write_text("".join(json.dumps({"text": f"text  {n}\r\n"}) + "\n" for n in range(200)))
    lay(tmp_path)
    return Project(tmp_path)


def lay(root, **normalize):
    sizes = {
        "part_bytes": 1024,
        "part_bytes_max": 4096,
        "small_file_bytes": 512,
        "record_bytes_max": 4096,
        "piece_characters_max": {},
    }
    source = {"name": "s", "kind": "web", "path": "in"}
    section = {"kinds": KINDS, "combining_marks_max": 30, **normalize}
    params = {"ingest": {"sources": [source], **sizes, "rejects_max_share": 0}, "normalize": section}
    (root / "params.yaml").write_text(json.dumps(params))


def texts(project):
    home = project.artifact("normalize")
    tables = [read_table(home / "text" / f"{part}.parquet") for part in Manifest.read(home).folders["text"]]
    return np.concatenate([table["text"].to_pylist() for table in tables]).tolist()


def test_the_step_makes_what_changed_only(project):
    perform(ingest.STEP, project)
    first = perform(STEP, project)
    assert texts(project) == [f"text {n}" for n in range(200)]
    assert first.counts["documents_out"] == 200 and perform(STEP, project).outcome == "up_to_date"
    values = (project.root / "in/a.jsonl").read_text().split("\n")
    values[100] = '{"text": "other"}'
    (project.root / "in/a.jsonl").write_text("\n".join(values))
    perform(ingest.STEP, project)
    assert 1 <= perform(STEP, project).made["text"] <= 2 < first.made["text"]
    assert texts(project)[100] == "other"
    lay(project.root, kinds={**KINDS, "web": {"form": "NFC", "whitespace": "keep"}})
    assert perform(STEP, project).carried["text"] == 0 and texts(project)[0] == "text  0"


def test_another_kind_makes_nothing_anew(project):
    perform(ingest.STEP, project)
    first = perform(STEP, project)
    lay(project.root, kinds={**KINDS, "code": {"form": "NFKC", "whitespace": "keep"}})
    report = perform(STEP, project)
    assert report.made["text"] == 0 and report.carried["text"] == first.made["text"]
    lay(project.root, kinds={**KINDS, "web": {"form": "NFKC", "whitespace": "inside"}})
    assert perform(STEP, project).made["text"] == first.made["text"]
    lay(project.root, kinds=KINDS, combining_marks_max=29)
    assert perform(STEP, project).made["text"] == first.made["text"]


def test_documents_of_another_kind_than_their_source_are_refused(project):
    """params.yaml gives the source another kind and only normalize is run."""
    perform(ingest.STEP, project)
    recipe = json.loads((project.root / "params.yaml").read_text())
    recipe["ingest"]["sources"][0]["kind"] = "book"
    (project.root / "params.yaml").write_text(json.dumps(recipe))
    with pytest.raises(IntegrityError, match=r"documents of kind web lie in a part whose source is of kind book.*"):
        perform(STEP, project)


def test_a_function_sees_the_member_that_its_unit_names():
    spec, fields = {"kind": "web"}, {"kinds": KINDS, "combining_marks_max": 30}
    assert narrowed(fields, {"kinds": "kind"}, spec) == {"kinds": {"web": KINDS["web"]}, "combining_marks_max": 30}
    assert narrowed(fields, {"kinds": "kind"}, {}) == fields == narrowed(fields, {}, spec)


def test_a_wrong_form_is_named(project):
    lay(project.root, kinds={**KINDS, "web": {"form": "NFD", "whitespace": "keep"}})
    with pytest.raises(ParamsError, match=r"normalize\.kinds\.web\.form is 'NFD'"):
        project.params(STEP)
