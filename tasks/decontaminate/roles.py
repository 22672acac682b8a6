"""Questions, answers and passages told apart: what of each kind was found of a set.

In: the index, the role of each field of a set, and what was found. Out: a part of the certificate. A benchmark whose
questions lie in a corpus is known; one whose answers lie beside them is learnt by heart.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tasks.decontaminate.index import Index

Line = dict[str, Any]


def by_role(index: Index, number: int, roles: dict[str, str], found: list[Line]) -> dict[str, Any]:
    """{"by_role": {role: items, items_too_short, items_matched, documents_matched}, "answered": records}.

    number: of the set in the index. found: its (document, item) pairs. answered: records of which some document holds
    a question and an answer.
    """
    mine = np.flatnonzero(index.sets_I == number).tolist()
    searchable = set(np.unique(index.windows.items_F[index.windows.lengths_F > 0]).tolist())
    facts = {role: dict.fromkeys(("items", "items_too_short"), 0) for role in sorted(set(roles.values()))}
    for item in mine:
        of_role = facts[_role(roles, index.names_I[item])]
        of_role["items"] += 1
        of_role["items_too_short"] += item not in searchable
    for role, of_role in facts.items():
        lines = [line for line in found if _role(roles, line["item"]) == role]
        of_role["items_matched"] = len({line["item"] for line in lines})
        of_role["documents_matched"] = len({line["document"] for line in lines})
    return {"by_role": facts, "answered": _answered(roles, found)}


def _answered(roles: dict[str, str], found: list[Line]) -> int:
    held: dict[tuple[str, str], set[str]] = {}
    for line in found:
        record = line["item"].partition(":")[0]
        held.setdefault((line["document"], record), set()).add(_role(roles, line["item"]))
    return len({record for (_, record), kinds in held.items() if {"question", "answer"} <= kinds})


def _role(roles: dict[str, str], item: str) -> str:
    return roles[item.partition(":")[2]]
