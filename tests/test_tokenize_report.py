"""tokenize/usage and tokenize/report: exact figures, whatever parts they come from, and the page that shows them."""

import json
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flows import tokens_page
from flows.tokens_page import show_report, tokens_report
from tasks.artifacts.documents import PLACES
from tasks.artifacts.tables import write_table
from tasks.artifacts.tokens import USAGE
from tasks.errors import GristmillError, InvariantError
from tasks.project import Project
from tasks.tokenize import report, usage
from tasks.tokenize.tokenizer import facts
from tests.memory_reads import MemoryReads
from tests.tokenizer_kit import Letters, lay

SIZE = 200


def part(name, rows, size=SIZE):
    """rows: (id, language, ids, bytes, learnt). A unit of usage."""
    flat = np.array([number for row in rows for number in row[2]], np.uint16)
    columns = {
        "tokens": [len(row[2]) for row in rows],
        "bytes": [row[3] for row in rows],
        "unknown": [row[2].count(0) for row in rows],
        "learnt": [row[4] for row in rows],
    }
    tables = {
        "tokenize/tokens": pa.table(columns, schema=pa.schema([(name, pa.int64()) for name in columns])),
        "filter/signals": pa.table({"language": pa.array([row[1] for row in rows], pa.string())}),
        "normalize/text": pa.table({"id": pa.array([row[0] for row in rows], pa.string())}),
    }
    reads = MemoryReads(name, tables, {"tokenize/tokens.bin": flat}, {"vocab_size": size, "dtype": "<u2"})
    return usage.make(reads, None)


ROWS = [
    ("a", "en", [5, 5, 6, 2], 12, 4),
    ("b", "en", [], 0, 0),
    ("c", "de", [7] * 39 + [2], 40, 40),
    ("d", "de", [0, 8, 2], 9, 0),
    ("e", "en", [9] * 59 + [2], 30, 60),
]


def test_usage_worked_out_by_hand():
    made = part("web-1", ROWS)
    assert made.files[".parquet"].schema == USAGE
    assert made.files[".parquet"].to_pydict() == {"token": [0, 2, 5, 6, 7, 8, 9], "count": [1, 4, 2, 1, 39, 1, 59]}
    found = json.loads(made.files[".json"])
    assert found["languages"]["de"] == {"documents": 2, "tokens": 43, "bytes": 49, "unknown": 1, "unlearnt": 1}
    assert [(one["row"], one["id"], one["tokens"], one["bytes"]) for one in found["worst"]] == [
        (4, "e", 60, 30),
        (2, "c", 40, 40),
    ]
    assert made.counts["tokens|language=en"] == 64
    assert made.counts["documents_unlearnt|language=de"] == 1
    assert part("web-2", [("b", "en", [], 0, 0)]).files[".json"] == b'{"languages":{},"worst":[]}'
    assert part("web-3", []).files[".parquet"].num_rows == 0


def test_an_id_beyond_the_vocabulary_is_found_on_reading():
    with pytest.raises(InvariantError, match="web-1 holds id 9, its tokenizer has 9 ids"):
        part("web-1", ROWS, 9)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    root = tmp_path_factory.mktemp("small")
    return lay(root), root / "tokenizers/small/tokenizer.model"


def reported(parts, small, folder):
    """The report over usage of parts, by name."""
    tables, paths = {}, {"tokenizer": small[1]}
    for name, made in parts.items():
        tables["tokenize/usage", name] = made.files[".parquet"]
        paths["tokenize/usage.json", name] = folder / f"{name}.json"
        paths["tokenize/usage.json", name].write_bytes(made.files[".json"])
    reads = MemoryReads("report", tables, spec={"tokenizer": facts(small[0])}, paths=paths)
    return json.loads(report.make(reads, None).files[".json"])


def test_the_report_worked_out_by_hand(small, tmp_path):
    parts = {"books-1": part("books-1", ROWS[:3]), "web-1": part("web-1", ROWS[3:]), "web-2": part("web-2", ROWS)}
    found = reported(parts, small, tmp_path)
    assert found["totals"] == {
        "documents": 8, "tokens": 214, "bytes": 182, "unknown": 2, "unlearnt": 2,
        "bytes_per_token": round(182 / 214, 6), "unknown_share": round(2 / 214, 6),
    }  # fmt: skip
    assert found["sources"]["books"]["tokens"] == 44 and found["languages"]["en"]["documents"] == 4
    assert found["sources_by_language"]["web"]["de"] == {
        "documents": 3, "tokens": 46, "bytes": 58, "unknown": 2, "unlearnt": 2,
        "bytes_per_token": round(58 / 46, 6), "unknown_share": round(2 / 46, 6),
    }  # fmt: skip
    assert found["vocabulary"] == {"size": small[0].vocab_size, "used": 7, "unused": small[0].vocab_size - 7}
    first = found["most_frequent"][0]
    assert first == {"id": 9, "piece": small[0].piece(9), "count": 118}
    assert [one["count"] for one in found["least_frequent"]] == sorted(one["count"] for one in found["most_frequent"])
    assert [(one["part"], one["id"], one["bytes_per_token"]) for one in found["worst"]] == [
        ("web-1", "e", 0.5), ("web-2", "e", 0.5), ("books-1", "c", 1.0), ("web-2", "c", 1.0),
    ]  # fmt: skip


def test_nothing_kept_is_a_report_too(small, tmp_path):
    found = reported({"web-1": part("web-1", ROWS[1:2])}, small, tmp_path)
    assert found["totals"]["bytes_per_token"] is None
    assert found["most_frequent"] == found["worst"] == []


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.lists(st.integers(3, 99), max_size=50), st.integers(1, 99)), max_size=30), st.integers(1, 9)
)
def test_figures_do_not_depend_on_how_rows_lie_in_parts(tmp_path_factory, documents, size):
    """Counts and the worst documents of one part and of many are the same."""
    letters = Letters(SIZE)
    letters.piece, letters.engine, letters.options, letters.version = str, "e", {}, "1"
    rows = [(str(at), "en", [*ids, 2], count, len(ids)) for at, (ids, count) in enumerate(documents)]
    folder = tmp_path_factory.mktemp("parts")
    found = []
    for step in (len(rows) + 1, size):
        parts = {f"web-{at:04}": part(f"web-{at:04}", rows[at : at + step]) for at in range(0, len(rows) + 1, step)}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(report, "open_model", lambda *a: letters)
            spec = {"tokenizer": {"vocab_size": SIZE, "sha256": "", "engine": "e", "options": {}}}
            tables = {("tokenize/usage", name): made.files[".parquet"] for name, made in parts.items()}
            paths = {("tokenize/usage.json", name): folder / name for name in parts} | {"tokenizer": folder / "a/b"}
            for name, made in parts.items():
                (folder / name).write_bytes(made.files[".json"])
            made = report.make(MemoryReads("report", tables, spec=spec, paths=paths), None)
        plain = json.loads(made.files[".json"])
        plain["worst"] = [{key: one[key] for key in ("tokens", "bytes")} for one in plain["worst"]]
        found.append(plain)
    assert found[0] == found[1]


def test_the_page_names_files(small, tmp_path, capsys, monkeypatch):
    with pytest.raises(GristmillError, match=r"report\.json is not there"):
        tokens_report(Project(tmp_path))
    (tmp_path / "data/tokenize").mkdir(parents=True)
    places = tmp_path / "data/ingest/places"
    places.mkdir(parents=True)
    found = reported({"web-1": part("web-1", ROWS)}, small, tmp_path)
    (tmp_path / "data/tokenize/report.json").write_text(json.dumps(found))
    row = {"record": 7, "offset": 0, "bytes": 1, "piece": 0}
    table = pa.table({name: [({"file": f"{at}.txt"} | row)[name] for at in range(5)] for name in PLACES.names})
    write_table(places / "web-1.parquet", table, PLACES)
    page = tokens_report(Project(tmp_path))
    assert [(one["file"], one["record"]) for one in page["worst"]] == [("4.txt", 7), ("2.txt", 7)]
    monkeypatch.setattr(tokens_page.show, "table", lambda title, columns, rows, right: print(title, rows))
    show_report(page)
    said = capsys.readouterr().out
    assert "7 of" in said and "4.txt, record 7" in said and "most frequent" in said
    assert SimpleNamespace(**page).format == 1
