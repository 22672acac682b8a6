"""SHA-256 (FIPS 180-4) of many texts in one call, two at a time where the processor has instructions for it.

In: texts as bytes and offsets. Out: their digests, as hashlib gives them: a test holds every length against it. One
SHA-256 is a chain in which each step waits for the one before; two of them side by side take the time of one. hashlib
knows no call for many, and costs half a microsecond each. On a processor without Intel's SHA extensions (or where
NUMBA_CPU_NAME or NUMBA_CPU_FEATURES say otherwise) hashlib does it all.
"""

from __future__ import annotations

import hashlib
from typing import Any

import llvmlite.binding
import numba
import numpy as np
from llvmlite import ir
from numba.core import config, types
from numba.extending import intrinsic

Array = np.ndarray[Any, Any]

_PRIMES = [n for n in range(2, 312) if all(n % d for d in range(2, n))]


def _root(prime: int, power: int) -> int:
    """The first 32 bits of the fraction of a prime's square (2) or cubic (3) root."""
    low, high = 0, 1 << 40
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**power <= prime << 32 * power else (low, middle)
    return low & 0xFFFFFFFF


_STEPS = [_root(prime, 3) for prime in _PRIMES[:64]]
_A, _B, _C, _D, _E, _F, _G, _H = (_root(prime, 2) for prime in _PRIMES[:8])
_BEGIN = np.array([_F, _E, _B, _A, _H, _G, _D, _C], np.uint32)
"""A state in the order of the instructions' registers."""
_ORDER = np.array([3, 2, 7, 6, 1, 0, 5, 4], np.int64)
_BLOCK = 64
_AHEAD, _BODY, _TAIL, _WRITE, _DONE = 0, 1, 2, 3, 4
"""What a lane does next with its text."""


def digests(data: Array, starts_R: Array, ends_R: Array, ahead: bytes = b"") -> bytes:
    """32 bytes for each of the texts data[start:end], one after another; each is digested as if behind `ahead`."""
    if not HAS_INSTRUCTIONS:
        view, begun, made = memoryview(data.data), hashlib.sha256(ahead), list[bytes]()
        for start, end in zip(starts_R.tolist(), ends_R.tolist(), strict=True):
            one = begun.copy()
            one.update(view[start:end])
            made.append(one.digest())
        return b"".join(made)
    words, whole = np.empty((len(starts_R), 8), np.uint32), len(ahead) // _BLOCK * _BLOCK
    begun_8, first = _BEGIN.copy(), np.frombuffer(ahead, np.uint8)
    _absorb(begun_8, first[:whole])
    texts = (_unchanged(data), _unchanged(starts_R), _unchanged(ends_R))
    _digest(*texts, first[whole:], whole, begun_8, _ORDER, words)
    return words.astype(">u4").tobytes()


def _unchanged(array: Array) -> Array:
    """A view that cannot be written: one kernel for arrays that can and cannot."""
    view = array.view()
    view.flags.writeable = False
    return view


def _has_instructions() -> bool:
    return not (config.CPU_NAME or config.CPU_FEATURES) and bool(llvmlite.binding.get_host_cpu_features().get("sha"))


HAS_INSTRUCTIONS = _has_instructions()

_WORDS, _BYTES = ir.VectorType(ir.IntType(32), 4), ir.VectorType(ir.IntType(8), 16)


def _vector(numbers: list[int]) -> Any:
    return ir.Constant(_WORDS, numbers)


class _Lane:
    """One of the two, as instructions: a state of two registers and the schedule of a block."""

    def __init__(self, builder: Any, state: Any, block: Any) -> None:
        self._builder = builder
        self._state = [self._at(state, place, 16, _WORDS) for place in (0, 1)]
        self._now = self._kept = [builder.load(place, align=4) for place in self._state]
        swapped = ir.Constant(ir.VectorType(ir.IntType(32), 16), [4 * (n // 4) + 3 - n % 4 for n in range(16)])
        blocks = (builder.load(self._at(block, place, 16, _BYTES), align=1) for place in range(4))
        self._words = [builder.bitcast(builder.shuffle_vector(each, each, swapped), _WORDS) for each in blocks]

    def step(self, group: int) -> None:
        """Four of the 64 steps."""
        if group > 3:
            four, three, two, one = self._words[group - 4 :]
            sums = self._builder.add(self._call("msg1", four, three), self._shuffled(two, one, [1, 2, 3, 4]))
            self._words.append(self._call("msg2", sums, one))
        with_steps = self._builder.add(self._words[group], _vector(_STEPS[4 * group : 4 * group + 4]))
        first, second = self._now
        second = self._call("rnds2", second, first, with_steps)
        first = self._call("rnds2", first, second, self._shuffled(with_steps, with_steps, [2, 3, 0, 0]))
        self._now = [first, second]

    def end(self) -> None:
        for place, now, before in zip(self._state, self._now, self._kept, strict=True):
            self._builder.store(self._builder.add(now, before), place, align=4)

    def _at(self, address: Any, place: int, size: int, kind: Any) -> Any:
        moved = self._builder.add(address, ir.Constant(address.type, place * size))
        return self._builder.inttoptr(moved, kind.as_pointer())

    def _shuffled(self, one: Any, other: Any, order: list[int]) -> Any:
        return self._builder.shuffle_vector(one, other, _vector(order))

    def _call(self, name: str, *values: Any) -> Any:
        kind = ir.FunctionType(_WORDS, [_WORDS] * len(values))
        function = self._builder.module.declare_intrinsic(f"llvm.x86.sha256{name}", fnty=kind)
        return self._builder.call(function, values)


@intrinsic  # type: ignore[untyped-decorator]
def _compress(_: Any, state: Any, other: Any, block: Any, other_block: Any) -> Any:
    """Take a block of 64 bytes into each of two states; all four are addresses."""

    def made(context: Any, builder: Any, _: Any, addresses: Any) -> Any:
        lanes = [_Lane(builder, addresses[0], addresses[2]), _Lane(builder, addresses[1], addresses[3])]
        for group in range(16):
            for lane in lanes:
                lane.step(group)
        for lane in lanes:
            lane.end()
        return context.get_dummy_value()

    return types.void(types.uintp, types.uintp, types.uintp, types.uintp), made


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _absorb(state_8: Array, blocks: Array) -> None:
    """Take whole blocks into a state."""
    other = state_8.copy()
    for place in range(0, len(blocks), _BLOCK):
        address = blocks.ctypes.data + np.uintp(place)
        _compress(state_8.ctypes.data, other.ctypes.data, address, address)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _digest(
    data: Array,
    starts_R: Array,
    ends_R: Array,
    ahead: Array,
    before: int,
    begun_8: Array,
    order_8: Array,
    words_R8: Array,
) -> None:
    """Both lanes go on as long as each has blocks; one that has none goes on to the next stage of its text: the block
    that begins with `ahead`, those of the data, and the last ones; then to its next text."""
    states, scratch = np.zeros((3, 8), np.uint32), np.zeros((2, 2 * _BLOCK), np.uint8)
    texts, stage, at, left = np.full(2, -1), np.full(2, _DONE), np.zeros(2, np.uintp), np.zeros(2, np.int64)
    where, rows, following = states.ctypes.data, len(starts_R), 0
    while True:
        for lane in range(2):
            while left[lane] == 0 and (stage[lane] != _DONE or following < rows):
                if stage[lane] == _DONE:
                    texts[lane], stage[lane] = following, _AHEAD
                    states[lane] = begun_8
                    following += 1
                text = data[starts_R[texts[lane]] : ends_R[texts[lane]]]
                if stage[lane] == _WRITE:
                    for word in range(8):
                        words_R8[texts[lane], word] = states[lane, order_8[word]]
                stage[lane], left[lane], at[lane] = _go_on(stage[lane], ahead, text, before, scratch[lane])
        first, second = stage[0] != _DONE, stage[1] != _DONE
        if not first and not second:
            return
        one, other = (0, 1) if first and second else (0, 0) if first else (1, 1)
        spare = 1 if first and second else 2
        count = min(left[one], left[other])
        for _ in range(count):
            _compress(where + np.uintp(32 * one), where + np.uintp(32 * spare), at[one], at[other])
            at[0] += np.uintp(_BLOCK)
            at[1] += np.uintp(_BLOCK)
        left[one] -= count
        if other != one:
            left[other] -= count


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _go_on(stage: int, ahead: Array, text: Array, before: int, scratch: Array) -> tuple[int, int, int]:
    """(the next stage, its blocks, their address) of a text at a stage; blocks that are put together lie in scratch."""
    size = len(ahead) + len(text)
    inside = _BLOCK - len(ahead) if len(ahead) and size >= _BLOCK else 0
    if stage == _AHEAD:
        scratch[: len(ahead)] = ahead
        scratch[len(ahead) : len(ahead) + inside] = text[:inside]
        return _BODY, int(inside > 0), scratch.ctypes.data
    if stage == _BODY:
        blocks = (len(text) - inside) // _BLOCK if size >= _BLOCK else 0
        return _TAIL, blocks, int(text.ctypes.data + np.uintp(inside))
    if stage == _TAIL:
        return _WRITE, _pad(ahead, text, before, scratch), scratch.ctypes.data
    return _DONE, 0, scratch.ctypes.data


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _pad(ahead: Array, text: Array, before: int, scratch: Array) -> int:
    """Write the last blocks of a text: what is left of it, a bit, zeros and its length in bits; returns how many."""
    size = len(ahead) + len(text)
    rest = size % _BLOCK
    blocks, first = 1 if rest < _BLOCK - 8 else 2, len(ahead) if size < _BLOCK else 0
    scratch[:] = 0
    scratch[:first] = ahead[:first]
    scratch[first:rest] = text[len(text) - (rest - first) :]
    scratch[rest] = 0x80
    for byte in range(8):
        scratch[_BLOCK * blocks - 1 - byte] = (((before + size) * 8) >> (8 * byte)) & 0xFF
    return blocks
