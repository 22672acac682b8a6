"""The ring of buffers on its way to a device, against a device of our own that is as late, or as early, as it may be.

Streams hold their work back and run it only where the host or another stream waits for it, or all at once where nothing
stops them; so an order that no event holds is an order that does not hold. A real GPU would show it once in a while.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch

from tests.pin_maker import small_pin
from training.loader import DirectLoader, build_dataloader
from training.pin import Pin
from training.ring import Slot


@pytest.fixture(scope="module")
def pin(tmp_path_factory: pytest.TempPathFactory) -> Pin:
    return small_pin(tmp_path_factory.mktemp("project"), stages=[(0, {"a": 1, "b": 2}), (50, {"a": 1, "b": 1})])


class Stream:
    """Work in its order: functions, and waits for so much of another stream's."""

    def __init__(self, device: Device) -> None:
        self.device, self.work, self.done = device, [], 0

    def queue(self, work: Callable[[], None] | tuple[Stream, int]) -> None:
        self.work.append(work)
        self.device.hurry()

    def wait_event(self, event: Event) -> None:
        if event.stream is not None:
            self.queue((event.stream, event.upto))

    def advance(self, upto: int, *, forced: bool) -> None:
        while self.done < upto:
            work = self.work[self.done]
            if isinstance(work, tuple):
                other, needed = work
                if forced:
                    other.advance(needed, forced=True)
                elif other.done < needed:
                    return
            else:
                work()
            self.done += 1


class Event:
    def __init__(self) -> None:
        self.stream, self.upto = None, 0

    def record(self, stream: Stream) -> None:
        self.stream, self.upto = stream, len(stream.work)

    def synchronize(self) -> None:
        if self.stream is not None:
            self.stream.advance(self.upto, forced=True)


class Device:
    """side copies, here computes; hurried runs all that nothing holds back, the other nothing that nobody waits for."""

    def __init__(self, hurried: str | None) -> None:
        self.side, self.here = Stream(self), Stream(self)
        self.current = self.here
        self.hurried = {"side": self.side, "here": self.here}.get(hurried)

    def hurry(self) -> None:
        if self.hurried is not None:
            self.hurried.advance(len(self.hurried.work), forced=False)

    def finish(self) -> None:
        for stream in (self.here, self.side):
            stream.advance(len(stream.work), forced=True)

    @contextmanager
    def stream(self, stream: Stream) -> Iterator[None]:
        self.current, before = stream, self.current
        yield
        self.current = before


class Memory:
    """A tensor of the device: what is done with it is queued on the current stream."""

    def __init__(self, device: Device, held: torch.Tensor) -> None:
        self.on, self.held, self.device, self.dtype = device, held, torch.device("cpu"), held.dtype

    def copy_(self, source: torch.Tensor, non_blocking: bool) -> None:
        assert non_blocking
        self.on.current.queue(lambda: self.held.copy_(source))

    def to(self, dtype: torch.dtype) -> Memory:
        made = Memory(self.on, torch.full(self.held.shape, -1, dtype=dtype))
        self.on.current.queue(lambda: made.held.copy_(self.held))
        return made

    def __and__(self, mask: int) -> torch.Tensor:
        made = torch.full_like(self.held, -1)
        self.on.current.queue(lambda: made.copy_(self.held & mask))
        return made


FAULTS = {
    "the host rewrites a buffer without waiting": lambda device, slot: setattr(slot._copied, "synchronize", tuple),
    "a copy overwrites without waiting": lambda device, slot: setattr(device.side, "wait_event", str),
    "a batch is read without waiting": lambda device, slot: setattr(device.here, "wait_event", str),
}


NAMES = ("input_ids", "labels", "position_ids", "document_ids")


def on_device(
    pin: Pin, monkeypatch: pytest.MonkeyPatch, hurried: str | None, fault: str | None, stop: int = 40
) -> list:
    """The rows of 40 batches of isolated documents, broken off after `stop` of them and begun again from there."""
    device = Device(hurried)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _: device.here)
    monkeypatch.setattr(torch.cuda, "stream", device.stream)
    one = build_dataloader(pin, batch_size=4, steps=40, isolate_documents=True)
    assert isinstance(one, DirectLoader)
    how = (4, one.dataset.width, one.dataset.dtype, torch.device("cpu"), one._ring[0]._ahead)
    one._ring = [Slot(*how) for _ in range(3)]
    one._side = device.side
    for slot in one._ring:
        slot._on_gpu, slot._copied, slot._taken = True, Event(), Event()
        slot._host = torch.zeros(4, one.dataset.width, dtype=torch.int16)
        slot._device = Memory(device, torch.zeros_like(slot._host))
        if fault:
            FAULTS[fault](device, slot)
    batches = [batch for _, batch in zip(range(stop), one, strict=False)]
    batches += list(one)
    device.finish()
    return whole(batches)


def whole(batches) -> list:
    return torch.cat([torch.stack([getattr(batch, name) for name in NAMES], 1) for batch in batches]).tolist()


@pytest.mark.parametrize("hurried", [None, "side", "here"])
def test_every_batch_comes_whole_however_late_the_device_is(pin: Pin, hurried: str | None, monkeypatch) -> None:
    expected = whole([*build_dataloader(pin, batch_size=4, steps=40, isolate_documents=True)])
    for stop in (40, 0, 1, 17):
        assert on_device(pin, monkeypatch, hurried, None, stop) == expected


@pytest.mark.parametrize("fault", FAULTS)
def test_each_of_the_three_waits_is_needed(pin: Pin, fault: str, monkeypatch) -> None:
    """Failure 35: without one of them, some device gives other batches."""
    expected = whole([*build_dataloader(pin, batch_size=4, steps=40, isolate_documents=True)])
    found = [on_device(pin, monkeypatch, hurried, fault) for hurried in (None, "side", "here")]
    assert any(rows != expected for rows in found)
