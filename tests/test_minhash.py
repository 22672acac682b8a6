"""Shingles, signatures, bands and n-grams against datasketch and against plain Python."""

from __future__ import annotations

import random
import re
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from datasketch import MinHash
from hypothesis import given, settings
from hypothesis import strategies as st

import tasks.text.recurring
from tasks.dedup.greedy import jaccard
from tasks.text.bands import band_keys, shared_keys
from tasks.text.minhash import EMPTY, permutations, sign
from tasks.text.ngram_search import anchors_of, find_ngrams, find_whole, ngram_table, sampled
from tasks.text.ngrams import window_hashes
from tasks.text.recall import candidate_probability
from tasks.text.recurring import Recurring, recurring
from tasks.text.shingles import Shingles, count_different, shingle_sets, shingle_texts
from tasks.text.words import split_words

HASHES = st.lists(st.integers(0, 2**32 - 1), max_size=40)


def ragged(lists, dtype):
    offsets = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    return np.array([value for values in lists for value in values], dtype), offsets


@settings(max_examples=60)
@given(st.lists(HASHES, max_size=5), st.integers(0, 2**32 - 1), st.sampled_from([1, 7, 128]))
def test_signatures_are_those_of_datasketch(sets, seed, count):
    signatures = sign(*ragged(sets, np.uint32), permutations(seed, count))
    assert signatures.dtype == np.uint32 and signatures.shape == (len(sets), count)
    for values, signature in zip(sets, signatures, strict=True):
        theirs = MinHash(num_perm=count, seed=seed, hashfunc=int, scheme="affine32")
        theirs.update_batch(values)
        assert (theirs.hashvalues == signature).all()


def test_permutations_are_those_of_datasketch():
    assert (permutations(1, 128) == MinHash(num_perm=128, seed=1).permutations).all()


def test_extreme_hashes_and_no_hashes():
    values = [0, 1, 2**31 - 1, 2**31, 2**32 - 1]
    theirs = MinHash(num_perm=128, seed=3, hashfunc=int)
    for value in values:
        theirs.update(value)
    ours = sign(*ragged([values, []], np.uint32), permutations(3, 128))
    assert (ours[0] == theirs.hashvalues).all()
    assert (ours[1] == EMPTY).all()


def plain_shingles(text, n):
    words = re.findall(r"[a-z0-9]+", text.lower())
    n = min(n, len(words))
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)] if n else []


WORDS = st.lists(st.sampled_from(["a", "b", "c", "dd", "ee", "f1", "Gg"]), max_size=25).map(" ".join)


@settings(max_examples=200)
@given(st.lists(WORDS, max_size=6), st.integers(1, 7))
def test_shingle_sets_and_similarities_against_plain_python(texts, n):
    shingles, _ = shingle_texts(pa.array(texts, pa.large_string()), n, n)
    hashes, offsets = shingle_sets(shingles)
    plain = [plain_shingles(text, n) for text in texts]
    assert np.diff(shingles.offsets_D1).tolist() == [len(p) for p in plain]
    assert count_different(shingles).tolist() == np.diff(offsets).tolist() == [len(set(p)) for p in plain]
    for i, left in enumerate(plain):
        for j, right in enumerate(plain):
            ours = jaccard(hashes[offsets[i] : offsets[i + 1]], hashes[offsets[j] : offsets[j + 1]])
            either = len(set(left) | set(right))
            assert ours == (len(set(left) & set(right)) / either if either else 0.0)


MEMBERS = st.sets(st.integers(0, 40), max_size=40)


@settings(max_examples=200)
@given(MEMBERS, MEMBERS, st.floats(0, 1))
def test_a_similarity_is_exact_from_the_least_that_is_asked_on(left, right, least):
    exact = len(left & right) / len(left | right) if left | right else 0.0
    sets = [np.array(sorted(members), np.uint64) for members in (left, right)]
    assert jaccard(*sets, least) in ((exact,) if exact >= least else (0.0, exact))
    assert jaccard(*sets, exact) == exact


def test_scripts_without_spaces_take_their_own_length():
    texts = [
        "天地玄黄宇宙洪荒",
        "one two three four five six",
        "天地 玄黄 a",
        "ก ข ค a b",
        "",
        "...",
        "\U00020000\U00020001 x",
    ]
    shingles, words = shingle_texts(pa.array(texts, pa.large_string()), 3, 5)
    assert shingles.by_character_D.tolist() == [True, False, True, True, False, False, True]
    lengths = [5, 3, 5, 5, 0, 0, 3]
    assert np.diff(words.offsets_D1).tolist() == [8, 6, 5, 5, 0, 0, 3]
    counts = [max(0, w - n + 1) if w else 0 for w, n in zip(np.diff(words.offsets_D1), lengths, strict=True)]
    assert np.diff(shingles.offsets_D1).tolist() == counts


def test_counting_different_shingles_survives_equal_low_bits():
    """All hashes fall into one slot of the open table, and neighbours of different texts share it."""
    lists = [[i << 40 for i in range(50)] * 2, [0], [1 << 40, 1 << 40], [], [5 << 40, 6 << 40]]
    hashes, offsets = ragged(lists, np.uint64)
    assert count_different(Shingles(hashes, offsets, np.zeros(5, bool))).tolist() == [50, 1, 1, 0, 2]


@settings(max_examples=100)
@given(st.lists(st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 3), st.just(2**64 - 1)), max_size=300))
def test_sets_are_sorted_whatever_the_hashes(values):
    hashes, offsets = ragged([values, values[::-1], values * 70], np.uint64)
    found, bounds = shingle_sets(Shingles(hashes, offsets, np.zeros(3, bool)))
    for start, stop in pairwise(bounds):
        assert found[start:stop].tolist() == sorted(set(values))


SIGNATURES = st.lists(st.lists(st.integers(0, 2), min_size=8, max_size=8), max_size=12)


@settings(max_examples=150)
@given(SIGNATURES, st.sampled_from([(4, 2), (2, 4), (8, 1), (2, 3)]), st.randoms(use_true_random=False))
def test_buckets_hold_exactly_those_that_share_a_band(signatures, shape, rng):
    bands, rows = shape
    array = np.array(signatures, np.uint32).reshape(-1, 8)
    ranks = list(range(len(signatures)))
    rng.shuffle(ranks)
    for band, keys in enumerate(band_keys(array, bands, rows).T):
        span = slice(band * rows, (band + 1) * rows)
        mates = {}
        for rank, signature in zip(ranks, signatures, strict=True):
            mates.setdefault(tuple(signature[span]), []).append(rank)
        wanted = sorted(sorted(group) for group in mates.values() if len(group) > 1)
        (members, numbers), sizes = shared_keys(keys, np.array(ranks, np.int32))
        found = [members[numbers == bucket].tolist() for bucket in range(len(sizes))]
        assert found == wanted, "by their lowest rank, each ascending"
        assert sizes.tolist() == [len(group) for group in wanted]
        assert (np.diff(numbers) >= 0).all()


def test_keys_of_some_signatures_are_those_of_the_whole():
    array = np.random.default_rng(5).integers(0, 1 << 32, (9, 12), dtype=np.uint32)
    some = np.array([7, 0, 7], np.int32)
    assert (band_keys(array, 4, 3, some) == band_keys(array, 4, 3)[some]).all()


@settings(max_examples=100)
@given(st.lists(st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 9), st.just(2**64 - 1)), max_size=300))
def test_hashes_that_recur_are_all_found(values):
    found = recurring(np.array(values, np.uint64)).tolist()
    assert found == sorted(set(found)) and set(found) <= set(range(len(values)))
    assert {at for at, value in enumerate(values) if values.count(value) > 1} <= set(found)


def test_hashes_that_stand_once_are_told_apart_whatever_their_strides(monkeypatch):
    records = np.zeros(100_000, np.dtype([("hash", "<u8"), ("number", "<i4")]))
    records["hash"] = np.random.default_rng(6).integers(0, 1 << 63, len(records), np.uint64)
    records["hash"][:1000] = records["hash"][-1000:]
    found = recurring(records["hash"])
    assert set(range(1000)) | set(range(99_000, 100_000)) <= set(found.tolist())
    assert len(found) < 0.07 * len(records), "one in sixteen shares a bit by chance"
    assert not len(recurring(records["hash"][5:6])) and not len(recurring(records["hash"][:0]))
    monkeypatch.setattr(tasks.text.recurring, "MOST_BITS", 1 << 12)
    small, hashes = Recurring(len(records)), records["hash"][:500].copy()
    for some in (hashes[:300], hashes[300:], hashes[:100]):
        small.note(some)
    assert small.ask(hashes)[:100].all() and not small.ask(hashes).all()


def test_bands_beyond_the_signature_are_refused():
    with pytest.raises(ValueError, match="22 bands of 6 rows want 132 values, not 128"):
        band_keys(np.zeros((1, 128), np.uint32), 22, 6)


def test_the_curve_of_the_default_bands():
    found = [candidate_probability(s, 21, 6) for s in (0.7, 0.8, 0.9)]
    assert [round(p, 3) for p in found] == [0.928, 0.998, 1.0]
    assert round(candidate_probability(0.8, 9, 13), 2) == 0.40
    assert candidate_probability(0.8, 6, 21) < 0.06


@settings(max_examples=150)
@given(st.lists(WORDS, min_size=1, max_size=5), st.integers(1, 6), st.randoms(use_true_random=False))
def test_ngrams_are_found_where_they_stand(texts, n, rng):
    words = split_words(pa.array(texts, pa.large_string()))
    plain = [re.findall(r"[a-z0-9]+", text.lower()) for text in texts]
    grams = sorted({tuple(p[i : i + n]) for p in plain for i in range(len(p) - n + 1)})
    wanted = [gram for gram in grams if rng.random() < 0.5]
    listed = split_words(pa.array([" ".join(gram) for gram in wanted], pa.large_string()))
    hashes, _ = window_hashes(listed.hashes_W, listed.offsets_D1, np.full(len(wanted), n))
    of = sampled(listed.hashes_W, listed.offsets_D1, n)
    found = find_ngrams(words.hashes_W, words.offsets_D1, of, ngram_table(hashes))[:3]
    expected = [
        (d, i, wanted.index(tuple(p[i : i + n])))
        for d, p in enumerate(plain)
        for i in range(len(p) - n + 1)
        if tuple(p[i : i + n]) in wanted
    ]
    assert list(zip(*(part.tolist() for part in found), strict=True)) == expected


def test_windows_of_other_lengths_never_match_and_many_hits_fit():
    words = split_words(pa.array(["a " * 5000], pa.large_string()))
    first = words.hashes_W[:3], np.array([0, 3])
    hashes, _ = window_hashes(*first, np.array([3]))
    table, three, four = ngram_table(hashes), sampled(*first, 3), sampled(words.hashes_W[:4], np.array([0, 4]), 4)
    assert len(find_ngrams(words.hashes_W, words.offsets_D1, three, table)[0]) == 4998
    assert not len(find_ngrams(words.hashes_W, words.offsets_D1, four, table)[0])
    assert not len(find_ngrams(words.hashes_W, words.offsets_D1, three, ngram_table(hashes[:0]))[0])
    assert len(find_whole(words.hashes_W, words.offsets_D1, anchors_of(*first), table)[0]) == 4998


def test_a_large_table_finds_all_and_only_its_own():
    numbers = np.random.default_rng(5)
    hashes = numbers.integers(0, 2**63, 50_000).astype(np.uint64)
    ones, _ = window_hashes(hashes, np.array([0, len(hashes)]), np.array([1]))
    of = sampled(hashes, np.array([0, len(hashes)]), 1)
    texts, at, found, _ = find_ngrams(hashes, np.array([0, len(hashes)]), of, ngram_table(ones[::2]))
    assert at.tolist() == list(range(0, 50_000, 2)) and found.tolist() == list(range(25_000))
    assert not texts.any()


@settings(max_examples=60)
@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=9), max_size=6), st.text("abc ", max_size=60))
def test_whole_texts_of_any_length_are_found_where_they_stand(wanted, text):
    listed = split_words(pa.array([" ".join(words) for words in wanted], pa.large_string()))
    words = split_words(pa.array([text, text[::-1]], pa.large_string()))
    hashes, _ = window_hashes(listed.hashes_W, listed.offsets_D1, np.diff(listed.offsets_D1))
    anchors = anchors_of(listed.hashes_W, listed.offsets_D1)
    assert (anchors is None) == (not wanted)
    if anchors is None:
        return
    texts, at, numbers, lengths = find_whole(words.hashes_W, words.offsets_D1, anchors, ngram_table(hashes)).tolist()
    found = {(d, i, tuple(wanted[number])) for d, i, number in zip(texts, at, numbers, strict=True)}
    plain = [text.split(), text[::-1].split()]
    assert found == {
        (d, i, tuple(one))
        for d, p in enumerate(plain)
        for one in wanted
        for i in range(len(p))
        if p[i : i + len(one)] == one
    }
    assert len(found) == len(texts) and lengths == [len(wanted[number]) for number in numbers]


def test_estimates_are_near_the_truth():
    rng = random.Random(1)
    left = [f"w{rng.randrange(10**6)}" for _ in range(2000)]
    right = left[:1700] + [f"w{rng.randrange(10**6)}" for _ in range(300)]
    shingles, _ = shingle_texts(pa.array([" ".join(left), " ".join(right)], pa.large_string()), 5, 5)
    hashes, offsets = shingle_sets(shingles)
    exact = jaccard(hashes[: offsets[1]], hashes[offsets[1] :])
    signatures = sign(shingles.hashes_S.astype(np.uint32), shingles.offsets_D1, permutations(1, 128))
    assert abs((signatures[0] == signatures[1]).mean() - exact) < 0.15
