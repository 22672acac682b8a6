"""tasks.text.split: shares are exact, seeds independent, growing shares take from train alone."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.text.split import DRAWS, draw, draws, splits

SHAS = [hashlib.sha256(str(number).encode()).hexdigest() for number in range(20_000)]


def test_shares_are_integers_of_two_to_the_32():
    assert (draws(0), draws(0.25), draws(0.5), draws(1)) == (0, 1 << 30, 1 << 31, DRAWS)
    assert draws(0.02) == 85_899_346  # 0.02 x 4,294,967,296 = 85,899,345.92


def test_a_draw_worked_out_by_hand():
    expected = int(hashlib.sha256(b"7:abc").hexdigest()[:8], 16)
    assert draw("abc", 7) == expected


def test_nothing_and_everything():
    assert set(splits(SHAS, 1, 0, 0)) == {"train"}
    assert set(splits(SHAS, 1, 1, 0)) == {"validation"}
    assert set(splits(SHAS, 1, 0, 1)) == {"test"}


def test_shares_come_out_near_what_was_asked():
    names = splits(SHAS, 1, 0.1, 0.05)
    assert abs(names.count("validation") / len(SHAS) - 0.1) < 0.01  # 4.7 standard deviations
    assert abs(names.count("test") / len(SHAS) - 0.05) < 0.008


def test_another_seed_draws_independently():
    one, two = splits(SHAS, 1, 0.5, 0), splits(SHAS, 2, 0.5, 0)
    both = sum(a == b for a, b in zip(one, two, strict=True))
    assert abs(both / len(SHAS) - 0.5) < 0.02


@given(st.floats(0, 0.4), st.floats(0, 0.4), st.floats(0, 0.1), st.integers(-5, 1 << 40))
def test_a_growing_share_takes_from_train_alone(validation, test, more, seed):
    before = splits(SHAS[:300], seed, validation, test)
    after = splits(SHAS[:300], seed, validation + more, test + more)
    assert all(new == old or old == "train" for old, new in zip(before, after, strict=True))


@pytest.mark.parametrize(("validation", "test"), [(0.6, 0.6), (-0.1, 0), (0, 1.1)])
def test_impossible_shares_are_refused(validation, test):
    with pytest.raises(ValueError, match="share"):
        splits(SHAS[:1], 1, validation, test)
