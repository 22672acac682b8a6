"""Which group becomes which shard: numbered within source and split, in the order of the corpus.

In: the entries of pack's folders. Out: units of work. It stands in no key, and neither does a shard's number.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from tasks.errors import InvariantError
from tasks.step import Folder, Plan, Unit
from tasks.text.split import TRAIN

TOKENS, TOKENIZER = "tokenize/tokens", "tokenize/tokenizer"
SPLITS, PIECES, SEQUENCES = "pack/splits", "pack/pieces", "pack/sequences"
LOSS = ".loss"


def plan_stream(plan: Plan, folder: Folder) -> list[Unit]:
    """A unit for each group, named <domain>/<split>/shard_<number>; it reads its parts' ids.

    spec: masked are the parts in which some id carries no loss.
    """
    parts, tokens = _parts(plan), plan.entries(TOKENS)
    return [
        Unit(
            name,
            ((TOKENIZER, "tokenizer"), (PIECES, group), *((TOKENS, part) for part in parts[group])),
            {"group": group, "masked": [part for part in parts[group] if LOSS in tokens[part].suffixes()]},
            origin=(name.rpartition("/")[0], number),
        )
        for name, group, number in _numbered(plan)
    ]


def plan_sequences(plan: Plan, folder: Folder) -> list[Unit]:
    """A unit for each group, named as in the folder stream."""
    return [
        Unit(name, ((SEQUENCES, group),), {"group": group}, origin=(name.rpartition("/")[0], number))
        for name, group, number in _numbered(plan)
    ]


def plan_classes(plan: Plan, folder: Folder) -> list[Unit]:
    """A unit for each group that is not of train, named as in the folder stream."""
    parts = _parts(plan)
    return [
        Unit(
            name,
            ((PIECES, group), *((SPLITS, part) for part in parts[group])),
            {"group": group},
            origin=(name.rpartition("/")[0], number),
        )
        for name, group, number in _numbered(plan)
        if group.split("-")[1] != TRAIN
    ]


def _numbered(plan: Plan) -> Iterator[tuple[str, str, int]]:
    """(unit name, group, number) of every group, in the order of pack."""
    numbers: dict[tuple[str, ...], int] = {}
    for group in plan.entries(PIECES):
        place = tuple(group.split("-")[:2])
        number = numbers.get(place, 0)
        numbers[place] = number + 1
        yield f"{place[0]}/{place[1]}/shard_{number:05d}", group, number


def _parts(plan: Plan) -> dict[str, list[str]]:
    """group -> its parts: a group is a run of the parts with tokens of its split, and counts them."""
    left: dict[tuple[str, ...], Iterator[str]] = {}
    found = {}
    for group, entry in plan.entries(PIECES).items():
        place = tuple(group.split("-")[:2])
        if place not in left:
            left[place] = iter(_with_tokens(plan, *place))
        found[group] = list(islice(left[place], entry.counts["parts"]))
        if len(found[group]) != entry.counts["parts"]:
            raise InvariantError(f"pack/splits lacks parts of {group}", "build pack again with --force")
    return found


def _with_tokens(plan: Plan, domain: str, split: str) -> list[str]:
    return [name for name, entry in plan.entries(SPLITS).items() if entry.counts.get(f"tokens|stream={domain}/{split}")]
