"""Streams of bytes: blocks of a file, what packs them, and blocks as a file again.

In: an open file. Out: its bytes after unpacking, in blocks of about a MiB. It knows no records.

Packed streams are read by pyarrow, which goes on over all gzip members and zstd, lz4 and bzip2 frames and raises on
truncation and on bytes after the end, where the standard library and zstandard each miss one of them (measured). xz is
unpacked by lzma, stream by stream, with the same two checks.
"""

from __future__ import annotations

import codecs
import io
import lzma
from collections.abc import Iterator

import pyarrow as pa

BLOCK = 1 << 20
HEAD = 1 << 16
"""Bytes that tell what a stream is."""

ARROW = {"gz": "gzip", "zst": "zstd", "bz2": "bz2", "lz4": "lz4"}
CODECS = (*ARROW, "xz")
_MAGIC = ((b"\x1f\x8b", "gz"), (b"\x28\xb5\x2f\xfd", "zst"), (b"BZh", "bz2"), (b"\x04\x22\x4d\x18", "lz4"))
XZ_MEMORY = 128 << 20
"""Bytes that unpacking xz may take: its highest level needs 65 MB, a hostile file asks for gigabytes."""

_XZ = b"\xfd7zXZ\0"
PACKED = (*(magic for magic, _ in _MAGIC), _XZ)
"""How streams that are packed begin."""
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def codec_of(head: bytes) -> str | None:
    """What packs a stream that begins with `head`: gz, zst, bz2, lz4, xz, or None."""
    if head.startswith(_XZ):
        return "xz"
    return next((codec for magic, codec in _MAGIC if head.startswith(magic)), None)


def unpacked(file: pa.NativeFile, codec: str) -> Iterator[bytes]:
    """The bytes that `codec` packs. Raises OSError where the stream is cut off, corrupt or goes on after its end."""
    if codec == "xz":
        yield from _of_xz(file)
        return
    with pa.CompressedInputStream(file, ARROW[codec]) as stream:
        yield from read(stream)


def read(stream: pa.NativeFile) -> Iterator[bytes]:
    """The bytes of a stream in blocks. read() of pyarrow 26 keeps its MiB for ever where it raises; read_buffer() does
    not, and the copy costs 2 % of what zstd does."""
    while block := stream.read_buffer(BLOCK).to_pybytes():
        yield block


def peeked(stream: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The first HEAD bytes at least (fewer where there are no more), and the whole stream."""
    held: list[bytes] = []
    while sum(map(len, held)) < HEAD and (block := next(stream, b"")):
        held.append(block)
    return b"".join(held), _chained(held, stream)


def mark_of(head: bytes) -> str | None:
    """The codec of a UTF-16 or UTF-32 byte order mark."""
    return next((codec for mark, codec in _MARKS if head.startswith(mark)), None)


def as_utf8(stream: Iterator[bytes], codec: str) -> Iterator[bytes]:
    """A stream of text in `codec`, its mark left out, as UTF-8. Raises ValueError where it does not decode."""
    decoder = codecs.getincrementaldecoder(codec)("strict")
    first = True
    for block in stream:
        text = decoder.decode(block)
        yield (text.removeprefix("\ufeff") if first else text).encode()
        first = first and not text
    yield decoder.decode(b"", True).encode()


class Blocks(io.RawIOBase):
    """A stream of blocks as a file that can be read forward."""

    def __init__(self, stream: Iterator[bytes]) -> None:
        self._stream, self._held = stream, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, target: memoryview) -> int:  # type: ignore[override]
        while not len(self._held):
            block = next(self._stream, None)
            if block is None:
                return 0
            self._held = memoryview(block)
        count = min(len(target), len(self._held))
        target[:count] = self._held[:count]
        self._held = self._held[count:]
        return count


def as_file(stream: Iterator[bytes]) -> io.BufferedReader:
    """`stream` as a buffered binary file."""
    return io.BufferedReader(Blocks(stream), BLOCK)


def _chained(first: list[bytes], rest: Iterator[bytes]) -> Iterator[bytes]:
    yield from first
    yield from rest


def _of_xz(file: pa.NativeFile) -> Iterator[bytes]:
    unpacking, ahead = lzma.LZMADecompressor(lzma.FORMAT_XZ, XZ_MEMORY), file.read(BLOCK)
    while ahead or not unpacking.eof:
        if unpacking.eof:
            ahead = _after_padding(ahead, file)
            if not ahead:
                return
            unpacking = lzma.LZMADecompressor(lzma.FORMAT_XZ, XZ_MEMORY)
        yield from _step(unpacking, ahead)
        ahead = unpacking.unused_data if unpacking.eof else b""
        if not ahead and not (ahead := file.read(BLOCK)) and not unpacking.eof:
            raise OSError("Truncated compressed stream")


def _step(unpacking: lzma.LZMADecompressor, packed: bytes) -> Iterator[bytes]:
    """What `packed` unpacks to, a block at a time, so that a bomb is not held."""
    try:
        while True:
            if block := unpacking.decompress(packed, BLOCK):
                yield block
            packed = b""
            if unpacking.eof or unpacking.needs_input:
                return
    except lzma.LZMAError as error:
        raise OSError(f"xz: {error}") from error


def _after_padding(ahead: bytes, file: pa.NativeFile) -> bytes:
    """What stands after the zero bytes that xz allows between streams."""
    while ahead and not (ahead := ahead.lstrip(b"\0")):
        ahead = file.read(BLOCK)
    return ahead
