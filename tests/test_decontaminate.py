"""decontaminate: against plain 13-grams, the shared cases, and planted documents."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import random
import re
import shutil
import unicodedata
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tasks.artifacts.documents import TEXT
from tasks.artifacts.manifest import Manifest
from tasks.artifacts.verdicts import BOILERPLATE, CUTS, DECONTAMINATE_VERDICTS, DEDUP_VERDICTS, MATCHES
from tasks.decontaminate import STEP, DecontaminateParams, check, rows
from tasks.decontaminate.boilerplate import count
from tasks.decontaminate.certificate import certify
from tasks.decontaminate.cuts import cut
from tasks.decontaminate.matches import match
from tasks.decontaminate.passages import find_passages
from tasks.decontaminate.planning import plan_certificate, plan_matches
from tasks.decontaminate.verdicts import decide
from tasks.errors import IntegrityError, InvariantError, ParamsError, SourceError
from tasks.perform import perform
from tasks.pipeline import STEPS
from tasks.project import Project, checked
from tasks.text.disguises import DISGUISES
from tasks.text.ngrams import window_hashes
from tasks.text.words import split_words
from tests.memory_reads import MemoryReads
from tests.small_corpus import lay_corpus

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared"
SECTION = yaml.safe_load((ROOT / "params.yaml").read_text())["decontaminate"]


def params_with(**changes):
    return checked(DecontaminateParams, "decontaminate", {**SECTION, "removed_share_max": {"*": 1.0}, **changes})


class Plan:
    """A plan over parts and sets that lie at `root`."""

    def __init__(self, root, params, parts=("web-0",)):
        self.root, self.params, self.parts = root, params, parts

    def entries(self, folder):
        return {name: SimpleNamespace(origin=("", number)) for number, name in enumerate(self.parts)}

    def sources(self):
        found = {}
        for one in self.params.sets:
            path = self.root / one.path
            files = sorted(path.iterdir()) if path.is_dir() else [path]
            found[one.name] = {
                "files": {f.name: {"sha256": hashlib.sha256(f.read_bytes()).hexdigest(), "bytes": 0} for f in files}
            }
        return {"sets": found}


class Result:
    """All folders of decontaminate for {part: [(text, kind, alive)]}."""

    def __init__(self, root, parts, params):
        self.params, self.parts, self.tables, self.sums = params, parts, {}, {}
        for name, documents in parts.items():
            self._lay(name, documents)
        plan = Plan(root, params, tuple(parts))
        (unit, *_) = plan_matches(plan, STEP.folders[0])
        for folder, function, schema in (
            ("matches", match, MATCHES),
            ("boilerplate", count, BOILERPLATE),
            ("verdicts", decide, DECONTAMINATE_VERDICTS),
            ("cuts", cut, CUTS),
        ):
            for name in ["boilerplate"] if folder == "boilerplate" else parts:
                made = function(MemoryReads(name, self.tables, spec=unit.spec, paths=dict(unit.files)), params)
                self.tables[f"decontaminate/{folder}", name] = made.files[".parquet"].cast(schema)
                self.sums.setdefault(f"decontaminate/{folder}", {})[name] = made.counts
        (unit,) = plan_certificate(plan, STEP.folders[4])
        made = certify(MemoryReads("certificate", self.tables, spec=unit.spec, paths=dict(unit.files)), params)
        self.raw = made.files[".json"]
        self.certificate = json.loads(self.raw)

    def _lay(self, name, documents):
        lines = [dict.fromkeys(TEXT.names) for _ in documents]
        for number, (line, (text, kind, _)) in enumerate(zip(lines, documents, strict=True)):
            line |= {"text": text, "kind": kind, "id": str(number), "text_sha": "", "source": "web"}
        self.tables["normalize/text", name] = pa.Table.from_pylist(lines, TEXT)
        verdicts = [{"verdict": "keep" if alive else "drop"} for _, _, alive in documents]
        self.tables["dedup/verdicts", name] = pa.Table.from_pylist(verdicts, DEDUP_VERDICTS)
        sizes = pa.array([len(text) for text, _, _ in documents], pa.int64())
        self.tables["dedup/sketches", name] = pa.table({"characters": sizes})

    def table(self, folder, columns=None, unit=None):
        table = self.tables[folder, unit]
        return table if columns is None else table.select(columns)

    def units(self, folder):
        return sorted(self.parts)

    def counts(self, folder):
        return self.sums[folder]

    def lines(self, folder):
        return [line for name in self.parts for line in self.table(folder, unit=name).to_pylist()]

    def verdicts(self):
        return [line["verdict"] for line in self.lines("decontaminate/verdicts")]

    def total(self, folder, measure):
        return sum(counts.get(measure, 0) for counts in self.sums[f"decontaminate/{folder}"].values())


def write_set(root, records, name="evals.jsonl"):
    (root / name).write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return [{"name": "evals", "path": name, "fields": ["q"]}]


def run(root, texts, items, kind="web", **changes):
    """Documents in one part against items, each a record with the field q."""
    sets = write_set(root, [{"q": item} for item in items])
    params = params_with(sets=sets, **{"margin_characters": 0, **changes})
    parts = {"web-0": [(text, kind, True) if isinstance(text, str) else text for text in texts]}
    result = Result(root, parts, params)
    assert list(check(result)) == []
    return result


def plain_words(text):
    return re.findall(r"[a-z0-9]+", text.lower())


def plain_matches(texts, items, n, short, least):
    """{(row, item): shared n-grams} by comparing tuples; an item is the line's number."""
    grams = {}
    for number, item in enumerate(items):
        words = plain_words(item)
        length = n if len(words) >= n else len(words) if len(words) >= short else 0
        if length:
            grams[number] = {tuple(words[i : i + length]) for i in range(len(words) - length + 1)}
    for gram in {gram for of_item in grams.values() for gram in of_item}:
        if len({tuple(plain_words(items[number])) for number, own in grams.items() if gram in own}) >= least:
            grams = {number: own - {gram} for number, own in grams.items()}
    found = {}
    for row, text in enumerate(texts):
        words = plain_words(text)
        for number, own in grams.items():
            lengths = {len(gram) for gram in own}
            here = {tuple(words[i : i + k]) for k in lengths for i in range(len(words) - k + 1)}
            if own & here:
                found[row, f"{number + 1}:q"] = len(own & here)
    return found, any(grams.values())


LETTERS = st.lists(st.sampled_from(["aa", "bb", "Cc", "dd,", "ee"]), min_size=1, max_size=14).map(" ".join)


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(
    st.lists(LETTERS, max_size=5),
    st.lists(LETTERS, min_size=1, max_size=4),
    st.integers(2, 5),
    st.integers(1, 2),
    st.integers(2, 4),
)
def test_against_plain_ngrams(tmp_path_factory, texts, items, n, short, least):
    expected, any_left = plain_matches(texts, items, n, short, least)
    root = tmp_path_factory.mktemp("sets")
    changes = {"ngram_words": n, "short_words_min": short, "question_words_min": 64, "boilerplate_items_min": least}
    if not any_left:
        with pytest.raises(SourceError, match="no n-gram: of"):
            run(root, texts, items, **changes)
        return
    result = run(root, texts, items, **changes)
    found, spans = {}, {}
    for line in result.lines("decontaminate/matches"):
        key = line["row"], line["item"]
        found[key] = max(found.get(key, 0), line["grams"])
        passage = texts[line["row"]].encode()[line["start"] : line["stop"]].decode()
        spans.setdefault(key, []).append(passage)
        assert passage.strip() == passage and not passage.startswith(",")
    assert found.keys() == expected.keys()
    for key, passages in spans.items():
        alone, _ = plain_matches(passages, items, n, short, least)
        assert len(passages) > 1 or alone[0, key[1]] == expected[key] == found[key]
    dropped = {row for row, _ in expected}
    assert result.verdicts() == ["drop" if row in dropped else "keep" for row in range(len(texts))]


WORDS = [f"w{i}" for i in range(400)]
ITEM = " ".join(WORDS[:20])


def test_exactly_the_thirteenth_word_decides(tmp_path):
    inside = "x " * 5 + " ".join(WORDS[3:16]) + " y"
    almost = "x " * 5 + " ".join(WORDS[3:15]) + " y"
    assert run(tmp_path, [inside, almost], [ITEM]).verdicts() == ["drop", "keep"]
    assert run(tmp_path, [" ".join(WORDS[3:16]).upper().replace(" ", ",\n")], [ITEM]).verdicts() == ["drop"]


def test_short_items_are_looked_for_whole(tmp_path):
    items = [" ".join(WORDS[:8]), " ".join(WORDS[20:27])]
    texts = [f"so {items[0]} it", " ".join(WORDS[1:8]), items[1]]
    result = run(tmp_path, texts, items)
    assert result.verdicts() == ["drop", "keep", "keep"]
    assert result.certificate["sets"]["evals"]["items_too_short"] == 1
    assert result.certificate["control"] == {"items_searched": 1, "items_found": 1}


def test_policies(tmp_path):
    text = f"before. {ITEM}. after"
    for policy, kind, verdict in [
        ("drop", "web", "drop"),
        ("cut", "web", "cut"),
        ("cut", "book", "cut"),
        ("cut", "chat", "drop"),
        ("cut", "code", "drop"),
        ("report", "web", "keep"),
    ]:
        result = run(tmp_path, [text, "clean"], [ITEM], kind=kind, policy=policy)
        assert result.verdicts() == [verdict, "keep"], (policy, kind)
        line = result.lines("decontaminate/verdicts")[0]
        named = (None, None, None) if policy == "report" else ("evals", "1:q", 8)
        assert (line["rule"], line["item"], line["grams"]) == named
        one = result.certificate["sets"]["evals"]
        assert (one["documents_matched"], one["documents_dropped"], one["documents_cut"]) == (
            1,
            verdict == "drop",
            verdict == "cut",
        )


def test_cuts_take_the_passages_and_not_what_lies_between(tmp_path):
    text = f"start {ITEM}, {'filler ' * 50}ünd {ITEM} ende"
    result = run(tmp_path, [text, "clean", f"x {ITEM}"], [ITEM], policy="cut")
    cuts = result.lines("decontaminate/cuts")
    assert [(c["row"], text.encode()[c["start"] : c["stop"]].decode()) for c in cuts[:2]] == [
        (0, ITEM),
        (0, ITEM),
    ]
    assert [c["row"] for c in cuts] == [0, 0, 2] and {c["reason"] for c in cuts} == {"evals:1:q"}
    assert result.total("cuts", "characters_cut") == 3 * len(ITEM)


@pytest.mark.parametrize(("margin", "expected"), [(1, " {} "), (3, "ßé {} äö"), (99, "ßé {} äö🙂")])
def test_margins_end_on_characters_and_at_the_text(tmp_path, margin, expected):
    text = f"ßé {ITEM} äö🙂"
    result = run(tmp_path, [text], [ITEM], policy="cut", margin_characters=margin)
    (line,) = result.lines("decontaminate/cuts")
    piece = text.encode()[line["start"] : line["stop"]].decode()
    assert piece == expected.format(ITEM)
    assert result.total("cuts", "characters_cut") == len(piece)


def test_overlapping_cuts_are_counted_once(tmp_path):
    items = [" ".join(WORDS[:20]), " ".join(WORDS[5:30])]
    text = " ".join(WORDS[:30])
    result = run(tmp_path, [text], items, policy="cut")
    assert len(result.lines("decontaminate/cuts")) == 2
    assert result.total("cuts", "characters_cut") == len(text)


def test_what_is_gone_stays_gone_and_is_not_in_the_certificate(tmp_path):
    result = run(tmp_path, [(ITEM, "web", False), (ITEM, "web", True), ("clean", "web", True)], [ITEM])
    assert result.verdicts() == ["gone", "drop", "keep"]
    assert len(result.lines("decontaminate/matches")) == 2, "matches cover all rows"
    assert result.certificate["documents_in"] == 2 and result.certificate["documents_matched"] == 1
    assert result.total("verdicts", "documents_in") == 2 and result.total("verdicts", "dropped|rule=evals") == 1


def test_no_rows_no_sets_and_all_gone(tmp_path):
    empty = run(tmp_path, [], [ITEM])
    assert empty.verdicts() == [] and empty.certificate["sets_without_match"] == ["evals"]
    assert run(tmp_path, [(ITEM, "web", False)] * 2, [ITEM]).verdicts() == ["gone", "gone"]
    result = Result(tmp_path, {"web-0": [(ITEM, "web", True)]}, params_with(sets=[]))
    assert result.verdicts() == ["keep"] and result.certificate["sets"] == {}


def test_the_verdict_names_the_item_that_shares_most(tmp_path):
    items = [" ".join(WORDS[10:24]), " ".join(WORDS[:24]), " ".join(WORDS[:24])]
    result = run(tmp_path, [" ".join(WORDS[:24])], items, boilerplate_items_min=9)
    (line,) = result.lines("decontaminate/verdicts")
    assert (line["item"], line["grams"]) == ("2:q", 12)


def test_composed_and_compatible_forms_are_met(tmp_path):
    item = " ".join(["cafe\u0301", "\ufb01ne", *WORDS[:11]])
    texts = [" ".join([first, second, *WORDS[:11]]) for first in ("café",) for second in ("ﬁne", "fine")]
    assert run(tmp_path, texts, [item]).verdicts() == ["drop", "drop"]


def test_boilerplate_is_left_out_and_listed(tmp_path):
    notice = " ".join(WORDS[100:119])
    items = [f"{notice} {' '.join(WORDS[k * 20 : k * 20 + 20])}" for k in range(3)]
    result = run(tmp_path, [f"a {notice} b", f"a {' '.join(WORDS[20:40])}"], items)
    assert result.verdicts() == ["keep", "drop"]
    one = result.certificate["sets"]["evals"]
    assert one["boilerplate_ngrams"] == 7 and one["boilerplate"][0] == " ".join(WORDS[100:113])
    repeated = run(tmp_path, [items[0]], [items[0]] * 5)
    assert repeated.verdicts() == ["drop"], "one text five times is one text"


def test_what_many_documents_hold_in_passing_tells_nothing(tmp_path):
    """Ten documents quote a proverb of one item; a leak of the whole item stays a leak, however often."""
    proverb = " ".join(WORDS[100:114])
    items = [f"{proverb} {' '.join(WORDS[:30])}", " ".join(WORDS[200:230])]
    quotes = [f"doc{i} {proverb} tail{i}" for i in range(10)]
    leaks = [f"page{i} {items[1]} and {items[0]}" for i in range(12)]
    result = run(tmp_path, [*quotes, *leaks], items)
    assert result.verdicts() == ["keep"] * 10 + ["drop"] * 12
    table = result.tables["decontaminate/boilerplate", "boilerplate"]
    assert table.column("documents").to_pylist() == [10, 10] and table.column("sources").to_pylist() == [1, 1]
    boilerplate = result.certificate["boilerplate"]
    assert boilerplate["ngrams"] == 2
    assert {line["text"] for line in boilerplate["most_frequent"]} == {proverb[:-5], proverb[5:]}
    assert run(tmp_path, [*quotes[1:], *leaks], items).verdicts() == ["drop"] * 21, "nine are not enough"
    gone = [(quotes[0], "web", False), *quotes[1:], *leaks]
    assert run(tmp_path, gone, items).verdicts() == ["gone", *["drop"] * 21], "what is gone does not count"


def test_lists_numbers_nested_fields_gzip_and_blank_lines(tmp_path):
    records = [
        {
            "turns": [" ".join(WORDS[:10]), " ".join(WORDS[10:20])],
            "in": {"q": " ".join(WORDS[50:70])},
            "a": 5.5,
        }
    ]
    path = tmp_path / "evals.jsonl.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + json.dumps(records[0]).encode() + b"\n\n"))
    params = params_with(sets=[{"name": "evals", "path": path.name, "fields": ["turns", "in.q", "a"]}])
    texts = [" ".join(WORDS[4:18]), " ".join(WORDS[50:64])]
    result = Result(tmp_path, {"web-0": [(text, "web", True) for text in texts]}, params)
    assert [line["item"] for line in result.lines("decontaminate/matches")] == ["1:turns", "1:in.q"]
    assert result.certificate["sets"]["evals"]["items"] == 3


@pytest.mark.parametrize(
    ("content", "fields", "message"),
    [
        (b"", ["q"], "holds no record"),
        (b"\n \n", ["q"], "holds no record"),
        (b'{"p": "text"}\n', ["q"], "no text in the field q .* name fields that it has: p"),
        (b'{"q": ""}\n{"q": null}\n', ["q"], "no text in the field q"),
        (b'{"q": "a b"}\n', ["q"], "no n-gram: of 1 items 1 have fewer than 8 words"),
        (b'{"q": "a b"}\nnonsense\n', ["q"], "line 2, is not JSON"),
        (b'{"q": "\xff"}\n', ["q"], "line 1, is not JSON"),
        (b"[1]\n", ["q"], "line 1, is list, not an object"),
        (b'{"q": {"a": 1}}\n', ["q"], "q is dict, not text"),
        (b'{"q": true}\n', ["q"], "q is bool, not text"),
        (b"\x1f\x8b\x08broken", ["q"], "damaged gzip"),
        (b"[" * 100_000, ["q"], "not JSON"),
    ],
)
def test_sets_that_cannot_be_searched_for_are_errors(tmp_path, content, fields, message):
    (tmp_path / "bad.jsonl").write_bytes(content)
    params = params_with(sets=[{"name": "bad", "path": "bad.jsonl", "fields": fields}])
    with pytest.raises(SourceError, match=message):
        Result(tmp_path, {"web-0": [("text", "web", True)]}, params)


def test_a_set_is_one_file_and_the_one_that_was_planned(tmp_path):
    (tmp_path / "folder").mkdir()
    params = params_with(sets=[{"name": "evals", "path": "folder", "fields": ["q"]}])
    with pytest.raises(SourceError, match="is 0 files, not one"):
        plan_matches(Plan(tmp_path, params), STEP.folders[0])
    write_set(tmp_path, [{"q": ITEM}], "folder/one.jsonl")
    (unit,) = plan_matches(Plan(tmp_path, params), STEP.folders[0])
    write_set(tmp_path, [{"q": "changed"}], "folder/one.jsonl")
    tables = {"normalize/text": pa.table({"text": pa.array(["x"], pa.large_string())})}
    with pytest.raises(IntegrityError, match="changed during the build"):
        match(MemoryReads("web-0", tables, spec=unit.spec, paths=dict(unit.files)), params)
    with pytest.raises(SourceError, match="cannot be read"):
        gone = {"evals": str(tmp_path / "nowhere")}
        match(MemoryReads("web-0", tables, spec=unit.spec, paths=gone), params)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"short_words_min": 14}, "short_words_min 14 is above ngram_words 13"),
        ({"sets": [SECTION["sets"][0], SECTION["sets"][0]]}, "names qa twice"),
        ({"sets": [{"name": "A b", "path": "x", "fields": ["q"]}]}, "pattern"),
        ({"sets": [{"name": "a", "path": "x", "fields": []}]}, "fields"),
        ({"sets": [{"name": "a", "path": "x", "fields": ["q"], "answers": ["a"]}]}, "a must stand in fields"),
        ({"sets": [{"name": "a", "path": "x", "fields": ["q"], "answers": ["q"], "passages": ["q"]}]}, "in one of"),
        ({"policy": "burn"}, "policy"),
        ({"removed_share_max": {}}, "removed_share_max lacks"),
    ],
)
def test_params_that_cannot_work_are_refused(change, message):
    with pytest.raises(ParamsError, match=message):
        params_with(**change)


def test_the_judge_and_the_invariants(tmp_path):
    sets = write_set(tmp_path, [{"q": ITEM}])
    params = params_with(sets=sets, removed_share_max={"*": 0.4}, policy="cut")
    result = Result(tmp_path, {"web-0": [(ITEM, "web", True), ("clean", "web", True)]}, params)
    (breach,) = check(result)
    assert "1 of 2 documents of web" in breach and "removed_share_max 40.0%" in breach
    table = result.tables["decontaminate/verdicts", "web-0"]
    lines = [{**line, "verdict": "keep"} for line in table.to_pylist()]
    result.tables["decontaminate/verdicts", "web-0"] = pa.Table.from_pylist(lines, table.schema)
    assert "1 rows with matches are kept, first 0" in next(check(result))
    result.tables["decontaminate/verdicts", "web-0"] = table
    result.tables["decontaminate/cuts", "web-0"] = CUTS.empty_table()
    assert "0 rows have cuts, 1 the verdict cut" in next(check(result))
    result.tables["dedup/verdicts", "web-0"] = result.tables["dedup/verdicts", "web-0"].slice(1)
    assert "has 2 rows, dedup 1" in next(check(result))


def test_folders_declare_what_they_use(tmp_path):
    """Each function runs with its declared parameters and reads alone, and gives the same bytes."""
    sets = write_set(tmp_path, [{"q": ITEM}])
    params = params_with(sets=sets, policy="cut")
    result = Result(tmp_path, {"web-0": [(f"x {ITEM}", "web", True)]}, params)
    plan = Plan(tmp_path, params)
    for folder, function in zip(STEP.folders, (match, count, decide, cut, certify), strict=True):
        (unit,) = folder.plan(plan, folder)
        shown = SimpleNamespace(**{name: getattr(params, name) for name in folder.shapes})
        known = {key: table for key, table in result.tables.items() if key[0] in folder.reads}
        made = function(MemoryReads("web-0", known, spec=unit.spec, paths=dict(unit.files)), shown)
        if ".json" in made.files:
            assert made.files[".json"] == result.raw
        else:
            whole = "boilerplate" if folder.name == "boilerplate" else "web-0"
            assert made.files[".parquet"] == result.tables[f"decontaminate/{folder.name}", whole]
    assert rows(result, "web-0").column_names[:3] == ["part", "row", "source"]


def test_parts_and_their_order_change_no_sum(tmp_path):
    rng = random.Random(1)
    texts = [f"doc {i} " + (ITEM if i % 7 == 0 else " ".join(rng.sample(WORDS, 30))) for i in range(60)]
    sets = write_set(tmp_path, [{"q": ITEM}, {"q": " ".join(WORDS[200:230])}])
    certificates = set()
    for dealt in (1, 4):
        rng.shuffle(texts)
        parts = {f"web-{n}": [(t, "web", True) for t in texts[n::dealt]] for n in range(dealt)}
        result = Result(tmp_path, parts, params_with(sets=sets))
        certificates.add(result.raw)
    assert len(certificates) == 1
    assert result.certificate["sets"]["evals"]["items_most_matched"] == [{"item": "1:q", "documents": 9}]


# ---- shared cases and corpora ----


def shared(path):
    full = SHARED / path
    if not full.exists():
        pytest.skip(f"shared/{path} is not on this machine")
    return full


def lines_of(path):
    return [json.loads(line) for line in shared(path).read_text(encoding="utf-8").split("\n") if line.strip()]


def against(folder, name, documents):
    sets = [{"name": "evals", "path": name, "fields": ["question"]}]
    return Result(shared(folder), {"web-0": [(d["text"], "web", True) for d in documents]}, params_with(sets=sets))


def test_case_59_boilerplate():
    documents = lines_of("cases/59-contam-boilerplate/docs.jsonl")
    sets = [{"name": "evals", "path": "evals.jsonl", "fields": ["text"]}]
    fields = set(lines_of("cases/59-contam-boilerplate/evals.jsonl")[0]) - {"id"}
    sets[0]["fields"] = sorted(fields)
    folder = shared("cases/59-contam-boilerplate")
    result = Result(folder, {"web-0": [(d["text"], "web", True) for d in documents]}, params_with(sets=sets))
    flagged = [d["id"] for d, verdict in zip(documents, result.verdicts(), strict=True) if verdict == "drop"]
    assert flagged == json.loads((folder / "expect.json").read_text())["flagged"]
    assert result.certificate["sets"]["evals"]["boilerplate_ngrams"] == 7
    notice = documents[0]["text"].partition(" always ")[0] + " always"
    listed = result.certificate["sets"]["evals"]["boilerplate"]
    assert len(listed) == 7 and all(len(text.split()) == 13 and text in notice for text in listed)
    (found,) = result.tables["decontaminate/matches", "web-0"].to_pylist()
    leak, item = documents[found["row"]], lines_of("cases/59-contam-boilerplate/evals.jsonl")[1]
    shown = leak["text"].encode()[found["start"] : found["stop"]].decode()
    assert (leak["id"], found["set"], found["item"], found["rule"]) == ("leak", "evals", "2:text", "ngrams")
    assert shown == item["text"].encode()[found["item_start"] : found["item_stop"]].decode()
    assert shown not in notice and item["text"].endswith(shown)


@pytest.mark.parametrize(("corpus", "flagged"), [("self", 20), ("clean", 0), ("upper", 20)])
def test_case_60_the_check_fires(corpus, flagged):
    documents = lines_of(f"cases/60-contam-never-fires/corpus_{corpus}.jsonl")
    result = against("cases/60-contam-never-fires", "evals.jsonl", documents)
    assert result.verdicts().count("drop") == flagged
    assert result.certificate["sets_without_match"] == ([] if flagged else ["evals"])
    assert result.certificate["control"]["items_found"] == 20
    assert sum(one["found"] for one in result.certificate["self_test"]["disguises"].values()) > 0
    index = result.certificate["index"]
    assert index["ngrams"] == 20 * (25 - 12) and index["unicode"] == unicodedata.unidata_version
    assert index["sha256"] == index_digest([line["question"] for line in lines_of(f"{CASE_60}/evals.jsonl")], 13)


WRONG_FIELD = {"name": "evals", "path": "evals.jsonl", "fields": ["answer_key"]}
CASE_60 = "cases/60-contam-never-fires"


def index_digest(questions, n):
    """SHA-256 over the n-grams' hashes, ascending, where the items of each begin, and the items, as uint64."""
    words = split_words(pa.array(questions, pa.large_string()))
    hashes, offsets = window_hashes(words.hashes_W, words.offsets_D1, np.full(len(questions), n))
    pairs = sorted(zip(hashes.tolist(), np.repeat(np.arange(len(questions)), np.diff(offsets)).tolist(), strict=True))
    numbers = [h for h, _ in pairs], range(len(pairs) + 1), [item for _, item in pairs]
    return hashlib.sha256(b"".join(np.array(of, "<u8").tobytes() for of in numbers)).hexdigest()


def test_case_60_nothing_to_look_for_is_an_error():
    with pytest.raises(SourceError, match="has no text in the field answer_key"):
        Result(shared(CASE_60), {"web-0": []}, params_with(sets=[WRONG_FIELD]))
    with pytest.raises(SourceError, match="holds no record"):
        against("cases/60-contam-never-fires", "empty_evals.jsonl", [])


def planted_sets(root):
    """The benchmark files that the planted documents quote, as JSON Lines, with the names of the items."""
    gsm = lines_of("corpora/eval/gsm8k/test.jsonl")
    svamp = json.loads(shared("corpora/eval/svamp/SVAMP.json").read_text())
    bench = lines_of("corpora/eval/mt_bench/question.jsonl")
    records = {
        "gsm8k": [({"q": d["question"]}, f"gsm8k/test:{i}") for i, d in enumerate(gsm)],
        "svamp": [({"q": f"{d['Body']} {d['Question']}"}, f"svamp:{d['ID']}") for d in svamp],
        "mt_bench": [({"q": d["turns"][0]}, f"mt_bench:{d['question_id']}") for d in bench],
    }
    for name, lines in records.items():
        write_set(root, [record for record, _ in lines], f"{name}.jsonl")
    sets = [{"name": name, "path": f"{name}.jsonl", "fields": ["q"]} for name in records]
    return sets, {name: [ident for _, ident in lines] for name, lines in records.items()}


def test_planted_documents(tmp_path):
    sets, names = planted_sets(tmp_path)
    documents = lines_of("corpora/eval/planted/docs.jsonl")
    with shared("corpora/eval/planted/truth.tsv").open(encoding="utf-8", newline="") as file:
        truth = {line["doc_id"]: line for line in csv.DictReader(file, delimiter="\t")}
    result = Result(tmp_path, {"web-0": [(d["text"], "web", True) for d in documents]}, params_with(sets=sets))
    found = {}
    for line in result.lines("decontaminate/matches"):
        ident = names[line["set"]][int(line["item"].split(":")[0]) - 1]
        found.setdefault(documents[line["row"]]["id"], set()).add(ident)
    wanted = {ident: line for ident, line in truth.items() if line["contaminated"] == "yes"}
    missed = [f"{i} {wanted[i]['kind']}" for i in wanted if wanted[i]["eval_item"] not in found.get(i, ())]
    extra = sorted(set(found) - set(wanted))
    assert extra == []
    assert len(missed) <= 3, missed


# ---- formats and roles ----

ASKED, ANSWERED = (" ".join(f"{name}{i}" for i in range(20)) for name in ("ask", "tell"))


@pytest.mark.parametrize("form", ["csv", "csv.gz", "tsv", "parquet", "jsonl"])
def test_sets_of_every_format_hold_the_same_items(tmp_path, form):
    records = [{"q": f'{ASKED},\n"x"', "a": ANSWERED, "n": "1"}, {"q": "", "a": "short", "n": "2"}]
    path = tmp_path / f"evals.{form}"
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist(records), path)
    elif form == "jsonl":
        write_set(tmp_path, records)
    else:
        lines = io.StringIO(newline="")
        writer = csv.DictWriter(lines, ["q", "a", "n"], delimiter="\t" if form == "tsv" else ",")
        writer.writeheader()
        writer.writerows(records)
        raw = b"\xef\xbb\xbf" + lines.getvalue().encode()
        path.write_bytes(gzip.compress(raw) if form.endswith("gz") else raw)
    params = params_with(sets=[{"name": "evals", "path": path.name, "fields": ["q", "a"], "answers": ["a"]}])
    result = Result(tmp_path, {"web-0": [(ANSWERED, "web", True), (f"{ASKED} so {ANSWERED}", "web", True)]}, params)
    assert [(line["row"], line["item"]) for line in result.lines("decontaminate/matches")] == [
        (0, "1:a"), (1, "1:a"), (1, "1:q"),
    ]  # fmt: skip
    told = result.certificate["sets"]["evals"]
    assert told["by_role"] == {
        "answer": {"items": 2, "items_too_short": 1, "items_matched": 1, "documents_matched": 2},
        "question": {"items": 1, "items_too_short": 0, "items_matched": 1, "documents_matched": 1},
    }
    assert told["answered"] == 1 and told["format"] == form.removesuffix(".gz")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("bad.csv", b'q,a\n"open', "is no CSV"),
        ("bad.csv", b"q,a\n1,2,3\n", "record 1, has not as many cells"),
        ("bad.tsv", b"q\ta\n1\n", "record 1, has not as many cells"),
        ("bad.csv", b"q\n\xff\n", "is no CSV"),
        ("bad.csv", b"q\n", "holds no record"),
        ("bad.parquet", b"PAR1", "is no Parquet"),
    ],
)
def test_broken_tables_are_errors(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    params = params_with(sets=[{"name": "bad", "path": name, "fields": ["q"]}])
    with pytest.raises(SourceError, match=message):
        Result(tmp_path, {"web-0": [("text", "web", True)]}, params)


# ---- the self-test ----


def test_every_disguise_says_its_recall(tmp_path):
    long = [" ".join(f"w{i}x{j}" for j in range(40)) + "." for i in range(6)]
    result = run(tmp_path, ["nothing of that"], [*long, "十" + "".join(chr(0x4E00 + i) for i in range(60))])
    test = result.certificate["self_test"]
    assert test["items"] == 7 and set(test["disguises"]) == set(DISGUISES) and len(DISGUISES) == 9
    assert {name: one["recall"] for name, one in test["disguises"].items()} == dict.fromkeys(DISGUISES, 1.0)


def test_what_is_too_short_for_a_disguise_is_said(tmp_path):
    result = run(tmp_path, [], [" ".join(f"w{j}" for j in range(14))], self_test_items=1)
    half = result.certificate["self_test"]["disguises"]["first_half"]
    assert half == {"planted": 1, "found": 0, "too_short": 1, "recall": 0.0}


def test_a_detector_that_finds_none_of_its_plants_fails(tmp_path, monkeypatch):
    nothing = split_words(pa.array([], pa.large_string()))
    monkeypatch.setattr(
        "tasks.decontaminate.planting.find_passages", lambda words, grams: find_passages(nothing, grams)
    )
    with pytest.raises(InvariantError, match="1 evaluation items planted in 9 disguises none was found"):
        run(tmp_path, [], [ITEM])


def test_the_sample_is_bounded_seeded_and_indifferent_to_order(tmp_path):
    items = [" ".join(f"w{i}x{j}" for j in range(20)) for i in range(30)]
    shown = [run(tmp_path, [], items, self_test_items=5, self_test_seed=seed).raw for seed in (1, 1, 2)]
    assert shown[0] == shown[1] != shown[2]
    assert json.loads(shown[0])["self_test"]["disguises"]["verbatim"]["planted"] == 5


def test_recall_of_disguises_of_real_items(tmp_path):
    """The disguises of our own, held against real benchmarks, as corpora/eval/planted holds its own."""
    sets, _ = planted_sets(tmp_path)
    result = Result(tmp_path, {"web-0": []}, params_with(sets=sets, self_test_items=200))
    found = {name: one["recall"] for name, one in result.certificate["self_test"]["disguises"].items()}
    whole = set(DISGUISES) - {"first_half", "one_word_changed", "last_60pct_words"}
    assert all(found[name] >= 0.95 for name in whole), found
    assert found["one_word_changed"] > 0.7 and found["first_half"] > 0.7 and found["last_60pct_words"] > 0.9, found


# ---- rules by length and unit ----

PAIRED = [{"q": "Who wrote the Vinland letters?", "a": "Olaf Tryggvason"}]


def run_records(root, texts, records, **changes):
    """Documents against records with a question q and an answer a."""
    write_set(root, records)
    sets = [{"name": "evals", "path": "evals.jsonl", "fields": ["q", "a"], "answers": ["a"]}]
    params = params_with(sets=sets, **{"margin_characters": 0, **changes})
    result = Result(root, {"web-0": [(text, "web", True) for text in texts]}, params)
    assert list(check(result)) == []
    return result


def test_a_short_question_is_evidence_only_near_its_answer(tmp_path):
    question, answer = PAIRED[0]["q"], PAIRED[0]["a"]
    texts = [
        f"Quiz: {question} It was {answer}, they say.",
        f"{answer}! {question.upper()}",
        f"{question} {'so ' * 50}{answer}",
        f"{question} {'so ' * 51}{answer}",
        f"{question} Nobody knows. Olaf the Tryggvason.",
        answer,
        "Who wrote the Vinland letters in a hurry?",
    ]
    result = run_records(tmp_path, texts, PAIRED)
    assert result.verdicts() == ["drop", "drop", "drop", "keep", "keep", "keep", "keep"]
    lines = result.lines("decontaminate/matches")
    assert [(line["row"], line["rule"]) for line in lines] == [
        *((row, "pair") for row in range(3)), *((row, "question") for row in range(3, 5)), (6, "question"),
    ]  # fmt: skip
    data = texts[0].encode()
    assert data[lines[0]["answer_start"] : lines[0]["answer_stop"]].decode() == answer and lines[0]["answer"] == "1:a"
    told = result.certificate["sets"]["evals"]
    assert told["items_by_rule"] == {"none": 0, "ngrams": 0, "whole": 0, "pair": 1, "answer": 1}
    assert told["by_role"]["answer"]["documents_matched"] == 3 and told["answered"] == 1
    assert result.certificate["self_test"]["disguises"]["verbatim"] == {
        "planted": 1, "found": 1, "too_short": 0, "recall": 1.0,
    }  # fmt: skip


def test_a_short_question_that_many_ask_is_a_phrase(tmp_path):
    texts = [f"doc {i}: {PAIRED[0]['q']}" for i in range(10)] + [f"{PAIRED[0]['q']} {PAIRED[0]['a']}"]
    assert run_records(tmp_path, texts, PAIRED).verdicts() == ["keep"] * 11
    assert run_records(tmp_path, texts[1:], PAIRED).verdicts() == ["keep"] * 9 + ["drop"]


def test_a_cut_takes_the_answer_beside_the_question(tmp_path):
    text = f"Quiz. {PAIRED[0]['q']} I think that it is {PAIRED[0]['a']} and no one else."
    result = run_records(tmp_path, [text], PAIRED, policy="cut")
    cuts = [text.encode()[c["start"] : c["stop"]].decode() for c in result.lines("decontaminate/cuts")]
    assert cuts == ["Who wrote the Vinland letters", "Olaf Tryggvason"]
    assert result.total("cuts", "characters_cut") == sum(map(len, cuts))


@pytest.mark.parametrize("answer", ["A", "7", "the", "of the", "!?"])
def test_answers_that_stand_near_everything_complete_no_pair(tmp_path, answer):
    records = [{"q": PAIRED[0]["q"], "a": answer}, {"q": ITEM, "a": "x"}]
    result = run_records(tmp_path, [f"{PAIRED[0]['q']} {answer} the of A 7"], records)
    assert result.verdicts() == ["keep"]
    assert result.certificate["sets"]["evals"]["items_by_rule"]["none"] == 3


def test_answers_in_a_list_are_ways_to_say_it(tmp_path):
    records = [{"q": PAIRED[0]["q"], "a": ["Olaf the Second", "King Tryggvason"]}]
    texts = [f"{PAIRED[0]['q']} {answer}" for answer in (*records[0]["a"], "Olaf the Third")]
    result = run_records(tmp_path, texts, records)
    assert result.verdicts() == ["drop", "drop", "keep"]
    assert [line["answer"] for line in result.lines("decontaminate/matches")] == ["1:a.0", "1:a.1", None]
    assert result.certificate["sets"]["evals"]["by_role"]["answer"]["items_matched"] == 2


def test_an_answer_of_another_record_is_none(tmp_path):
    records = [*PAIRED, {"q": "Who sank the seven ships?", "a": "Harald Bluetooth"}]
    texts = [f"{PAIRED[0]['q']} Harald Bluetooth", f"{records[1]['q']} Harald Bluetooth"]
    assert run_records(tmp_path, texts, records).verdicts() == ["keep", "drop"]


def test_a_short_answer_is_named_beside_a_long_question(tmp_path):
    result = run_records(tmp_path, [f"{ITEM} so Olaf Tryggvason", ITEM], [{"q": ITEM, "a": "Olaf Tryggvason"}])
    lines = result.lines("decontaminate/matches")
    assert [(line["item"], line["rule"], line["answer"]) for line in lines] == [
        ("1:q", "ngrams", "1:a"), ("1:q", "ngrams", None),
    ]  # fmt: skip
    told = result.certificate["sets"]["evals"]
    assert told["answered"] == 1 and told["by_role"]["answer"]["documents_matched"] == 1


def test_the_span_in_both_texts(tmp_path):
    item = f"Préface — {ITEM}. Fin"
    text = f"x ünd {' '.join(WORDS[2:18]).upper()} y"
    (line,) = run(tmp_path, [text], [item]).lines("decontaminate/matches")
    assert text.encode()[line["start"] : line["stop"]].decode() == " ".join(WORDS[2:18]).upper()
    assert item.encode()[line["item_start"] : line["item_stop"]].decode() == " ".join(WORDS[2:18])
    assert (line["rule"], line["grams"], line["item_grams"]) == ("ngrams", 4, 10)


def test_chinese_counts_characters(tmp_path):
    characters = "".join(chr(0x4E00 + 7 * i) for i in range(40))
    short, brief = characters[25:35], characters[33:40]
    texts = [f"前{characters[3:19]}后", f"前{characters[3:18]}后", f"说：{short}。", f"说：{brief}。", short[1:]]
    result = run(tmp_path, texts, [characters[:24], short, brief])
    assert result.verdicts() == ["drop", "keep", "drop", "keep", "keep"]
    assert [line["rule"] for line in result.lines("decontaminate/matches")] == ["ngrams", "whole"]
    assert result.certificate["sets"]["evals"]["items_too_short"] == 1


def test_code_counts_names_and_numbers_and_bare_series_tell_nothing(tmp_path):
    code = "def first_even(values, limit):\n    for value in values:\n        if value % 2 == 0 and value < limit:"
    series = "[" + ", ".join(map(str, range(20))) + ", 'a', 'b']"
    texts = [code.replace("    ", "\t").replace(", ", ","), f"x = {series}", code.replace("even", "odd")]
    result = run(tmp_path, texts, [code, series], kind="code")
    assert result.verdicts() == ["drop", "keep", "drop"]
    assert result.certificate["sets"]["evals"]["items_boilerplate_only"] == 1


# ---- attacks ----


def test_odd_items_neither_stop_the_step_nor_match(tmp_path):
    odd = ["", " \n", "word", "?!... --", "\ud800 lone", "\x00", "1 2 3 4 5 6 7 8 9 10 11 12 13 14", "é" * 5000]
    result = run(tmp_path, ["word", "?!... --", "1 2 3 4 5 6 7 8 9 10 11 12 13 14", ITEM], [*odd, ITEM, ITEM, ITEM])
    assert result.verdicts() == ["keep", "keep", "keep", "drop"]
    assert result.certificate["sets"]["evals"]["items"] == 9
    assert {line["item"] for line in result.lines("decontaminate/matches")} == {"9:q", "10:q", "11:q"}


def test_an_item_that_is_the_corpus_own_boilerplate_removes_nothing(tmp_path):
    notice = " ".join(WORDS[:60])
    quotes = [" ".join(WORDS[start : start + 20]) for start in range(0, 40, 2)]
    texts = [f"page {i} {quote} end {i}" for i, quote in enumerate(quotes * 10)]
    result = run(tmp_path, texts, [notice, " ".join(WORDS[200:230])])
    assert result.verdicts().count("drop") <= 0.1 * len(texts), result.verdicts().count("drop")


def test_a_hundred_thousand_items(tmp_path):
    items = [
        {"q": " ".join(f"{word}{i % 977}" for word in ("alpha", "beta", "gamma", "delta", str(i)) * 4)}
        for i in range(100_000)
    ]
    write_set(tmp_path, items)
    params = params_with(sets=[{"name": "evals", "path": "evals.jsonl", "fields": ["q"]}])
    result = Result(tmp_path, {"web-0": [(f"so {items[77_777]['q']}!", "web", True), ("clean", "web", True)]}, params)
    assert result.verdicts() == ["drop", "keep"]
    assert result.certificate["control"] == {"items_searched": 100_000, "items_found": 100_000}


@pytest.mark.parametrize("end", [b"\r\n", b"\n"])
def test_csv_with_mark_and_any_line_ends(tmp_path, end):
    (tmp_path / "evals.csv").write_bytes(b"\xef\xbb\xbf" + end.join([b"q,a", f'"{ITEM}",x'.encode(), b""]))
    params = params_with(sets=[{"name": "evals", "path": "evals.csv", "fields": ["q"]}])
    assert Result(tmp_path, {"web-0": [(ITEM, "web", True)]}, params).verdicts() == ["drop"]


def test_parquet_with_nested_fields_and_the_fields_that_are_there(tmp_path):
    record = {"in": {"q": ITEM}, "choices": [{"text": " ".join(WORDS[50:65])}, {"text": " ".join(WORDS[65:80])}]}
    pq.write_table(pa.Table.from_pylist([record]), tmp_path / "evals.parquet")
    params = params_with(sets=[{"name": "evals", "path": "evals.parquet", "fields": ["in.q", "choices.text"]}])
    texts = [ITEM, " ".join(WORDS[60:74])]
    result = Result(tmp_path, {"web-0": [(text, "web", True) for text in texts]}, params)
    assert [line["item"] for line in result.lines("decontaminate/matches")] == ["1:in.q", "1:choices.text"]
    params = params_with(sets=[{"name": "evals", "path": "evals.parquet", "fields": ["q"]}])
    with pytest.raises(SourceError, match=r"name fields that it has: choices\.text, in\.q"):
        Result(tmp_path, {"web-0": [(ITEM, "web", True)]}, params)


# ---- recall and false alarms on real sets (docs/decontamination.md has the table) ----

LIMITS = {
    "verbatim": 1.0, "case_punct": 1.0, "whitespace_newline": 1.0, "unicode_punct": 1.0,
    "question_only_in_code_fence": 1.0, "html_escaped": 1.0, "last_60pct_words": 1.0, "first_half": 0.9,
    "one_word_changed": 0.7,
}  # fmt: skip


def test_recall_of_planted_documents_by_disguise_and_no_false_alarm():
    from benchmarks.decontaminate_recall import planted

    shared("corpora/eval/planted/docs.jsonl")
    table = planted(SHARED / "corpora" / "eval")
    assert set(table["disguises"]) == set(LIMITS)
    for name, (found, all_of_it) in table["disguises"].items():
        assert all_of_it and found / all_of_it >= LIMITS[name], (name, found, all_of_it)
    assert table["controls"] == (0, 10) and table["others"][0] == 0 and table["others"][1] == 200


def test_every_natural_overlap_is_found():
    from benchmarks.decontaminate_recall import natural

    shared("corpora/eval/natural_overlap_13gram.tsv")
    found, wanted, others = natural(SHARED / "corpora")
    assert wanted == 105 and found == wanted
    assert others <= 2, "records flagged that share no 13 words in a row"


# ---- under perform: what a change of the sets makes anew ----


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    root = tmp_path_factory.mktemp("sets") / "corpus"
    root.mkdir()
    lay_corpus(root)
    project = Project(root)
    for name in ("ingest", "normalize", "filter", "dedup", "decontaminate"):
        report = perform(STEPS[name], project)
    return project, report


def change_sets(project, sets):
    recipe = yaml.safe_load((project.root / "params.yaml").read_text())
    recipe["decontaminate"]["sets"] = sets
    (project.root / "params.yaml").write_text(yaml.safe_dump(recipe))
    return perform(STEPS["decontaminate"], Project(project.root))


def test_a_set_that_changes_or_comes_makes_anew_what_depends_on_it(built):
    project, first = built
    qa = {"name": "qa", "path": "evaluation.jsonl", "fields": ["question"]}
    parts = first.made["matches"]
    before = {unit: entry.files for unit, entry in manifest_of(project).folders["verdicts"].items()}
    (project.root / "more.jsonl").write_text(json.dumps({"question": ITEM}) + "\n")
    more = change_sets(project, [qa, {"name": "more", "path": "more.jsonl", "fields": ["question"]}])
    assert more.made["matches"] == parts, "each part is held against the new set"
    assert {"verdicts", "cuts"} & {name for name, count in more.made.items() if count} == set(), more.made
    assert more.carried["verdicts"] == parts and more.made["certificate"] == 1
    assert {unit: entry.files for unit, entry in manifest_of(project).folders["verdicts"].items()} == before
    shutil.copy(project.root / "evaluation.jsonl", project.root / "same.jsonl")
    renamed = change_sets(project, [{**qa, "path": "same.jsonl"}])
    again = change_sets(project, [{**qa, "path": "same.jsonl"}])
    assert renamed.outcome == "built" and again.outcome == "up_to_date", "a path is no content"
    (project.root / "same.jsonl").write_text(json.dumps({"question": " ".join(WORDS[:30])}) + "\n")
    changed = perform(STEPS["decontaminate"], Project(project.root))
    assert changed.made["matches"] == parts
    assert changed.counts["documents_dropped"] == 0 < first.counts["documents_dropped"]
    assert 0 < changed.made["verdicts"] < parts, "only parts that held the old item are judged anew"


def manifest_of(project):
    return Manifest.read(project.root / "data" / "decontaminate")
