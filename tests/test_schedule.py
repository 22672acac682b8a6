"""Quotas, layout and cursors: exact, the same everywhere, and within one sequence of the weights."""

from __future__ import annotations

import json
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.artifacts.schedule import (
    Schedule,
    ScheduleError,
    Shard,
    Split,
    cursors_after,
    folder_content,
    lay_period,
    lay_quotas,
    lay_stages,
    rank_in_period,
    sources_to_train,
)

CASE_41 = Path(__file__).parents[2] / "shared" / "cases" / "41-mix-rounds-to-zero" / "mix.json"


def largest_gap(quotas: list[int]) -> Fraction:
    """The largest distance, over prefixes and sources, between positions had and positions due."""
    period, table = sum(quotas), lay_period(quotas)
    had = np.cumsum(np.arange(len(quotas))[:, None] == table[None, :].astype(np.int64), axis=1)
    due_times_period = np.arange(1, period + 1, dtype=np.int64)[None, :] * np.array(quotas, np.int64)[:, None]
    return Fraction(int(np.abs(had * period - due_times_period).max()), period)


def a_schedule(**changes: object) -> Schedule:
    def split(*sequences: int) -> Split:
        shards = tuple(Shard(f"shard_{i:05d}", n, 8 * n + 1) for i, n in enumerate(sequences))
        return Split("0" * 64, sum(sequences), sum(shard.tokens for shard in shards), shards)

    sources = {"code": {"train": split(5, 4), "validation": split(2)}, "web": {"train": split(40)}}
    fields = {
        "tokens_per_sequence": 8, "vocab_size": 100, "dtype": "uint16", "eos_id": 2,
        "tokenizer": {"name": "t", "sha256": "1" * 64}, "seed": 7, "period": 16, "sources": sources,
        "stages": lay_stages([(0, {"code": 1, "web": 3}), (10, {"code": 1, "web": 1})], 16, ["code", "web"]),
    }  # fmt: skip
    return Schedule(**{**fields, **changes})


def test_quotas_worked_out() -> None:
    assert lay_quotas({"a": 0.5, "b": 0.25, "c": 0.25}, 8) == {"a": 4, "b": 2, "c": 2}
    assert lay_quotas({"c": 1, "b": 1, "a": 1}, 8) == {"a": 3, "b": 3, "c": 2}  # ties: first in the alphabet
    assert lay_quotas({"a": 0.1, "b": 0.2}, 3) == {"a": 1, "b": 2}  # decimals as written, not as floats round
    assert lay_quotas({"only": 17}, 5) == {"only": 5}
    assert lay_quotas({"a": 1e-3, "b": 1}, 65_536)["a"] == 65  # 65.47


@given(st.dictionaries(st.text("abcdef", min_size=1, max_size=3), st.floats(0.01, 100), min_size=1, max_size=12))
def test_quotas_sum_and_stay_within_one(weights: dict[str, float]) -> None:
    quotas = lay_quotas(weights, 65_536)
    total = sum(Fraction(str(weight)) for weight in weights.values())
    assert sum(quotas.values()) == 65_536
    for name, weight in weights.items():
        assert abs(quotas[name] - Fraction(str(weight)) * 65_536 / total) < 1


def test_a_weight_that_rounds_to_nothing_is_refused_by_name() -> None:
    weights = {"tiny": 0.5, "rare": 1e-6, "a": 1 / 3}
    if CASE_41.exists():
        weights = json.loads(CASE_41.read_text())["weights"]
    with pytest.raises(ScheduleError, match=r"'rare' has weight 1e-06.*raise it to.*65536"):
        lay_quotas(weights, 65_536)


@pytest.mark.parametrize("weight", [0, 0.0, -1, float("nan"), float("inf"), True, "1", None])
def test_a_weight_that_is_no_positive_number_is_refused(weight: object) -> None:
    with pytest.raises(ScheduleError, match=r"'b' has weight .* above 0"):
        lay_quotas({"a": 1, "b": weight}, 8)


@pytest.mark.parametrize("period", [0, -1, 65_537])
def test_a_period_out_of_bounds_is_refused(period: int) -> None:
    with pytest.raises(ScheduleError, match="between 1 and 65536"):
        lay_quotas({"a": 1}, period)


def test_layout_worked_out() -> None:
    assert lay_period([4]).tolist() == [0, 0, 0, 0]
    assert lay_period([2, 2]).tolist() == [0, 1, 0, 1]
    assert lay_period([3, 1]).tolist() == [0, 0, 1, 0]  # at most half a position off: 1 comes at 1/4 + 1/2
    assert rank_in_period(lay_period([3, 1])).tolist() == [0, 1, 0, 2]


@settings(max_examples=200)
@given(st.lists(st.integers(1, 60), min_size=2, max_size=12))
def test_every_prefix_is_within_tijdemans_bound(quotas: list[int]) -> None:
    table = lay_period(quotas)
    assert np.bincount(table, minlength=len(quotas)).tolist() == quotas
    assert largest_gap(quotas) <= 1 - Fraction(1, 2 * len(quotas) - 2)


def test_every_prefix_is_within_the_bound_for_many_large_quotas() -> None:
    random = np.random.default_rng(1)
    for _ in range(12):
        count = int(random.integers(2, 30))
        cuts = np.sort(random.choice(np.arange(1, 8192), count - 1, replace=False))
        quotas = np.diff(np.concatenate([[0], cuts, [8192]])).tolist()
        assert largest_gap(quotas) <= 1 - Fraction(1, 2 * count - 2)


def test_skewed_quotas_of_a_full_period() -> None:
    quotas = [1, 1, 2, 100, 65_432]
    started = time.process_time()
    assert largest_gap(quotas) < 1
    assert time.process_time() - started < 5


@settings(max_examples=60)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(0, 200))
def test_cursors_count_what_was_read(quotas: list[int], positions: int) -> None:
    names = [f"s{i}" for i in range(len(quotas))]
    stage = lay_stages([(0, dict(zip(names, quotas, strict=True)))], sum(quotas), [*names, "unread"])[0]
    read = np.tile(lay_period(quotas), positions // sum(quotas) + 1)[:positions]
    expected = {name: int((read == i).sum()) for i, name in enumerate(names)}
    assert cursors_after(stage, positions) == {**expected, "unread": 0}


def test_a_later_stage_changes_no_earlier_one() -> None:
    first = [(0, {"a": 3, "b": 1}), (7, {"a": 1, "b": 1})]
    both = lay_stages(first, 4, ["a", "b"])
    more = lay_stages([*first, (9, {"b": 1})], 4, ["a", "b"])
    assert more[:2] == both
    assert [stage.cursors for stage in more] == [{"a": 0, "b": 0}, {"a": 5, "b": 2}, {"a": 6, "b": 3}]


def test_stages_that_cannot_be_laid_are_refused() -> None:
    with pytest.raises(ScheduleError, match="must start at 0"):
        lay_stages([(1, {"a": 1})], 4, ["a"])
    with pytest.raises(ScheduleError, match="must start at 0"):
        lay_stages([], 4, ["a"])
    with pytest.raises(ScheduleError, match="starts at 3 after one at 3"):
        lay_stages([(0, {"a": 1}), (3, {"a": 1}), (3, {"a": 1})], 4, ["a"])
    with pytest.raises(ScheduleError, match=r"weight 2 to 'b', which has no sequences.*have: a"):
        lay_stages([(0, {"a": 1, "b": 2})], 4, ["a"])
    with pytest.raises(ScheduleError, match="no weights"):
        lay_stages([(0, {})], 4, ["a"])


def test_a_schedule_comes_back_from_its_bytes(tmp_path: Path) -> None:
    schedule = a_schedule()
    path = tmp_path / "mixture.json"
    path.write_bytes(schedule.to_bytes())
    assert Schedule.read(path) == schedule
    assert Schedule.read(path).to_bytes() == schedule.to_bytes()
    assert schedule.to_bytes().startswith(b'{"dtype":"uint16","eos_id":2,"extents":[],"format":1,')
    assert sources_to_train(schedule.sources) == ["code", "web"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content.update(format=2), "format is not 1"),
        (lambda content: content.pop("seed"), "seed"),
        (lambda content: content.update(more=1), "more"),
        (lambda content: content["stages"][1]["cursors"].update(web=9), "quotas or cursors"),
        (lambda content: content["stages"][0]["quotas"].update(web=11, code=5), "quotas or cursors"),
        (lambda content: content["stages"][0]["weights"].update(web=0), "above 0"),
        (lambda content: content["sources"]["web"]["train"].update(sequences=41), "its shards say 40"),
        (lambda content: content["sources"].pop("web"), "no sequences"),
        (lambda content: content.update(stages=3), "iterable"),
    ],
)
def test_a_mixture_that_does_not_hold_is_refused(change: object, message: str, tmp_path: Path) -> None:
    content = json.loads(a_schedule().to_bytes())
    change(content)
    path = tmp_path / "mixture.json"
    path.write_text(json.dumps(content))
    with pytest.raises(ScheduleError, match=message):
        Schedule.read(path)


def test_bytes_that_are_no_json_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "mixture.json"
    for content in (b"", b"[1]", b"\xff", b'{"a'):
        path.write_bytes(content)
        with pytest.raises(ScheduleError, match=r"mixture\.json is no mixture"):
            Schedule.read(path)


def test_the_content_of_a_folder_depends_on_names_and_digests_alone() -> None:
    assert folder_content({"b": "2", "a": "1"}) == folder_content({"a": "1", "b": "2"})
    assert folder_content({"a": "1", "b": "2"}) != folder_content({"a": "2", "b": "1"})
