"""Any tokenizer as one function from a text to ids, and the ids of its closing and padding pieces.

In: an object of sentencepiece, transformers, tokenizers, tiktoken, this house, or anything with `encode` or
`__call__`. Out: int64 ids without added special pieces, since where a document ends is ours to say. A text that
spells a control piece does not become one where the library can be told so. It trains and loads no tokenizer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

Encode = Callable[[str], np.ndarray]
PLAIN: tuple[dict[str, bool], ...] = (
    {"add_special_tokens": False, "split_special_tokens": True, "verbose": False},
    {"add_special_tokens": False},
    {},
)
"""Keywords to try, the most careful first: transformers takes the first, tokenizers the second, others none."""


def encoder(tokenizer: Any) -> Encode:
    """A function text -> int64 ids [n]. Raises TypeError for an object that cannot encode or gives no ids."""
    name = next(
        (name for name in ("encode_ordinary", "encode", "__call__", "encode_batch") if _has(tokenizer, name)), None
    )
    if name is None:
        raise TypeError(f"{type(tokenizer).__name__} has neither encode nor __call__; pass a tokenizer")
    call = getattr(tokenizer, name)
    if name == "encode_batch":  # of this house: texts -> (ids of all, ids of each)
        return lambda text: _ids(call([text])[0], tokenizer)
    keywords = _accepted(call)
    return lambda text: _ids(call(text, **keywords), tokenizer)


def end_id(tokenizer: Any, given: int | None = None) -> int:
    """The id that closes a document: `given`, or the tokenizer's own; raises ValueError where there is none."""
    found = given if given is not None else _special(tokenizer, ("eos_token_id", "eos_id", "eot_token"))
    if found is None or found < 0:
        raise ValueError(f"the tokenizer's end-of-document id is {found}; pass eos_id=, an id of its vocabulary")
    return found


def pad_id(tokenizer: Any) -> int:
    """The padding id of a tokenizer, or `tokenizer` itself where it is an id.

    Raises ValueError for None (transformers without a pad piece) and -1 (SentencePiece's default): either would
    be looked up in the embedding as the last row, or fail there. Any id of the vocabulary does as well, the
    end-of-document id too, since padding is masked by position and never by value.
    """
    plain = tokenizer is None or (isinstance(tokenizer, (int, np.integer)) and not isinstance(tokenizer, bool))
    found = tokenizer if plain else _special(tokenizer, ("pad_token_id", "pad_id"))
    if found is None or found < 0:
        raise ValueError(
            f"the pad id is {found}, no id of a vocabulary; pass one, as the end-of-document id: "
            f"padding is masked by position, so it may equal a real id"
        )
    return int(found)


def unknown_id(tokenizer: Any) -> int | None:
    """The id of what the tokenizer cannot spell, or None where it has none."""
    found = _special(tokenizer, ("unk_token_id", "unk_id"))
    return None if found is None or found < 0 else found


def vocabulary_size(tokenizer: Any) -> int:
    """Ids 0 to this, pieces added later counted; raises TypeError for a tokenizer that does not tell."""
    if hasattr(type(tokenizer), "__len__"):
        return len(tokenizer)
    for name in ("n_vocab", "get_vocab_size", "vocab_size"):
        found = getattr(tokenizer, name, None)
        found = found() if callable(found) else found
        if isinstance(found, int) and found > 0:
            return found
    raise TypeError(f"{type(tokenizer).__name__} does not tell the size of its vocabulary; pass vocab_size=")


def _has(tokenizer: Any, name: str) -> bool:
    return callable(getattr(tokenizer, name, None)) if name != "__call__" else callable(tokenizer)


def _special(tokenizer: Any, names: Iterable[str]) -> int | None:
    for name in names:
        found = getattr(tokenizer, name, None)
        found = found() if callable(found) else found
        if found is not None:
            return int(found)
    return None


def _accepted(call: Callable[..., Any]) -> dict[str, Any]:
    """The first of PLAIN that the function takes; a wrong keyword is a TypeError (or a RuntimeError) of its."""
    for keywords in PLAIN[:-1]:
        try:
            call("a", **keywords)
        except (TypeError, RuntimeError, ValueError):
            continue
        return keywords
    return PLAIN[-1]


def _ids(found: Any, tokenizer: Any) -> np.ndarray:
    """The ids in what a tokenizer gave: a list, an array, an Encoding with `ids`, or a mapping of `input_ids`."""
    if hasattr(found, "keys") and "input_ids" in found:
        found = found["input_ids"]
    found = np.asarray(getattr(found, "ids", found))
    if found.ndim == 2 and len(found) == 1:
        found = found[0]
    if found.ndim != 1 or (len(found) and not np.issubdtype(found.dtype, np.integer)):
        raise TypeError(
            f"{type(tokenizer).__name__} gave {found.dtype} of shape {found.shape} instead of a row of ids; "
            f"have it give ids (sentencepiece: out_type=int)"
        )
    ids: np.ndarray = found.astype(np.int64)
    return ids
