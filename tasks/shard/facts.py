"""What tokenizer.json says of the ids, as the folders of this step read it."""

from __future__ import annotations

import json
from typing import Any

from tasks.step import Reads

TOKENIZER = "tokenize/tokenizer"


def facts(reads: Reads) -> dict[str, Any]:
    """tokenizer.json as plain data; see tasks.tokenize.tokenizer."""
    return dict(json.loads(reads.path(TOKENIZER, ".json", "tokenizer").read_text(encoding="utf-8")))
