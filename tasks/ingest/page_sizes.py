"""What the pages of a Parquet file say of their size, looked at before Arrow believes it.

In: an open file. Out: nothing, or ValueError where a page claims more packed bytes than the file has left, or more
unpacked ones than PAGE_MAX and than the whole chunk that it is in, or has a header that is none: Arrow takes the memory
first, up to two gigabytes for four spoilt bytes. It reads the footer and the headers of pages in Thrift's compact
protocol by itself, since Arrow's Python ends the process at some footers that it cannot hold, and says nothing of a
footer that it cannot read: Arrow does. A footer is read group by group, so that it takes little memory however long it
is, and 0.3 CPU seconds a MB.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

PAGE_MAX = 64 << 20
HEADER, HEADER_MAX = 512, 16 << 20
"""Bytes that a page's header is looked for in at first, and at most, as Arrow does: statistics may make it long."""
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
    if not 0 < length <= size - 12:
        return
    file.seek(size - 8 - length)
    raw = file.read_buffer(length).to_pybytes()
    try:
        for group in _groups(raw):
            for chunk in group.get(_CHUNKS, ()):
                if isinstance(chunk, dict) and isinstance(chunk.get(_META), dict):
                    yield chunk[_META]
    except (IndexError, ValueError, TypeError):
        return


def _groups(raw: bytes) -> Iterator[dict[int, Value]]:
    """The row groups of a footer, one at a time. Raises IndexError or ValueError."""
    field = at = 0
    while (head := raw[at]) != 0:
        at += 1
        if head >> 4:
            field += head >> 4
        else:
            field, at = _zigzag(raw, at)
        if field == _ROW_GROUPS and head & 15 == 9:
            count, kind, at = _list_head(raw, at)
            for _ in range(count):
                group, at = _value(raw, at, kind, 1)
                if isinstance(group, dict):
                    yield group
        else:
            _, at = _value(raw, at, head & 15, 0)


def _check_chunk(file: pa.NativeFile, size: int, data: int, dictionary: int, packed: int, unpacked: int) -> None:
    begin, most = dictionary if 0 < dictionary < data else data, max(PAGE_MAX, unpacked)
    at, end = begin, min(size, begin + max(0, packed))
    while 0 < at < end:
        header, length = _header(file, at, size)
        page_unpacked, page_packed = header.get(2), header.get(3)
        if not isinstance(page_unpacked, int) or not isinstance(page_packed, int):
            raise ValueError(f"a page at byte {at} does not say how many bytes it has")
        if not 0 <= page_unpacked <= most:
            raise ValueError(f"a page at byte {at} says that it holds {page_unpacked} bytes, its chunk {most} at most")
        left = size - at - length
        if not 0 <= page_packed <= left:
            raise ValueError(f"a page at byte {at} says that it takes {page_packed} bytes, {left} are left")
        at += length + page_packed


def _header(file: pa.NativeFile, at: int, size: int) -> tuple[dict[int, Value], int]:
    """A page's header and its bytes; a longer one is looked for where it is not whole. Raises ValueError."""
    most = HEADER
    while True:
        file.seek(at)
        try:
            return _struct(file.read_buffer(min(most, size - at)).to_pybytes(), 0, 0)
        except IndexError:
            most *= 8
            if most // 8 >= min(HEADER_MAX, size - at):
                raise ValueError(f"a page at byte {at} has no whole header") from None
        except ValueError as error:
            raise ValueError(f"a page at byte {at} has a header that is none: {error}") from None


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
    count, kind, at = _list_head(raw, at)
    items = []
    for _ in range(count):
        item, at = _value(raw, at, kind, depth + 1)
        items.append(item)
    return items, at


def _list_head(raw: bytes, at: int) -> tuple[int, int, int]:
    """(items, their kind, where the first begins); of truth values, which take a byte each here, the kind is 3."""
    count, kind = raw[at] >> 4, raw[at] & 15
    at += 1
    if count == 15:
        count, at = _varint(raw, at)
    if count > len(raw) - at:
        raise ValueError("more items than bytes")
    return count, 3 if kind in (1, 2) else kind, at


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
