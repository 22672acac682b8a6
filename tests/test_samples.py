"""The samples are what samples/truth.json says of them, by code that shares nothing with the steps."""

from __future__ import annotations

import gzip
import json
import re
import unicodedata
from collections import Counter
from itertools import combinations
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

SAMPLES = Path(__file__).parent.parent / "samples"
TRUTH = json.loads((SAMPLES / "truth.json").read_text(encoding="utf-8"))
SOURCES = ("web", "prose", "code", "chats")
Place = tuple[str, str, int]


def place(item: dict) -> Place:
    return item["source"], item["file"], item["record"]


def lines_of(path: Path) -> list[str]:
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes()).decode().splitlines()
    if path.suffix == ".zst":
        with pa.CompressedInputStream(str(path), "zstd") as stream:
            return stream.read().decode().splitlines()
    return path.read_text(encoding="utf-8").splitlines()


def records_of(path: Path) -> list[dict | str]:
    """A record per line, or the line itself where it is not JSON; of text files the whole."""
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    if ".jsonl" not in path.name:
        return [{"text": path.read_text(encoding="utf-8")}]
    records: list[dict | str] = []
    for line in lines_of(path):
        try:
            records.append(json.loads(line))
        except ValueError:
            records.append(line)
    return records


def text_of(record: dict | str) -> str | None:
    if isinstance(record, str):
        return None
    if "messages" in record:
        contents = [message["content"] for message in record["messages"]]
        return "\n\n".join(contents) if all(isinstance(content, str) for content in contents) else None
    return record.get("text")


def everything() -> dict[Place, dict | str]:
    found: dict[Place, dict | str] = {}
    for source in SOURCES:
        for path in sorted(path for path in (SAMPLES / source).rglob("*") if path.is_file()):
            for number, record in enumerate(records_of(path)):
                found[source, path.relative_to(SAMPLES / source).as_posix(), number] = record
    return found


RECORDS = everything()
TEXTS = {where: text for where, record in RECORDS.items() if (text := text_of(record))}


def words(text: str) -> list[str]:
    composed = unicodedata.normalize("NFC", text).lower()
    return re.findall(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+", composed)


def grams(text: str, n: int) -> set[tuple[str, ...]]:
    found = words(text)
    return {tuple(found[i : i + n]) for i in range(len(found) - n + 1)}


def similarity(one: Place, other: Place) -> float:
    a, b = grams(TEXTS[one], 5), grams(TEXTS[other], 5)
    return len(a & b) / len(a | b)


def normalized(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def pairs(name: str) -> list[tuple[Place, Place, float]]:
    return [(place(item["pair"][0]), place(item["pair"][1]), item["similarity"]) for item in TRUTH[name]]


def test_counts_of_documents() -> None:
    assert dict(Counter(source for source, _, _ in TEXTS)) == TRUTH["documents"]
    size = sum(path.stat().st_size for path in SAMPLES.rglob("*") if path.is_file())
    assert size < 400_000, f"the samples have {size} bytes, 400,000 is the most"


def test_exact_duplicates_are_equal_after_normalizing_and_there_are_no_others() -> None:
    groups: dict[str, set[Place]] = {}
    for where, text in TEXTS.items():
        groups.setdefault(normalized(text), set()).add(where)
    found = {frozenset(group) for group in groups.values() if len(group) > 1}
    assert found == {frozenset(map(place, group)) for group in TRUTH["exact_duplicates"]}


def test_some_exact_duplicates_are_equal_only_after_normalizing() -> None:
    different = [group for group in TRUTH["exact_duplicates"] if len({TEXTS[place(item)] for item in group}) > 1]
    assert len(different) == 2


def test_pairs_have_the_similarity_that_the_truth_names() -> None:
    for name, low, high in (("near_duplicates", 0.81, 0.999), ("near_misses", 0.70, 0.78)):
        for one, other, said in pairs(name):
            assert similarity(one, other) == pytest.approx(said, abs=0.0006)
            assert low < said < high


def test_the_ends_of_the_chain_are_less_alike_than_its_neighbours() -> None:
    first, second, third = map(place, TRUTH["chain"]["places"])
    said = TRUTH["chain"]["similarities"]
    assert similarity(first, second) == pytest.approx(said["first_second"], abs=0.0006)
    assert similarity(second, third) == pytest.approx(said["second_third"], abs=0.0006)
    assert similarity(first, third) == pytest.approx(said["first_third"], abs=0.0006)
    assert min(said["first_second"], said["second_third"]) > 0.8 > said["first_third"]


def test_no_other_pair_is_alike() -> None:
    known = {frozenset(pair[:2]) for name in ("near_duplicates", "near_misses") for pair in pairs(name)}
    known |= {frozenset(two) for two in combinations(map(place, TRUTH["chain"]["places"]), 2)}
    known |= {frozenset(map(place, group)) for group in TRUTH["exact_duplicates"]}
    shingles = {where: grams(text, 5) for where, text in TEXTS.items()}
    for one, other in combinations(sorted(shingles), 2):
        union = len(shingles[one] | shingles[other])
        if union and frozenset((one, other)) not in known:
            assert len(shingles[one] & shingles[other]) / union < 0.3, (one, other)


def item_texts() -> dict[str, list[str]]:
    items = [json.loads(line) for line in (SAMPLES / "evaluation" / "qa.jsonl").read_text("utf-8").splitlines()]
    return {item["id"]: [item[name] for name in ("question", "answer", "passage") if name in item] for item in items}


def test_leaks_share_13_grams_and_nothing_else_does() -> None:
    items = {name: set().union(*(grams(text, 13) for text in texts)) for name, texts in item_texts().items()}
    assert len(items) == 20 and all(items.values()), "every item is long enough for a 13-gram"
    found = {(where, name) for where, text in TEXTS.items() for name, item in items.items() if grams(text, 13) & item}
    assert found == {(place(leak["place"]), leak["item"]) for leak in TRUTH["contaminated"]}


def test_one_leak_is_wrapped_to_short_lines() -> None:
    passage = item_texts()["en-07"][2]
    text = TEXTS["prose", "english/the_bell_at_thornby.txt", 0]
    assert passage not in text and passage in normalized(text)
    assert max(map(len, text.splitlines())) < 60


def test_the_control_shares_8_words_in_a_row_at_most() -> None:
    (control,) = TRUTH["shares_short_phrases_only"]
    texts, text = item_texts()[control["item"]], TEXTS[place(control["place"])]
    assert any(grams(text, 8) & grams(item, 8) for item in texts)
    assert not any(grams(text, 9) & grams(item, 9) for item in texts)


def test_junk_is_junk() -> None:
    texts = {item["why"]: TEXTS[place(item["place"])] for item in TRUTH["junk"]}
    assert sum(not mark.isalnum() and not mark.isspace() for mark in texts["symbols"]) / len(texts["symbols"]) > 0.4
    assert len(words(texts["too_short"])) == 1
    assert max(len(words(texts[why])) for why in ("too_short_chat", "too_short_code")) < 5
    assert min(map(len, words(texts["digests"]))) == 40
    assert len(set(texts["repeated_lines"].splitlines())) == 1
    assert sum(map(len, words(texts["long_words"]))) > 12 * len(words(texts["long_words"]))
    assert len(set(words(texts["repeated_words"]))) == 3
    assert texts["navigation"].count("|") > 50
    others = {word for text in TEXTS.values() if text != texts["no_language"] for word in words(text)}
    assert set(words(texts["no_language"])) & others <= {"grande"}  # invented: one of its words is one of a language


def test_rejects_cannot_be_read_and_everything_else_can() -> None:
    why = {place(item["place"]): item["why"] for item in TRUTH["rejects"]}
    assert set(RECORDS) - set(TEXTS) == set(why)
    for where, reason in why.items():
        record = RECORDS[where]
        assert (reason == "json") == isinstance(record, str)
        if reason == "no_text":
            assert isinstance(record, dict) and "text" not in record and "messages" not in record
        if reason == "empty":
            assert isinstance(record, dict) and record["text"] == ""
    assert sorted(why.values()) == ["empty", "json", "no_text", "type"]


def test_five_languages_and_three_roles() -> None:
    folders = {path.name for path in (SAMPLES / "prose").iterdir()}
    assert folders == {"chinese", "english", "french", "german", "spanish"}
    chats = [record for (source, _, _), record in RECORDS.items() if source == "chats"]
    assert {message["role"] for chat in chats for message in chat["messages"]} == {
        "system",
        "user",
        "assistant",
    }


def test_compressed_files_carry_no_clock() -> None:
    assert (SAMPLES / "web" / "more.jsonl.gz").read_bytes()[4:8] == bytes(4)
