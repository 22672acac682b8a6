"""Questions, answers and passages told apart: what of each kind was found of a set.

In: the index, with the role of each item, and what was found. Out: a part of the certificate. A benchmark whose
questions lie in a corpus is known; one whose answers lie beside them is learnt by heart.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tasks.decontaminate.index import Index
from tasks.decontaminate.windows import NONE

Line = dict[str, Any]


def by_role(index: Index, number: int, found: list[Line]) -> dict[str, Any]:
    """{"by_role": {role: items, items_too_short, items_matched, documents_matched}, "answered": records}.

    number: of the set in the index. found: its (document, item) pairs, short answers near their questions among them.
    answered: records of which some document holds a question and an answer.
    """
    mine = np.flatnonzero(index.sets_I == number).tolist()
    roles = {index.names_I[item]: index.roles_I[item] for item in mine}
    facts = {role: dict.fromkeys(("items", "items_too_short"), 0) for role in sorted(set(roles.values()))}
    for item in mine:
        of_role = facts[index.roles_I[item]]
        of_role["items"] += 1
        of_role["items_too_short"] += int(index.windows.rules_I[item] == NONE)
    for role, of_role in facts.items():
        lines = [line for line in found if roles[line["item"]] == role]
        of_role["items_matched"] = len({line["item"] for line in lines})
        of_role["documents_matched"] = len({line["document"] for line in lines})
    return {"by_role": facts, "answered": _answered(roles, found)}


def _answered(roles: dict[str, str], found: list[Line]) -> int:
    held: dict[tuple[str, str], set[str]] = {}
    for line in found:
        record = line["item"].partition(":")[0]
        held.setdefault((line["document"], record), set()).add(roles[line["item"]])
    return len({record for (_, record), kinds in held.items() if {"question", "answer"} <= kinds})
