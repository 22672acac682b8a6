"""What another strategy of pack would make of the tokens that stand, with nothing built and no id read.

In: a project whose pack stands, and changes as "pack.strategy" (all of them), "pack.strategy=best_fit",
"pack.tokens_per_sequence=2048". Out: for each strategy its sequences, the places that stay empty, and ids that it
repeats, cuts off or leaves out. The folders' own functions decide, over the lengths of the documents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast, get_args

import pyarrow as pa
import yaml

from tasks.artifacts.tokens import FIRST, SEQUENCE
from tasks.errors import ParamsError
from tasks.pack import STEP, PackParams, pieces, sequences
from tasks.pack.planning import OF_PIECES, PIECES, TOKENS, has_place
from tasks.project import Project, checked
from tasks.staged import Staged
from tasks.step import Reads

STRATEGIES: tuple[str, ...] = get_args(PackParams.model_fields["strategy"].annotation)
DROPPED = "tokens_dropped|reason="


@dataclass(frozen=True)
class Line:
    """What one strategy makes of all splits. padding: share of the places of its sequences, 0 to 1; tokens: of the
    documents; dropped: reason -> tokens. why_not: no figures, and why it cannot be."""

    strategy: str
    sequences: int = 0
    padding: float = 0.0
    tokens: int = 0
    repeated: int = 0
    dropped: dict[str, int] | None = None
    documents_cut: int = 0
    why_not: str = ""


def what_if(project: Project, spelled: Sequence[str]) -> list[Line]:
    """A line for each strategy asked for. Raises ParamsError for what is no parameter of pack, GristmillError where
    pack does not stand."""
    section = dict(project.section(STEP.name))
    for item in spelled:
        name, given, value = item.removeprefix("pack.").partition("=")
        if name not in PackParams.model_fields or (not given and name != "strategy"):
            raise ParamsError(
                f"{item} is no change of pack",
                "say pack.strategy, or pack.<parameter>=<value>: " + ", ".join(PackParams.model_fields),
            )
        section |= {name: yaml.safe_load(value)} if given else {}
    asked = STRATEGIES if "pack.strategy" in spelled else (section["strategy"],)
    held = Staged.of_steps(project, ["tokenize", "pack"])
    bos = project.section("tokenize")["bos"]
    return [_line(held, checked(PackParams, STEP.name, section | {"strategy": name}), str(bos)) for name in asked]


class _Stored:
    """Reads over what stands, and over the pieces just made."""

    def __init__(self, held: Staged, spec: dict[str, Any]) -> None:
        self._held, self.spec = held, spec
        self.made: dict[str, pa.Table] = {}

    def table(self, folder: str, columns: Sequence[str] | None = None, unit: str | None = None) -> pa.Table:
        if folder in self.made:
            return self.made[folder].select(columns)
        return self._held.table(folder, columns, unit)


def _line(held: Staged, params: Any, bos: str) -> Line:
    if not has_place(params.strategy, bos):
        return Line(params.strategy, why_not=f"tokenize.bos is {bos}")
    counts: Counter[str] = Counter()
    for group in held.units(PIECES):
        counts.update(_counts(held, params, group, bos))
    dropped = {key.removeprefix(DROPPED): count for key, count in sorted(counts.items()) if key.startswith(DROPPED)}
    return Line(
        strategy=params.strategy,
        sequences=counts["sequences"],
        padding=counts["padding"] / max(1, counts["places"]),
        tokens=counts["tokens_in"],
        repeated=counts["tokens_repeated"],
        dropped=dropped,
        documents_cut=counts["documents_cut"],
    )


def _counts(held: Staged, params: Any, group: str, bos: str) -> dict[str, int]:
    """What pieces and sequences count of one group, by the strategy of `params`."""
    domain, split, _ = group.split("-")
    among = set(held.table(PIECES, ["part"], group)["part"].to_pylist())
    spec: dict[str, Any] = {"domain": domain, "split": split, "parts": [n for n in held.units(TOKENS) if n in among]}
    where = {"bos": bos} if bos in (FIRST, SEQUENCE) else {}
    if params.strategy in OF_PIECES or bos == SEQUENCE:
        spec |= {"strategy": params.strategy, "tokens_per_sequence": params.tokens_per_sequence}
    reads = _Stored(held, spec | where)
    made = pieces.make(cast(Reads, reads), params)
    reads.made[PIECES], reads.spec = made.files[".parquet"], {"counts": made.counts} | where
    return {**made.counts, **sequences.make(cast(Reads, reads), params).counts}
