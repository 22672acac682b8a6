"""The local cut: the rule against its own words, locality, and how many pieces a change touches."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.text.cut import cut_points, local_minima

SMALL = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), min_size=1, max_size=60)


@given(SMALL, st.integers(1, 60), st.integers(1, 9))
def test_stretches_do_not_show(units, window, stretch):
    """However many units are looked at at a time, the minima are those of the words."""
    sizes, digests = arrays(units)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("tasks.text.cut.STRETCH", stretch)
        found = local_minima(np.cumsum(sizes.astype(np.int64)), digests, window).tolist()
    assert found == by_the_words(units, window)


def arrays(units):
    return np.array([u[0] for u in units], np.uint64), np.array([u[1] for u in units], np.uint64)


def by_the_words(units, window):
    """The rule as the docstring says it, O(n^2)."""
    ends = np.cumsum([size for size, _ in units]).tolist()
    minima = []
    for i, (_, digest) in enumerate(units):
        near = [j for j in range(len(units)) if abs(ends[j] - ends[i]) <= window]
        if min(near, key=lambda j: (units[j][1], j)) == i:
            assert digest == min(units[j][1] for j in near)
            minima.append(i)
    return minima


def test_worked_out_by_hand():
    sizes = np.full(8, 10, np.uint64)
    digests = np.array([5, 3, 9, 4, 1, 7, 2, 8], np.uint64)
    # window 20 is two units on either side: 3 is the least of 5 3 9 4, and 1 of 9 4 1 7 2
    assert cut_points(sizes, digests, 20, 100).tolist() == [2, 5, 8]
    assert cut_points(sizes, digests, 10, 100).tolist() == [2, 5, 7, 8]
    assert cut_points(sizes, digests, 20, 21).tolist() == [2, 4, 5, 7, 8]


def test_nothing_and_one():
    assert cut_points(np.empty(0, np.uint64), np.empty(0, np.uint64), 5, 10).tolist() == []
    assert cut_points(np.array([7], np.uint64), np.array([7], np.uint64), 5, 10).tolist() == [1]
    assert cut_points(np.array([999], np.uint64), np.array([7], np.uint64), 5, 10).tolist() == [1]


def test_equal_digests_are_cut_by_the_maximum_only():
    ends = cut_points(np.full(100, 10, np.uint64), np.zeros(100, np.uint64), 20, 100)
    assert ends.tolist() == [1, 11, 21, 31, 41, 51, 61, 71, 81, 91, 100]


@pytest.mark.parametrize(("window", "maximum"), [(0, 10), (10, 10), (-1, 4)])
def test_refuses_a_window_that_is_none(window, maximum):
    with pytest.raises(ValueError, match="window"):
        cut_points(np.ones(3, np.uint64), np.ones(3, np.uint64), window, maximum)


def test_refuses_arrays_of_two_lengths():
    with pytest.raises(ValueError, match="3 sizes and 2 digests"):
        cut_points(np.ones(3, np.uint64), np.ones(2, np.uint64), 1, 10)


@given(SMALL, st.integers(1, 60))
def test_minima_are_those_of_the_rule(units, window):
    sizes, digests = arrays(units)
    assert local_minima(np.cumsum(sizes.astype(np.int64)), digests, window).tolist() == by_the_words(units, window)


@given(SMALL, st.integers(1, 40), st.integers(1, 40))
def test_pieces_cover_all_and_stay_below_the_maximum(units, window, more):
    sizes, digests = arrays(units)
    maximum = window + more
    ends = cut_points(sizes, digests, window, maximum)
    assert ends[-1] == len(units) and np.all(np.diff(np.concatenate(([0], ends))) > 0)
    for start, stop in zip([0, *ends[:-1]], ends, strict=True):
        assert sizes[start:stop].sum() <= maximum or stop == start + 1
    assert set(np.array(by_the_words(units, window)) + 1) - {len(units)} <= set(ends.tolist())


@given(SMALL, SMALL, SMALL, SMALL, SMALL, st.integers(1, 30))
def test_a_minimum_knows_nothing_beyond_its_window(before, after, other_before, other_after, middle, window):
    """Whatever stands farther than a window from a unit's end, the unit is an end or is not."""

    def inner(head, tail):
        units = [*head, *middle, *tail]
        sizes, digests = arrays(units)
        ends = np.cumsum(sizes.astype(np.int64))
        minima = set(local_minima(ends, digests, window).tolist())
        begin = ends[len(head) - 1]
        stop = ends[len(head) + len(middle) - 1]
        return [
            i - len(head)
            for i in range(len(head), len(head) + len(middle))
            if ends[i] - begin > window and stop - ends[i] > window and i in minima
        ]

    grow = [(window + 1, 0)]
    assert inner(before, after) == inner(other_before + grow, grow + other_after)


def changed(old, new, window, maximum):
    """Pieces of `new` that `old` does not have."""

    def pieces(units):
        sizes, digests = arrays(units)
        ends = cut_points(sizes, digests, window, maximum).tolist()
        return {tuple(units[a:b]) for a, b in zip([0, *ends[:-1]], ends, strict=True)}

    return len(pieces(new) - pieces(old))


def test_a_change_touches_two_pieces_in_nearly_all_cases():
    """One of 400 units changed, added or removed, 1,500 times; pieces of 16 units in the mean, 64 at most."""
    random = np.random.default_rng(5)
    window, maximum = 8_000, 64_000
    tally = np.zeros(10, int)
    for trial in range(1_500):
        units = [
            (int(s), int(d))
            for s, d in zip(random.integers(1, 2_000, 400), random.integers(0, 2**63, 400), strict=True)
        ]
        at, fresh = int(random.integers(400)), (int(random.integers(1, 2_000)), int(random.integers(2**63)))
        new = [[*units[:at], fresh, *units[at + keep :]] for keep in (0, 1)] + [units[:at] + units[at + 1 :]]
        tally[changed(units, new[trial % 3], window, maximum)] += 1
    assert tally[:3].sum() / tally.sum() >= 0.99, tally
    assert tally[4:].sum() == 0, tally


def test_pieces_are_two_windows_in_the_mean():
    sizes = np.full(200_000, 100, np.uint64)
    digests = np.array(
        [int.from_bytes(hashlib.sha256(b"%d" % i).digest()[:8], "big") for i in range(200_000)], np.uint64
    )
    mean = 200_000 * 100 / len(cut_points(sizes, digests, 5_000, 50_000))
    assert 9_000 < mean < 11_000
