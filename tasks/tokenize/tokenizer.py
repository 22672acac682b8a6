"""The folder tokenize/tokenizer, the file tokenizer.json: which tokenizer made the ids.

In: facts of the plan. Out: JSON. It holds nothing that shapes no id: not the tokenizer's name either, so that
one that is renamed remakes nothing.

{"format": 1, "engine": "sentencepiece", "options": {}, "sha256": 64 hex, "vocab_size": 4096, "dtype": "<u2",
 "eos_id": 2, "bos_id": 1, "unk_id": 0, "pad_id": 3, "maker": 32 hex, "bos": "none"}
engine: sentencepiece, tokenizers or tiktoken; options: see tasks.engines. An id that the tokenizer lacks is -1. maker:
digest of model, library version and the ids of the probe text. bos: where BOS stands, as params.yaml has it.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from tasks.artifacts.canonical import canonical, pretty
from tasks.artifacts.tokens import token_dtype
from tasks.encoder import Tokenizer, probe_ids
from tasks.step import Made, Reads

if TYPE_CHECKING:
    from tasks.tokenize import TokenizeParams


def make(reads: Reads, params: TokenizeParams) -> Made:
    """tokenizer.json, from spec["tokenizer"]."""
    return Made({".json": pretty({"format": 1, **reads.spec["tokenizer"], "bos": reads.spec["bos"]}).encode()})


def facts(tokenizer: Tokenizer) -> dict[str, Any]:
    """What the ids depend on, as plain JSON, for a unit's spec; a tokenizer that is renamed is the same."""
    made = [tokenizer.sha256, tokenizer.version, probe_ids(tokenizer)]
    return {
        "engine": tokenizer.engine,
        "options": tokenizer.options,
        "sha256": tokenizer.sha256,
        "vocab_size": tokenizer.vocab_size,
        "dtype": token_dtype(tokenizer.vocab_size).str,
        "eos_id": tokenizer.eos_id,
        "bos_id": tokenizer.bos_id,
        "unk_id": tokenizer.unk_id,
        "pad_id": tokenizer.pad_id,
        "maker": hashlib.sha256(canonical(made)).hexdigest()[:32],
    }
