"""Rule sets by name: what they are, how params.yaml uses and changes them, and every boundary of theirs."""

import hashlib
import json

import numpy as np
import pyarrow as pa
import pytest
from pydantic import ValidationError

from tasks.artifacts.verdicts import SIGNALS
from tasks.filter import FilterParams
from tasks.filter.named import PRESETS, expand, load, names
from tasks.text.rules import CUT_KINDS, Documents, Rule, judge

PLAIN = {
    "language_characters": 300,
    "language_letters_min": 0,
    "segmentation": {},
    "signals": [],
    "metadata": [],
    "mask": {},
    "blocklists": [],
}
PUBLISHED = {
    "basic-1": "4832e7fa5ce1a157",
    "c4-1": "47667a4df6850e9a",
    "code-1": "5ff58c6810510fce",
    "fineweb-1": "9355887e22b17220",
    "fineweb2-1": "b8dadab42ac89e35",
    "gopher-1": "8b9b8b451137d9b9",
}


def rules_of(*items):
    return FilterParams.model_validate_json(json.dumps({**PLAIN, "rules": list(items)})).rules


def test_a_published_set_never_changes():
    """The mend of a failure: leave the set as it was and lay the next version beside it."""
    found = {name: hashlib.sha256((PRESETS / f"{name}.yaml").read_bytes()).hexdigest()[:16] for name in names()}
    assert {name: found[name] for name in PUBLISHED} == PUBLISHED


@pytest.mark.parametrize("name", names())
def test_every_set_says_what_it_follows_and_holds_sound_rules(name):
    assert len(load(name).about) > 80
    rules = rules_of({"set": name})
    assert [rule.name for rule in rules] == [f"{name.rpartition('-')[0]}.{rule['name']}" for rule in load(name).rules]


def scopes(rule):
    """(limits, kind, language) of every way in which a rule judges."""
    kinds = rule.kinds or (CUT_KINDS if rule.action == "cut" else ("web",))
    languages = rule.languages or ("xx",)
    excepted = {kind for item in rule.where for kind in item.kinds or ()}
    yield rule.min, rule.max, next(kind for kind in kinds if kind not in excepted), languages[0]
    for item in rule.where:
        if not item.skip:
            low = rule.min if item.min is None else item.min
            high = rule.max if item.max is None else item.max
            yield low, high, (item.kinds or kinds)[0], (item.languages or languages)[0]


def steps(signal, limit):
    """The values just below and above a limit."""
    if SIGNALS.field(signal).type == "int64":
        return limit - 1, limit + 1
    return np.nextafter(limit, -np.inf), np.nextafter(limit, np.inf)


@pytest.mark.parametrize("name", names())
def test_every_boundary_one_below_at_and_above(name):
    for rule in rules_of({"set": name}):
        for low, high, kind, language in scopes(rule):
            cases = []
            if low is not None:
                below, above = steps(rule.signal, low)
                cases += [(below, low), (low, None), *([(above, None)] if high is None or above <= high else [])]
            if high is not None:
                below, above = steps(rule.signal, high)
                cases += [(above, high), (high, None), *([(below, None)] if low is None or below >= low else [])]
            values = [float(value) for value, _ in cases]
            rows = len(values)
            table = pa.table({"letters": [1000] * rows, "language": [language] * rows, rule.signal: values})
            got = judge([rule], Documents(table, pa.array([kind] * rows), "a"), 0)
            wanted = [np.nan if limit is None else limit for _, limit in cases]
            assert np.array_equal(got.limit_D, wanted, equal_nan=True), (rule.name, kind, language, cases)
            assert got.dropped_D.any() == (rule.action == "drop")


def test_a_use_narrows_changes_and_leaves_out():
    use = {
        "set": "code-1",
        "sources": ["github"],
        "leave_out": ["symbols", "replaced"],
        "change": {"mean_line": {"max": 200, "where": [{"languages": ["en"], "max": 80}]}},
    }
    rules = {rule.name: rule for rule in rules_of(use)}
    assert list(rules) == ["code.length", "code.max_line", "code.mean_line"]
    assert all(rule.kinds == ("code",) and rule.sources == ("github",) for rule in rules.values())
    assert rules["code.mean_line"].max == 200 and rules["code.mean_line"].where[0].max == 80
    assert rules["code.max_line"].max == 1000


def test_scopes_meet_and_a_rule_without_any_goes():
    assert rules_of({"set": "code-1", "kinds": ["web"]}) == ()
    words = {rule.name: rule for rule in rules_of({"set": "gopher-1", "languages": ["de", "xx"], "kinds": ["web"]})}
    assert words["gopher.stop_words"].languages == ("de",) and words["gopher.words"].languages == ("de", "xx")


def test_sets_stand_in_their_place_among_other_rules():
    own = {"name": "mine", "signal": "words", "min": 1}
    names_ = [rule.name for rule in rules_of(own, {"set": "fineweb-1"}, {**own, "name": "last"})]
    assert names_[0] == "mine" and names_[1] == "fineweb.terminated_lines" and names_[-1] == "last"


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ({"set": "gofer-1"}, "there is no set gofer-1; there are basic-1, c4-1"),
        ({"set": "code-1", "leave_out": ["lines"]}, "set code-1 has no rule lines; it has length, max_line"),
        ({"set": "code-1", "change": {"lines": {"max": 1}}}, "set code-1 has no rule lines"),
        ({"set": "code-1", "without": ["length"]}, "set code-1: without: Extra inputs"),
        ({"set": "code-1", "change": {"length": {"mini": 1}}}, "Extra inputs"),
        ({"set": "code-1", "kinds": ["novel"]}, "'web', 'book', 'code', 'paper' or 'chat'"),
    ],
)
def test_a_faulty_use_says_what_is_wrong(item, said):
    with pytest.raises(ValidationError, match=said):
        rules_of(item)


def test_a_set_twice_or_an_unknown_signal_is_refused():
    with pytest.raises(ValidationError, match="more than one rule is named code"):
        rules_of({"set": "code-1"}, {"set": "code-1"})
    with pytest.raises(ValidationError, match="rule x: no such signal as score; there are characters"):
        rules_of({"name": "x", "signal": "score", "min": 1})


def test_what_is_no_list_is_left_to_the_model():
    assert expand("gopher-1") == "gopher-1"
    with pytest.raises(ValidationError, match="valid tuple"):
        FilterParams.model_validate({**PLAIN, "rules": "gopher-1"})


def test_fineweb2_has_the_limits_of_its_languages():
    rules = {rule.name: rule for rule in rules_of({"set": "fineweb2-1"})}
    assert isinstance(rules["fineweb2.newlines"], Rule)
    zh = {name: next((w for w in rule.where if w.languages == ("zh",)), None) for name, rule in rules.items()}
    assert zh["fineweb2.top_2gram"].max == 0.256 and zh["fineweb2.duplicate_10gram"].max == 0.127
    assert (zh["fineweb2.word_length"].min, zh["fineweb2.word_length"].max) == (1, 5)
    assert zh["fineweb2.terminated_lines"].min == 0.106 and zh["fineweb2.letter_words"].min == 0.735
