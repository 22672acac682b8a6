"""Which parts form a group: a run of consecutive parts of one source, as far as they are of one split.

In: the counts of tokenize/tokens and pack/splits. Out: units of work. It stands in no key: a unit reads what it names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from tasks.artifacts.manifest import Entry
from tasks.errors import ParamsError
from tasks.step import Folder, Plan, Unit
from tasks.text.cut import cut_points
from tasks.text.split import SPLIT_NAMES

TOKENS, SPLITS, PIECES, SEQUENCES = "tokenize/tokens", "pack/splits", "pack/pieces", "pack/sequences"
OF_PIECES = ("best_fit", "document")
"""Strategies whose sequences are whole pieces; those of the others are windows of a flat stream."""


def plan_groups(plan: Plan, folder: Folder) -> list[Unit]:
    """A unit for each group that has tokens: source by source, split by split, in the order of the parts."""
    tokens, split = plan.entries(TOKENS), plan.entries(SPLITS)
    units = []
    sources = dict.fromkeys(name.split("-")[0] for name in split)
    _check(plan, list(sources))
    for source in sources:
        for word in SPLIT_NAMES:
            parts = [name for name in split if name.split("-")[0] == source and _tokens(split[name], word)]
            sizes = [_bytes(tokens[name], _tokens(split[name], word)) for name in parts]
            groups = group(parts, sizes, plan.params.group_bytes)
            units += [_unit(plan, source, word, number, own) for number, own in enumerate(groups)]
    return units


def plan_sequences(plan: Plan, folder: Folder) -> list[Unit]:
    """A unit for each group. spec: what its pieces left out or hold twice, so that all is counted in one place."""
    return [
        Unit(name, ((PIECES, name),), {"counts": dict(entry.counts)}, origin=entry.origin)
        for name, entry in plan.entries(PIECES).items()
    ]


def group(parts: Sequence[str], sizes: Sequence[int], group_bytes: int) -> list[list[str]]:
    """`parts` cut into runs of about `group_bytes` by the local rule (tasks.text.cut), so that a part that
    comes or goes changes the groups near it only; half of `group_bytes` or less is one group. sizes: bytes of ids of
    each part; each is above 0.
    """
    digests = np.array([int(_digest([name])[:16], 16) for name in parts], np.uint64)
    window = max(1, group_bytes // 2)
    if sum(sizes) <= window:
        return [list(parts)] if parts else []
    ends = cut_points(np.array(sizes, np.uint64), digests, window, 2 * group_bytes).tolist()
    return [list(parts[start:stop]) for start, stop in zip([0, *ends], ends, strict=False)]


def _check(plan: Plan, sources: Sequence[str]) -> None:
    """A name that is no source would change nothing and say nothing."""
    for name in sorted(set(plan.params.long_of) - set(sources)):
        raise ParamsError(f"pack.long_of names {name!r}, which is no source of these: {', '.join(sources)}", "mend it")


def _unit(plan: Plan, source: str, split: str, number: int, parts: list[str]) -> Unit:
    name = f"{source}-{split}-{_digest(parts)[:16]}"
    reads = tuple((folder, part) for folder in (TOKENS, SPLITS) for part in parts)
    spec: dict[str, Any] = {"split": split, "parts": parts}
    if plan.params.strategy in OF_PIECES:  # a flat stream is the same at any length of sequences
        spec |= {"strategy": plan.params.strategy, "tokens_per_sequence": plan.params.tokens_per_sequence}
    return Unit(name, reads, spec, origin=(f"{source}/{split}", number))


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _tokens(entry: Entry, split: str) -> int:
    return entry.counts.get(f"tokens|split={split}", 0)


def _bytes(entry: Entry, tokens: int) -> int:
    """Bytes of `tokens` ids of a part, from the length of its flat file: 2 or 4 each."""
    flat: int = entry.files[entry.suffixes()[".bin"]]["bytes"]
    return flat * tokens // entry.counts["tokens"]
