"""dedup's memory, time, recall and precision on corpora of millions with a known answer (tests/dedup_scale.py)."""

import pytest

from tests.dedup_scale import measured


def test_recall_and_precision_on_planted_pairs(tmp_path):
    found = measured("pairs", 8000, tmp_path)
    assert found["recall"] >= 0.99 and found["precision"] == 1
    assert found["removed"] >= 1490


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_five_million_documents(tmp_path):
    """64 bytes a document more from half a million on; there, and in all, less than 1.5 GB."""
    few, many = measured("pairs", 500_000, tmp_path), measured("pairs", 5_000_000, tmp_path)
    assert many["rss_peak_mb"] < 1500
    assert (many["anonymous_mb"] - few["anonymous_mb"]) << 20 <= 64 * 4_500_000
    assert many["recall"] >= 0.99 and many["precision"] == 1


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("shape", "few", "many"), [("alike", 100_000, 1_000_000), ("below", 20_000, 200_000)])
def test_a_bucket_of_very_many_costs_linear_time(tmp_path, shape, few, many):
    once, ten_times = measured(shape, few, tmp_path), measured(shape, many, tmp_path)
    assert ten_times["cpu_seconds"] <= 15 * max(1, once["cpu_seconds"])
    assert ten_times["removed"] == (many - 1 if shape == "alike" else 0)
