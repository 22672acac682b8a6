"""The step mix: what it writes, in what order, and what it refuses by name."""

from __future__ import annotations

import dataclasses
import json
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from pydantic import ValidationError

from tasks.artifacts.manifest import Entry
from tasks.artifacts.schedule import Schedule, folder_content
from tasks.errors import ParamsError
from tasks.mix import MIXTURE, STEP, MixParams, invariants, rows
from tasks.mix.mixture import make
from tasks.mix.planning import BOUNDS, CLASSES, STREAM, TOKENIZER, plan_mixture
from tests.memory_reads import MemoryReads
from training.order import Order

ROOT = Path(__file__).parents[1]
NAMES = ("a", "b", "e", "code", "web")
SECTIONS = {"pack": {"tokens_per_sequence": 8}, "tokenize": {"tokenizer": "demo"}}
SECTIONS |= {"ingest": {"sources": [{"name": name} for name in NAMES]}}
SHARDS = {"code/train/shard_00000": 5, "code/train/shard_00001": 4, "code/validation/shard_00000": 2}
SHARDS |= {"web/train/shard_00000": 91}


def params(*stages: dict, period: int = 64, seed: int = 7, max_epochs: float = 1000, **more) -> MixParams:
    content = more | {
        "max_epochs": max_epochs,
        "seed": seed,
        "period": period,
        "stages": stages or [{"start": 0, "weights": {"code": 1, "web": 3}}],
    }
    return MixParams.model_validate_json(json.dumps(content))


def entry(folder: str, unit: str, sequences: int) -> Entry:
    suffixes = {"stream": (".bin", ".idx"), "sequences": (".starts.npy", ".stops.npy"), "classes": (".classes.npy",)}[
        folder
    ]
    files = {f"{unit}{suffix}": {"sha256": f"{unit}{suffix}", "bytes": 1} for suffix in suffixes}
    counts = {"tokens": 8 * sequences + 1} if folder == "stream" else {"sequences": sequences}
    return Entry("k", "s", files, 0, counts, ("", 0))


def plan(shards: dict[str, int], own: MixParams, standing: dict | None = None) -> SimpleNamespace:
    folders = {
        STREAM: {unit: entry("stream", unit, n) for unit, n in shards.items()},
        BOUNDS: {unit: entry("sequences", unit, n) for unit, n in shards.items()},
        CLASSES: {unit: entry("classes", unit, n) for unit, n in shards.items() if "/train/" not in unit},
        TOKENIZER: {"tokenizer": Entry("k", "s", {}, 0, {}, ("", 0))},
    }
    return SimpleNamespace(
        entries=folders.__getitem__, section=SECTIONS.__getitem__, params=own, standing=(standing or {}).get
    )


@pytest.fixture
def mixture(tmp_path: Path):
    """Makes mixture.json of shards and params as the step would; gives its schedule, path and counts."""
    known = {"vocab_size": 4096, "dtype": "<u2", "eos_id": 2, "sha256": "ee", "format": 1}
    (tmp_path / "tokenizer.json").write_text(json.dumps(known))

    def run(own: MixParams, shards: dict[str, int] = SHARDS, standing: dict | None = None):
        unit = plan_mixture(plan(shards, own, standing), STEP.folders[0])[0]
        made = make(MemoryReads(unit.name, spec=unit.spec, paths={TOKENIZER: tmp_path / "tokenizer.json"}), own)
        path = tmp_path / "mixture.json"
        path.write_bytes(made.files[".json"])
        return SimpleNamespace(schedule=Schedule.read(path), path=path, counts=made.counts, unit=unit)

    return run


def artifact(path: Path, shards: dict[str, int] = SHARDS, own: MixParams | None = None) -> SimpleNamespace:
    counts = {BOUNDS: {unit: {"sequences": n} for unit, n in shards.items()}}
    return SimpleNamespace(path=lambda *_: path, counts=counts.__getitem__, params=own or params())


def test_what_it_writes(mixture) -> None:
    made = mixture(params())
    schedule = made.schedule
    assert json.loads(made.path.read_bytes())["format"] == 1
    assert (schedule.tokens_per_sequence, schedule.vocab_size, schedule.dtype, schedule.eos_id) == (
        8,
        4096,
        "uint16",
        2,
    )
    assert schedule.tokenizer == {"name": "demo", "sha256": "ee"}
    code = schedule.sources["code"]["train"]
    assert [(shard.name, shard.sequences) for shard in code.shards] == [
        ("shard_00000", 5),
        ("shard_00001", 4),
    ]
    assert (code.sequences, code.tokens) == (9, 74)
    names = [f"shard_0000{i}{suffix}" for i in (0, 1) for suffix in (".bin", ".idx", ".starts.npy", ".stops.npy")]
    assert code.content == folder_content({name: f"code/train/{name}" for name in names})
    assert schedule.stages[0].quotas == {"code": 16, "web": 48}
    counts = {"sequences|source=code": 9, "sequences|source=web": 91}
    assert made.counts == {**counts, "quota|source=code": 16, "quota|source=web": 48}


def test_the_whole_of_shard_is_read_and_pinned_by_digest(mixture) -> None:
    unit = mixture(params()).unit
    assert unit.name == "mixture"
    everything = {(STREAM, u) for u in SHARDS} | {(BOUNDS, u) for u in SHARDS} | {(TOKENIZER, "tokenizer")}
    assert set(unit.reads) == everything | {(CLASSES, "code/validation/shard_00000")}
    assert "shard_00000.classes.npy" in unit.spec["shards"]["code/validation/shard_00000"]["files"]
    assert unit.spec["tokens_per_sequence"] == 8
    json.dumps(unit.spec)


def test_the_same_bytes_whatever_order_the_shards_are_listed_in(mixture) -> None:
    """Case 43: all orders of three sources, one of them without training sequences."""
    shards = {"a/train/shard_00000": 2, "e/train/shard_00000": 0, "b/train/shard_00000": 1}
    own = params({"start": 0, "weights": {"b": 1, "a": 2}}, period=3)
    made = {mixture(own, dict(order)).path.read_bytes() for order in permutations(shards.items())}
    assert len(made) == 1


def test_new_weights_move_no_earlier_position(mixture) -> None:
    first = {"start": 0, "weights": {"code": 1, "web": 3}}
    stages = mixture(params(first, {"start": 1000, "weights": {"code": 1, "web": 1}})).schedule.stages
    assert stages[0] == mixture(params(first)).schedule.stages[0]
    assert stages[1].cursors == {"code": 250, "web": 750}


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        ({"weights": {"web": 1}}, "at 0 weighs web, but not code, which has sequences.*leave_out"),
        ({"weights": {}}, "weighs nothing, but not code, web"),
        (
            {"weights": {"code": 1, "web": 1, "books": 2}},
            "weigh 'books', which has no sequences.*ingest.sources and pack.domains do not name it.*code, web",
        ),
        ({"weights": {"code": 0, "web": 1}}, "'code' has weight 0.0.*above 0"),
        ({"weights": {"code": -1, "web": 1}}, "'code' has weight -1.0"),
        ({"weights": {"code": 1e-6, "web": 1}}, "'code' has weight 1e-06 .*raise it to"),
        ({"weights": {"code": 1, "web": 1}, "leave_out": ["web"]}, "both weighs and leaves out web"),
        ({"weights": {}, "leave_out": ["code", "web"]}, "no weights"),
    ],
)
def test_weights_that_do_not_fit_the_sources_are_refused_by_name(stage: dict, message: str, mixture) -> None:
    with pytest.raises(ParamsError, match=message):
        mixture(params({"start": 0, **stage}))


def test_a_source_may_be_left_out_of_a_stage_by_name(mixture) -> None:
    stages = [
        {"start": 0, "weights": {"web": 1}, "leave_out": ["code"]},
        {"start": 10, "weights": {"web": 1, "code": 1}},
    ]
    schedule = mixture(params(*stages)).schedule
    assert schedule.stages[0].quotas == {"web": 64}
    assert schedule.stages[1].cursors == {"code": 0, "web": 10}


@pytest.mark.parametrize(
    "change",
    [
        {"period": 65_537}, {"period": 0}, {"stages": []}, {"more": 1}, {"seed": "1"},
        {"stages": [{"start": 1, "weights": {"a": 1}}]},
        {"stages": [{"start": 0, "weights": {"a": 1}}, {"start": 0, "weights": {"a": 2}}]},
        {"stages": [{"start": 0, "weights": {"a": "much"}}]},
        {"stages": [{"weights": {"a": 1}, "tokens": 9, "epochs": 1}]},
        {"stages": [{"weights": {"a": 1}, "epochs": 0}]}, {"stages": [{"name": "Main", "weights": {"a": 1}}]},
    ],
)  # fmt: skip
def test_params_that_are_no_mix_are_refused(change: dict) -> None:
    content = {"seed": 1, "period": 64, "stages": [{"start": 0, "weights": {"a": 1}}], **change}
    with pytest.raises(ValidationError):
        MixParams.model_validate_json(json.dumps(content))


def test_rows_say_what_each_source_gets_and_how_often_it_is_repeated(mixture) -> None:
    """Case 42: a small source with half of the weight is seen to be repeated before any run."""
    shards = {"tiny/train/shard_00000": 2, "big/train/shard_00000": 198}
    stages = [
        {"start": 0, "weights": {"tiny": 0.5, "big": 0.5}},
        {"start": 100, "weights": {"tiny": 1, "big": 63}},
    ]
    made = mixture(params(*stages), shards)
    table = rows(artifact(made.path), "mixture")
    assert table.num_rows == 4
    first, second, _, last = sorted(table.to_pylist(), key=lambda row: (row["stage"], row["source"]))
    assert first == {
        "stage": 0, "start": 0, "positions": 100, "source": "big", "weight": 0.5, "quota": 32, "share": 0.5,
        "sequences": 198, "tokens": 198 * 8 + 1, "epochs": 50 / 198,
    }  # fmt: skip
    assert second["epochs"] == 25
    assert (last["positions"], last["epochs"]) == (200, 53 / 2)


def test_invariants_hold_and_miss_no_sequence(mixture) -> None:
    path = mixture(params()).path
    assert list(invariants(artifact(path))) == []
    [breach] = invariants(artifact(path, {**SHARDS, "web/train/shard_00001": 3}))
    assert breach.startswith("the shards hold 105 sequences, mixture.json orders 102")


def test_every_parameter_shapes_the_one_folder() -> None:
    [folder] = STEP.folders
    assert {*folder.shapes, "max_epochs", "max_epochs_of"} == set(MixParams.model_fields)
    assert folder.place.format(folder=folder.name, unit="mixture") + ".json" == "mixture.json"
    assert (STEP.rows_of, STEP.name) == (MIXTURE, "mix")
    assert dataclasses.is_dataclass(STEP)


def test_the_repositorys_own_section_is_valid() -> None:
    section = yaml.safe_load((ROOT / "params.yaml").read_text())["mix"]
    MixParams.model_validate_json(json.dumps(section))


def test_planned_and_achieved_shares(mixture) -> None:
    stage = mixture(params({"start": 0, "weights": {"code": 1, "web": 2}})).schedule.stages[0]
    assert stage.planned == {"code": 1 / 3, "web": 2 / 3}
    assert stage.achieved == {"code": 21 / 64, "web": 43 / 64}


@pytest.mark.parametrize(("temperature", "weights"), [(1, (9, 91)), (2, (3, 9.53939)), (100, (1.02222, 1.04614))])
def test_weights_by_size_and_temperature(mixture, temperature, weights) -> None:
    stage = {"start": 0, "weights": "proportional", "temperature": temperature}
    assert mixture(params(stage)).schedule.stages[0].weights == dict(zip(("code", "web"), weights, strict=True))
    alone = mixture(params(stage | {"leave_out": ["web"]})).schedule.stages[0]
    assert (alone.weights, alone.achieved) == ({"code": weights[0]}, {"code": 1.0})


def test_a_temperature_of_given_weights_and_two_ends_of_a_stage_are_refused() -> None:
    with pytest.raises(ValidationError, match=r"temperature is 2\.0, but weights are given"):
        params({"start": 0, "weights": {"code": 1}, "temperature": 2})
    first = {"start": 0, "weights": "proportional", "tokens": 9}
    with pytest.raises(ValidationError, match="where stage 0 ends is said tokens and the next start"):
        params(first, {"start": 5, "weights": "proportional"})
    with pytest.raises(ValidationError, match="where stage 0 ends is said nowhere; give it tokens or epochs"):
        params({"weights": "proportional"}, {"weights": "proportional"})


def test_a_stage_without_a_start_begins_where_the_one_before_it_ends(mixture) -> None:
    weights = {"code": 1, "web": 3}
    stages = [
        {"name": "warm", "weights": weights, "tokens": 81},
        {"name": "main", "weights": weights, "epochs": 1.5},
        {"name": "anneal", "weights": {"code": 1}, "leave_out": ["web"], "epochs": 2},
    ]
    schedule = mixture(params(*stages)).schedule
    assert [stage.start for stage in schedule.stages] == [0, 11, 161]  # 81 targets of 8 are 11 sequences, 1.5 * 100
    assert [extent.name for extent in schedule.extents] == ["warm", "main", "anneal"]
    assert [extent.positions for extent in schedule.extents] == [11, 150, 18]
    code, web = schedule.stages[2].cursors["code"], schedule.stages[2].cursors["web"]
    assert code + web == 161
    assert schedule.extents[1].epochs == {"code": code / 9, "web": web / 91}
    assert schedule.extents[2].epochs == {"code": (code + 18) / 9, "web": web / 91}


@pytest.mark.parametrize(("share", "column"), [(0.01, "1 %"), (0.1, "10 %"), (1.0, "100 %")])
def test_shares_of_sources_of_very_different_size_at_any_time_of_a_stage(mixture, share, column) -> None:
    """Tijdeman's bound: no source is ever a whole sequence away from its weight. docs/tokens.md shows these numbers."""
    sizes = {"web": 600_000, "book": 9_000, "code": 70_000, "paper": 300}
    weights = {"web": 0.6, "book": 0.25, "code": 0.1, "paper": 0.05}
    shards = {f"{name}/train/shard_00000": size for name, size in sizes.items()}
    own = params({"weights": weights, "tokens": 8 * 123_457}, period=1000)
    order = Order(mixture(own, shards).schedule)
    read = round(share * 123_457)
    drawn = np.bincount(order.at(np.arange(read)).source, minlength=4)
    for name, count in zip(order.sources, drawn.tolist(), strict=True):
        assert abs(count - weights[name] * read) < 1
        assert _shown(name, column) == f"{count:,} ({count / read:.5f})"


def _shown(source: str, column: str) -> str:
    """A cell of the table in docs/tokens.md."""
    lines = (Path(__file__).parent.parent / "docs" / "tokens.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.split("|")] for line in lines if line.startswith("| ")]
    head = next(row for row in rows if "planned" in row)
    return next(row for row in rows if row[1] == source)[head.index(column)]


def test_case_42_a_source_that_would_repeat_too_often_is_refused(mixture) -> None:
    """1,000 and 100,000 sequences at 0.5 each over 100,000: 50 and 0.5 epochs."""
    shards = {"tiny/train/shard_00000": 1000, "big/train/shard_00000": 100_000}
    stage = {"start": 0, "weights": {"tiny": 0.5, "big": 0.5}, "tokens": 800_000}
    own = params(stage, max_epochs=4)
    made = mixture(own, shards)
    table = rows(artifact(made.path, shards, own), "mixture").to_pylist()
    assert {row["source"]: row["epochs"] for row in table} == {"tiny": 50.0, "big": 0.5}
    (breach,) = invariants(artifact(made.path, shards, own))
    assert "reads tiny 50 times up to its end, above mix.max_epochs 4; give it less weight than 0.5" in breach
    assert list(invariants(artifact(made.path, shards, params(stage, max_epochs=50)))) == []
    assert list(invariants(artifact(made.path, shards, params(stage, max_epochs=4, max_epochs_of={"tiny": 50})))) == []
    short = params(stage | {"tokens": 64_000}, max_epochs=4)
    assert list(invariants(artifact(mixture(short, shards).path, shards, short))) == []
