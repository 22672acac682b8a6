"""Compiled loops and numpy give the same, on arrays made at random and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from training import kernels
from training.borders import Spans
from training.borders import borders as by_numpy

pytestmark = pytest.mark.skipif(not kernels.COMPILED, reason="numba is not installed: numpy alone is used")


@pytest.mark.parametrize("dtype", ["<u2", "<i4"])
@pytest.mark.parametrize("out_dtype", [None, "<i8"])
def test_gather_copies_and_widens_rows(dtype, out_dtype, monkeypatch) -> None:
    flat = np.random.default_rng(1).integers(0, 60_000, 500).astype(dtype)
    flat.flags.writeable = False
    starts = np.array([0, 483, 7, 7, 100])
    wanted = np.stack([flat[start : start + 17] for start in starts.tolist()])
    for compiled in (True, False):
        monkeypatch.setattr(kernels, "COMPILED", compiled)
        out = np.full((5, 17), 1, out_dtype or dtype)
        kernels.gather(flat, starts, out)
        assert (out == wanted).all()
        kernels.gather(flat, starts[:0], out[:0])


@settings(deadline=None)
@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=30))
def test_positions_restart_at_each_beginning(sizes) -> None:
    begins = np.cumsum([0, *sizes[:-1]])
    wanted = [place for size in sizes for place in range(size)]
    assert kernels.positions(begins, sum(sizes)).tolist() == wanted
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "COMPILED", False)
        assert kernels.positions(begins, sum(sizes)).tolist() == wanted


@settings(max_examples=150, deadline=None)
@given(
    sizes=st.lists(st.one_of(st.integers(1, 3), st.integers(1, 400)), min_size=1, max_size=200),
    width=st.integers(1, 40),
    chance=st.randoms(use_true_random=False),
    skew=st.integers(0, 7),
)
def test_borders_are_those_of_numpy_and_of_a_plain_loop(sizes, width, chance, skew) -> None:
    """skew: where in memory the pointers lie, as an .idx holds them at any byte."""
    pointers = (np.cumsum(sizes) - sizes).astype("<i8") * 2
    everything = np.concatenate(
        [np.zeros(skew, np.uint8), pointers.view(np.uint8), np.zeros(8 * (width + 2), np.uint8)]
    )
    words = np.ndarray((len(everything) - 7,), "<i8", everything.data, strides=(1,))
    total = sum(sizes)
    start = np.array([chance.randrange(total) for _ in range(20)])
    stop = np.minimum(start + width, total)
    same = np.ones(20, np.int64)
    spans = Spans(same * skew, same * len(sizes), same * 2 * total, 2 * start, 2 * stop)
    begins, of_row = kernels.borders(words, np.stack(spans), width, 2)
    row, byte = by_numpy(everything, spans, width)
    assert begins.tolist() == (row * width + np.maximum(byte // 2 - start[row], 0)).tolist()
    assert of_row.tolist() == np.concatenate([[0], np.cumsum(np.bincount(row, minlength=20))]).tolist()
    firsts = set((pointers // 2).tolist())
    for at in range(20):
        inside = [place for place in range(int(stop[at] - start[at])) if place == 0 or int(start[at]) + place in firsts]
        assert (begins[of_row[at] : of_row[at + 1]] - at * width).tolist() == inside
