"""Compiled loops and numpy give the same, on arrays made at random and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from training import borders as by_numpy_alone
from training import feistel, finding, kernels
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


@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=30), dtype=st.sampled_from(["i4", "i8"]))
def test_positions_restart_at_each_beginning(sizes, dtype) -> None:
    borders = np.cumsum([0, *sizes]).astype(dtype)
    wanted = [place for size in sizes for place in range(size)]
    for compiled in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kernels, "COMPILED", compiled)
            assert kernels.positions(borders).tolist() == wanted
            assert kernels.positions(borders).dtype == np.int64


@given(rows=st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=1, max_size=6), ahead=st.integers(0, 1))
def test_borders_of_the_inputs_leave_out_what_begins_beyond_them(rows, ahead) -> None:
    begin = np.array(rows)
    begin[:, 0] = True
    begins, width = np.flatnonzero(begin), 5 - ahead
    wanted = [*np.flatnonzero(begin[:, :width]).tolist(), len(rows) * width]
    for compiled in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kernels, "COMPILED", compiled)
            found = kernels.piece_borders(begins, len(rows), width, ahead)
            assert found.tolist() == wanted and found.dtype == np.int32


@given(
    rows=st.lists(st.lists(st.booleans(), min_size=9, max_size=9), min_size=1, max_size=6),
    ahead=st.integers(0, 1),
    dtype=st.sampled_from(["<u2", "<i8"]),
)
def test_gathering_apart_writes_what_the_single_kernels_do(rows, ahead, dtype) -> None:
    begin = np.array(rows)
    begin[:, 0] = True
    begins, width, count = np.flatnonzero(begin), 9 - ahead, len(rows)
    flat, starts = np.arange(300, 400).astype("<u2"), np.arange(count) * 7
    tokens, labels = np.empty((2, count, 9), dtype)
    positions = np.full(count * width + kernels.SLACK, 7, dtype)
    borders = kernels.gather_apart(flat, starts, begins, tokens, ahead, labels, positions, 5)
    expected = np.stack([flat[start : start + 9] for start in starts])
    assert (tokens == expected).all() and (labels == np.where(begin, 5, expected)).all()
    pieces = kernels.piece_borders(begins, count, width, ahead)
    assert borders.tolist() == pieces.tolist() and borders.dtype == np.int32
    assert positions[: count * width].tolist() == kernels.positions(pieces).tolist()
    tokens[:] = 0
    assert kernels.gather_bordered(flat, starts, begins, tokens, ahead).tolist() == pieces.tolist()
    assert (tokens == expected).all()


@pytest.mark.parametrize("ahead", [0, 1])
@pytest.mark.parametrize("dtype", ["<u2", "<i8"])
def test_positions_of_documents_longer_than_a_stride(ahead: int, dtype: str) -> None:
    """Pieces of 1 to 700 places beside one another: what a stride writes beyond its piece is written again."""
    sizes = np.array([700, 1, 127, 128, 129, 3, 256, 257, 1, 1, 255, 382, 640])
    rows, width = 4, sizes.sum() // 4
    begins = np.unique([*(np.cumsum(sizes) - sizes), *range(0, rows * width, width)])
    flat = np.arange(40_000, dtype="<u2")
    tokens, labels = np.empty((2, rows, width), dtype)
    positions = np.full(rows * (width - ahead) + kernels.SLACK, 7, dtype)
    borders = kernels.gather_apart(flat, np.arange(rows) * 9000, begins, tokens, ahead, labels, positions, 5)
    starts = np.zeros(rows * width, np.int64)
    starts[begins] = begins
    wanted = (np.arange(rows * width) - np.maximum.accumulate(starts)).reshape(rows, width)[:, : width - ahead]
    assert positions[: -kernels.SLACK].reshape(rows, -1).tolist() == wanted.tolist()
    assert np.flatnonzero(wanted.ravel() == 0).tolist() == borders[:-1].tolist()


def test_a_document_far_from_where_it_was_guessed_is_found() -> None:
    """Crowds of one id each between documents of many, of which the knots see nothing."""
    sizes = [100_000, *[1] * 150, 50_000, *[1] * 90, 7, *[1] * 60, 100_000]
    pointers = (np.cumsum(sizes) - sizes).astype("<i8") * 2
    everything = np.concatenate([pointers.view(np.uint8), np.zeros(8 * 60, np.uint8)])
    words = np.ndarray((len(everything) - 7,), "<i8", everything.data, strides=(1,))
    edges = [100_000, 150_150, 150_247]
    start = np.array([at + by for at in edges for by in range(-40, 200, 3)])
    stop, total, zeros = start + 40, sum(sizes), np.zeros(240, np.int64)
    places = np.array([[0], [0], [0], [0], [len(sizes)], [total], [0]])
    knots = finding.laid_knots(words, 0, len(sizes), 2 * total)[None]
    begins, of_row = finding.borders(words, places, knots, zeros, start, stop - start, width=40, item=2, group=1)
    firsts = pointers // 2
    for at in range(240):
        inside = firsts[(firsts > start[at]) & (firsts < stop[at])] - start[at]
        assert begins[of_row[at] : of_row[at + 1]].tolist() == [0, *inside.tolist()]


@pytest.mark.parametrize("size", [1, 2, 15, 17, 1000, 488_281_250, (1 << 33) + 7])
def test_compiled_permutations_are_those_of_numpy(size: int, monkeypatch) -> None:
    index = np.unique(np.random.default_rng(size).integers(0, size, 5000)).astype(np.uint64)
    keys = np.random.default_rng(1).integers(0, 1 << 63, len(index)).astype(np.uint64) * np.uint64(2)
    on = feistel.domain(np.full(len(index), size))
    compiled = feistel.permute(index, keys, on)
    monkeypatch.setattr(kernels, "COMPILED", False)
    assert np.array_equal(feistel.permute(index, keys, on), compiled)


@settings(max_examples=150)
@given(
    sizes=st.lists(st.one_of(st.integers(1, 3), st.integers(1, 400)), min_size=1, max_size=400),
    width=st.integers(1, 40),
    chance=st.randoms(use_true_random=False),
    skew=st.integers(0, 7),
    group=st.sampled_from([1, 4, 7, 20]),
)
def test_borders_are_those_of_numpy_and_of_a_plain_loop(sizes, width, chance, skew, group) -> None:
    """skew: where in memory the pointers lie, as an .idx holds them at any byte."""
    pointers = (np.cumsum(sizes) - sizes).astype("<i8") * 2
    everything = np.concatenate(
        [np.zeros(skew, np.uint8), pointers.view(np.uint8), np.zeros(8 * (width + 2), np.uint8)]
    )
    words = np.ndarray((len(everything) - 7,), "<i8", everything.data, strides=(1,))
    total = sum(sizes)
    start = np.array([chance.randrange(total) for _ in range(20)])
    stop = np.minimum(start + width, total)
    shards = np.zeros(20, np.int64)
    places = np.array([[0], [0], [0], [skew], [len(sizes)], [total], [0]])
    knots = finding.laid_knots(words, skew, len(sizes), 2 * total)[None]
    lengths = stop - start
    begins, of_row = finding.borders(words, places, knots, shards, start, lengths, width=width, item=2, group=group)
    spans = Spans(*(shards + part for part in (skew, len(sizes), 2 * total, 2 * start, 2 * stop)))
    row, byte = by_numpy(everything, spans, width)
    assert begins.tolist() == (row % group * width + np.maximum(byte // 2 - start[row], 0)).tolist()
    assert of_row.tolist() == np.concatenate([[0], np.cumsum(np.bincount(row, minlength=20))]).tolist()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(by_numpy_alone, "ROWS", 7)
        pieced = by_numpy_alone.counted(everything, spans, width=width, item=2, group=group)
        assert [part.tolist() for part in pieced] == [begins.tolist(), of_row.tolist()]
    firsts = set((pointers // 2).tolist())
    for at in range(20):
        inside = [place for place in range(int(stop[at] - start[at])) if place == 0 or int(start[at]) + place in firsts]
        assert (begins[of_row[at] : of_row[at + 1]] - at % group * width).tolist() == inside
