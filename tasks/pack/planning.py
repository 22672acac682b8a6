"""Which parts form a group: a run of consecutive parts, as far as they are of one domain and one split.

In: the counts of tokenize/tokens and pack/splits. Out: units of work. It stands in no key: a unit reads what it names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tasks.artifacts.manifest import Entry
from tasks.artifacts.tokens import FIRST, SEQUENCE
from tasks.errors import ParamsError
from tasks.step import Folder, Plan, Unit
from tasks.text.cut import cut_points
from tasks.text.split import SPLIT_NAMES

TOKENS, TEXT, SIGNALS = "tokenize/tokens", "normalize/text", "filter/signals"
SPLITS, PIECES, SEQUENCES = "pack/splits", "pack/pieces", "pack/sequences"
STREAM = "tokens|stream="
OF_PIECES = ("best_fit", "document")
"""Strategies whose sequences are whole pieces; those of the others are windows of a flat stream."""


def plan_groups(plan: Plan, folder: Folder) -> list[Unit]:
    """A unit for each group that has tokens: domain by domain, split by split, in the order of the parts."""
    tokens, split, bos = plan.entries(TOKENS), plan.entries(SPLITS), _bos(plan)
    _check(plan, list(dict.fromkeys(name.split("-")[0] for name in split)))
    units = []
    for domain in _domains(plan, split):
        for word in SPLIT_NAMES:
            held = {name: entry.counts.get(f"{STREAM}{domain}/{word}", 0) for name, entry in split.items()}
            parts = [name for name, count in held.items() if count]
            sizes = [_bytes(tokens[name], held[name]) for name in parts]
            groups = group(parts, sizes, plan.params.group_bytes)
            units += [_unit(plan, domain, word, number, own, bos) for number, own in enumerate(groups)]
    return units


def plan_sequences(plan: Plan, folder: Folder) -> list[Unit]:
    """A unit for each group. spec: what its pieces left out or hold twice, so that all is counted in one place."""
    bos = _bos(plan)
    return [
        Unit(name, ((PIECES, name),), {"counts": dict(entry.counts)} | bos, origin=entry.origin)
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


def _domains(plan: Plan, splits: Mapping[str, Entry]) -> list[str]:
    """Those that some row belongs to: what is left of the sources in the order of the parts, then pack.domains.

    Raises ParamsError where one of pack.domains selects no row: its name would stand in no mixture, and nobody knew.
    """
    found = dict.fromkeys(
        key.removeprefix(STREAM).rpartition("/")[0]
        for entry in splits.values()
        for key in entry.counts
        if key.startswith(STREAM)
    )
    chosen = [domain.name for domain in plan.params.domains]
    for name in chosen:
        if name not in found:
            raise ParamsError(
                f"pack.domains: {name!r} selects no document that was kept; there are: {', '.join(found) or 'none'}",
                "mend what it selects (the first that selects a row has it), or take it out",
            )
    return [*(name for name in found if name not in chosen), *chosen]


def _check(plan: Plan, sources: Sequence[str]) -> None:
    """A name that is no source would change nothing and say nothing; a domain's name must not be a source's."""
    known = f"of these: {', '.join(sources)}"
    for name in sorted(set(plan.params.long_of) - set(sources)):
        raise ParamsError(f"pack.long_of names {name!r}, which is no source {known}", "mend it")
    for domain in plan.params.domains:
        for name in sorted(set(domain.sources) - set(sources)):
            raise ParamsError(f"pack.domains: {domain.name!r} names {name!r}, which is no source {known}", "mend it")
        if domain.name in sources:
            raise ParamsError(
                f"pack.domains: {domain.name!r} is the name of a source, which holds what no domain selects",
                "give the domain another name",
            )


def has_place(strategy: str, bos: str) -> bool:
    """Whether sequences of a strategy can begin as tokenize.bos says."""
    return bos not in (FIRST, SEQUENCE) or not (strategy == "stride" or (bos == FIRST and strategy in OF_PIECES))


def _bos(plan: Plan) -> dict[str, str]:
    """{"bos": where} if pack puts it. Raises ParamsError where the strategy has no place for it."""
    where = str(plan.section("tokenize")["bos"])
    if where not in (FIRST, SEQUENCE):
        return {}
    if not has_place(plan.params.strategy, where):
        raise ParamsError(
            f"tokenize.bos is {where}, but pack.strategy {plan.params.strategy} has no place for it: windows of stride"
            f" share their ids, sequences of best_fit and document follow no other",
            "take sequence with concat, best_fit or document; first with concat; or document with any",
        )
    return {"bos": where}


def _unit(plan: Plan, domain: str, split: str, number: int, parts: list[str], bos: dict[str, str]) -> Unit:
    name = f"{domain}-{split}-{_digest(parts)[:16]}"
    reads = tuple((folder, part) for folder in (TOKENS, SPLITS) for part in parts)
    spec: dict[str, Any] = {"domain": domain, "split": split, "parts": parts} | bos
    if plan.params.strategy in OF_PIECES or SEQUENCE in bos.values():  # else the stream is the same for any length
        spec |= {"strategy": plan.params.strategy, "tokens_per_sequence": plan.params.tokens_per_sequence}
    return Unit(name, reads, spec, origin=(f"{domain}/{split}", number))


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _bytes(entry: Entry, tokens: int) -> int:
    """Bytes of `tokens` ids of a part, from the length of its flat file: 2 or 4 each."""
    flat: int = entry.files[entry.suffixes()[".bin"]]["bytes"]
    return flat * tokens // entry.counts["tokens"]
