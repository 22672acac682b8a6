"""The one writer: the same values give the same bytes, however the table was put together."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from tasks.artifacts.tables import BYTES_PER_GROUP, ROWS_PER_GROUP, read_table, write_payload, write_table

SCHEMA = pa.schema([pa.field("text", pa.large_string(), nullable=False), pa.field("n", pa.int64())])


def table(rows, size=5):
    return pa.table({"text": ["x" * size] * rows, "n": list(range(rows))}, schema=SCHEMA)


def variants(whole):
    yield whole
    yield pa.concat_tables([whole.slice(0, 3), whole.slice(3)])
    yield pa.concat_tables([whole.slice(0, 0), whole])
    yield pa.table({"n": whole["n"], "text": whole["text"].cast(pa.string())})
    mask = pa.array([False] * whole.num_rows)
    yield whole.set_column(1, "n", pa.array(np.arange(whole.num_rows), mask=mask.to_numpy(zero_copy_only=False)))


def test_how_a_table_was_put_together_does_not_show(tmp_path):
    for number, variant in enumerate(variants(table(50))):
        write_table(tmp_path / str(number), variant, SCHEMA)
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1


def test_no_column_shows_where_its_chunks_begin(tmp_path):
    draw = np.random.default_rng(7)
    rows = [
        {
            "flag": None if row % 7 == 0 else bool(row % 3),
            "share": None if row % 5 == 0 else row / 9,
            "name": None if row % 11 == 0 else f"source {row % 2}",
            "ids": None if row % 13 == 0 else list(range(row % 4)),
            "turns": None
            if row % 3
            else [{"role": None if row % 2 else "user", "content": "é" * (row % 70)}] * (row % 3),
        }
        for row in range(2500)
    ]
    whole = pa.Table.from_pylist(rows)
    write_table(tmp_path / "whole", whole, whole.schema)
    for number in range(6):
        borders = [0, *sorted(draw.integers(0, len(rows) + 1, 3**number).tolist()), len(rows)]
        pieces = [whole.slice(begin, end - begin) for begin, end in pairwise(borders)]
        write_table(tmp_path / str(number), pa.concat_tables(pieces), whole.schema)
        assert (tmp_path / str(number)).read_bytes() == (tmp_path / "whole").read_bytes()
    assert read_table(tmp_path / "whole") == whole


@pytest.mark.parametrize(
    ("rows", "size", "groups"),
    [(0, 1, 0), (ROWS_PER_GROUP, 1, 1), (ROWS_PER_GROUP + 1, 1, 2), (5, BYTES_PER_GROUP // 2, 5)],
)
def test_row_groups_are_cut_at_fixed_rows_and_bytes(tmp_path, rows, size, groups):
    write_table(tmp_path / "t", table(rows, size), SCHEMA)
    assert pa.parquet.ParquetFile(tmp_path / "t").num_row_groups == groups
    assert read_table(tmp_path / "t").num_rows == rows


def test_a_column_that_does_not_fit_is_an_error(tmp_path):
    with pytest.raises((pa.ArrowInvalid, KeyError)):
        write_table(tmp_path / "t", pa.table({"text": ["a"], "n": ["many"]}), SCHEMA)


def test_arrays_and_bytes_are_written_flat(tmp_path):
    write_payload(tmp_path / "a.bin", np.array([1, 258], "<u2"), None)
    assert (tmp_path / "a.bin").read_bytes() == b"\x01\x00\x02\x01"
    write_payload(tmp_path / "a.json", b"{}", None)
    assert (tmp_path / "a.json").read_bytes() == b"{}"
    write_payload(tmp_path / "a.npy", np.array([3], np.uint64), None)
    assert np.load(tmp_path / "a.npy").tolist() == [3]


def test_no_column_has_a_dictionary(tmp_path):
    write_table(tmp_path / "t", table(5000), SCHEMA)
    group = pa.parquet.ParquetFile(tmp_path / "t").metadata.row_group(0)
    assert not any(group.column(place).has_dictionary_page for place in range(group.num_columns))
    assert read_table(tmp_path / "t") == table(5000)
