"""The folder shard/tokenizer, the file tokenizer.json: carried along for all who read shards alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasks.artifacts.canonical import pretty
from tasks.shard.facts import facts
from tasks.step import Made, Reads

if TYPE_CHECKING:
    from tasks.shard import ShardParams


def make(reads: Reads, params: ShardParams) -> Made:
    """tokenizer.json as tokenize wrote it."""
    return Made({".json": pretty(facts(reads)).encode()})
