"""Changes that break files: bits, lengths, pieces of other files, depth, bombs.

In: an input and a random.Random. Out: another input. The same seed makes the same changes.
"""

import bz2
import gzip
import lzma
import re
import struct
import zlib
from functools import cache

MOST = 2 << 20
_NUMBER = re.compile(rb"\d+")
_INTEGERS = [0, 1, 2, 7, 8, 127, 128, 255, 256, 32767, 65535, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1]
_DIGITS = [b"0", b"-1", b"1", b"99999999", b"2147483647", b"4294967296", b"18446744073709551616", b"9" * 30, b"1e9"]


def changed(data, seeds, words, chance):
    """`data` after one to six changes."""
    for _ in range(chance.choice([1, 1, 1, 2, 3, 6])):
        data = chance.choice(CHANGES)(data, seeds, words, chance)[:MOST]
    return data


def _at(data, chance):
    return chance.randrange(len(data) + 1)


def _span(data, chance):
    begin = _at(data, chance)
    return begin, min(len(data), begin + chance.choice([1, 2, 4, 8, 40, 400, len(data)]))


def flip(data, seeds, words, chance):
    held = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 8, 64])):
        if held:
            held[chance.randrange(len(held))] ^= 1 << chance.randrange(8)
    return bytes(held)


def over(data, seeds, words, chance):
    begin, stop = _span(data, chance)
    return data[:begin] + chance.randbytes(min(40, stop - begin)) + data[stop:]


def cut_end(data, seeds, words, chance):
    return data[: _at(data, chance)]


def cut(data, seeds, words, chance):
    begin, stop = _span(data, chance)
    return data[:begin] + data[stop:]


def copy(data, seeds, words, chance):
    begin, stop = _span(data, chance)
    at = _at(data, chance)
    return data[:at] + data[begin:stop] + data[at:]


def splice(data, seeds, words, chance):
    other = chance.choice(seeds)
    begin, stop = _span(other, chance)
    at = _at(data, chance)
    return data[:at] + other[begin:stop] + data[at if chance.random() < 0.5 else min(len(data), at + stop - begin) :]


def word(data, seeds, words, chance):
    at = _at(data, chance)
    return data[:at] + chance.choice(words) + data[at:]


def deep(data, seeds, words, chance):
    """A word many times: nesting, and long runs."""
    at = _at(data, chance)
    return data[:at] + chance.choice(words) * chance.choice([10, 200, 1100, 5000, 40_000]) + data[at:]


def integer(data, seeds, words, chance):
    """A length or offset in binary, of any width and order."""
    width, order = chance.choice("BHIQ"), chance.choice("<>")
    value = chance.choice(_INTEGERS) & ((1 << 8 * struct.calcsize(width)) - 1)
    at = _at(data, chance)
    return data[:at] + struct.pack(order + width, value) + data[at + struct.calcsize(width) :]


def number(data, seeds, words, chance):
    """A length or offset in digits."""
    found = list(_NUMBER.finditer(data[:100_000]))
    if not found:
        return word(data, seeds, words, chance)
    one = chance.choice(found)
    near = b"%d" % max(0, int(one[0][:18]) + chance.choice([-1, 1, 2, 10, -10]))
    return data[: one.start()] + chance.choice([*_DIGITS, near]) + data[one.end() :]


@cache
def _bomb(pack, unit, size):
    return {"gz": gzip.compress, "zlib": zlib.compress, "bz2": bz2.compress, "xz": lzma.compress}[pack](unit * size)


def bomb(data, seeds, words, chance):
    """Much in little, packed as any packer does; at an end, where readers look for more, or as the whole."""
    size = chance.choice([1 << 16, 1 << 18, 1 << 20])
    packed = _bomb(chance.choice(["gz", "zlib", "bz2", "xz"]), chance.choice([b"0", b"\n", b"[", b"<p>"]), size)
    if chance.random() < 0.05:
        packed = _bomb(chance.choice(["gz", "xz"]), b"0", 64 << 20)
    return data + packed if chance.random() < 0.5 else data[:1] + packed


CHANGES = [flip, flip, over, cut_end, cut, copy, splice, word, word, deep, integer, integer, number, number, bomb]
