"""What the pages of a Parquet file say of their size, looked at before Arrow believes it.

In: an open file and its footer. Out: nothing, or ValueError where a page claims more packed bytes than the file has
left, or more unpacked ones than PAGE_MAX and than the whole chunk that it is in: Arrow takes the memory first, up to
two gigabytes for four spoilt bytes. It reads headers alone, about 15 microseconds each, and says nothing of what it
cannot read: Arrow does.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

PAGE_MAX = 64 << 20
HEADER = 512
"""Bytes that a page's header is looked for in; statistics may make it longer, and then it is left to Arrow."""
_DEPTH_MAX = 8


def check_pages(file: pa.NativeFile, metadata: Any) -> None:
    """Raises ValueError where a page's size cannot be."""
    size = file.size()
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for number in range(row_group.num_columns):
            _check_chunk(file, size, row_group.column(number))


def _check_chunk(file: pa.NativeFile, size: int, chunk: Any) -> None:
    begin, most = chunk.data_page_offset, max(PAGE_MAX, chunk.total_uncompressed_size)
    if chunk.has_dictionary_page and 0 < (chunk.dictionary_page_offset or 0) < begin:
        begin = chunk.dictionary_page_offset
    at, end = begin, min(size, begin + max(0, chunk.total_compressed_size))
    while 0 < at < end:
        file.seek(at)
        found = _sizes(file.read_buffer(min(HEADER, size - at)).to_pybytes())
        if found is None:
            return
        length, unpacked, packed = found
        if unpacked > most or unpacked < 0:
            raise ValueError(f"a page at byte {at} says that it holds {unpacked} bytes, its chunk {most} at most")
        if not 0 <= packed <= size - at - length:
            raise ValueError(f"a page at byte {at} says that it takes {packed} bytes, {size - at - length} are left")
        at += length + packed


def _sizes(raw: bytes) -> tuple[int, int, int] | None:
    """(bytes of the header, of the page unpacked, and packed) of a PageHeader in Thrift's compact protocol."""
    values: dict[int, int] = {}
    try:
        at = _struct(raw, 0, values, 0)
    except (IndexError, ValueError):
        return None
    return (at, values[2], values[3]) if 2 in values and 3 in values else None


def _struct(raw: bytes, at: int, values: dict[int, int] | None, depth: int) -> int:
    """Where the struct at `at` ends; its whole numbers go into `values`."""
    field = 0
    if depth > _DEPTH_MAX:
        raise ValueError("too deep")
    while (head := raw[at]) != 0:
        at += 1
        kind = head & 15
        if head >> 4:
            field += head >> 4
        else:
            field, at = _zigzag(raw, at)
        if kind in (4, 5, 6):
            value, at = _zigzag(raw, at)
            if values is not None:
                values[field] = value
        else:
            at = _skipped(raw, at, kind, depth)
    return at + 1


def _skipped(raw: bytes, at: int, kind: int, depth: int) -> int:
    """Where a value of a kind that is no whole number ends."""
    if kind in (1, 2):
        return at
    if kind in (3, 7):
        return at + (1 if kind == 3 else 8)
    if kind == 8:
        length, at = _varint(raw, at)
        return at + length
    if kind == 12:
        return _struct(raw, at, None, depth + 1)
    raise ValueError(f"kind {kind} is in no page's header")


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = raw[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


def _zigzag(raw: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(raw, at)
    return (value >> 1) ^ -(value & 1), at
