"""The rows and documents of a pin read the plain way, one at a time: what the loader's batches are held against.

In: a Pin. Out: ids as the files have them, by nothing but the order's rule and the files' own index. Slow on purpose:
it shares no code with the loader's gather, so that a fault there cannot hide here. Legend: T1 = tokens_per_sequence
+ 1.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tasks.artifacts.shards import ShardReader
from training.order import Order
from training.pin import Pin


def rows_at(pin: Pin, positions: np.ndarray) -> Iterator[np.ndarray]:
    """The ids of train's sequence at each of `positions`, int64 [n], n at most T1."""
    order = Order(pin.schedule)
    places = order.at(np.asarray(positions, np.int64))
    held = {name: shards_of(pin, name, "train") for name in order.sources}
    for source, sequence in zip(places.source.tolist(), places.sequence.tolist(), strict=True):
        for shard in held[order.sources[source]]:
            if sequence < len(shard.starts):
                yield np.asarray(shard.tokens[int(shard.starts[sequence]) : int(shard.stops[sequence])], np.int64)
                break
            sequence -= len(shard.starts)


def sampled_rows(pin: Pin, count: int) -> Iterator[np.ndarray]:
    """Up to `count` of train's sequences, none twice: positions of the run's first epoch are a random sample, in the
    run's own mixture."""
    order = Order(pin.schedule)
    places = order.at(np.arange(count, dtype=np.int64))
    return rows_at(pin, np.flatnonzero(places.epoch == 0))


def batches_at(pin: Pin, batch_size: int, count: int, first: int = 0) -> Iterator[np.ndarray]:
    """`count` global batches from position `first` on, int64 [batch_size, T1], EOS beyond a row's end."""
    width = pin.schedule.tokens_per_sequence + 1
    for at in range(first, first + count * batch_size, batch_size):
        batch = np.full((batch_size, width), pin.schedule.eos_id, np.int64)
        for target, ids in zip(batch, rows_at(pin, np.arange(at, at + batch_size)), strict=True):
            target[: len(ids)] = ids
        yield batch


def document_lengths(pin: Pin, split: str = "train") -> np.ndarray:
    """Ids of each document of a split, its end counted, from the shards' index: int64 [documents]."""
    sizes = [shard.index.sizes for name in sorted(pin.schedule.sources) for shard in shards_of(pin, name, split)]
    return np.concatenate([np.empty(0, np.int64), *sizes]).astype(np.int64)


def shards_of(pin: Pin, source: str, split: str) -> list[ShardReader]:
    """The shards of a source in reading order, each checked as it is opened."""
    return [ShardReader(path.parent, path.name) for path in pin.shards(source, split)]
