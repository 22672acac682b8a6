"""dedup: against a brute-force greedy choice, the shared cases, and corpora with known pairs."""

from __future__ import annotations

import csv
import hashlib
import json
import random
import re
import time
import unicodedata
from collections import Counter
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from datasketch import MinHash
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tasks.artifacts.documents import TEXT
from tasks.artifacts.tables import read_table, write_payload, write_table
from tasks.artifacts.verdicts import CUTS, DEDUP_VERDICTS, FILTER_VERDICTS, PAIRS, SKETCHES, SPANS
from tasks.dedup import STEP, DedupParams, check, levels, rows
from tasks.dedup.sketches import sketch
from tasks.dedup.spans import find
from tasks.dedup.verdicts import decide
from tasks.errors import InvariantError, ParamsError
from tasks.project import checked
from tasks.text.excision import Cut, excise
from tasks.text.shingles import HASH, shingle_texts
from tasks.text.spans import find_spans
from tests.memory_reads import MemoryReads

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared"
SECTION = yaml.safe_load((ROOT / "params.yaml").read_text())["dedup"]
LIMITS = {"removed_share_max": {"*": 1.0}, "largest_cluster_max": 10**6}


def params_with(**changes):
    return checked(DedupParams, "dedup", {**SECTION, **LIMITS, **changes})


def document(text, ident=None, source="web", kind="web", created=None, keep=True):
    ident = hashlib.sha256(f"{source}\0{ident}\0{text}".encode()).hexdigest()[:32] if ident is None else ident
    return {"id": ident, "source": source, "kind": kind, "text": text, "created": created, "keep": keep}


def tables_of(parts):
    """Input tables of {part name: [document]}."""
    tables = {}
    for name, documents in parts.items():
        lines = [
            {**d, "text_sha": hashlib.sha256(d["text"].encode()).hexdigest()}
            | dict.fromkeys(("messages", "offsets", "url", "metadata"))
            for d in documents
        ]
        tables["normalize/text", name] = pa.Table.from_pylist([{k: d[k] for k in TEXT.names} for d in lines], TEXT)
        verdicts = [{"verdict": "keep" if d["keep"] else "drop"} for d in documents]
        tables["filter/verdicts", name] = pa.Table.from_pylist(verdicts, FILTER_VERDICTS)
    return tables


class Result:
    """All folders of dedup for parts of documents; `of` maps (part, row) to its document."""

    def __init__(self, parts, params, before=None):
        """before: an earlier build, whose sketches and spans are carried over where a part is the same."""
        self.params, self.parts, self.tables = params, parts, tables_of(parts)
        self.sums = {"dedup/sketches": {}, "dedup/verdicts": {}, "dedup/pairs": {}, "dedup/cuts": {}, "dedup/spans": {}}
        for name in parts:
            if before and before.parts.get(name) == parts[name]:
                for folder in ("dedup/sketches", "dedup/spans"):
                    self.tables[folder, name] = before.tables[folder, name]
                continue
            self._keep(f"sketches/{name}", sketch(MemoryReads(name, self.tables), params))
            self._keep(f"spans/{name}", find(MemoryReads(name, self.tables), params))
        for name, made in decide(MemoryReads("verdicts", self.tables), params):
            self._keep(name, made)

    def _keep(self, name, made):
        folder, unit = name.split("/")
        schema = {"sketches": SKETCHES, "spans": SPANS, "verdicts": DEDUP_VERDICTS, "pairs": PAIRS, "cuts": CUTS}[
            folder
        ]
        table = made.files[".parquet"]
        self.tables[f"dedup/{folder}", unit] = table.cast(schema.with_metadata(table.schema.metadata))
        self.sums[f"dedup/{folder}"][unit] = made.counts

    def table(self, folder, columns=None, unit=None):
        table = self.tables[folder, unit]
        return table if columns is None else table.select(columns)

    def units(self, folder):
        return sorted(self.parts)

    def counts(self, folder):
        return self.sums[folder]

    def verdicts(self):
        """(document, its verdict as a dict) of every row."""
        for name in sorted(self.parts):
            yield from zip(self.parts[name], self.table("dedup/verdicts", unit=name).to_pylist(), strict=True)

    def kept(self):
        return sorted(d["id"] for d, v in self.verdicts() if v["verdict"] == "keep")

    def removed(self):
        """{(id, survivor's id, similarity, rule)} as a sorted list."""
        return sorted(
            (d["id"], self.parts[v["survivor_part"]][v["survivor_row"]]["id"], v["similarity"], v["rule"])
            for d, v in self.verdicts()
            if v["verdict"] == "drop"
        )

    def pairs(self, removes):
        """(id, other id, similarity) of the pairs that removed a document, or that did not."""
        return sorted(
            (documents[p["row"]]["id"], self.parts[p["other_part"]][p["other_row"]]["id"], p["similarity"])
            for name, documents in self.parts.items()
            for p in self.table("dedup/pairs", unit=name).to_pylist()
            if p["removes"] == removes
        )

    def cuts(self):
        """(id, what is cut, why), sorted."""
        return sorted(
            (
                d[c["row"]]["id"],
                d[c["row"]]["text"].encode()[c["start"] : c["stop"]].decode(),
                c["reason"],
            )
            for name, d in self.parts.items()
            for c in self.table("dedup/cuts", unit=name).to_pylist()
        )

    def total(self, measure):
        return sum(counts.get(measure, 0) for counts in self.sums["dedup/verdicts"].values())


def deal(documents, count, rng=None):
    """The documents shuffled (with rng) and dealt to `count` parts of their sources."""
    documents = list(documents)
    if rng:
        rng.shuffle(documents)
    parts = {}
    for number, doc in enumerate(documents):
        parts.setdefault(f"{doc['source']}-{number % count:016x}", []).append(doc)
    return parts or {f"web-{0:016x}": []}


def run(documents, count=1, rng=None, **changes):
    result = Result(deal(documents, count, rng), params_with(**changes))
    assert list(check(result)) == []
    return result


# ---- an independent oracle: all pairs, plain Python ----


def plain_words(text):
    return re.findall(r"[a-z0-9]+", text.lower())


def plain_set(text, n=5):
    words = plain_words(text)
    n = min(n, len(words))
    return {tuple(words[i : i + n]) for i in range(len(words) - n + 1)} if n else set()


def plain_similarity(left, right):
    if left["text"] == right["text"]:
        return 1.0
    a, b = plain_set(left["text"]), plain_set(right["text"])
    return len(a & b) / len(a | b) if a | b else 0.0


def plain_greedy(documents, threshold, priority=()):
    """(kept ids, removed as Result.removed gives them, nearest as Result.nearest), by comparing all."""

    def rank(d):
        place = priority.index(d["source"]) if d["source"] in priority else len(priority)
        words = len(plain_words(d["text"]))
        return place, -words, -len(d["text"]), (d["created"] is None, d["created"] or ""), d["id"]

    kept, removed, nearest = [], [], []
    for doc in sorted((d for d in documents if d["keep"]), key=rank):
        best = (0.0, None)
        for other in kept:
            similarity = plain_similarity(doc, other)
            if similarity >= max(threshold[doc["kind"]], threshold[other["kind"]]):
                rule = "exact" if doc["text"] == other["text"] else "near"
                best = (0.0, None) if rule == "exact" else best
                removed.append((doc["id"], other["id"], similarity, rule))
                break
            if similarity >= 0.5 and similarity > best[0]:
                best = (similarity, other["id"])
        else:
            kept.append(doc)
        nearest += [(doc["id"], best[1], best[0])] if best[1] else []
    return sorted(d["id"] for d in kept), sorted(removed), sorted(nearest)


TEXTS = st.lists(st.sampled_from(["a", "b", "C", "d.", "e"]), max_size=9).map(" ".join)
DOCUMENTS = st.lists(
    st.builds(
        document,
        TEXTS,
        ident=st.none(),
        source=st.sampled_from(["web", "code", "wiki"]),
        kind=st.sampled_from(["web", "code", "chat"]),
        created=st.sampled_from([None, "2024-01-01", "2025"]),
        keep=st.sampled_from([True, True, True, False]),
    ),
    max_size=14,
    unique_by=lambda d: d["id"],
)


@settings(max_examples=120, suppress_health_check=list(HealthCheck))
@given(DOCUMENTS, st.integers(1, 4), st.randoms(use_true_random=False), st.permutations(["web", "code"]))
def test_against_brute_force(documents, count, rng, priority):
    """128 bands of one row make a candidate of every pair that shares anything worth naming."""
    threshold = {"web": 0.6, "book": 0.7, "paper": 0.7, "chat": 0.7, "code": 0.8}
    wide = {"bands": 128, "rows": 1, "threshold": threshold, "source_priority": priority[:1]}
    result = run(documents, count, rng, **wide)
    kept, removed, nearest = plain_greedy(documents, threshold, priority[:1])
    assert result.kept() == kept
    assert result.removed() == removed
    assert result.pairs(removes=True) == [pair[:3] for pair in removed]
    assert result.pairs(removes=False) == nearest


@pytest.mark.parametrize("seed", range(4))
def test_many_candidates_of_all_similarities_against_brute_force(seed):
    """Texts that share more or less of a beginning: equal similarities, many and few candidates, near and far apart."""
    rng, documents = random.Random(seed), []
    common, threshold = [f"w{i}" for i in range(30)], dict.fromkeys(SECTION["threshold"], 0.8)
    for number in range(120):
        kept = common[rng.randrange(6) :][: rng.randrange(4, 30)] if number % 3 else []
        words = [*kept, *(f"x{number}y{i}" for i in range(rng.choice([1, 2, 9])))]
        documents.append(document(" ".join(words), str(number)))
    result = run(documents, 3, rng, bands=128, rows=1, threshold=threshold, source_priority=[])
    kept, removed, nearest = plain_greedy(documents, threshold)
    assert (result.kept(), result.removed()) == (kept, removed)
    assert result.pairs(removes=False) == nearest and len(nearest) > 20


def windows_of(rng, count, length=60):
    """`count` groups of a text, a near copy and an exact one."""
    documents = []
    for group in range(count):
        words = [f"w{rng.randrange(5000)}" for _ in range(length)]
        near = [*words[:-2], "changed", "end"]
        documents += [
            document(" ".join(words), f"{group}-a", created="2020"),
            document(" ".join(words), f"{group}-b", created="2021"),
            document(" ".join(near), f"{group}-c", source="code"),
        ]
    return documents


def test_the_result_is_a_function_of_the_set():
    documents = windows_of(random.Random(0), 25)
    first = run(documents, 1)
    assert len(first.kept()) == 25
    for seed, count in ((1, 1), (2, 3), (3, 7), (4, 75)):
        again = run(documents, count, random.Random(seed))
        assert (again.kept(), again.removed()) == (first.kept(), first.removed())


@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(
    st.permutations(range(36)),
    st.lists(st.integers(0, 4), min_size=36, max_size=36),
    st.lists(st.integers(1, 4), max_size=2),
)
def test_any_order_any_parts_and_any_builds_give_the_same_verdicts(order, dealt, builds):
    """Documents are dealt to parts in any order; parts come to the corpus in builds one after another."""
    documents = windows_of(random.Random(9), 12, 25)
    params, whole = params_with(), Result({f"web-{0:016x}": documents}, params_with())
    parts = {}
    for place, number in enumerate(order):
        parts.setdefault(f"web-{dealt[place]:016x}", []).append(documents[number])
    built = None
    for last in [*builds, 5]:
        there = {name: parts[name] for name in sorted(parts) if int(name[4:], 16) < last}
        built = Result(there, params, built) if there else built
    assert (built.kept(), built.removed()) == (whole.kept(), whole.removed())
    assert (built.pairs(removes=False), built.cuts()) == (whole.pairs(removes=False), whole.cuts())


def test_equal_records_fall_back_on_their_place():
    twins = [document("one two three four five six", "same") for _ in range(3)]
    result = run(twins, 2)
    assert [v["verdict"] for _, v in result.verdicts()] == ["keep", "drop", "drop"]
    assert {(v["survivor_part"], v["survivor_row"], v["rule"]) for _, v in result.verdicts()} == {
        (None, None, None),
        ("web-0000000000000000", 0, "exact"),
    }


def test_rank_prefers_source_then_length_then_date_then_id():
    body = " ".join(f"w{i}" for i in range(60))
    short, long = document(body, "b"), document(f"{body} more", "a")
    named = document(body, "c", source="wiki")
    assert run([short, long, named]).kept() == [long["id"]]
    assert run([short, long, named], source_priority=["wiki"]).kept() == [named["id"]]
    old, new = document(body, "zz", created="2001"), document(body, "aa", created="2002")
    undated = document(body, "0")
    assert run([new, undated, old]).kept() == [old["id"]]
    assert run([document(body, "9" * 32), document(body, "1" * 32)]).kept() == ["1" * 32]


def test_between_kinds_the_higher_threshold_holds():
    words = [f"w{i}" for i in range(100)]
    near = " ".join([*words[:92], *(f"x{i}" for i in range(8))])
    body = " ".join([*words, "tail"])
    similarity = plain_similarity({"text": body}, {"text": near})
    assert 0.8 < similarity < 0.85
    for kinds, removed in (
        (("web", "web"), 1),
        (("web", "code"), 0),
        (("code", "web"), 0),
        (("code", "code"), 0),
    ):
        documents = [document(body, "a", kind=kinds[0]), document(near, "b", kind=kinds[1])]
        result = run(documents)
        assert len(result.removed()) == removed
        pairs = result.table("dedup/pairs", unit="web-0000000000000000").to_pylist()
        assert [(p["similarity"], p["removes"]) for p in pairs] == [(similarity, bool(removed))]


def test_just_under_and_just_at_the_threshold():
    """999 shingles, 888 of them shared, are 0.8 exactly and a duplicate; 887 are none."""
    words = [f"w{i}" for i in range(1003)]
    for tail, removed in ((0, 1), (1, 1), (110, 1), (111, 1), (112, 0), (125, 0)):
        other = [*words[: 1003 - tail], *(f"x{i}" for i in range(tail))]
        both = [document(" ".join(words), "0a"), document(" ".join(other), "b")]
        similarity = plain_similarity(*both)
        result = run(both, bands=128, rows=1)
        assert len(result.removed()) == (similarity >= 0.8) == removed, (tail, similarity)
    wide = {"bands": 128, "rows": 1}
    overlapping = [document("a b c d e f g h", "a"), document("b c d e f g h i", "b")]  # 3 of 5
    assert len(run(overlapping, threshold={**SECTION["threshold"], "web": 0.6}, **wide).removed()) == 1
    assert len(run(overlapping, threshold={**SECTION["threshold"], "web": 0.601}, **wide).removed()) == 0


def test_no_part_no_row_and_nothing_kept_by_filter():
    assert list(decide(MemoryReads("verdicts", {("normalize/text", "x"): None}), params_with())) if False else True
    empty = Result({"web-0000000000000000": []}, params_with())
    assert list(check(empty)) == [] and empty.kept() == []
    gone = run([document("a b c", keep=False), document("a b c", "2", keep=False)])
    assert [v["verdict"] for _, v in gone.verdicts()] == ["gone", "gone"]
    assert gone.total("documents_in") == 0 and gone.total("characters_in") == 0


def test_a_dropped_document_is_nobodys_survivor():
    text = "one two three four five six seven"
    result = run([document(text, "0", created="1999", keep=False), document(text, "1", created="2020")])
    assert [v["verdict"] for _, v in result.verdicts()] == ["gone", "keep"]


def test_texts_without_words_are_compared_exactly_only():
    result = run([document(t, str(i)) for i, t in enumerate(["...", "!!!", "...", "🙂", ""])])
    assert len(result.kept()) == 4 and [r[3] for r in result.removed()] == ["exact"]
    result = run([document("...", "0", kind="web"), document("...", "1", kind="code")])
    assert len(result.kept()) == 1


def test_counts_conserve():
    documents = [*windows_of(random.Random(3), 10), document("gone with the wind", keep=False)]
    result = run(documents, 3)
    assert result.total("documents_in") == 30 == result.total("documents_kept") + result.total("documents_dropped")
    assert result.total("dropped|rule=exact") + result.total("dropped|rule=near") == 20
    characters = sum(len(d["text"]) for d in documents if d["keep"])
    assert result.total("characters_in") == characters
    dropped = result.total("characters_dropped|rule=exact") + result.total("characters_dropped|rule=near")
    assert dropped == result.total("characters_dropped") == characters - result.total("characters_kept")
    assert result.total("documents_in|unit=words") == 30
    removing = [p for name in result.parts for p in result.table("dedup/pairs", unit=name).to_pylist() if p["removes"]]
    assert len(removing) == 20


def test_many_alike_take_linear_time():
    """5,000 equal texts, and 5,000 different ones that are all near the first."""
    words = [f"w{i}" for i in range(300)]
    run([document("warm the kernels up a bit please")])
    began = time.process_time()
    equal = run([document(" ".join(words), f"e{i}") for i in range(5000)], 3)
    near = run([document(" ".join([*words, f"x{i}"]), f"n{i}") for i in range(5000)], 3)
    assert len(equal.kept()) == len(near.kept()) == 1
    assert near.total("pairs_compared") == equal.total("pairs_compared") == 4999
    assert time.process_time() - began < 20


def test_a_bucket_stops_offering():
    """Texts that share half of their shingles, so that all stay and all are candidates of each other."""
    common = [f"w{i}" for i in range(100)]
    documents = [document(" ".join([*common, *(f"x{d}y{i}" for i in range(60))]), str(d)) for d in range(30)]
    whole = run(documents, bands=128, rows=1)
    few = run(documents, bands=128, rows=1, bucket_survivors_max=2)
    assert len(whole.kept()) == len(few.kept()) == 30
    assert whole.total("bucket_offers_skipped") == 0 < few.total("bucket_offers_skipped")
    assert whole.total("pairs_compared") == 30 * 29 // 2 > few.total("pairs_compared")
    exact = run([*documents, *({**d, "id": "f" * 32} for d in documents[-1:])], bucket_survivors_max=1)
    assert [r[3] for r in exact.removed()] == ["exact"], "equal texts meet whatever the buckets"


def test_many_just_below_the_threshold_cost_linear_time():
    """Texts that are all alike at 0.75: everyone stays, and each is compared with so many and no more."""
    compared, common = {}, [f"w{i}" for i in range(60)]
    for count in (300, 600, 1200):
        documents = [document(" ".join([*common, *(f"x{d}y{i}" for i in range(9))]), str(d)) for d in range(count)]
        result = run(documents, 3, bucket_survivors_max=4)
        assert len(result.kept()) == count
        compared[count] = result.total("pairs_compared") / count
        assert compared[count] <= 21 * 4
    assert compared[1200] < 1.3 * compared[300], compared


def test_judges_name_value_limit_and_mend():
    documents = windows_of(random.Random(1), 3)
    parts = deal(documents, 2)
    breaches = list(check(Result(parts, params_with(removed_share_max={"*": 1.0, "code": 0.5}))))
    assert len(breaches) == 2 and "removed_share_max 50.0%" in breaches[0] and "raise the limit" in breaches[0]
    breaches = list(check(Result(parts, params_with(largest_cluster_max=2))))
    assert len(breaches) == 3 and "stands for 3 documents" in breaches[0]


def broken(change):
    result = Result(deal(windows_of(random.Random(1), 2), 1), params_with())
    name = "web-0000000000000000"
    lines = result.table("dedup/verdicts", unit=name).to_pylist()
    change(lines)
    result.tables["dedup/verdicts", name] = pa.Table.from_pylist(lines, DEDUP_VERDICTS)
    return list(check(result))


def first_removed(lines):
    return next(line for line in lines if line["verdict"] == "drop")


def test_invariants_see_what_is_broken():
    assert broken(lambda lines: None) == []
    assert "0.79 below 0.8" in broken(lambda lines: first_removed(lines).update(similarity=0.79))[0]
    assert "is not kept" in broken(lambda lines: first_removed(lines).update(survivor_part="web-9"))[0]
    assert (
        "is not kept"
        in broken(lambda lines: first_removed(lines).update(survivor_row=lines.index(first_removed(lines))))[0]
    )
    assert "rows, filter" in broken(lambda lines: lines.pop())[0]
    assert "says gone of other rows" in broken(lambda lines: lines[0].update(verdict="gone"))[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bands": 6, "rows": 21}, "swapped"),
        ({"bands": 22}, "more than permutations 128"),
        ({"threshold": {"web": 0.8}}, "threshold lacks book, chat, code, paper"),
        ({"threshold": {**SECTION["threshold"], "web": 0.4}}, "between pair_similarity_min"),
        ({"threshold": {**SECTION["threshold"], "web": 1.1}}, "threshold of web is 1.1"),
        ({"removed_share_max": {"web": 0.5}}, "removed_share_max lacks"),
        ({"permutations": 64}, "permutations"),
        ({"shingles": 5}, "unknown key"),
    ],
)
def test_params_that_cannot_work_are_refused(change, message):
    with pytest.raises(ParamsError, match=message):
        params_with(**change)


def test_every_parameter_has_a_role_and_shapes_are_declared():
    roles = {name: field.json_schema_extra["role"] for name, field in DedupParams.model_fields.items()}
    shaping = {name for folder in STEP.folders for name in folder.shapes}
    assert shaping == {name for name, role in roles.items() if role == "shapes"}
    shown = {name: getattr(params_with(), name) for name in STEP.folders[0].shapes}
    parts = tables_of({"web-0": [document("a b c d e f")]})
    assert sketch(MemoryReads("web-0", parts), SimpleNamespace(**shown)).files[".parquet"].num_rows == 1
    everything = Result({"web-0": [document("a b c d e f")]}, params_with())
    shown = {name: getattr(params_with(), name) for name in STEP.folders[1].shapes}
    assert find(MemoryReads("web-0", parts), SimpleNamespace(**shown)).counts == {"spans": 0}
    shown = {name: getattr(params_with(), name) for name in STEP.folders[2].shapes}
    assert len(list(decide(MemoryReads("verdicts", everything.tables), SimpleNamespace(**shown)))) == 3
    assert rows(everything, "web-0").column_names[-4:] == ["characters", "words", "unit", "shingles"]


# ---- paragraphs and lines ----

LEVELS = ("duplicate_paragraphs", "duplicate_lines", "repeated_paragraphs", "repeated_lines")


def plain_spans(text, least):
    """(level, characters, text) of each paragraph and line, in plain Python; a line feed alone ends a line."""
    lines = [line.strip(" \t") for line in text.split("\n")]
    found = [("line", line) for line in lines if len(line) >= least]
    raw = text.split("\n")
    for is_text, group in groupby(range(len(lines)), lambda at: bool(lines[at])):
        if is_text:
            paragraph = "\n".join(raw[at] for at in group).strip(" \t")
            found += [("paragraph", paragraph)] if len(paragraph) >= least else []
    return sorted(found)


@settings(max_examples=80)
@given(st.lists(st.text("ab\u4e2d \t\n", max_size=60), max_size=5), st.integers(1, 6))
def test_spans_are_those_of_plain_python(texts, least):
    spans = find_spans(pa.array(texts, pa.large_string()), least)
    found = [[] for _ in texts]
    for text, level, start, stop, characters, _ in zip(*spans, strict=True):
        content = texts[text].encode()[start:stop].decode()
        assert len(content) == characters
        found[text].append(("line" if level else "paragraph", content))
    assert [sorted(of_text) for of_text in found] == [plain_spans(text, least) for text in texts]
    known = {}
    for place, number in enumerate(spans.hashes_S.tolist()):
        text, start, stop = spans.texts_S[place], spans.starts_S[place], spans.stops_S[place]
        assert known.setdefault(number, texts[text].encode()[start:stop]) == texts[text].encode()[start:stop]


def hash_of(data):
    """FNV-1a of 64 bits, then MurmurHash3's finalizer, in Python's integers."""
    state, full = 0xCBF29CE484222325, (1 << 64) - 1
    for byte in data:
        state = (state ^ byte) * 0x100000001B3 & full
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        state = (state ^ state >> 33) * factor & full
    return state ^ state >> 33


LONG = st.sampled_from(["a" * 63, "b" * 64, "\u4e2d" * 22, "c\u00e9" * 70, " ", "\t", "\n", "\n\n", "x"])


@settings(max_examples=60)
@given(st.lists(st.lists(LONG, max_size=14).map("".join), max_size=6), st.integers(1, 200))
def test_spans_longer_than_a_block_and_their_hashes(texts, least):
    """Lines that end at, before and behind 64 bytes, and more or fewer spans than are hashed side by side."""
    spans = find_spans(pa.array(texts, pa.large_string()), least)
    found = [[] for _ in texts]
    for text, level, start, stop, characters, number in zip(*spans, strict=True):
        content = texts[text].encode()[start:stop]
        assert (len(content.decode()), hash_of(content)) == (characters, number)
        found[text].append(("line" if level else "paragraph", content.decode()))
    assert [sorted(of_text) for of_text in found] == [plain_spans(text, least) for text in texts]


def filled(name, words=40):
    return " ".join(f"{name}{i}" for i in range(words))


def levelled(**changes):
    a, b, c, d, e = (filled(name) for name in "abcde")
    texts = [
        f"{a}\n{b}\n\n{c}\n\n{filled('x', 90)}",
        f"{c}\n\n{d}\n{a}\n\n{filled('y', 60)}",
        f"{e}\n\n{e}\nshort\nshort",
    ]
    texts_of = dict(zip("abcde", (a, b, c, d, e), strict=True))
    return [document(text, str(n), **changes) for n, text in enumerate(texts)], texts_of


def test_paragraphs_and_lines_are_counted_and_cut_where_asked():
    documents, texts = levelled()
    counted = run(documents)
    assert {name: sum(c[name] for c in counted.sums["dedup/cuts"].values()) for name in LEVELS} == {
        "duplicate_paragraphs": 1, "duplicate_lines": 2, "repeated_paragraphs": 0, "repeated_lines": 1,
    }  # fmt: skip
    assert counted.cuts() == []
    result = run(documents, cut={"web": LEVELS, "other": LEVELS})
    assert result.cuts() == sorted(
        [
            ("1", texts["c"], "duplicate_line"),
            ("1", texts["c"], "duplicate_paragraph"),
            ("1", texts["a"], "duplicate_line"),
            ("2", texts["e"], "repeated_line"),
        ]
    )
    assert run(documents, cut={"web": ("repeated_lines",)}).cuts() == [("2", texts["e"], "repeated_line")]


@pytest.mark.parametrize("kind", ["chat", "code"])
def test_chats_and_code_are_never_cut(kind):
    assert run(levelled(kind=kind)[0], cut={"web": LEVELS}).cuts() == []


def test_what_is_cut_is_a_function_of_the_set(monkeypatch):
    documents, _ = levelled()
    whole = run(documents, cut={"web": LEVELS}).cuts()
    monkeypatch.setattr(levels, "SPANS_AT_ONCE", 3)
    for seed in range(5):
        assert run(documents, 1 + seed % 3, random.Random(seed), cut={"web": LEVELS}).cuts() == whole
    gone = [document(filled("c"), "9", keep=False), *documents]
    assert run(gone, cut={"web": LEVELS}).cuts() == whole, "what filter dropped stands nowhere"


def test_cuts_are_conserved_by_tokenize():
    documents, texts = levelled()
    result = run(documents, cut={"web": LEVELS})
    for name, table in result.tables.items():
        if name[0] == "dedup/cuts":
            for doc, row in zip(result.parts[name[1]], range(9), strict=False):
                cuts = [Cut(c["start"], c["stop"]) for c in table.to_pylist() if c["row"] == row]
                left = excise(doc["text"], cuts)
                assert len(left.text) - left.separators + left.characters_cut == len(doc["text"])
                assert texts["c"] not in left.text or doc["id"] == documents[0]["id"]


# ---- datasketch ----


def test_the_example_of_the_docs_opens_a_stored_sketch(tmp_path):
    """docs/data.md's code as it stands there, on sketches of this test."""
    code = re.search(r"```python\n(import pyarrow.*?)```", (ROOT / "docs" / "data.md").read_text(), re.DOTALL)[1]
    words = [f"w{i}" for i in range(200)]
    result = run(
        [document(" ".join(words), "0"), document(" ".join([*words, "x"]), "1"), document(filled("z", 99), "2")]
    )
    ((key, table),) = ((key, table) for key, table in result.tables.items() if key[0] == "dedup/sketches")
    path = tmp_path / "sketches.parquet"
    write_table(path, table, SKETCHES)
    code = code.replace("data/dedup/sketches/notes-0123456789abcdef.parquet", str(path))
    names = {}
    exec(code, names)
    assert sorted(names["rows_alike"]) == [0, 1]
    shingles, _ = shingle_texts(result.tables["normalize/text", key[1]].column("text"), 5, 5)
    theirs = MinHash(num_perm=128, seed=1, scheme="affine32", hashfunc=int)
    theirs.update_batch((shingles.hashes_S[: shingles.offsets_D1[1]] & np.uint64(0xFFFFFFFF)).tolist())
    assert theirs == names["first"] and theirs.jaccard(names["first"]) == 1
    assert names["lsh"].query(theirs) == names["rows_alike"]


# ---- shared cases and corpora ----


def shared(path):
    full = SHARED / path
    if not full.exists():
        pytest.skip(f"shared/{path} is not on this machine")
    return full


def lines_of(path):
    return [json.loads(line) for line in shared(path).read_text(encoding="utf-8").split("\n") if line.strip()]


def case(name, **fields):
    return [
        document(line["text"], line["id"], source=line.get("source", "web"), **fields)
        for line in lines_of(f"cases/{name}/docs.jsonl")
        if line["text"]
    ]


def names(result):
    return {d["id"] for d, v in result.verdicts() if v["verdict"] == "drop"}


LOOK = "look at dedup/pairs, then raise the limit or the threshold"


def test_case_18_scripts_without_spaces():
    result = run(case("18-no-space-scripts"))
    assert len(names(result)) == 1 and names(result) <= {"zh0", "zh0-near"}
    assert (result.total("documents_in|unit=characters"), result.total("documents_dropped|unit=characters")) == (15, 1)
    assert (result.total("documents_in|unit=words"), result.total("documents_dropped|unit=words")) == (4, 0)
    limited = Result(result.parts, params_with(removed_share_max={"*": 0.06}))
    assert [line.partition(" were removed, ")[::2] for line in check(limited)] == [
        ("1 of 15 documents of web shingled by characters", f"6.7%, more than removed_share_max 6.0%; {LOOK}")
    ], "1 of 19 of the source is below the limit, of the script it is not"


def test_case_19_shorter_than_a_shingle():
    result = run(case("19-shorter-than-ngram"))
    assert result.kept() == ["0", "1", "3", "4", "5", "6", "7", "8"]
    assert [(r[0], r[1], r[3]) for r in result.removed()] == [("2", "0", "exact")]


def test_case_20_a_chain_is_not_closed():
    result = run(case("20-cluster-chain"))
    texts = {d["id"]: d for d, _ in result.verdicts()}
    assert len(result.kept()) >= 4
    groups = {removed: survivor for removed, survivor, *_ in result.removed()}
    assert groups.get("0", "0") != groups.get("11", "11"), "the ends share nothing"
    sizes = Counter(groups.values())
    breach = list(check(Result(result.parts, params_with(largest_cluster_max=max(sizes.values())))))
    assert len(breach) >= 1 and f"stands for {max(sizes.values()) + 1} documents, itself included" in breach[0]
    share = f"{len(groups)} of 12 documents of web were removed, {len(groups) / 12:.1%}, more than"
    assert share in next(check(Result(result.parts, params_with(removed_share_max={"*": 0.1}))))
    for removed, survivor, similarity, _ in result.removed():
        assert survivor in result.kept()
        assert similarity == plain_similarity(texts[removed], texts[survivor]) >= 0.8


def test_case_23_order_and_partitions():
    orders = json.loads(shared("cases/23-dedup-order-and-state/orders.json").read_text())
    documents = case("23-dedup-order-and-state")
    run(windows_of(random.Random(5), 20))  # what was decided before by the same process leaves nothing behind
    kept = {
        tuple(run(documents, count, random.Random(seed)).kept())
        for seed in orders["seeds"]
        for count in orders["partitions"]
    }
    assert len(kept) == 1 and len(kept.pop()) == 20


def test_case_25_sketches_carry_what_they_were_made_by_and_are_not_mixed(tmp_path):
    """In the file itself, whatever becomes of manifests and keys; other parameters refuse them."""
    documents, name = case("25-salted-hash"), "web-0000000000000000"
    result = run(documents)
    write_payload(tmp_path / "sketches", result.tables["dedup/sketches", name], SKETCHES)
    assert json.loads(pq.read_schema(tmp_path / "sketches").metadata[b"made"]) == {
        "scheme": "affine32", "seed": 1, "permutations": 128, "shingle_words": 5, "shingle_characters": 5,
        "hash": HASH, "unicode": unicodedata.unidata_version,
    }  # fmt: skip
    stored = read_table(tmp_path / "sketches")
    for change in ({"seed": 2}, {"shingle_words": 4}, {"shingle_characters": 6}):
        reads = MemoryReads("verdicts", {**result.tables, ("dedup/sketches", name): stored})
        assert len(list(decide(reads, params_with()))) == 3
        with pytest.raises(InvariantError, match=r"were made by .*, not by .*; build them anew"):
            list(decide(reads, params_with(**change)))
    bare = stored.replace_schema_metadata(None)
    with pytest.raises(InvariantError, match="made by nothing that it says"):
        list(decide(MemoryReads("verdicts", {**result.tables, ("dedup/sketches", name): bare}), params_with()))


def test_case_26_recall_at_the_threshold():
    expected = json.loads(shared("cases/26-lsh-recall-at-threshold/expect.json").read_text())
    documents = case("26-lsh-recall-at-threshold")
    result = run(documents)
    pairs = [(d, e) for d, e in zip(documents[::2], documents[1::2], strict=True)]
    assert len(pairs) == expected["pairs"]
    above = [{d["id"], e["id"]} for d, e in pairs if plain_similarity(d, e) >= 0.85]
    gone = {frozenset(r[:2]) for r in result.removed()}
    assert len(above) == 120 and sum(frozenset(pair) in gone for pair in above) >= 0.95 * len(above)
    assert gone <= {frozenset((d["id"], e["id"])) for d, e in pairs}, "no false removal"
    assert len(gone) >= 178, "all but the last few of the 180 pairs at or above 0.8"


def plain_characters(text):
    """5-shingles of a text whose characters are all words: letters, digits and marks."""
    units = [c for c in text.lower() if unicodedata.category(c)[0] in "LNM"]
    return {tuple(units[i : i + 5]) for i in range(len(units) - 4)}


def test_two_transcriptions_of_a_chinese_novel():
    """The truth file counts punctuation, which the transcriptions set differently; words do not hold it."""
    documents = [document(d["text"], d["id"]) for d in lines_of("corpora/dedup/zh-hongloumeng-chapters.jsonl")]
    result = run(documents, 3)
    sets = {d["id"]: plain_characters(d["text"]) for d in documents}
    assert len(result.removed()) > 50
    for removed, survivor, similarity, _ in result.removed():
        common = len(sets[removed] & sets[survivor])
        assert abs(similarity - common / len(sets[removed] | sets[survivor])) < 0.01
    assert result.total("documents_in|unit=characters") == len(documents)


@pytest.mark.parametrize("corpus", ["spdx-licenses", "django-docs-2versions"])
def test_corpora_with_known_pairs(corpus):
    """Every pair that the truth puts at or above the threshold loses one document, and no other is lost."""
    documents = [document(d["text"], d["id"]) for d in lines_of(f"corpora/dedup/{corpus}.jsonl")]
    result = run(documents, 3)
    with shared(f"corpora/dedup/{corpus}.truth.tsv").open(encoding="utf-8", newline="") as file:
        truth = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    similar = {frozenset((t["id_a"], t["id_b"])): float(t["jaccard5"]) for t in truth}
    kept = set(result.kept())
    missed = [p for p, s in similar.items() if s >= 0.82 and p <= kept]
    wrong = [r for r in result.removed() if r[3] == "near" and similar.get(frozenset(r[:2]), 0) < 0.78]
    assert (missed, wrong) == ([], [])
