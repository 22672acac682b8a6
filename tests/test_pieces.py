"""Long texts in pieces: nothing lost, ends where paragraphs end; and as rows of ingest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.text.pieces import pieces
from tests.ingest_projects import build, rows

pytestmark = pytest.mark.usefixtures("no_suite")


@given(st.lists(st.sampled_from(["word ", "a", "\n", "\n\n", "\n \n", "。", "é"])).map("".join), st.integers(2, 40))
def test_nothing_is_lost_and_no_piece_is_longer(text, most):
    found = pieces(text, most)
    assert "".join(found) == text
    assert all(0 < len(piece) <= most for piece in found) or found == [text] == [""]
    assert pieces(text[:most], most) == [text[:most]]


def test_pieces_end_at_paragraphs_and_are_about_equal():
    text = "\n\n".join(f"Paragraph {number}. " + "word " * 40 for number in range(100))
    found = pieces(text, 5000)
    assert len(found) == 5 and all(piece.startswith("Paragraph") for piece in found)
    assert all(piece.endswith("\n\n") for piece in found[:-1])
    assert max(map(len, found)) < 1.2 * min(map(len, found))


def test_without_paragraphs_lines_then_sentences_then_anywhere():
    assert pieces("line one\n" * 10, 20)[0] == "line one\nline one\n"
    assert pieces("这是一句。" * 10, 12)[0].endswith("。")
    assert pieces("x" * 25, 10) == ["x" * 9, "x" * 8, "x" * 8]


def test_pieces_are_rows_of_their_own(tmp_path):
    book = "\n\n".join(f"Paragraph {number}. " + "word " * 40 for number in range(30))
    how = {"kind": "book", "piece_characters_max": {"book": 2000}}
    project, report = build(tmp_path, {"a.txt": book, "b.txt": "short"}, **how)
    documents, places = rows(project, "documents"), rows(project, "places")
    assert "".join(row["text"] for row in documents[:-1]) == book and documents[-1]["text"] == "short"
    assert [place["piece"] for place in places] == [*range(len(documents) - 1), 0]
    assert {(place["file"], place["offset"], place["bytes"]) for place in places[:-1]} == {("a.txt", 0, len(book))}
    assert len({row["id"] for row in documents}) == len(documents)
    counts = report.counts
    assert (counts["records_in"], counts["records_cut"], counts["pieces"]) == (2, 1, len(documents) - 1)
    assert counts["documents|shape=file"] == len(documents)


def test_other_kinds_and_chats_are_never_cut(tmp_path):
    text = "word " * 1000
    project, _ = build(tmp_path / "web", {"a.txt": text}, kind="web", piece_characters_max={"book": 1000})
    assert len(rows(project, "documents")) == 1
    chat = '{"messages": [{"role": "user", "content": "' + text + '"}]}'
    project, _ = build(tmp_path / "chat", {"a.jsonl": chat}, kind="book", piece_characters_max={"book": 1000})
    assert len(rows(project, "documents")) == 1
