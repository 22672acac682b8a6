"""tokenize, pack and shard under perform: whole tokens from end to end, and what a change costs."""

import hashlib
import shutil

import numpy as np
import pyarrow as pa
import pytest
import yaml

from audit.what_if_pack import what_if
from tasks import perform as module
from tasks import tokenize
from tasks.artifacts.canonical import file_digest
from tasks.artifacts.documents import TEXT
from tasks.artifacts.manifest import Entry, Manifest
from tasks.artifacts.shards import ShardReader
from tasks.artifacts.tables import read_table, write_table
from tasks.artifacts.verdicts import CUTS, DECONTAMINATE_VERDICTS, DEDUP_VERDICTS, FILTER_CUTS, FILTER_VERDICTS, SIGNALS
from tasks.errors import InvariantError, ParamsError
from tasks.pack import STEP as PACK
from tasks.perform import perform
from tasks.project import Project
from tasks.shard import STEP as SHARD
from tasks.survivors import CUTS as CUT_FOLDERS
from tasks.tokenize import encoding
from tasks.tokenizers import load
from tests.tokenizer_kit import lay, texts

STEPS = (tokenize.STEP, PACK, SHARD)
PARAMS = {
    "ingest": {"sources": []},
    "tokenize": {
        "tokenizer": "small",
        "bos": "none",
        "min_characters": 5,
        "chat": {"template": "plain", "loss": "all"},
        "train": {
            "vocab_size": 500,
            "model": "bpe",
            "character_coverage": 1.0,
            "line_bytes_max": 4192,
            "sample_bytes": 1,
            "threads": 1,
        },
    },
    "pack": {
        "tokens_per_sequence": 32,
        "strategy": "concat",
        "tail": "keep",
        "stride": 16,
        "long": "split",
        "long_of": {},
        "domains": [],
        "seed": 1,
        "split_seed": 1,
        "validation_share": 0.2,
        "test_share": 0.1,
        "group_bytes": 2000,
    },
    "shard": {},
}


def judge(step, artifact, project, hands=1):
    breaches = list(step.invariants(artifact))
    if breaches:
        raise InvariantError(" | ".join(breaches))
    for unit in artifact.units(step.rows_of):
        assert step.rows(artifact, unit) is not None
    return []


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "judge", judge)
    monkeypatch.setattr(module, "judge_digest", lambda *_: "judges")
    monkeypatch.setattr("tasks.build.scan", tokenizers_only)
    lay(tmp_path)
    set_params(tmp_path)
    upstream(tmp_path, corpus())
    return Project(tmp_path)


def tokenizers_only(project, which):
    name = project.section("tokenize")["tokenizer"]
    home = project.root / "tokenizers" / name
    return {"tokenizers": {name: {path.name: file_digest(path) for path in sorted(home.iterdir())}}}


def set_params(root, **changes):
    sections = {name: section | changes.get(name, {}) for name, section in PARAMS.items()}
    (root / "params.yaml").write_text(yaml.safe_dump(sections))


def corpus():
    """part -> texts: two sources, 12 parts of 20 documents."""
    own = [f"{text} {number}" for number, text in enumerate(texts(200))][:240]
    found = {}
    for number in range(12):
        source = "code" if number < 4 else "web"
        name = hashlib.sha256(str(number).encode()).hexdigest()[:16]
        found[f"{source}-{name}"] = own[number * 20 : number * 20 + 20]
    return found


def upstream(root, parts, dropped=(), cuts=()):
    """Artifacts of normalize to decontaminate. dropped: texts filter drops; cuts: (text, start, stop)."""
    staged = {name: {} for name in ("normalize/text", "filter/verdicts", "dedup/verdicts", "decontaminate/verdicts")}
    staged |= {name: {} for name in (*CUT_FOLDERS, "filter/signals")}
    for part, own in parts.items():
        gone = [text in dropped for text in own]
        staged["normalize/text"][part] = text_table(part, own), TEXT
        first = {
            "verdict": ["drop" if g else "keep" for g in gone],
            "rule": ["x" if g else None for g in gone],
        }
        later = {"verdict": ["gone" if g else "keep" for g in gone]}
        signals = {field.name: [0] * len(own) for field in SIGNALS} | {"language": ["en"] * len(own)}
        staged["filter/signals"][part] = pa.table(signals, schema=SIGNALS), SIGNALS
        staged["filter/verdicts"][part] = filled(first, FILTER_VERDICTS), FILTER_VERDICTS
        staged["dedup/verdicts"][part] = filled(later, DEDUP_VERDICTS), DEDUP_VERDICTS
        staged["decontaminate/verdicts"][part] = filled(later, DECONTAMINATE_VERDICTS), DECONTAMINATE_VERDICTS
        rows = [(own.index(text), start, stop, "set") for text, start, stop in cuts if text in own]
        staged["filter/cuts"][part] = pa.Table.from_pylist([], FILTER_CUTS), FILTER_CUTS
        staged["dedup/cuts"][part] = pa.Table.from_pylist([], CUTS), CUTS
        columns = [list(column) for column in zip(*rows, strict=True)] or [[]] * 4
        staged["decontaminate/cuts"][part] = pa.table(columns, schema=CUTS), CUTS
    for step in ("normalize", "filter", "dedup", "decontaminate"):
        publish(root / "data" / step, {name: units for name, units in staged.items() if name.startswith(step)})


def text_table(part, own):
    sha = [hashlib.sha256(text.encode()).hexdigest() for text in own]
    return filled(
        {"id": sha, "text_sha": sha, "source": [part] * len(own), "kind": ["web"] * len(own), "text": own},
        TEXT,
    )


def filled(columns, schema):
    size = len(next(iter(columns.values())))
    return pa.table({field.name: columns.get(field.name, [None] * size) for field in schema}, schema=schema)


def publish(home, folders):
    shutil.rmtree(home, ignore_errors=True)
    entries = {}
    for name, units in folders.items():
        folder = name.partition("/")[2]
        (home / folder).mkdir(parents=True)
        entries[folder] = {}
        for at, (part, (table, schema)) in enumerate(units.items()):
            path = home / folder / f"{part}.parquet"
            write_table(path, table, schema)
            facts = {"sha256": file_digest(path), "bytes": path.stat().st_size}
            entries[folder][part] = Entry(part, "s", {f"{folder}/{part}.parquet": facts}, 1, {}, ("origin", at))
    Manifest(home.name, {"inputs": {}}, entries).write(home)


def build(project, workers=1):
    return {step.name: perform(step, project, workers=workers) for step in STEPS}


def shards(project):
    """(source, split) -> readers in order."""
    found = {}
    for path in sorted(project.artifact("shard").rglob("*.idx")):
        found.setdefault((path.parent.parent.name, path.parent.name), []).append(ShardReader(path.parent, path.stem))
    return found


def documents(project):
    """(source, split) -> texts, read back from the shards by the boundaries of the index."""
    tokenizer = load(project.root / "tokenizers/small")
    found = {}
    for place, readers in shards(project).items():
        for reader in readers:
            ends = np.cumsum(reader.index.sizes)
            found.setdefault(place, []).extend(tokenizer.decode(ids[:-1]) for ids in np.split(reader.tokens, ends[:-1]))
    return found


def test_every_kept_document_lies_in_one_shard_in_order(project):
    reports = build(project)
    found = documents(project)
    flat = [text for own in corpus().values() for text in own]
    assert sorted(text for own in found.values() for text in own) == sorted(flat)
    for own in found.values():
        assert [text for text in flat if text in set(own)] == own
    assert {split for _, split in found} == {"train", "validation", "test"}
    assert len(shards(project)["web", "train"]) > 1
    assert reports["shard"].counts["tokens"] == reports["tokenize"].counts["tokens"]
    for place, readers in shards(project).items():
        for reader in readers:
            assert all(reader.starts[1:] == reader.stops[:-1] - 1), place
            assert int(reader.stops[-1]) == len(reader.tokens)


def digests(project, step):
    return Manifest.read(project.artifact(step)).content


def test_workers_change_no_byte(project, tmp_path):
    build(project)
    before = {step.name: digests(project, step.name) for step in STEPS}
    for step in STEPS:
        shutil.rmtree(project.artifact(step.name))
    build(project, workers=2)
    assert {step.name: digests(project, step.name) for step in STEPS} == before


def test_a_late_decision_encodes_only_what_it_touches(project, monkeypatch):
    build(project)
    texts_of = corpus()
    own = list(texts_of.values())[6]
    upstream(project.root, texts_of, dropped={own[3]}, cuts=[(own[5], 0, 4)])
    seen = []
    plain = encoding.encode
    monkeypatch.setattr(encoding, "encode", lambda texts, *other: seen.extend(texts) or plain(texts, *other))
    reports = build(project)
    assert seen == [own[5][4:]]
    assert reports["tokenize"].made["tokens"] == 1
    assert reports["tokenize"].counts["documents_dropped"] == 1
    assert reports["tokenize"].counts["characters_cut"] == 4
    assert reports["shard"].made["stream"] < reports["shard"].carried["stream"]
    cold = {step.name: digests(project, step.name) for step in STEPS}
    for step in STEPS:
        shutil.rmtree(project.artifact(step.name))
    build(project)
    assert {step.name: digests(project, step.name) for step in STEPS} == cold


def test_a_sequence_length_touches_no_token(project):
    build(project)
    set_params(project.root, pack={"tokens_per_sequence": 64})
    reports = build(project)
    assert reports["tokenize"].outcome == "up_to_date"
    assert set(reports["pack"].made.items()) >= {("splits", 0), ("pieces", 0)}
    assert reports["shard"].made["stream"] == 0
    assert reports["shard"].made["sequences"] > 0


@pytest.mark.parametrize("changes", [{"split_seed": 2}, {"test_share": 0.3}, {"group_bytes": 500}, {"tail": "drop"}])
def test_every_parameter_of_pack_is_seen(project, changes):
    first = build(project)
    set_params(project.root, pack=changes)
    second = build(project)
    assert second["pack"].outcome == "built"
    assert second["pack"].fingerprint != first["pack"].fingerprint
    assert second["tokenize"].outcome == "up_to_date"


def test_another_tokenizer_of_the_same_name_is_seen(project):
    """Case 17: the name did not change, the pieces did."""
    first = build(project)
    shutil.rmtree(project.root / "tokenizers/small")
    lay(project.root, vocab_size=400)
    second = build(project)
    assert second["tokenize"].made["tokens"] == 12
    assert second["tokenize"].content != first["tokenize"].content


def test_a_renamed_tokenizer_remakes_no_unit(project):
    build(project)
    shutil.copytree(project.root / "tokenizers/small", project.root / "tokenizers/other")
    set_params(project.root, tokenize={"tokenizer": "other"})
    reports = build(project)
    assert reports["tokenize"].made == {"tokens": 0, "usage": 0, "report": 0, "tokenizer": 0}
    assert reports["shard"].made == {"stream": 0, "sequences": 0, "classes": 0, "tokenizer": 0}


def test_a_part_in_front_renames_shards_and_copies_none(project):
    build(project)
    before = {path.name: path.stat().st_ino for path in project.artifact("shard").rglob("web/train/*.bin")}
    parts = corpus()
    first = {"code-aaaaaaaaaaaaaaaa": ["a new document in front of all the others"]}
    upstream(project.root, first | parts)
    reports = build(project)
    assert reports["tokenize"].made["tokens"] == 1
    after = {path.name: path.stat().st_ino for path in project.artifact("shard").rglob("web/train/*.bin")}
    assert after == before
    assert reports["shard"].made["stream"] <= 2


def test_a_corpus_where_all_was_dropped_has_no_shard(project):
    upstream(project.root, corpus(), dropped={text for own in corpus().values() for text in own})
    reports = build(project)
    assert reports["tokenize"].counts["tokens"] == 0
    assert reports["shard"].made == {"stream": 0, "sequences": 0, "classes": 0, "tokenizer": 1}


def test_the_rows_of_tokenize_stay_aligned(project):
    build(project)
    for part, own in corpus().items():
        table = read_table(project.artifact("tokenize") / "tokens" / f"{part}.parquet")
        assert table["text_sha"].to_pylist() == [hashlib.sha256(text.encode()).hexdigest() for text in own]


@pytest.mark.parametrize(
    ("bos", "strategy"),
    [("first", "concat"), ("sequence", "concat"), ("sequence", "best_fit"), ("sequence", "document")],
)
def test_bos_down_to_the_shards(project, bos, strategy):
    """The tokenizer's BOS where it is wanted and nowhere else; all invariants hold; the same documents."""
    build(project)
    plain = documents(project)
    set_params(project.root, pack={"strategy": strategy}, tokenize={"bos": bos})
    reports = build(project)
    bos_id = load(project.root / "tokenizers" / "small").bos_id
    counts = reports["pack"].counts
    held = [reader for readers in shards(project).values() for reader in readers]
    begins = len(held) if bos == "first" else sum(map(len, held))
    assert counts["tokens_added"] == begins == sum(np.count_nonzero(reader.tokens == bos_id) for reader in held)
    assert reports["shard"].counts["tokens"] == counts["tokens_in"] + counts["tokens_repeated"] + begins
    for reader in held:
        firsts = reader.starts.astype(int) if bos == "sequence" else np.zeros(1, int)
        assert (reader.tokens[firsts] == bos_id).all()
        assert (reader.stops - reader.starts <= 33).all()
        assert (reader.starts[1:] == reader.stops[:-1] - (bos == "first")).all()
    if strategy == "concat":
        joined = {place: "".join(own) for place, own in documents(project).items()}
        assert set(joined) == set(plain)


@pytest.mark.parametrize("strategy", ["stride", "best_fit", "document"])
def test_every_strategy_down_to_the_shards(project, strategy):
    """All invariants hold, sequences are whole, and no id is encoded or lost on the way."""
    set_params(project.root, pack={"strategy": strategy})
    reports = build(project)
    counts = reports["pack"].counts
    assert counts["tokens_in"] == reports["tokenize"].counts["tokens"] == counts["tokens_packed"]
    assert reports["shard"].counts["tokens"] == counts["tokens_in"] + counts["tokens_repeated"]
    for readers in shards(project).values():
        for reader in readers:
            assert (reader.stops - reader.starts <= 33).all()
            assert strategy != "stride" or (np.diff(reader.starts.astype(int)) == 16).all()
            assert strategy == "stride" or (reader.starts[1:] == reader.stops[:-1]).all()


def test_what_if_says_what_a_build_makes(project):
    """Of each strategy, and of a change beside it."""
    build(project)
    for changes in ({}, {"tail": "drop", "long": "cut"}):
        asked = ["pack.strategy", *(f"pack.{name}={value}" for name, value in changes.items())]
        for line in what_if(project, asked):
            other = Project(project.root, f"other/{line.strategy}-{len(changes)}", limit=10**6)
            shutil.copytree(project.data, other.data)
            set_params(project.root, pack={"strategy": line.strategy, **changes})
            perform(PACK, other)
            counts = perform(PACK, other).counts
            set_params(project.root)
            assert (line.sequences, line.repeated) == (counts["sequences"], counts["tokens_repeated"])
            assert line.padding == counts["padding"] / counts["places"]
            assert sum(line.dropped.values()) == counts["tokens_dropped"]
            assert line.tokens == counts["tokens_in"]
    set_params(project.root, tokenize={"bos": "first"})
    assert [line.why_not for line in what_if(project, ["pack.strategy"])] == ["", *["tokenize.bos is first"] * 3]
    for wrong in ("pack.strategies", "pack.stride"):
        with pytest.raises(ParamsError, match=f"{wrong} is no change of pack"):
            what_if(project, [wrong])
