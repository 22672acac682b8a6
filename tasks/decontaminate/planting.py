"""The self-test of the certificate: items planted in nine disguises, looked for by the code that reads the corpus.

In: the index, the corpus's boilerplate, how many items and a seed. Out: how many were planted and found, disguise by
disguise. It reads no document of the corpus: what is planted stands between made-up sentences.

*Sample*: the items whose SHA-256 of (seed, set, item) is lowest, of those that have an n-gram which is not boilerplate;
so an item more or less changes one item of the sample. *Found*: a passage of the item itself with such an n-gram.
*Too short*: a disguise leaves fewer words than the shortest n-gram looked for, so that it cannot be found by the rule.

Cost: 40 items in nine disguises take 5 ms.
"""

from __future__ import annotations

import hashlib
import unicodedata
from typing import Any

import numpy as np
import pyarrow as pa

from tasks.decontaminate.answers import find_answers
from tasks.decontaminate.index import Index
from tasks.decontaminate.passages import find_passages
from tasks.decontaminate.windows import PAIR
from tasks.errors import InvariantError
from tasks.text.disguises import DISGUISES
from tasks.text.words import split_words

BEFORE, AFTER = "vomir taluke sorandi pelu.\n", "\nkestra molun didapor vesh."


def self_test(index: Index, boilerplate: np.ndarray, items: int, seed: int) -> dict[str, Any]:
    """{"items": planted, "disguises": {name: {planted, found, too_short, recall}}}.

    boilerplate: uint64, hashes of n-grams that tell nothing. Raises InvariantError where nothing is found of what was
    planted.
    """
    sample = _sample(index, boilerplate, items, seed)
    disguises = {name: _test_one(index, boilerplate, sample, name) for name in DISGUISES}
    if len(sample) and not any(one["found"] for one in disguises.values()):
        raise InvariantError(
            f"of {len(sample)} evaluation items planted in {len(DISGUISES)} disguises none was found",
            "the check finds nothing and its certificate would say clean; report it",
        )
    return {"items": len(sample), "seed": seed, "disguises": disguises}


def _tells(index: Index, boilerplate: np.ndarray) -> np.ndarray:
    """int64, ascending: the items with an n-gram that tells something."""
    hashes = np.repeat(index.grams.hashes, np.diff(index.grams.starts))
    return np.unique(index.grams.items[~np.isin(hashes, boilerplate)])


def _sample(index: Index, boilerplate: np.ndarray, items: int, seed: int) -> list[int]:
    def place(item: int) -> bytes:
        name = f"{seed}\n{index.sets[index.sets_I[item]]}\n{index.names_I[item]}"
        return hashlib.sha256(name.encode()).digest()

    return sorted(_tells(index, boilerplate).tolist(), key=place)[:items]


def _test_one(index: Index, boilerplate: np.ndarray, sample: list[int], name: str) -> dict[str, Any]:
    forms = np.searchsorted(index.windows.items_F, sample)  # the first form of each item, composed
    disguised = [
        unicodedata.normalize("NFC", DISGUISES[name](_planted(index, item, form)))
        for item, form in zip(sample, forms.tolist(), strict=True)
    ]
    planted = split_words(pa.array([f"{BEFORE}{text}{AFTER}" for text in disguised], pa.large_string()))
    passages = find_passages(planted, index.grams)
    answers_M, _ = find_answers(planted, passages, index.answers)
    evidence_M = (index.windows.rules_I[passages.items_M] != PAIR) | (answers_M >= 0)
    tells = ~np.isin(passages.hashes, boilerplate)
    telling_M = np.bincount(np.repeat(np.arange(len(passages.texts_M)), passages.grams_M)[tells], minlength=1)
    own_M = np.array(sample, np.int64)[passages.texts_M] == passages.items_M
    found = len(np.unique(passages.texts_M[own_M & evidence_M & (telling_M[: len(own_M)] > 0)]))
    words = np.diff(split_words(pa.array(disguised, pa.large_string())).offsets_D1)
    return {
        "planted": len(sample),
        "found": found,
        "too_short": int((words < index.windows.lengths_F[forms]).sum()),
        "recall": round(found / len(sample), 4) if sample else None,
    }


def _planted(index: Index, item: int, form: int) -> str:
    """The item; one that is evidence only together with its answer, with that."""
    text = index.windows.texts[form]
    if index.windows.rules_I[item] != PAIR:
        return text
    answer = np.searchsorted(index.windows.items_F, index.windows.answers_I[item][0])
    return f"{text}\n{index.windows.texts[answer]}"
