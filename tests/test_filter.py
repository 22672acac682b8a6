"""The step filter: its two folders, what it counts and refuses, and the rules that the repository ships."""

import json
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import yaml
from pydantic import ValidationError

from tasks import perform as perform_module
from tasks.artifacts.documents import TEXT
from tasks.artifacts.tables import read_table, write_table
from tasks.artifacts.verdicts import FILTER_VERDICTS, SIGNALS
from tasks.filter import STEP, FilterParams, invariants, rows
from tasks.filter.signals import make as make_signals
from tasks.filter.verdicts import make as make_verdicts
from tasks.perform import perform
from tasks.project import Project
from tasks.step import Folder, Made, Step, StepParams, Unit
from tests.memory_reads import MemoryReads

PARAMS_FILE = Path(__file__).parents[1] / "params.yaml"
UNIT = "web-0123456789abcdef"


def shipped():
    section = yaml.safe_load(PARAMS_FILE.read_text("utf-8"))["filter"]
    return FilterParams.model_validate_json(json.dumps(section))


PLAIN = {
    "language_characters": 1000,
    "language_letters_min": 0,
    "segmentation": {},
    "signals": [],
    "metadata": [],
    "mask": {},
    "blocklists": [],
}


def params(*rules, **others):
    return FilterParams.model_validate_json(json.dumps({**PLAIN, "rules": list(rules), **others}))


def text_table(texts, kinds):
    return pa.table({"text": pa.array(texts, pa.large_string()), "kind": pa.array(kinds, pa.string())})


def run(texts, kinds, chosen):
    """(signals, verdicts) as Made."""
    tables = {"normalize/text": text_table(texts, kinds)}
    signals = make_signals(MemoryReads(UNIT, tables), chosen)
    tables["filter/signals"] = signals.files[".parquet"].cast(SIGNALS)
    return signals, make_verdicts(MemoryReads(UNIT, tables), chosen)


def verdicts_of(texts, kinds, chosen):
    """(verdict, rule) of each text."""
    table = run(texts, kinds, chosen)[1].files[".parquet"]
    return list(zip(table["verdict"].to_pylist(), table["rule"].to_pylist(), strict=True))


SHORT = {"name": "too_short", "signal": "words", "min": 3}
NOISE = {"name": "symbols", "signal": "symbol_share", "max": 0.5, "kinds": ["web"]}


def test_verdicts_name_the_first_rule_its_value_and_limit():
    texts = ["one two three", "one", "a b c !!!!!!!", "a b c !!!!!!!", "!!"]
    _, verdicts = run(texts, ["web", "web", "web", "code", "web"], params(SHORT, NOISE))
    assert verdicts.files[".parquet"].to_pylist() == [
        {"verdict": "keep", "rule": None, "value": None, "limit": None},
        {"verdict": "drop", "rule": "too_short", "value": 1.0, "limit": 3.0},
        {"verdict": "drop", "rule": "symbols", "value": 0.7, "limit": 0.5},
        {"verdict": "keep", "rule": None, "value": None, "limit": None},
        {"verdict": "drop", "rule": "too_short", "value": 0.0, "limit": 3.0},
    ]


def test_counts_add_up_and_a_silent_rule_counts_zero():
    never = {"name": "never", "signal": "bytes", "max": 1_000_000}
    signals, verdicts = run(["one two three", "one", "123"], ["web"] * 3, params(SHORT, NOISE, never))
    counts = verdicts.counts
    assert signals.counts == {"documents_in": 3}
    assert (counts["documents_in"], counts["documents_kept"], counts["documents_dropped"]) == (3, 1, 2)
    assert (counts["characters_in"], counts["characters_kept"], counts["characters_dropped"]) == (19, 13, 6)
    assert counts["dropped|rule=too_short"] == 2 and counts["characters_dropped|rule=too_short"] == 6
    assert counts["dropped|rule=never"] == counts["dropped|rule=symbols"] == counts["fired|rule=never"] == 0
    assert counts["fired|rule=too_short"] == 2 and counts["documents_cut"] == 0
    languages = {key: value for key, value in counts.items() if "language" in key}
    assert sum(value for key, value in languages.items() if key.startswith("documents|")) == 3
    assert sum(value for key, value in languages.items() if key.startswith("kept|")) == 1
    assert languages["documents|language=und"] == 1 and languages["kept|language=und"] == 0
    assert all(type(value) is int for value in counts.values())


@pytest.mark.parametrize("rules", [[], [SHORT, NOISE]])
def test_zero_rows_fit_their_schemas(rules, tmp_path):
    signals, verdicts = run([], [], params(*rules))
    for name, made, schema in (("s", signals, SIGNALS), ("v", verdicts, FILTER_VERDICTS)):
        write_table(tmp_path / name, made.files[".parquet"], schema)
        assert read_table(tmp_path / name).schema.equals(schema)
    assert verdicts.counts["documents_in"] == 0


def test_verdicts_read_no_text():
    signals, _ = run(["one two three"], ["web"], params(SHORT))
    without_text = {
        "normalize/text": pa.table({"kind": ["web"]}),
        "filter/signals": signals.files[".parquet"],
    }
    made = make_verdicts(MemoryReads(UNIT, without_text), params(SHORT))
    assert made.files[".parquet"]["verdict"].to_pylist() == ["keep"]


def test_unequal_rows_are_refused():
    signals, _ = run(["one two three"], ["web"], params(SHORT))
    tables = {
        "normalize/text": pa.table({"kind": ["web", "web"]}),
        "filter/signals": signals.files[".parquet"],
    }
    with pytest.raises(ValueError, match="1 rows of signals and 2 of normalize/text"):
        make_verdicts(MemoryReads(UNIT, tables), params(SHORT))


def test_each_folder_lists_the_params_that_it_reads():
    class Only:
        def __init__(self, **fields):
            self.__dict__.update(fields)

    everything = params(SHORT, NOISE)
    by_name = {folder.name: Only(**{n: getattr(everything, n) for n in folder.shapes}) for folder in STEP.folders}
    tables = {"normalize/text": text_table(["a b c"], ["web"])}
    tables["filter/signals"] = make_signals(MemoryReads(UNIT, tables), by_name["signals"]).files[".parquet"]
    make_verdicts(MemoryReads(UNIT, tables), by_name["verdicts"])


class Standing:
    """An artifact held in memory."""

    def __init__(self, tables, counts):
        self.params, self._tables, self._counts = None, tables, counts

    def units(self, folder):
        return [UNIT] * (folder in self._tables)

    def table(self, folder, columns=None, unit=None):
        table = self._tables[folder]
        return table if columns is None else table.select(columns)

    def counts(self, folder):
        return {UNIT: self._counts}


def standing():
    texts, kinds = ["one two three", "one"], ["web", "web"]
    signals, verdicts = run(texts, kinds, params(SHORT))
    tables = {"normalize/text": text_table(texts, kinds)}
    tables |= {"filter/signals": signals.files[".parquet"], "filter/verdicts": verdicts.files[".parquet"]}
    return tables, dict(verdicts.counts)


def test_a_sound_artifact_breaks_no_invariant():
    assert list(invariants(Standing(*standing()))) == []


def changed(table, column, values):
    place = table.column_names.index(column)
    return table.set_column(place, column, pa.array(values, table.schema.field(column).type))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (
            lambda t, c: t.update({"filter/signals": t["filter/signals"].slice(1)}),
            "2 verdicts for 1 rows of filter",
        ),
        (
            lambda t, c: t.update({"normalize/text": t["normalize/text"].slice(1)}),
            "for 1 rows of normalize/text",
        ),
        (lambda t, c: c.update(documents_kept=2), "2 documents in, but 2 kept + 1 dropped"),
        (lambda t, c: c.update(characters_in=15), "15 characters in, but 13 kept + 3 dropped"),
        (
            lambda t, c: t.update({"filter/verdicts": changed(t["filter/verdicts"], "limit", [None, None])}),
            "1 rows are cut or dropped without limit",
        ),
        (
            lambda t, c: t.update({"filter/verdicts": changed(t["filter/verdicts"], "rule", ["x", "too_short"])}),
            "1 rows are cut or dropped without rule, or kept with one",
        ),
        (
            lambda t, c: t.update({"filter/verdicts": changed(t["filter/verdicts"], "verdict", ["gone", "drop"])}),
            "1 verdicts besides keep, cut and drop",
        ),
    ],
)
def test_each_breach_is_named(spoil, said):
    tables, counts = standing()
    spoil(tables, counts)
    breaches = list(invariants(Standing(tables, counts)))
    assert len(breaches) == 1 and said in breaches[0] and UNIT in breaches[0]


def test_rows_hold_signals_verdicts_and_places_but_no_text():
    table = rows(Standing(*standing()), UNIT)
    assert table.column_names == ["part", "row", "source", *SIGNALS.names, *FILTER_VERDICTS.names]
    assert table.select(["part", "row", "source", "verdict"]).to_pylist()[1] == {
        "part": UNIT, "row": 1, "source": "web", "verdict": "drop"
    }  # fmt: skip


SCHEMA = TEXT
UNITS = (UNIT, "books-89abcdef01234567")


def lay_text(reads, params):
    """Two documents as a step normalize would give them."""
    texts = [f"one two three {reads.name}", "one"]
    fixed = {name: ["x"] * 2 for name in ("id", "text_sha", "source")}
    empty = {field.name: pa.nulls(2, field.type) for field in TEXT if field.nullable}
    return Made({".parquet": pa.table({**fixed, "kind": ["web"] * 2, "text": texts, **empty})})


def plan_two(plan, folder):
    return [Unit(unit) for unit in UNITS]


plan_two.__module__ = "tests.test_filter"  # its code is looked up below the repository's root


NORMALIZE = Step(
    name="normalize",
    params=StepParams,
    folders=(Folder("text", "tests.test_filter:lay_text", plan=plan_two),),
    inputs=(),
    rows=lambda artifact, unit: artifact.table("normalize/text", ["kind"], unit),
    rows_of="normalize/text",
    invariants=lambda artifact: iter(()),
)


def test_new_limits_make_verdicts_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(perform_module, "judge", lambda *_: [])
    monkeypatch.setattr(perform_module, "judge_digest", lambda *_: "judges")

    def build(least):
        section = {**PLAIN, "rules": [{**SHORT, "min": least}]}
        (tmp_path / "params.yaml").write_text(yaml.safe_dump({"normalize": {}, "filter": section}))
        return perform(STEP, Project(tmp_path))

    (tmp_path / "params.yaml").write_text("normalize: {}\n")
    perform(NORMALIZE, Project(tmp_path))
    first = build(3)
    assert first.made == {"signals": 2, "own": 0, "blocked": 0, "verdicts": 2, "cuts": 2}
    assert first.counts["documents_dropped"] == 2
    second = build(1)
    assert second.made.get("signals", 0) == 0 and second.made["verdicts"] == 2
    assert second.counts["documents_dropped"] == 0 and build(1).outcome == "up_to_date"


def test_two_rules_of_one_name_are_refused():
    with pytest.raises(ValidationError, match="more than one rule is named too_short"):
        params(SHORT, SHORT)


def test_there_are_no_defaults():
    with pytest.raises(ValidationError, match="8 validation errors"):
        FilterParams.model_validate_json("{}")


ORDINARY = [
    ("web", "The miller opened the sluice and the wheel began to turn, slowly at first, then faster. By noon "
     "there was flour enough for the whole village, and the children came running."),
    ("web", "Der Müller öffnete die Schleuse, und das Rad begann sich zu drehen, erst langsam, dann "
     "schneller. Gegen Mittag lag Mehl genug für das ganze Dorf bereit, und die Kinder kamen gelaufen."),
    ("web", "Le meunier ouvrit l'écluse et la roue se mit à tourner, d'abord lentement, puis plus vite. "
     "À midi il y avait assez de farine pour tout le village, et les enfants accoururent."),
    ("web", "El molinero abrió la compuerta y la rueda empezó a girar, primero despacio, luego más "
     "deprisa. A mediodía había harina suficiente para todo el pueblo, y los niños llegaron corriendo."),
    ("web", "磨坊主打开了水闸，水轮开始慢慢转动，然后越来越快。到了中午，面粉已经够全村人吃了。"),
    ("web", "粉屋は水門を開け、水車はゆっくりと、やがて速く回り始めました。粉がたくさんできました。"),
    ("web", "โรงสีเปิดประตูน้ำ แล้วกังหันก็เริ่มหมุนช้า ๆ จากนั้นก็เร็วขึ้น"),
    ("chat", "How do I sharpen a chisel?\n\nHold it at twenty-five degrees and draw it over the stone."),
    ("chat", "什么是磨坊？\n\n把谷物磨成面粉的地方。"),
    ("chat", "Write a loop.\n\n```python\nfor i in range(10):\n    print(i, i**2)\n```"),
    ("code", "def gcd(a, b):\n    while b:\n        a, b = b, a % b\n    return a\n"),
    ("code", "x = [(0, 1), (1, 0), (0, -1), (-1, 0)]\ny = {(i, j): i * j for i in x for j in x}\n"),
    ("paper", "\\section{Results} We find that $x_{n+1} = x_n - f(x_n)/f'(x_n)$ converges for every start in "
     "the interval $[0, 1]$, as Table 2 shows; the error falls by half in each of the first ten steps."),
]  # fmt: skip
JUNK = [
    ("web", "Home", "too_short"),
    ("web", "", "too_short"),
    ("book", "CHAPTER I.", "too_short"),
    ("web", "Buy now! " * 200, "repetition"),
    ("book", "All work and no play makes Jack a dull boy.\n" * 500, "repetition_long"),
    ("web", "=-=-=-= | *** | " + "a b c d e f g h i j k l m n o p q r s t u v " + "#$%^&*()" * 20, "symbols"),
    (
        "web",
        " ".join(f"x{n}" for n in range(10)) + " 1 2 3 of in to a an it be or no if on at he",
        "word_length",
    ),
    ("chat", "hi", "too_short_chat"),
    ("code", "#" * 300 + " a b c d e f", "symbols_code"),
    ("code", "\n", "too_short_code"),
    ("web", "17 4 2001 3 9 12 40 77 1999 5 6 2 8 88 21 31 44 50 62 71 90", "few_letters"),
]


def test_the_shipped_rules_keep_ordinary_text():
    kinds, texts = zip(*ORDINARY, strict=True)
    _, verdicts = run(texts, kinds, shipped())
    dropped = [
        (row, text) for row, text in zip(verdicts.files[".parquet"].to_pylist(), texts, strict=True) if row["rule"]
    ]
    assert dropped == []


def test_the_shipped_rules_drop_junk():
    kinds, texts, rules = zip(*JUNK, strict=True)
    _, verdicts = run(texts, kinds, shipped())
    assert verdicts.files[".parquet"]["rule"].to_pylist() == list(rules)


def test_each_page_of_the_samples_that_is_junk_breaks_the_rule_for_its_kind_of_junk():
    """samples/truth.json says what each is; the one in no language is what `unclear_language` is for."""
    broken = {
        "too_short": "too_short",
        "repeated_lines": "repetition",
        "digests": "word_length",
        "repeated_words": "repetition",
        "navigation": "symbols",
        "no_language": "unclear_language",
    }
    samples = PARAMS_FILE.parent / "samples"
    junk = json.loads((samples / "truth.json").read_text("utf-8"))["junk"]
    places = {item["why"]: item["place"] for item in junk if item["place"]["file"] == "pages.jsonl"}
    records = (samples / "web/pages.jsonl").read_text("utf-8").splitlines()
    texts = [json.loads(records[place["record"]])["text"] for place in places.values()]
    _, verdicts = run(texts, ["web"] * len(texts), shipped())
    assert verdicts.files[".parquet"]["rule"].to_pylist() == [broken[why] for why in places]
    assert "no_language" in places


def test_the_repositorys_prose_passes():
    files = sorted((PARAMS_FILE.parent / "samples" / "prose").rglob("*.*"))
    if not files:
        pytest.skip("samples/prose is not here")
    _, verdicts = run([file.read_text("utf-8") for file in files], ["book"] * len(files), shipped())
    assert set(verdicts.files[".parquet"]["rule"].to_pylist()) == {None}


def test_scripts_without_spaces_are_not_dropped_as_one_word():
    case = PARAMS_FILE.parent / "../shared/cases/18-no-space-scripts/docs.jsonl"
    if not case.is_file():
        pytest.skip("the shared cases are not here")
    texts = [json.loads(line)["text"] for line in case.read_text("utf-8").split("\n") if line]
    signals, _ = run(texts, ["web"] * len(texts), shipped())
    assert min(signals.files[".parquet"]["words"].to_pylist()) >= 20


@pytest.mark.long
def test_a_million_documents_are_judged_anew_in_two_seconds(tmp_path):
    """CPU seconds, with all rules of Gopher, C4 and FineWeb, reading included."""
    rows, chance = 1_000_000, np.random.default_rng(1)
    drawn = {field.name: chance.integers(0, 3000, rows) for field in SIGNALS}
    columns = {name: drawn[name] if SIGNALS.field(name).type == pa.int64() else drawn[name] / 2999 for name in drawn}
    columns["language"] = np.array(["en", "de", "zh"])[drawn["language"] % 3]
    write_table(tmp_path / "signals", pa.table(columns), SIGNALS)
    kinds = pa.table({"kind": ["web"] * rows})
    write_table(tmp_path / "kinds", kinds, kinds.schema)

    class OnDisk:
        name = UNIT

        def table(self, folder, columns=None):
            return read_table(tmp_path / ("signals" if "signals" in folder else "kinds"), columns)

    chosen = params(*({"set": name} for name in ("gopher-1", "c4-1", "fineweb-1")))
    make_verdicts(OnDisk(), chosen)
    began = time.process_time()
    made = make_verdicts(OnDisk(), chosen)
    assert time.process_time() - began < 2
    assert made.counts["documents_in"] == rows and len(chosen.rules) == 32
