"""Cases 45, 47, 48, 49, 52, 53, 55 and 57 of a collection of accidents of such pipelines, on the real nine steps.

Each is an accident that other pipelines had: a stale or unstable cache, a failure that was cached, two runs at once, a
full disk, a library that calls home, a check that tested nothing. Inputs are those of the collection where it lies
beside the repository, and inputs of the same kind written here where it does not.
"""

from __future__ import annotations

import copy
import dataclasses
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import typing
from functools import cache
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel

from tasks import perform as performing
from tasks.artifacts.canonical import canonical, digest
from tasks.artifacts.manifest import Manifest
from tasks.errors import ParamsError
from tasks.perform import perform, recipe_key
from tasks.pipeline import STEPS
from tasks.project import Project
from tests.small_corpus import lay_corpus

ROOT = Path(__file__).parent.parent
CASES = ROOT.parent / "shared" / "cases"
MILL = """
import json, sys
from functools import cache
from pathlib import Path
from tasks import perform as module
from tasks.pipeline import STEPS
from tasks.project import Project
if "judged" not in sys.argv:
    module.judge = lambda *_: []
if __name__ == "__main__":
    said = {}
    for step in STEPS.values():
        report = module.perform(step, Project(Path.cwd()))
        made = sum(report.made.values())
        said[step.name] = {"outcome": report.outcome, "made": made, "fingerprint": report.fingerprint}
    print(json.dumps(said))
"""


def case(folder: str, name: str, otherwise: str) -> str:
    """The text of a case's file, or one of the same kind where the collection is not there."""
    path = CASES / folder / name
    return path.read_text(encoding="utf-8") if path.is_file() else otherwise


def environment(house: Path = ROOT, **more: str) -> dict[str, str]:
    """Of a process that takes tasks from `house`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    return {**kept, "PYTHONPATH": str(house), **more}


def run(root: Path, *command: str, house: Path = ROOT, **more: str) -> subprocess.CompletedProcess[str]:
    """A command of Python in `root`."""
    return subprocess.run(
        [sys.executable, *command],
        cwd=root,
        env=environment(house, **more),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def mill(root: Path, *words: str, house: Path = ROOT) -> dict[str, dict]:
    """All nine steps in one process; step -> what came of it. The suites are held with the word judged only."""
    done = run(root, "-c", MILL, *words, house=house)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def step(root: Path, name: str, **more) -> subprocess.CompletedProcess[str]:
    """The command of a DVC stage."""
    return run(root, "-m", "tasks", name, "--workers", "1", **more)


def gristmill(root: Path, *words: str, **more) -> subprocess.CompletedProcess[str]:
    return run(root, "-m", "flows.cli", *words, **more)


def start(root: Path, *command: str, **more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *command],
        cwd=root,
        env=environment(**more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def one_line(done: subprocess.CompletedProcess[str], code: int, *said: str) -> str:
    """What a command said, which must be one line on standard error with all of `said` in it."""
    lines = done.stderr.strip().splitlines()
    assert done.returncode == code, done.stderr
    assert len(lines) == 1 and lines[0].startswith("gristmill: "), done.stderr
    assert all(word in lines[0] for word in said), (said, lines[0])
    return lines[0]


def params(root: Path) -> dict:
    return yaml.safe_load((root / "params.yaml").read_text(encoding="utf-8"))


def set_params(root: Path, recipe: dict) -> None:
    (root / "params.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")


def contents(root: Path) -> dict[str, str]:
    """Step -> content digest of each artifact that stands; every file is held against its own first."""
    found = {}
    for name in STEPS:
        home = Project(root).artifact(name)
        if home.exists():
            manifest = Manifest.read(home)
            assert manifest is not None and list(manifest.verify(home)) == [], name
            found[name] = manifest.content
    return found


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A small corpus with its nine artifacts, held against the suites."""
    root = tmp_path_factory.mktemp("cases") / "corpus"
    root.mkdir()
    lay_corpus(root)
    mill(root, "judged")
    return root


@pytest.fixture
def corpus(built, tmp_path):
    root = tmp_path / "corpus"
    shutil.copytree(built, root)
    return root


@pytest.fixture
def bare(tmp_path):
    """A small corpus of which nothing is built."""
    root = tmp_path / "corpus"
    root.mkdir()
    lay_corpus(root)
    return root


def only_source(root: Path, name: str, content: str | bytes, **ingest) -> Path:
    """Let one file be all that the corpus reads; where it lies."""
    path = root / "sources" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    recipe = params(root)
    recipe["ingest"] |= {"sources": [{"name": "only", "kind": "web", "path": f"sources/{name}"}], **ingest}
    recipe["mix"]["stages"] = [{"start": 0, "weights": {"only": 1}}]
    set_params(root, recipe)
    return path


# --- 45: a helper is edited ------------------------------------------------------------------------------------------


@pytest.fixture
def house(tmp_path):
    """A copy of the steps that a test may edit, with numba's compiled kernels beside them."""
    shutil.copytree(ROOT / "tasks", tmp_path / "house" / "tasks")
    return tmp_path / "house"


def append(house: Path, module: str, text: str) -> None:
    path = house / (module.replace(".", "/") + ".py")
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


HELPER = "tasks.text.whitespace"
COMMENT = '\n\n# Another word on this.\n"""And a loose one."""\n'
UPPER = """

_before = {name}


def {name}(*given, **named):
    import pyarrow.compute
    return pyarrow.compute.utf8_upper(_before(*given, **named))
"""


def helper_of_normalize() -> str:
    """The function of HELPER that normalize calls and that gives texts."""
    called = re.findall(r"from tasks\.text\.whitespace import (.+)", (ROOT / "tasks/normalize/text.py").read_text())
    return called[0].split(",")[0].strip()


def test_case_45_an_edited_helper_makes_its_folder_anew_and_all_that_follows(corpus, house):
    before = contents(corpus)
    append(house, HELPER, UPPER.format(name=helper_of_normalize()))
    done = step(corpus, "normalize", house=house)
    assert done.returncode == 0 and re.search(r"normalize: built; made text \d+; carried over 0", done.stdout), done
    said = gristmill(corpus, "status", "--json", house=house)
    why = {row["step"]: row["why"] for row in json.loads(said.stdout)}
    assert why["normalize"] == [] and "normalize changed" in why["filter"]
    said = mill(corpus, house=house)
    assert [name for name in STEPS if said[name]["outcome"] == "built"] == list(STEPS)[2:]
    after = contents(corpus)
    assert before["ingest"] == after["ingest"] and before["normalize"] != after["normalize"]
    text = (Project(corpus).artifact("normalize") / "text").glob("*.parquet")
    assert _letters(text).isupper()


def _letters(paths) -> str:
    from tasks.artifacts.tables import read_table

    return " ".join(read_table(next(iter(paths)), ["text"])["text"].to_pylist())


def test_case_45_the_helper_of_a_late_step_remakes_no_early_one(corpus, house):
    append(house, "tasks.text.split", "\n\nMORE = 1\n")
    said = gristmill(corpus, "status", "--json", house=house)
    why = {row["step"]: row["why"] for row in json.loads(said.stdout)}
    assert "code of splits changed" in why["pack"]
    assert not any(reason.startswith("code of") for reason in why["tokenize"])  # its planner may reach the same module
    before = Manifest.read(Project(corpus).artifact("tokenize")).content
    said = mill(corpus, house=house)
    assert said["pack"]["made"] and not any(said[name]["made"] for name in list(STEPS)[: list(STEPS).index("pack")])
    assert Manifest.read(Project(corpus).artifact("tokenize")).content == before
    assert contents(corpus)["mix"]


def test_case_45_a_comment_remakes_nothing(corpus, house):
    keys = {name: Manifest.read(Project(corpus).artifact(name)).fingerprint for name in STEPS}
    for path in sorted((house / "tasks").rglob("*.py")):
        path.write_text(path.read_text(encoding="utf-8") + COMMENT, encoding="utf-8")
    said = mill(corpus, house=house)
    assert {name: row["made"] for name, row in said.items()} == dict.fromkeys(STEPS, 0)
    assert {name: row["fingerprint"] for name, row in said.items()} == keys


@pytest.mark.long
def test_case_45_through_dvc_repro(corpus, house):
    """40 s a full round: every stage is a process of its own, and DVC decides by data/code.json."""
    for name in ("dvc.yaml", ".dvcignore"):
        shutil.copy(ROOT / name, corpus / name)
    quiet = {"DVC_NO_ANALYTICS": "1", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for words in (["git", "init", "-q"], [sys.executable, "-m", "dvc", "init", "-q"]):
        subprocess.run(words, cwd=corpus, env=environment(house, **quiet), check=True)

    def repro() -> list[str]:
        done = run(corpus, "-m", "dvc", "repro", house=house, **quiet)
        assert done.returncode == 0, done.stderr + done.stdout
        return re.findall(r"Running stage '(\w+)'", done.stdout)

    assert repro() == ["sources", *STEPS]
    append(house, HELPER, COMMENT)
    assert repro() == ["sources"]
    before = contents(corpus)
    append(house, "tasks.text.split", "\n\nMORE = 1\n")
    assert repro() == ["sources", "pack", "shard", "mix"]
    assert contents(corpus) == before
    append(house, HELPER, UPPER.format(name=helper_of_normalize()))
    assert repro() == ["sources", *list(STEPS)[1:]]
    assert contents(corpus)["normalize"] != before["normalize"]


# --- 47: equal recipes, written otherwise ----------------------------------------------------------------------------


def keys(root: Path) -> dict[str, str]:
    return {name: recipe_key(step, Project(root)) for name, step in STEPS.items()}


def turned(value):
    """`value` with every mapping in the opposite order."""
    if isinstance(value, dict):
        return {key: turned(value[key]) for key in reversed(list(value))}
    return [turned(item) for item in value] if isinstance(value, list) else value


def test_case_47_the_order_of_mappings_and_the_place_of_sources_are_no_matter(corpus):
    before, recipe = keys(corpus), params(corpus)
    (corpus / "params.yaml").write_text(yaml.safe_dump(turned(recipe), sort_keys=False, default_flow_style=True))
    assert keys(corpus) == before
    recipe["ingest"]["sources"].reverse()
    for item in (*recipe["ingest"]["sources"], *recipe["decontaminate"]["sets"]):
        item["path"] = str(corpus / item["path"])
    set_params(corpus, recipe)
    assert keys(corpus) == before
    for item in (*recipe["ingest"]["sources"], *recipe["decontaminate"]["sets"]):
        item["path"] = f"../corpus/./{Path(item['path']).relative_to(corpus)}"
    set_params(corpus, recipe)
    assert keys(corpus) == before


NUMBERS = [
    ("pack", "validation_share", ["0.1", "1.0e-1", "1e-1", "0.10", ".1", "1E-1"]),
    ("decontaminate", "leak_share_min", ["0.5", "5e-1", "0.50"]),
    ("ingest", "record_bytes_max", ["33554432", "33_554_432", "0x2000000"]),
]


@pytest.mark.parametrize(("name", "field", "spellings"), NUMBERS)
def test_case_47_a_number_is_the_same_however_it_is_written(corpus, name, field, spellings):
    found = set()
    for spelling in spellings:
        recipe = params(corpus)
        recipe[name][field] = "MARK"
        (corpus / "params.yaml").write_text(yaml.safe_dump(recipe).replace("MARK", spelling))
        found.add(recipe_key(STEPS[name], Project(corpus)))
    assert len(found) == 1


def test_case_47_what_stands_for_a_set_has_no_order(corpus):
    """The variants of the case: languages in two orders, and keys in two orders."""
    texts = case("47-unstable-cache-key", "variants.json", '[{"langs": ["en", "de"]}, {"langs": ["de", "en"]}]')
    found = set()
    for variant in json.loads(texts):
        recipe = params(corpus)
        rule = {"name": "tongue", "signal": "language", "languages": variant["langs"], "kinds": ["web", "book"]}
        recipe["filter"]["rules"] = [rule]
        set_params(corpus, recipe)
        found.add(recipe_key(STEPS["filter"], Project(corpus)))
        rule["kinds"] = ["book", "web"]
        set_params(corpus, recipe)
        found.add(recipe_key(STEPS["filter"], Project(corpus)))
    assert len(found) == 1
    assert digest({"a": {"x", "y", "z"}}) == digest({"a": {"z", "x", "y"}}) == digest({"a": ["x", "y", "z"]})


def test_case_47_the_hash_seed_is_no_matter(built):
    script = (
        "import json; from pathlib import Path; from tasks.perform import recipe_key; from tasks.pipeline import STEPS;"
        "from tasks.project import Project;"
        "print(json.dumps({n: recipe_key(s, Project(Path.cwd())) for n, s in STEPS.items()}))"
    )
    found = [json.loads(run(built, "-c", script, PYTHONHASHSEED=seed).stdout) for seed in ("1", "2")]
    assert found[0] == found[1] == keys(built)


@pytest.mark.parametrize("value", [object(), b"x", float("nan"), float("inf"), lambda: 0, Path("x"), 1j])
def test_case_47_what_cannot_stand_in_a_key_is_an_error(value):
    with pytest.raises(TypeError, match="cannot stand in a key"):
        canonical({"a": [value]})


@pytest.mark.parametrize("spelling", ["2020-01-01", "!!binary aGk=", "!!set {a, b}", ".nan", ".inf", "-.inf"])
@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("ingest", "part_bytes"),
        ("ingest", "rejects_max_share"),
        ("decontaminate", "removed_share_max"),
        ("dedup", "threshold"),
        ("mix", "stages"),
    ],
)
def test_case_47_a_value_that_no_key_can_hold_is_refused_by_name(corpus, name, field, spelling):
    recipe = params(corpus)
    old = recipe[name][field]
    if name == "mix":
        old[0]["weights"] = dict.fromkeys(old[0]["weights"], "MARK")
    else:
        recipe[name][field] = dict.fromkeys(old, "MARK") if isinstance(old, dict) else "MARK"
    (corpus / "params.yaml").write_text(yaml.safe_dump(recipe).replace("MARK", spelling))
    with pytest.raises(ParamsError, match=rf"{name}\.{field}"):
        recipe_key(STEPS[name], Project(corpus))


# --- 48: every field of every step -----------------------------------------------------------------------------------


def fields_of(model: type[BaseModel], at: str) -> list[str]:
    """Every field of a section as a path, "filter.rules[0].min" and "normalize.kinds{0}.form"."""
    found = []
    for name, info in model.model_fields.items():
        inner = _models(info.annotation)
        if not inner:
            found.append(f"{at}.{name}")
        elif inner == [info.annotation]:
            found += fields_of(inner[0], f"{at}.{name}")
        else:
            mark = "{0}" if typing.get_origin(info.annotation) is dict else "[0]"
            found += fields_of(inner[0], f"{at}.{name}{mark}")
    return found


def _models(annotation) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for each in typing.get_args(annotation) for model in _models(each)]


FIELDS = [path for name, each in STEPS.items() for path in fields_of(each.params, name)]

SHAPING = {
    "ingest.sources[0].name": "another",
    "ingest.sources[0].kind": "paper",
    "ingest.sources[0].path": "elsewhere",
    "ingest.sources[0].fields": {"text": "body"},
    "ingest.sources[0].encoding": "latin-1",
    "ingest.sources[0].records": "line",
    "ingest.sources[0].leave_out": ["00*"],
    "ingest.piece_characters_max": {"book": 40_000},
    "ingest.part_bytes": 8192,
    "ingest.part_bytes_max": 20000,
    "ingest.small_file_bytes": 1024,
    "ingest.record_bytes_max": 4096,
    "normalize.kinds{0}.form": "NFKC",
    "normalize.kinds{0}.whitespace": "collapse",
    "normalize.combining_marks_max": 29,
    "filter.language_characters": 299,
    "filter.language_letters_min": 19,
    "filter.segmentation": {"zh": "rjieba"},
    "filter.signals": ["my_rules:score"],
    "filter.metadata": ["stars"],
    "filter.mask": {"email": "<email>"},
    "filter.rules[0].sources": ["web"],
    "filter.rules[0].name": "renamed",
    "filter.rules[0].signal": "characters",
    "filter.rules[0].min": 21,
    "filter.rules[0].max": 1_000_000,
    "filter.rules[0].kinds": ["web"],
    "filter.rules[0].languages": ["en"],
    "dedup.shingle_words": 4,
    "dedup.shingle_characters": 4,
    "dedup.seed": 2,
    "dedup.bands": 20,
    "dedup.rows": 5,
    "dedup.threshold": {"web": 0.7, "book": 0.8, "paper": 0.8, "chat": 0.8, "code": 0.85},
    "dedup.source_priority": ["prose"],
    "dedup.bucket_survivors_max": 999,
    "dedup.pair_similarity_min": 0.4,
    "dedup.span_characters_min": 99,
    "dedup.cut": {"web": ["duplicate_lines"]},
    "decontaminate.sets[0].name": "another",
    "decontaminate.sets[0].path": "another.jsonl",
    "decontaminate.sets[0].fields": ["answer", "question"],
    "decontaminate.sets[0].answers": ["question"],
    "decontaminate.sets[0].passages": ["question"],
    "decontaminate.self_test_items": 39,
    "decontaminate.self_test_seed": 3,
    "decontaminate.ngram_words": 12,
    "decontaminate.short_words_min": 7,
    "decontaminate.ngram_characters": 15,
    "decontaminate.short_characters_min": 7,
    "decontaminate.question_words_min": 6,
    "decontaminate.answer_window_words": 40,
    "decontaminate.boilerplate_items_min": 4,
    "decontaminate.boilerplate_documents_min": 11,
    "decontaminate.leak_share_min": 0.6,
    "decontaminate.policy": "report",
    "decontaminate.margin_characters": 100,
    "tokenize.tokenizer": "another",
    "tokenize.bos": "document",
    "tokenize.min_characters": 51,
    "tokenize.chat.template": "llama3",
    "tokenize.chat.loss": "all",
    "pack.tokens_per_sequence": 32,
    "pack.strategy": "best_fit",
    "pack.tail": "drop",
    "pack.stride": 32,
    "pack.long": "cut",
    "pack.long_of": {"chats": "leave_out"},
    "pack.seed": 2,
    "pack.split_seed": 2,
    "pack.validation_share": 0.2,
    "pack.test_share": 0.2,
    "pack.group_bytes": 4096,
    "mix.seed": 2,
    "mix.period": 999,
    "mix.stages[0].weights": {"prose": 3, "code": 1, "web": 2, "chats": 1},
    "mix.stages[0].name": "main",
    "mix.stages[0].tokens": 100_000,
    "mix.stages[0].epochs": 2.0,
    "mix.stages[0].leave_out": ["chats"],
    "mix.stages[0].allow_empty": True,
}
NOT_SHAPING = {
    "ingest.rejects_max_share": 0.5,
    "dedup.removed_share_max": {"*": 0.95},
    "dedup.largest_cluster_max": 999,
    "decontaminate.removed_share_max": {"*": 0.2},
    "mix.max_epochs": 60.0,
    "mix.max_epochs_of": {"prose": 60.0},
    "tokenize.train.vocab_size": 5000,
    "tokenize.train.character_coverage": 0.99,
    "tokenize.train.line_bytes_max": 4000,
    "tokenize.train.sample_bytes": 1_000_000,
    "tokenize.train.threads": 1,
    "tokenize.train.reserved": ["<mask>"],
}
ONE_VALUE = {
    **{
        f"filter.blocklists[0].{field}": "none is named here; each field is changed in test_blocklists.py"
        for field in ("kinds", "languages", "sources", "name", "path", "match", "entries_min")
    },
    "ingest.sources[0].storage": "goes with URLs alone, and moving a corpus changes no key: test_remote.py",
    "filter.rules[0].action": "cut goes with the signals of lines alone; changed below",
    **{
        f"filter.rules[0].where[0].{field}": "exceptions are changed as a whole below"
        for field in ("kinds", "sources", "languages", "min", "max", "skip")
    },
    "mix.stages[0].temperature": "given weights have none; that of proportional ones stands in test_mix.py",
    **{
        f"pack.domains[0].{field}": "there is none; changed below"
        for field in ("name", "sources", "kinds", "languages")
    },
    "tokenize.train.model": "unigram wants threads: 1 as well; it stands in test_tokenizers.py",
    "dedup.permutations": "only 128 is allowed",
    "dedup.against": "names a release that must be there: changed in test_against.py",
    "mix.stages[0].start": "the first stage starts at 0; that of a second one is changed below",
}


def test_case_48_each_field_is_in_exactly_one_list():
    lists = [set(SHAPING), set(NOT_SHAPING), set(ONE_VALUE)]
    assert sorted(FIELDS) == sorted(path for paths in lists for path in paths)


def put(recipe: dict, path: str, value) -> None:
    """Set the field at `path` in the whole recipe."""
    holder, *steps = re.findall(r"[^.\[\]{}]+|\[0\]|\{0\}", path)
    at = recipe[holder]
    for name in steps[:-1]:
        at = at[0] if name == "[0]" else next(iter(at.values())) if name == "{0}" else at[name]
    assert at.get(steps[-1]) != value, f"{path} is {value!r} already: choose another value"
    at[steps[-1]] = value


@cache
def untouched_keys(root: Path) -> dict[str, str]:
    return keys(root)


def changed(root: Path, path: str, value) -> set[str]:
    """The steps whose recipe key another value at `path` changes; params.yaml is as before afterwards."""
    before, old = untouched_keys(root), params(root)
    recipe = copy.deepcopy(old)
    put(recipe, path, value)
    set_params(root, recipe)
    try:
        after = keys(root)
    finally:
        set_params(root, old)
    return {name for name in STEPS if before[name] != after[name]}


@pytest.fixture(scope="module")
def varied(built, tmp_path_factory):
    """The corpus with other sources, sets and tokenizers to choose from; only its params.yaml is changed."""
    corpus = tmp_path_factory.mktemp("varied") / "corpus"
    shutil.copytree(built, corpus)
    shutil.copytree(corpus / "sources" / "prose", corpus / "elsewhere")
    (corpus / "elsewhere" / "00.txt").write_text("Something else stands here. " * 20)
    (corpus / "another.jsonl").write_text('{"question": "What does another set ask of the mill by the river?"}\n')
    shutil.copytree(corpus / "tokenizers" / "samples", corpus / "tokenizers" / "another")
    (corpus / "my_rules.py").write_text("def score(texts):\n    return [len(text.as_py()) for text in texts]\n")
    return corpus


@pytest.mark.parametrize("path", FIELDS)
def test_case_48_what_shapes_is_in_the_key_and_what_does_not_is_in_none(varied, path):
    if path in ONE_VALUE:
        return
    if path not in SHAPING and path not in NOT_SHAPING:
        pytest.fail(f"{path} is a new field: put a changed value for it into SHAPING or NOT_SHAPING")
    own = path.partition(".")[0]
    found = changed(varied, path, SHAPING.get(path, NOT_SHAPING.get(path)))
    assert found == ({own} if path in SHAPING else set()), path


def test_case_48_where_a_second_stage_starts_is_in_the_key(corpus):
    recipe = params(corpus)
    recipe["mix"]["stages"].append({"start": 10, "weights": {"prose": 1}, "leave_out": ["chats", "code", "web"]})
    set_params(corpus, recipe)
    before = keys(corpus)
    recipe["mix"]["stages"][1]["start"] = 11
    set_params(corpus, recipe)
    assert [name for name in STEPS if keys(corpus)[name] != before[name]] == ["mix"]


@pytest.mark.parametrize(
    "other", [{"name": "german"}, {"sources": ["web"]}, {"kinds": ["web"]}, {"languages": ["de"]}, None]
)
def test_case_48_every_field_of_a_domain_is_in_the_key(varied, other):
    old = params(varied)
    try:
        before = {}
        for domains in ([{"name": "some"}], [{"name": "some"} | other] if other else []):
            set_params(varied, old | {"pack": old["pack"] | {"domains": domains}})
            after, before = before, keys(varied)
        assert [name for name in STEPS if after[name] != before[name]] == ["pack"]
    finally:
        set_params(varied, old)


def test_case_48_the_action_of_a_rule_is_in_the_key(corpus):
    recipe = params(corpus)
    recipe["filter"]["rules"].append({"name": "brief", "signal": "brief_lines", "max": 0.9, "action": "drop"})
    set_params(corpus, recipe)
    before = keys(corpus)
    recipe["filter"]["rules"][-1]["action"] = "cut"
    set_params(corpus, recipe)
    assert [name for name in STEPS if keys(corpus)[name] != before[name]] == ["filter"]


@pytest.mark.parametrize(
    "other",
    [{"kinds": ["web"], "min": 7}, {"kinds": ["book"], "min": 6}, {"languages": ["en"], "min": 6}, {"kinds": ["web"]}],
)
def test_case_48_every_field_of_an_exception_is_in_the_key(varied, other):
    recipe = params(varied)
    recipe["filter"]["rules"][0]["where"] = [{"kinds": ["web"], "min": 6}]
    old = params(varied)
    set_params(varied, recipe)
    try:
        before = keys(varied)
        recipe["filter"]["rules"][0]["where"] = [{"max": 10_000, "skip": False} | other]
        set_params(varied, recipe)
        assert [name for name in STEPS if keys(varied)[name] != before[name]] == ["filter"]
    finally:
        set_params(varied, old)


def test_case_48_every_shaping_field_is_listed_by_a_folder_and_no_other_is():
    for name, each in STEPS.items():
        listed = {field for folder in each.folders for field in folder.shapes}
        roles = {field: info.json_schema_extra["role"] for field, info in each.params.model_fields.items()}
        assert listed == {field for field, role in roles.items() if role == "shapes"}, name


def test_case_48_what_a_run_is_made_with_is_no_matter(corpus):
    """Workers, home of results, log level: no section of params.yaml but a step's own is in its key."""
    before, recipe = keys(corpus), params(corpus)
    recipe["run"] = {"workers": 7}
    recipe["train"]["batch_size"] = 3
    set_params(corpus, recipe)
    assert keys(corpus) == before


# --- 49: a failed try ------------------------------------------------------------------------------------------------


def test_case_49_a_failed_try_leaves_nothing_to_read_and_the_next_one_computes(bare):
    bad = case("49-failed-result-cached", "bad.jsonl", '{"id":"1","text":"ok"}\n{"id":"2","text":\n')
    good = case("49-failed-result-cached", "good.jsonl", '{"id":"1","text":"ok"}\n{"id":"2","text":"fixed"}\n')
    path = only_source(bare, "in.jsonl", bad)
    for _ in range(2):
        one_line(step(bare, "ingest"), 4, "source only: 1 of 2 records rejected", "rejects_max_share is 0.05")
        assert not Project(bare).artifact("ingest").exists()
        one_line(step(bare, "normalize"), 1, "ingest, which does not stand", "gristmill build --until ingest")
    path.write_text(good)
    done = step(bare, "ingest")
    assert done.returncode == 0 and "ingest: built" in done.stdout, done.stderr
    rows = [entry.rows for entry in Manifest.read(Project(bare).artifact("ingest")).folders["documents"].values()]
    assert sum(rows) == 2


def test_case_49_a_passing_fault_is_tried_anew_and_not_remembered(bare, monkeypatch):
    """What the flow's retries meet: the same process, a second time."""
    monkeypatch.setattr(performing, "judge", lambda *_: [])
    from tasks.ingest import documents

    make, calls = documents.make, []

    def stutters(reads, params):
        calls.append(reads.name)
        if len(calls) == 3:
            raise ConnectionResetError("a disk that stutters")
        return make(reads, params)

    monkeypatch.setattr(documents, "make", stutters)
    project = Project(bare)
    with pytest.raises(ConnectionResetError):
        perform(STEPS["ingest"], project)
    assert not project.artifact("ingest").exists()
    report = perform(STEPS["ingest"], project)
    assert (
        report.outcome == "built"
        and list(Manifest.read(project.artifact("ingest")).verify(project.artifact("ingest"))) == []
    )
    parts = report.made["documents"] + report.carried["documents"]
    assert len(calls) == parts + 1, "the two parts that were made whole are taken over, the third is made again"


# --- 52: two at once -------------------------------------------------------------------------------------------------

HOLD = """
import sys, time
from functools import cache
from pathlib import Path
from tasks.locks import build_lock
with build_lock(Path.cwd() / ".gristmill", wait=False):
    print("held", flush=True)
    time.sleep(100)
"""


def wide(root: Path) -> None:
    """The case's own documents, as one source."""
    line = '{{"id": "{0}", "text": "{1}"}}\n'
    words = "".join(line.format(n, " ".join(f"w{(n * 131 + m * 17) % 3999:04}" for m in range(40))) for n in range(200))
    only_source(root, "in.jsonl", case("52-concurrent-runs-and-locks", "in.jsonl", words))


def test_case_52_a_second_stage_is_refused_by_name_and_goes_on_once_the_holder_is_killed(bare):
    wide(bare)
    holder = start(bare, "-c", HOLD)
    assert holder.stdout.readline() == "held\n"
    one_line(step(bare, "ingest"), 75, f"pid {holder.pid}")
    one_line(run(bare, "-m", "flows.cli", "unlock"), 75, f"pid {holder.pid}", "alive")
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    began = time.monotonic()
    assert step(bare, "ingest").returncode == 0
    assert time.monotonic() - began < 60


def test_case_52_two_builds_at_once_and_one_that_is_killed(bare):
    """race.sh of the case: both end well with one fingerprint; after kill -9 the next goes on by itself."""
    wide(bare)
    command = ("-m", "flows.cli", "build", "--until", "ingest", "--json")
    pair = [start(bare, *command), start(bare, *command)]
    ended = [(process.communicate(timeout=200), process.returncode) for process in pair]
    assert [code for _, code in ended] == [0, 0], ended
    prints = {json.loads(out)["steps"][0]["fingerprint"] for (out, _), _ in ended}
    assert prints == {Manifest.read(Project(bare).artifact("ingest")).fingerprint}
    shutil.rmtree(bare / "data")
    killed = start(bare, *command)
    deadline = time.monotonic() + 100
    while not (bare / "data").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    began = time.monotonic()
    done = gristmill(bare, *command[2:])
    assert done.returncode == 0, done.stderr
    assert {json.loads(done.stdout)["steps"][0]["fingerprint"]} == prints
    assert time.monotonic() - began < 60


# --- 53: a full disk -------------------------------------------------------------------------------------------------


def big(root: Path) -> None:
    """The case's own input: 20,000 documents, 4 MB, in parts of a megabyte."""
    maker = case(
        "53-disk-full-partial-artifact",
        "make_input.py",
        "import json\nwith open('big.jsonl', 'w') as f:\n"
        "    for i in range(20000):\n"
        "        f.write(json.dumps({'id': i, 'text': ('%08d ' % (i * 7919 % 99999999)) * 20}) + '\\n')\n",
    )
    subprocess.run([sys.executable, "-c", maker], cwd=root, check=True)
    only_source(root, "big.jsonl", (root / "big.jsonl").read_bytes(), part_bytes=1 << 20, part_bytes_max=4 << 20)


def test_case_53_a_file_that_may_grow_no_further_stops_the_step_with_its_path(bare):
    big(bare)
    limited = subprocess.run(
        ["bash", "-c", f"ulimit -f 200; exec {sys.executable} -m tasks ingest --workers 1"],
        cwd=bare,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    one_line(limited, 28, "no space left while writing", str(bare / "data"), "run again")
    assert not Project(bare).artifact("ingest").exists()
    assert step(bare, "ingest").returncode == 0
    first = contents(bare)
    shutil.rmtree(bare / "data")
    assert step(bare, "ingest").returncode == 0
    assert contents(bare) == first


FULL = """
mount -t tmpfs -o size={size}k,mode=755 tmpfs data || exit 99
{python} -c "$MILL" 2> first.txt; echo $? > first.code
find data -name '*.partial' -o -name '.*.[0-9]*' > left.txt
ls data > stood.txt
mount -o remount,size=64m data
{python} -c "$MILL" 2> second.txt || exit 1
{python} -m flows.cli verify --json > verified.json || exit 2
"""


@pytest.mark.parametrize("size", [300, 1000])
def test_case_53_a_full_disk_leaves_no_half_artifact_and_then_the_clean_digest(built, bare, size):
    (bare / "data").mkdir()
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", FULL.format(size=size, python=sys.executable)],
        cwd=bare,
        env=environment(MILL=MILL),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 99 or "unshare" in done.stderr:
        pytest.skip(f"no small file system can be mounted here: {done.stderr.strip()}")
    assert (bare / "first.code").read_text().strip() != "0"
    last = (bare / "first.txt").read_text().strip().splitlines()[-1]
    assert "SpaceError" in last and "no space left while writing" in last and "data" in last
    assert (bare / "left.txt").read_text() == ""
    assert done.returncode == 0, (bare / "second.txt").read_text()
    stood = {name for name in (bare / "stood.txt").read_text().split() if name in STEPS}
    assert stood < set(STEPS)
    found = {row["step"]: row["fingerprint"] for row in json.loads((bare / "verified.json").read_text())}
    assert found == {name: Manifest.read(Project(built).artifact(name)).fingerprint for name in STEPS}


@pytest.mark.parametrize("harm", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-2])])
def test_case_53_a_shard_that_is_gone_or_short_is_found_and_made_again(corpus, harm):
    clean = contents(corpus)
    victim = next((Project(corpus).artifact("shard") / "web" / "train").glob("*.bin"))
    harm(victim)
    one_line(gristmill(corpus, "verify"), 6, victim.name, "gristmill build --force shard")
    done = step(corpus, "shard")
    assert done.returncode == 0 and "shard: built" in done.stdout, done.stderr
    assert contents(corpus) == clean


# --- 55: no network --------------------------------------------------------------------------------------------------

LISTENER = """
import os, sys
def note(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname"):
        place = arguments[1] if event == "socket.connect" else arguments[0]
        with open(os.environ["CALLS"], "a") as file:
            file.write(repr((event, place)) + "\\n")
sys.addaudithook(note)
"""
LOOPBACK = re.compile(
    r"'(127\.0\.0\.1|localhost|::1|::ffff:127\.0\.0\.1)'|'/[^']*'|None\)|b'127\.0\.0\.1'|'0\.0\.0\.0'"
)
OFFLINE = "ip link set lo up 2>/dev/null; exec {python} -m flows.cli build --json"


def test_case_55_a_whole_build_with_a_network_of_nothing_but_loopback(built, bare, tmp_path):
    """The flow with its embedded Prefect and the suites; the calls of all its processes are noted."""
    hook = tmp_path / "hook"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(LISTENER)
    calls = tmp_path / "calls"
    alone = ["unshare", "-rn"] if _can_be_alone() else []
    done = subprocess.run(
        [*alone, "sh", "-c", OFFLINE.format(python=sys.executable)],
        cwd=bare,
        env=environment(PYTHONPATH=f"{hook}{os.pathsep}{ROOT}", CALLS=str(calls)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["fingerprint"] == Manifest.read(Project(built).artifact("mix")).fingerprint
    lines = calls.read_text().splitlines()
    assert any("socket.connect" in line for line in lines), "the hook saw nothing, not even Prefect's own server"
    assert [line for line in lines if not LOOPBACK.search(line)] == []


def _can_be_alone() -> bool:
    try:
        return subprocess.run(["unshare", "-rn", "true"], check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def test_case_55_a_stage_turns_the_judges_calls_home_off_by_itself(built):
    """`python -m tasks` imports nothing of flows, so the judge settles its own switches before its import."""
    script = (
        "import os, json; from tasks import validate; validate._import_gx();"
        "print(json.dumps([os.environ['GX_ANALYTICS_ENABLED'], os.environ['DO_NOT_TRACK']]))"
    )
    done = run(built, "-c", script)
    assert json.loads(done.stdout.splitlines()[-1]) == ["false", "1"], done.stderr


def test_case_55_every_opt_out_is_set_before_anything_is_imported():
    from flows import environment as settled

    assert settled.SWITCHES == {
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "DVC_NO_ANALYTICS": "1",
        "GX_ANALYTICS_ENABLED": "false",
        "HF_HUB_OFFLINE": "1",
    }
    assert "check_update = false" in (ROOT / ".dvc" / "config").read_text()


# --- 57: nothing to see ----------------------------------------------------------------------------------------------

NULLS = '{"id": 0, "text": null, "lang": null}\n{"id": 1, "text": null, "lang": null}\n'
BLANKS = '{"id": 0, "text": ""}\n{"id": 1, "text": "  \\n"}\n{"id": 2, "text": "\\u200b\\u2060"}\n'
MIXED = "".join(json.dumps({"id": n, "text": None if n % 3 == 0 else f"some text {n}"}) + "\n" for n in range(10))


@pytest.mark.parametrize(("name", "otherwise"), [("all_null", NULLS), ("blank", BLANKS), ("mixed", MIXED)])
def test_case_57_a_source_of_nulls_or_blanks_stops_ingest_by_name(bare, name, otherwise):
    only_source(bare, f"{name}.jsonl", case("57-gx-all-null-and-blank", f"{name}.jsonl", otherwise))
    one_line(step(bare, "ingest"), 4, "ingest", "source only", "records rejected", "rejects_max_share is 0.05")
    assert not Project(bare).artifact("ingest").exists()


@pytest.mark.parametrize(("name", "otherwise"), [("all_null", NULLS), ("blank", BLANKS)])
def test_case_57_a_suite_stops_what_the_limit_lets_through(bare, name, otherwise):
    """Of the blanks a lone NUL is read as a text; normalize leaves nothing of it."""
    text = case("57-gx-all-null-and-blank", f"{name}.jsonl", otherwise)
    only_source(bare, f"{name}.jsonl", text, rejects_max_share=1.0)
    for stopped in ("ingest", "normalize", "filter"):
        done = step(bare, stopped)
        if done.returncode:
            break
    one_line(done, 5, f"{stopped} fails its suite", f"expectations/{stopped}.json")
    assert not Project(bare).artifact(stopped).exists()


@pytest.fixture(scope="module")
def judged(built):
    """judge(step, change of its rows) -> Validation, over the artifacts that stand."""
    from tasks.build import Build
    from tasks.staged import Staged
    from tasks.validate import validate

    def judge(name, change):
        project = Project(built)
        build = Build.begin(STEPS[name], project)
        artifact = Staged.standing(build, Manifest.read(project.artifact(name)))
        altered = dataclasses.replace(STEPS[name], rows=lambda *given: change(STEPS[name].rows(*given)))
        return validate(altered, artifact, project.suite(name), None)

    return judge


def blanked(share: int, value):
    """A change that puts `value` into every column, in each row or in 30 % of the rows."""
    import pyarrow as pa

    def change(table):
        columns = {}
        for field, column in zip(table.schema, table.columns, strict=True):
            fits = value is None or pa.types.is_string(field.type)
            old = column.to_pylist()
            new = [value if fits and row * share % 100 < share else each for row, each in enumerate(old)]
            columns[field.name] = pa.array(new, field.type)
        return pa.table(columns, table.schema.remove_metadata())

    return change


@pytest.mark.parametrize("name", STEPS)
def test_case_57_rows_of_nulls_or_blanks_fail_every_suite(judged, name):
    sound = judged(name, lambda table: table)
    assert sound.success and sound.tested["rows"] > 0 and sound.tested["expectations"] > 0
    for share, value in ((100, None), (30, None), (100, ""), (100, " \u200b")):
        found = judged(name, blanked(share, value))
        assert not found.success, (name, share, value)
        assert all(f"{name}.json" in failure for failure in found.failures)


# --- bad input of other kinds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("section", "change", "said"),
    [
        ("pack", {"tokens_per_sequnce": 64}, "pack.tokens_per_sequnce is an unknown key"),
        ("pack", {"tail": 3}, "pack.tail is 3"),
        ("pack", {"tokens_per_sequence": "64"}, "pack.tokens_per_sequence is '64'"),
        ("pack", {"tokens_per_sequence": 64.0}, "pack.tokens_per_sequence"),
        ("pack", {"tokens_per_sequence": True}, "pack.tokens_per_sequence is True"),
        ("dedup", {"shingle_words": 0}, "dedup.shingle_words is 0"),
        ("filter", {"rules": [{"name": "x", "signal": "lenght", "min": 1}]}, "no such signal"),
        ("mix", {"stages": []}, "mix.stages"),
    ],
)
def test_params_that_are_wrong_are_told_in_one_line(corpus, section, change, said):
    recipe = params(corpus)
    recipe[section] |= change
    set_params(corpus, recipe)
    one_line(gristmill(corpus, "build"), 2, said)
    one_line(step(corpus, section), 2, said)
    assert contents(corpus)


def test_a_number_of_workers_that_is_none_is_told_in_one_line(bare):
    recipe = params(bare)
    recipe["run"] = {"workers": "two"}
    set_params(bare, recipe)
    one_line(run(bare, "-m", "tasks", "ingest"), 2, "run.workers is 'two'")


def test_a_key_that_is_written_twice_is_told(bare):
    text = (bare / "params.yaml").read_text()
    (bare / "params.yaml").write_text(text + "\npack:\n  tokens_per_sequence: 8\n")
    one_line(gristmill(bare, "build"), 2, "pack stands there twice")


@pytest.mark.parametrize("suffix", [".jsonl.gz", ".jsonl.zst"])
def test_a_packed_file_that_was_cut_off_is_named(bare, suffix):
    import pyarrow as pa

    lines = "".join(json.dumps({"text": f"{n} {os.urandom(40).hex()}"}) + "\n" for n in range(200)).encode()
    packed = gzip.compress(lines) if suffix.endswith("gz") else pa.compress(lines, "zstd", asbytes=True)
    only_source(bare, f"cut{suffix}", packed[: len(packed) // 2])
    one_line(step(bare, "ingest"), 3, f"cut{suffix}")
    assert not Project(bare).artifact("ingest").exists()


READ_ONLY = "mount --bind data data && mount -o remount,bind,ro data || exit 99; exec {python} -m tasks ingest"


def test_a_data_folder_that_cannot_be_written_is_named(bare):
    """A read-only mount, since root may write everywhere else."""
    (bare / "data").mkdir()
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", READ_ONLY.format(python=sys.executable)],
        cwd=bare,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 99 or "unshare" in done.stderr:
        pytest.skip(f"no read-only mount can be made here: {done.stderr.strip()}")
    one_line(done, 28, "cannot write", "data", "Read-only")
