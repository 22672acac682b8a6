"""What the pages of a Parquet file say of their size, looked at before Arrow believes it.

In: an open file. Out: nothing, or ValueError where a page claims more packed bytes than the file has left, or more
unpacked ones than PAGE_MAX and than the whole chunk that it is in: Arrow takes the memory first, up to two gigabytes
for four spoilt bytes. It reads the footer and the headers of pages in Thrift's compact protocol by itself, since
Arrow's Python ends the process at some footers that it cannot hold, and says nothing of what it cannot read: Arrow
does. A footer above FOOTER_MAX is not looked at, since Python would need seconds for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

PAGE_MAX = 64 << 20
FOOTER_MAX = 1 << 20
HEADER = 512
"""Bytes that a page's header is looked for in; statistics may make it longer, and then it is left to Arrow."""
_DEPTH_MAX = 12
_ROW_GROUPS, _CHUNKS, _META, _UNPACKED, _PACKED, _DATA, _DICTIONARY = 4, 1, 3, 6, 7, 9, 11
"""Fields of FileMetaData, RowGroup, ColumnChunk and ColumnMetaData, by parquet.thrift."""

Value = Any


def check_pages(file: pa.NativeFile) -> None:
    """Raises ValueError where a page's size cannot be."""
    size = file.size()
    for chunk in _chunks(file, size):
        numbers = [chunk.get(field, 0) for field in (_DATA, _DICTIONARY, _PACKED, _UNPACKED)]
        if all(isinstance(number, int) for number in numbers):
            _check_chunk(file, size, *numbers)


def _chunks(file: pa.NativeFile, size: int) -> Iterator[dict[int, Value]]:
    """The metadata of each column chunk, none where the footer cannot be read."""
    if size < 12:
        return
    file.seek(size - 8)
    length = int.from_bytes(file.read_buffer(4).to_pybytes(), "little")
    if not 0 < length <= min(size - 12, FOOTER_MAX):
        return
    file.seek(size - 8 - length)
    try:
        footer, _ = _struct(file.read_buffer(length).to_pybytes(), 0, 0)
        groups = [group for group in footer.get(_ROW_GROUPS, ()) if isinstance(group, dict)]
        chunks = [chunk.get(_META) for group in groups for chunk in group.get(_CHUNKS, ()) if isinstance(chunk, dict)]
    except (IndexError, ValueError, TypeError):
        return
    yield from (chunk for chunk in chunks if isinstance(chunk, dict))


def _check_chunk(file: pa.NativeFile, size: int, data: int, dictionary: int, packed: int, unpacked: int) -> None:
    begin, most = dictionary if 0 < dictionary < data else data, max(PAGE_MAX, unpacked)
    at, end = begin, min(size, begin + max(0, packed))
    while 0 < at < end:
        file.seek(at)
        try:
            header, length = _struct(file.read_buffer(min(HEADER, size - at)).to_pybytes(), 0, 0)
        except (IndexError, ValueError):
            return
        page_unpacked, page_packed = header.get(2), header.get(3)
        if not isinstance(page_unpacked, int) or not isinstance(page_packed, int):
            return
        if not 0 <= page_unpacked <= most:
            raise ValueError(f"a page at byte {at} says that it holds {page_unpacked} bytes, its chunk {most} at most")
        left = size - at - length
        if not 0 <= page_packed <= left:
            raise ValueError(f"a page at byte {at} says that it takes {page_packed} bytes, {left} are left")
        at += length + page_packed


def _struct(raw: bytes, at: int, depth: int) -> tuple[dict[int, Value], int]:
    """The fields of the struct at `at`, and where it ends. Raises IndexError or ValueError."""
    fields: dict[int, Value] = {}
    field = 0
    while (head := raw[at]) != 0:
        at += 1
        if head >> 4:
            field += head >> 4
        else:
            field, at = _zigzag(raw, at)
        fields[field], at = _value(raw, at, head & 15, depth)
    return fields, at + 1


def _value(raw: bytes, at: int, kind: int, depth: int) -> tuple[Value, int]:
    """A value of a kind and where it ends; of texts None."""
    if depth > _DEPTH_MAX:
        raise ValueError("too deep")
    if kind in (1, 2):
        return kind == 1, at
    if kind in (3, 7):
        return None, at + (1 if kind == 3 else 8)
    if kind in (4, 5, 6):
        return _zigzag(raw, at)
    if kind == 8:
        length, at = _varint(raw, at)
        return None, at + length
    if kind in (9, 10):
        return _list(raw, at, depth)
    if kind == 12:
        return _struct(raw, at, depth + 1)
    raise ValueError(f"kind {kind} is in no footer")


def _list(raw: bytes, at: int, depth: int) -> tuple[list[Value], int]:
    count, kind = raw[at] >> 4, raw[at] & 15
    at += 1
    if count == 15:
        count, at = _varint(raw, at)
    if count > len(raw) - at:
        raise ValueError("more items than bytes")
    items = []
    for _ in range(count):
        item, at = _value(raw, at, 3 if kind in (1, 2) else kind, depth + 1)
        items.append(item)
    return items, at


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
