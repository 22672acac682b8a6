"""Spills of dedup: what came for a partition comes back in its order, however it was added and flushed."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tasks.dedup import scratch

RECORDS = np.dtype([("key", "<u8"), ("number", "<i4")])
PIECES = st.lists(
    st.one_of(
        st.lists(st.integers(0, 4), max_size=6),
        st.tuples(st.integers(0, 4), st.integers(0, 6)).map(lambda one: [one[0]] * one[1]),
    ),
    max_size=12,
)


@given(PIECES, st.sampled_from([1, 100, 1 << 20]))
def test_a_partition_comes_back_as_it_was_added(pieces, buffer):
    before = scratch.BUFFER_BYTES
    scratch.BUFFER_BYTES = buffer
    try:
        with TemporaryDirectory() as folder:
            spill, wanted, number = scratch.Spill(Path(folder) / "spill", RECORDS, 5), [[] for _ in range(5)], 0
            for partitions in pieces:
                records = np.zeros(len(partitions), RECORDS)
                for record, partition in zip(records, partitions, strict=True):
                    record["number"] = number
                    wanted[partition].append(number)
                    number += 1
                spill.add(np.array(partitions, np.int64), records)
            path = spill.close()
            read = [scratch.read_partition(path, RECORDS, partition)["number"].tolist() for partition in range(5)]
    finally:
        scratch.BUFFER_BYTES = before
    assert read == wanted
